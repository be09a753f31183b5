//! One file in ten is broken, each in another way, for 20 epochs: nothing is lost, nothing is shifted, everything is named.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::broken::{self, BROKEN, SAMPLES, colour, place};
use common::pipeline::assert_fails;
use common::usage::{growth, resident};
use common::{Feed, Pipeline, Report, SAMPLE, figure, launch, location, quoted, scratch};
use gst::prelude::*;

const EPOCHS: u64 = 20;
/// Pixels as they are in the file.
const STILL: &str = "hue=0 saturation=0 value=0";
const BATCH: usize = 10;

/// Every epoch's faults are those files, with their class and reason, once.
#[track_caller]
fn assert_named(report: &Report, epochs: u64, action: &str) {
    assert_eq!(report.faults.len() as u64, epochs * BROKEN.len() as u64);
    for epoch in 0..epochs {
        let mut faults: Vec<_> = report
            .faults
            .iter()
            .filter(|fault| fault.epoch == epoch)
            .collect();
        assert!(
            faults.is_sorted_by_key(|fault| fault.index),
            "in the order of the epoch"
        );
        faults.sort_by_key(|fault| fault.dataset_index);
        for (which, (fault, (name, class, reason))) in faults.iter().zip(BROKEN).enumerate() {
            assert_eq!(fault.dataset_index, place(which), "{fault:?}");
            assert!(fault.uri.ends_with(&format!("/{name}")), "{fault:?}");
            assert_eq!(
                (&fault.class[..], &fault.action[..]),
                (class, action),
                "{fault:?}"
            );
            assert!(fault.reason.contains(reason), "{fault:?}");
        }
    }
}

/// Runs `on-error` and checks what is the same for both policies.
fn run(list: &Path, source: &str, on_error: &str) -> Report {
    let feed = Feed {
        source: &format!("{source} epochs={EPOCHS}"),
        decode: &format!("on-error={on_error}"),
        jitter: STILL,
        pack: &format!("batch-size={BATCH}"),
        ..Feed::new(list)
    };
    let taken = feed.taken();
    taken.report.assert_adds_up();
    assert_named(&taken.report, EPOCHS, on_error);
    // A sample's colour is that of its index, whatever was skipped or replaced before it.
    for sample in taken.samples() {
        for pixel in sample.pixels.chunks_exact(3) {
            assert_eq!(
                pixel,
                colour(sample.index),
                "{} of epoch {}",
                sample.index,
                sample.epoch
            );
        }
    }
    assert_eq!(taken.bytes.len() % SAMPLE, 0);
    taken.report
}

#[test]
fn skip_leaves_the_broken_out() {
    let folder = scratch();
    let list = broken::dataset(folder.path());
    let broken = BROKEN.len() as u64;
    let report = run(&list, "seed=1", "skip");
    assert_eq!(report.epochs.len() as u64, EPOCHS);
    for epoch in &report.epochs {
        let ledger = (
            epoch.listed,
            epoch.delivered,
            epoch.skipped,
            epoch.dropped,
            epoch.replaced,
        );
        assert_eq!(ledger, (SAMPLES, SAMPLES - broken, broken, 0, 0));
    }
}

#[test]
fn replace_keeps_batches_full() {
    let folder = scratch();
    let list = broken::dataset(folder.path());
    let broken = BROKEN.len() as u64;
    let report = run(&list, "seed=1 shuffle=torch", "replace");
    for epoch in &report.epochs {
        let ledger = (
            epoch.listed,
            epoch.delivered,
            epoch.skipped,
            epoch.dropped,
            epoch.replaced,
        );
        assert_eq!(ledger, (SAMPLES, SAMPLES - broken, broken, 0, broken));
    }
    assert_eq!(report.batches.len() as u64 * BATCH as u64, EPOCHS * SAMPLES);
    assert!(report.batches.iter().all(|batch| batch.indices.len() == BATCH));
}

/// The same with what was prepared ahead, and with frames that are kept: told in the epoch they belong to.
#[test]
fn what_is_prepared_is_told_when_it_is_delivered() {
    let folder = scratch();
    let list = broken::dataset(folder.path());
    let report = folder.path().join("report.jsonl");
    let line = format!(
        "epochsrc location={} epochs=3 ! epochdecode on-error=skip cache=ram ! video/x-raw,width=16,height=16 \
         ! epochbuffer prefetch=complete ! nhwcpack batch-size=7 ! epochsink silent=true report={}",
        location(&list),
        location(&report)
    );
    launch(&line).run().success();
    let report = Report::read(&report);
    report.assert_adds_up();
    assert_named(&report, 3, "skip");
}

#[test]
fn ranks_stay_equal() {
    let folder = scratch();
    let list = broken::dataset(folder.path());
    let batches: Vec<_> = (0..2)
        .map(|rank| {
            let feed = Feed {
                source: &format!("seed=4 epochs=3 world-size=2 rank={rank}"),
                decode: "on-error=skip",
                pack: "batch-size=8",
                ..Feed::new(&list)
            };
            let report = feed.report();
            report.assert_adds_up();
            report
                .batches
                .iter()
                .map(|batch| (batch.epoch, batch.indices.len()))
                .collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(batches[0], batches[1]);
    assert_eq!(batches[0].len(), 3 * 7);
}

#[test]
fn max_errors_stops_with_one_error() {
    let folder = scratch();
    let list = broken::dataset(folder.path());
    let report = folder.path().join("report.jsonl");
    let line = |limit: &str| {
        format!(
            "epochsrc location={} epochs=2 ! epochdecode on-error=replace max-errors={limit} \
             ! video/x-raw,width=16,height=16 ! nhwcpack batch-size=8 ! epochsink silent=true report={}",
            location(&list),
            location(&report)
        )
    };
    for enough in ["10", "10%"] {
        launch(&line(enough)).run().success();
    }
    for (limit, number) in [("9", 10), ("0", 1), ("9.9%", 10)] {
        let pipeline = Pipeline::playing(&line(limit));
        let error = pipeline.wait_error();
        assert!(
            error.contains(&format!("Too many faulty samples: {number} in epoch 0")),
            "{limit}: {error}"
        );
        assert!(
            error.contains(&format!("max-errors, which is {limit}")) && error.contains("file://"),
            "{limit}: {error}"
        );
        let _ = pipeline.0.set_state(gst::State::Null);
        assert_eq!(pipeline.errors(), [""; 0], "{limit}");
        // The epoch has no line of its own, and its faulty samples have.
        assert_eq!(Report::read(&report).faults.len(), number, "{limit}");
    }
}

/// A run that resumes in the middle of an epoch goes on counting where the one before stopped.
#[test]
fn max_errors_counts_on_where_a_run_resumes() {
    let folder = scratch();
    let list = broken::dataset(folder.path());
    for on_error in ["skip", "replace"] {
        let decode = |limit: &str| format!("on-error={on_error} max-errors={limit}");
        let feed = Feed {
            source: "shuffle=none",
            decode: &decode("10"),
            pack: "batch-size=8",
            ..Feed::new(&list)
        };
        let state = quoted(&feed.report().batches[5].state.to_string());
        let source = format!("shuffle=none state={state}");
        let rest = Feed {
            source: &source,
            ..feed
        };
        assert_eq!(rest.report().epochs[0].skipped, 10, "{on_error}");
        let line = format!(
            "epochsrc location={} {source} ! epochdecode {} ! video/x-raw,width=16,height=16 ! fakesink",
            location(&list),
            decode("9")
        );
        assert_fails(&line, &["Too many faulty samples: 10 in epoch 0"]);
    }
}

/// The header that claims 16000x16000 pixels is refused before memory is taken for them: there is none.
#[test]
fn a_bomb_finds_no_memory_and_needs_none() {
    let folder = scratch();
    let list = broken::dataset(folder.path());
    let report = folder.path().join("report.jsonl");
    let run = |bytes: u64| {
        let line = format!(
            "epochsrc location={} ! epochdecode threads=1 on-error=skip max-pixels={} ! video/x-raw,width=16,height=16 \
             ! epochsink silent=true report={}",
            location(&list),
            bytes / 3,
            location(&report)
        );
        let limit = format!("ulimit -v {}; exec \"$0\" \"$@\"", 700_000);
        launch(&line).under(&["sh", "-c", &limit]).run().success();
        let report = Report::read(&report);
        report.assert_adds_up();
        let bomb = report
            .faults
            .iter()
            .find(|fault| fault.uri.ends_with("bomb.jpg"))
            .unwrap()
            .clone();
        assert_eq!(bomb.class, "too-large");
        bomb.reason
    };
    assert!(run(500 << 20).contains("raise max-pixels"));
    // Where it is allowed, it is refused by the lack of memory, and the run goes on all the same.
    assert!(run(1 << 30).contains("no memory"));
}

#[test]
fn memory_is_level() {
    let folder = scratch();
    let list = broken::dataset(folder.path());
    let memory: Arc<Mutex<Vec<u64>>> = Arc::default();
    for on_error in ["skip", "replace"] {
        let line = format!(
            "epochsrc location={} epochs={} ! epochdecode on-error={on_error} ! video/x-raw,width=64,height=64 \
             ! nhwcpack batch-size=8 ! epochsink report={}",
            location(&list),
            3 * EPOCHS,
            location(&folder.path().join("report.jsonl"))
        );
        memory.lock().unwrap().clear();
        let writer = memory.clone();
        let job = launch(&line).limit(Duration::from_secs(60));
        let outcome = job.run_watching(move |line, id| {
            if line.starts_with("epoch ") {
                // It may end behind its last line.
                writer.lock().unwrap().extend(resident(&id.to_string()));
            }
        });
        outcome.success();
        let memory = memory.lock().unwrap();
        assert!(memory.len() as u64 + 1 >= 3 * EPOCHS, "{memory:?}");
        let grown = growth(&memory[EPOCHS as usize..]);
        figure(format_args!(
            "10 % broken, {on_error}: {:+.2} MB over {} epochs",
            grown / 1e6,
            2 * EPOCHS
        ));
        assert!(grown < 3e6, "{memory:?}");
    }
}
