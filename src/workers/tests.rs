#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use super::*;

/// Tests look at the one pool of the process: one at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
const TIMEOUT: Duration = Duration::from_secs(20);
const DECODE: Class = Class {
    urgency: Urgency::Demanded,
    stage: Stage::Decode,
};

/// Occupies every worker `client` may use until the returned sender is dropped.
fn occupy(client: &Client) -> std::sync::mpsc::Sender<()> {
    let (release, held) = channel::<()>();
    let held = Arc::new(Mutex::new(held));
    let (started, all_started) = channel();
    for _ in 0..client.limit() {
        let (held, started) = (held.clone(), started.clone());
        client.spawn(DECODE, move || {
            started.send(()).unwrap();
            let _ = held.lock().unwrap().recv();
        });
    }
    for _ in 0..client.limit() {
        all_started.recv_timeout(TIMEOUT).unwrap();
    }
    release
}

fn collect(receive: &Receiver<&'static str>, count: usize) -> Vec<&'static str> {
    (0..count)
        .map(|_| receive.recv_timeout(TIMEOUT).unwrap())
        .collect()
}

/// The worker threads of this process.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task")
        .unwrap()
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok())
        .filter(|name| name.starts_with("epochfeed:"))
        .count()
}

#[test]
fn demanded_before_ahead_and_packing_before_decoding() {
    let _guard = ONE_AT_A_TIME.lock();
    let client = Client::new(1).unwrap();
    let release = occupy(&client);
    let (send, receive) = channel();
    for (urgency, stage, name) in [
        (Urgency::Ahead, Stage::Decode, "decode ahead"),
        (Urgency::Ahead, Stage::Pack, "pack ahead"),
        (Urgency::Demanded, Stage::Decode, "decode"),
        (Urgency::Demanded, Stage::Pack, "pack"),
        (Urgency::Demanded, Stage::Decode, "decode, later"),
    ] {
        let send = send.clone();
        client.spawn(Class::new(urgency, stage), move || send.send(name).unwrap());
    }
    drop(release);
    assert_eq!(
        collect(&receive, 5),
        ["pack", "decode", "decode, later", "pack ahead", "decode ahead"]
    );
}

#[test]
fn a_limit_holds_and_the_other_client_uses_the_rest() {
    let _guard = ONE_AT_A_TIME.lock();
    let (one, two) = (Client::new(1).unwrap(), Client::new(2).unwrap());
    let release = occupy(&one);
    let (send, receive) = channel();
    one.spawn(DECODE, {
        let send = send.clone();
        move || send.send("one").unwrap()
    });
    // Two threads in all, one of them occupied: the other is free for `two` although `one` asked first.
    two.spawn(DECODE, move || send.send("two").unwrap());
    assert_eq!(collect(&receive, 1), ["two"]);
    assert!(receive.try_recv().is_err());
    drop(release);
    assert_eq!(collect(&receive, 1), ["one"]);
}

const AHEAD: Class = Class {
    urgency: Urgency::Ahead,
    stage: Stage::Decode,
};

/// Has `client` prepare something; what comes out is its name.
fn ahead(client: &Client, name: &'static str) -> Receiver<&'static str> {
    let (send, receive) = channel();
    client.spawn(AHEAD, move || send.send(name).unwrap());
    receive
}

#[test]
fn a_client_that_is_waited_for_has_its_threads_to_itself() {
    let _guard = ONE_AT_A_TIME.lock();
    let (training, validation) = (Client::new(2).unwrap(), Client::new(2).unwrap());
    // One of validation's two threads works; the other is kept for it.
    let (release, held) = channel::<()>();
    let (started, working) = channel();
    validation.spawn(DECODE, move || {
        started.send(()).unwrap();
        let _ = held.recv();
    });
    working.recv_timeout(TIMEOUT).unwrap();
    let prepared = ahead(&training, "prepared");
    let more = ahead(&training, "more");
    let (send, receive) = channel();
    validation.spawn(DECODE, {
        let send = send.clone();
        move || send.send("validation").unwrap()
    });
    assert_eq!(collect(&receive, 1), ["validation"]);
    // The thread that did this has looked for the next job and found none that it may do: it does this one.
    training.spawn(DECODE, move || send.send("training").unwrap());
    assert_eq!(collect(&receive, 1), ["training"]);
    assert!(prepared.try_recv().is_err() && more.try_recv().is_err());
    drop(release);
    assert_eq!(collect(&prepared, 1), ["prepared"]);
    assert_eq!(collect(&more, 1), ["more"]);
}

#[test]
fn clients_of_one_pipeline_do_not_keep_each_other_from_preparing() {
    let _guard = ONE_AT_A_TIME.lock();
    let (decoder, packer) = (Client::new(2).unwrap(), Client::new(2).unwrap());
    let pipeline = Arc::new(());
    decoder.join(&pipeline);
    packer.join(&pipeline);
    let (release, held) = channel::<()>();
    let (started, working) = channel();
    packer.spawn(DECODE, move || {
        started.send(()).unwrap();
        let _ = held.recv();
    });
    working.recv_timeout(TIMEOUT).unwrap();
    assert_eq!(collect(&ahead(&decoder, "prepared"), 1), ["prepared"]);
    drop(release);
}

#[test]
fn what_is_queued_can_be_forgotten() {
    let _guard = ONE_AT_A_TIME.lock();
    let client = Client::new(1).unwrap();
    let release = occupy(&client);
    let (forgotten, kept) = (ahead(&client, "forgotten"), channel());
    client.clear();
    client.spawn(DECODE, move || kept.0.send("kept").unwrap());
    drop(release);
    assert_eq!(collect(&kept.1, 1), ["kept"]);
    assert!(forgotten.recv().is_err());
}

#[test]
fn threads_beyond_those_of_a_client_that_is_waited_for_prepare() {
    let _guard = ONE_AT_A_TIME.lock();
    let (training, validation) = (Client::new(2).unwrap(), Client::new(1).unwrap());
    let release = occupy(&validation);
    assert_eq!(collect(&ahead(&training, "prepared"), 1), ["prepared"]);
    drop(release);
}

#[test]
fn what_was_prepared_ahead_can_be_demanded_and_keeps_its_order() {
    let _guard = ONE_AT_A_TIME.lock();
    let (training, validation) = (Client::new(1).unwrap(), Client::new(1).unwrap());
    let release = occupy(&training);
    let (send, receive) = channel();
    let spawn = |client: &Client, class, name| {
        let send = send.clone();
        client.spawn(class, move || send.send(name).unwrap());
    };
    spawn(&training, AHEAD, "first");
    spawn(&training, AHEAD, "second");
    spawn(&validation, DECODE, "validation");
    spawn(&training, DECODE, "third");
    training.demand();
    drop(release);
    assert_eq!(collect(&receive, 4), ["first", "second", "validation", "third"]);
}

#[test]
fn what_waits_is_taken_up_when_the_client_that_was_waited_for_is_gone() {
    let _guard = ONE_AT_A_TIME.lock();
    let (training, validation) = (Client::new(1).unwrap(), Client::new(1).unwrap());
    let release = occupy(&training);
    validation.spawn(DECODE, || ());
    let prepared = ahead(&training, "prepared");
    drop(validation);
    drop(release);
    assert_eq!(collect(&prepared, 1), ["prepared"]);
}

#[test]
fn a_panic_ends_the_job_alone() {
    let _guard = ONE_AT_A_TIME.lock();
    let client = Client::new(1).unwrap();
    let (send, receive) = channel::<()>();
    client.spawn(DECODE, move || {
        let _owned = send;
        panic!("on purpose");
    });
    assert_eq!(
        receive.recv_timeout(TIMEOUT),
        Err(std::sync::mpsc::RecvTimeoutError::Disconnected)
    );
    let (send, receive) = channel();
    client.spawn(DECODE, move || send.send("alive").unwrap());
    assert_eq!(collect(&receive, 1), ["alive"]);
}

#[test]
fn threads_end_with_the_last_client_and_queued_jobs_are_discarded() {
    let _guard = ONE_AT_A_TIME.lock();
    let first = Client::new(3).unwrap();
    let second = Client::new(1).unwrap();
    // A thread takes its name when it first runs: all three have to meet before they can be counted.
    let meeting = Arc::new(std::sync::Barrier::new(4));
    for _ in 0..3 {
        let meeting = meeting.clone();
        first.spawn(DECODE, move || {
            meeting.wait();
        });
    }
    meeting.wait();
    assert_eq!(threads(), 3);
    drop(first);
    assert_eq!(threads(), 3);
    let release = occupy(&second);
    let (send, receive) = channel::<()>();
    second.spawn(DECODE, move || send.send(()).unwrap());
    let dropper = std::thread::spawn(move || drop(second));
    // The queued job is dropped at once, though the worker is still occupied.
    assert_eq!(
        receive.recv_timeout(TIMEOUT),
        Err(std::sync::mpsc::RecvTimeoutError::Disconnected)
    );
    drop(release);
    dropper.join().unwrap();
    assert_eq!(threads(), 0);
}

#[test]
fn the_last_client_may_be_dropped_by_a_job() {
    let _guard = ONE_AT_A_TIME.lock();
    let client = Arc::new(Client::new(1).unwrap());
    let (go, wait) = channel::<()>();
    let (send, receive) = channel();
    client.spawn(DECODE, {
        let client = client.clone();
        move || {
            let _ = wait.recv();
            drop(client);
            send.send("dropped").unwrap();
        }
    });
    drop(client);
    go.send(()).unwrap();
    assert_eq!(collect(&receive, 1), ["dropped"]);
    // That thread cannot be joined, so it is watched.
    let deadline = std::time::Instant::now() + TIMEOUT;
    while threads() > 0 {
        assert!(std::time::Instant::now() < deadline, "the worker did not end");
        std::thread::yield_now();
    }
}

#[test]
fn for_each_runs_every_index_once_also_without_a_free_worker() {
    let _guard = ONE_AT_A_TIME.lock();
    let client = Client::new(2).unwrap();
    let pack = Class::new(Urgency::Demanded, Stage::Pack);
    let counts: Vec<_> = (0..1000).map(|_| AtomicUsize::new(0)).collect();
    client.for_each(pack, counts.len(), |i| {
        counts[i].fetch_add(1, Ordering::Relaxed);
    });
    assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1));

    let release = occupy(&client);
    client.for_each(pack, counts.len(), |i| {
        counts[i].fetch_add(1, Ordering::Relaxed);
    });
    assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 2));
    drop(release);

    // Both workers and the caller are in the body at the same time.
    let barrier = Barrier::new(3);
    client.for_each(pack, 3, |_| {
        barrier.wait();
    });
}

#[test]
fn for_each_passes_a_panic_on() {
    let _guard = ONE_AT_A_TIME.lock();
    let client = Client::new(2).unwrap();
    let outcome = std::panic::catch_unwind(|| {
        client.for_each(Class::new(Urgency::Demanded, Stage::Pack), 100, |i| {
            assert_ne!(i, 57, "on purpose");
        });
    });
    assert!(outcome.is_err());
}
