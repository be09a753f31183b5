#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use super::*;
use crate::dataset::Dataset;
use crate::sampler::{Sampler, SamplerConfig, Shuffle};

const TIMEOUT: Duration = Duration::from_secs(20);

/// A run of `config` without state's file. The dataset that it names is some; only its fingerprint counts.
fn run_of(config: SamplerConfig) -> Run {
    let list = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(list.path(), "a.jpg\n").unwrap();
    Run {
        drawn: Drawn {
            sampler: Sampler::new(config).unwrap(),
            dataset: Dataset::open(list.path()).unwrap(),
            reloaded: false,
        },
        state_location: None,
        reload: false,
    }
}

fn coordinator(state_location: Option<PathBuf>) -> Arc<Coordinator> {
    let run = Run {
        state_location,
        ..run_of(SamplerConfig::new(Shuffle::Keyed, 7, 10))
    };
    let coordinator = Arc::new(Coordinator::default());
    let drawn = run.drawn.clone();
    let first = drawn.sampler.first();
    let order = drawn.sampler.draw(&first);
    coordinator.begin(run, first.epoch(), None, None);
    coordinator.open(drawn, first, order);
    coordinator
}

fn taken(position: u64, skipped: u64, replaced: u64) -> Taken {
    Taken {
        position,
        skipped,
        replaced,
        last_good: Some(3),
    }
}

/// Waits for `epoch` on another thread; what the wait ended with comes through the channel.
fn wait(coordinator: &Arc<Coordinator>, epoch: u64) -> std::sync::mpsc::Receiver<Option<Go>> {
    let (send, receive) = channel();
    let coordinator = coordinator.clone();
    thread::spawn(move || send.send(coordinator.wait_for(epoch)).unwrap());
    receive
}

#[test]
fn the_source_waits_until_its_epoch_is_asked_for() {
    let coordinator = coordinator(None);
    assert_eq!(coordinator.wait_for(0), Some(Go::Requested));
    let waiting = wait(&coordinator, 1);
    assert!(waiting.try_recv().is_err());
    coordinator.request(1);
    assert_eq!(waiting.recv_timeout(TIMEOUT), Ok(Some(Go::Requested)));
    // A request that came early, twice, or for an epoch that has gone by, is one request.
    coordinator.request(2);
    coordinator.request(2);
    coordinator.request(0);
    assert_eq!(coordinator.wait_for(2), Some(Go::Requested));
    let waiting = wait(&coordinator, 3);
    coordinator.set_flushing(true);
    assert_eq!(waiting.recv_timeout(TIMEOUT), Ok(None));
    assert_eq!(coordinator.wait_for(0), None);
    coordinator.set_flushing(false);
    assert_eq!(coordinator.wait_for(2), Some(Go::Requested));
}

#[test]
fn the_last_stage_acknowledges() {
    let coordinator = coordinator(None);
    let pack = coordinator.register(Stage::Pack);
    let sink = coordinator.register(Stage::Consumer);
    let second_sink = coordinator.register(Stage::Consumer);
    assert!(!pack.counts() && sink.counts());
    pack.acknowledge(0, "packed").unwrap();
    assert_eq!(coordinator.state(), None);
    sink.acknowledge(0, "used").unwrap();
    sink.acknowledge(0, "").unwrap();
    assert_eq!(coordinator.state().as_deref(), Some("used"));
    drop(sink);
    assert!(coordinator.has(Stage::Consumer));
    drop(second_sink);
    assert!(!coordinator.has(Stage::Consumer));
    // The pipeline stops, from the sink up: what is still passed on is not consumed.
    assert!(!pack.counts());
    pack.acknowledge(0, "packed").unwrap();
    assert_eq!(coordinator.state().as_deref(), Some("used"));
    // A new run forgets requests, not the state.
    coordinator.begin(run_of(SamplerConfig::new(Shuffle::None, 0, 1)), 5, None, None);
    assert_eq!(coordinator.state().as_deref(), Some("used"));
    assert!(pack.counts(), "nobody comes after it in this run");
}

#[test]
fn there_is_one_consumer() {
    let coordinator = coordinator(None);
    let first = coordinator.register_consumer();
    assert!(first.is_some() && coordinator.register_consumer().is_none());
    drop(first);
    assert!(coordinator.register_consumer().is_some());
}

#[test]
fn behind_the_last_epoch_and_behind_the_end_there_is_none() {
    let coordinator = Coordinator::default();
    assert_eq!(coordinator.next(), None);
    let run = run_of(SamplerConfig::new(Shuffle::None, 0, 1));
    coordinator.begin(run, 4, Some(5), None);
    assert_eq!(coordinator.next(), Some(5));
    coordinator.deliver(5);
    assert_eq!(coordinator.next(), None);
    coordinator.stop();
    assert_eq!((coordinator.next(), coordinator.requested()), (None, None));
}

#[test]
fn states_are_those_of_the_epochs_that_are_open() {
    let coordinator = coordinator(None);
    let drawn = coordinator.lock().run.clone().unwrap().drawn;
    let sampler = drawn.sampler.clone();
    let state_at = |epoch, taken| State::from_json(&coordinator.state_at(epoch, taken)?).ok();
    let state = state_at(0, taken(4, 2, 1)).unwrap();
    assert_eq!(
        (state.epoch, state.position, state.skipped, state.replaced),
        (0, 4, 2, 1)
    );
    assert_eq!(state.last_good, Some(3));
    assert!(state.check(sampler.config(), drawn.dataset.fingerprint()).is_ok());
    // At its ends there is nothing of the epoch left to replace.
    for position in [0, 10] {
        assert_eq!(state_at(0, taken(position, 0, 0)).unwrap().last_good, None);
    }
    assert!(state_at(1, taken(0, 0, 0)).is_none());

    let mut receipt = sampler.first();
    for _ in 0..2 {
        receipt = sampler.next(&receipt, true);
        coordinator.open(drawn.clone(), receipt.clone(), sampler.draw(&receipt));
    }
    assert!(coordinator.order(0).is_some(), "the consumer may be far behind");
    coordinator.acknowledge(Stage::Source, 1, "in epoch 1").unwrap();
    assert!(coordinator.order(0).is_none());
    assert_eq!(coordinator.order(1).unwrap().epoch(), 1);
    assert_eq!(state_at(2, taken(10, 0, 0)).unwrap().receipt, receipt);
    // Drawn from another dataset, as after a reload.
    let other = run_of(SamplerConfig::new(Shuffle::Keyed, 7, 3)).drawn;
    let receipt = sampler.next(&receipt, true);
    let order = other.sampler.draw(&receipt);
    coordinator.open(
        Drawn {
            reloaded: true,
            ..other
        },
        receipt,
        order,
    );
    let of = |epoch| state_at(epoch, Taken::default()).map(|state| (state.size, state.reloaded));
    assert_eq!((of(2), of(3)), (Some((10, false)), Some((3, true))));
}

#[test]
fn the_state_is_saved_whole_and_loaded_again() {
    let folder = tempfile::tempdir().unwrap();
    let location = folder.path().join("state.json");
    assert_eq!(load_state(&location).unwrap(), None);
    let coordinator = coordinator(Some(location.clone()));
    for state in ["first", "second"] {
        coordinator.acknowledge(Stage::Source, 0, state).unwrap();
        assert_eq!(load_state(&location).unwrap().as_deref(), Some(state));
    }
    let left: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["state.json"]);

    std::fs::remove_dir_all(folder.path()).unwrap();
    assert!(coordinator.acknowledge(Stage::Source, 0, "third").is_err());
    assert_eq!(
        coordinator.state().as_deref(),
        Some("third"),
        "noted although it was not saved"
    );
}

#[test]
fn a_file_that_is_no_state_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let location = folder.path().join("huge");
    std::fs::File::create(&location)
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    assert_eq!(
        load_state(&location).unwrap_err().kind(),
        std::io::ErrorKind::InvalidData
    );
    assert!(load_state(folder.path()).is_err());
}

#[test]
fn what_is_said_of_a_prepared_epoch_waits_until_it_is_delivered() {
    gst::init().unwrap();
    let coordinator = coordinator(None);
    let bin = gst::Bin::new();
    let bus = gst::Bus::new();
    bin.set_bus(Some(&bus));
    let said = || -> Vec<String> {
        bus.iter()
            .filter_map(|message| Some(message.structure()?.name().to_string()))
            .collect()
    };
    let say = |epoch, name: &str| {
        let structure = gst::Structure::new_empty(name);
        coordinator.post(epoch, bin.upcast_ref(), gst::message::Element::new(structure));
    };
    say(0, "now");
    coordinator.allow(1);
    say(1, "later");
    say(2, "last");
    assert_eq!(said(), ["now"]);
    coordinator.request(1);
    assert!(said().is_empty(), "it may still be thrown away");
    coordinator.deliver(1);
    assert_eq!(said(), ["later"]);
    coordinator.invalidate(2);
    coordinator.request(2);
    coordinator.deliver(2);
    assert!(said().is_empty(), "of an epoch that was thrown away");
}

#[test]
fn complete_preparation_needs_complete_epochs_of_one_rank() {
    let coordinator = Coordinator::default();
    let ordinary = |config: SamplerConfig| {
        coordinator.begin(run_of(config), 0, None, None);
        coordinator.ordinary()
    };
    let config = SamplerConfig::new(Shuffle::Keyed, 7, 10);
    assert_eq!(ordinary(config.clone()), None);
    let shared = SamplerConfig {
        world_size: 2,
        ..config.clone()
    };
    assert_eq!(ordinary(shared), Some(Ordinary::WorldSize));
    let part = SamplerConfig {
        samples_per_epoch: Some(4),
        ..config.clone()
    };
    assert_eq!(ordinary(part), Some(Ordinary::SamplesPerEpoch));
    let reload = Run {
        reload: true,
        ..run_of(config.clone())
    };
    coordinator.begin(reload, 0, None, None);
    assert_eq!(coordinator.ordinary(), Some(Ordinary::Reload));
    coordinator.set_step_bound(true);
    assert_eq!(ordinary(config), Some(Ordinary::StepBound));
}

#[test]
fn the_recipe_is_that_of_the_elements_that_are_there() {
    let coordinator = Coordinator::default();
    let none = coordinator.recipe();
    let recipe: Arc<Recipe> = Arc::new(|| 1);
    coordinator.set_recipe("hsvquantize", &recipe);
    let one = coordinator.recipe();
    let other: Arc<Recipe> = Arc::new(|| 2);
    coordinator.set_recipe("hsvquantize", &other);
    assert!(one != none && coordinator.recipe() != one);
    drop(other);
    assert_eq!(coordinator.recipe(), none);
}

#[test]
fn listeners_hear_every_change_and_are_not_kept() {
    let coordinator = coordinator(None);
    let (send, heard) = channel();
    let listener: Arc<Listener> = Arc::new(move || send.send(()).unwrap());
    coordinator.listen(&listener);
    coordinator.request(1);
    coordinator.allow(2);
    coordinator.set_flushing(true);
    assert_eq!(heard.try_iter().count(), 3);
    drop(listener);
    coordinator.request(2);
    assert!(heard.recv().is_err(), "the listener is gone");
}

#[test]
fn a_buffer_that_holds_frames_leaves_the_last_word_to_what_packs_them() {
    let coordinator = coordinator(None);
    let pack = coordinator.register(Stage::Pack);
    let guess = coordinator.register(Stage::HeldBatches);
    assert!(!pack.counts() && guess.counts());
    let place = coordinator.move_to(Stage::HeldFrames, &guess);
    drop(guess);
    assert!(pack.counts() && !place.counts() && coordinator.has_buffer());
    drop(place);
    assert!(!coordinator.has_buffer());
}

#[test]
fn what_is_made_under_another_recipe_than_it_was_read_under_is_thrown_away() {
    let coordinator = coordinator(None);
    coordinator.allow(1);
    coordinator.note_recipe(1, coordinator.recipe());
    assert!(coordinator.is_current(1) && !coordinator.is_wasted(1));
    coordinator.spoil(1);
    assert!(!coordinator.is_current(1) && coordinator.is_wasted(1));
    coordinator.invalidate(1);
    assert!(
        coordinator.is_current(1) && coordinator.is_wasted(1),
        "until it is read again"
    );
    coordinator.flushed(1, None);
    coordinator.request(1);
    coordinator.deliver(1);
    coordinator.spoil(1);
    assert!(!coordinator.is_wasted(1), "it is being taken");
}

#[test]
fn a_consumer_that_seeks_back_from_the_end_is_in_that_epoch_again() {
    let coordinator = coordinator(None);
    let sink = coordinator.register(Stage::Consumer);
    let end = coordinator.state_at(0, taken(10, 0, 0)).unwrap();
    sink.acknowledge(0, &end).unwrap();
    coordinator.flushed(0, None);
    assert_eq!(coordinator.request(1), Requested::Accepted);
    assert_eq!(coordinator.current(), Some(0), "asked for early");
    sink.acknowledge(0, &end).unwrap();
    assert_eq!(coordinator.current(), Some(1));
}

#[test]
fn there_is_one_seek_at_a_time_and_a_restart_is_put_off() {
    let coordinator = coordinator(None);
    assert!(coordinator.begin_seek(true));
    let (send, began) = channel();
    let other = coordinator.clone();
    let waiting = thread::spawn(move || send.send(other.begin_seek(false)).unwrap());
    assert!(began.try_recv().is_err());
    coordinator.end_seek();
    assert_eq!(began.recv_timeout(TIMEOUT), Ok(true));
    waiting.join().unwrap();
    let seqnum = gst::Seqnum::next();
    coordinator.restart_with(seqnum);
    assert!(coordinator.is_seeking() && coordinator.is_restart(seqnum));
    assert!(!coordinator.begin_seek(true) && !coordinator.is_restart(seqnum));
    coordinator.end_seek();
    assert!(coordinator.begin_seek(true));
}
