//! A state resumes a run exactly behind its batch: the same samples, gains, bytes, states and ledgers follow.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::Path;

use common::{
    BatchLine, EpochLine, Feed, Pipeline, Report, Sample, Taken, copy_photos, location, quoted, scratch,
    tiny_images,
};
use gst::prelude::*;

const SAMPLES: usize = 10;
const EPOCHS: u64 = 4;

fn run(images: &Path, source: &str, decode: &str, pack: &str) -> Taken {
    Feed {
        source,
        decode,
        pack,
        ..Feed::new(images)
    }
    .taken()
}

/// What must be equal of a batch: all but the time.
fn batch(line: &BatchLine) -> BatchLine {
    BatchLine {
        wait_ns: 0,
        ..line.clone()
    }
}

/// The uninterrupted run from `batch` on.
struct Tail {
    batches: Vec<BatchLine>,
    samples: Vec<Sample>,
    epochs: Vec<EpochLine>,
}

/// What must come behind the `number`-th batch of `whole`; `first_epoch` is the first whose end comes there.
fn tail(whole: &Taken, number: usize, first_epoch: u64) -> Tail {
    let (before, behind) = whole.report.batches.split_at(number + 1);
    let consumed: usize = before.iter().map(|batch| batch.indices.len()).sum();
    let Report { epochs, .. } = Report {
        epochs: whole.report.epochs.clone(),
        ..Report::default()
    }
    .without_times();
    Tail {
        batches: behind.iter().map(batch).collect(),
        samples: whole.samples().split_off(consumed),
        epochs: epochs
            .into_iter()
            .filter(|line| line.epoch >= first_epoch)
            .collect(),
    }
}

/// Resumes behind several batches of a run with `properties` and `pack`, whose epochs have `slots` samples.
#[track_caller]
fn assert_resumes(slots: u64, properties: &str, pack: &str) {
    let images = scratch();
    copy_photos(images.path(), SAMPLES);
    let source = format!("seed=11 {properties}");
    let whole = run(
        images.path(),
        &format!("{source} epochs={EPOCHS}"),
        "threads=4",
        pack,
    );
    let batches = &whole.report.batches;
    let per_epoch = batches.iter().filter(|batch| batch.epoch == 0).count();
    assert!(per_epoch >= 3, "{per_epoch} batches are too few for this test");
    let last = |epoch: usize| per_epoch * (epoch + 1) - 1;
    // The first of all; mid-epoch; the last of an epoch and those around it; the last before the last epoch.
    for number in [0, 1, per_epoch + 1, last(1) - 1, last(1), last(1) + 1, last(2)] {
        let what = format!("{properties} {pack}: behind batch {number}");
        let state = &batches[number].state;
        let next_epoch = batches[number + 1].epoch;
        // The epoch that is resumed counts as one of the run's, although no batch may come of what is left of it.
        let rest = state["position"] != slots;
        let first_epoch = if rest { batches[number].epoch } else { next_epoch };
        let resumed = run(
            images.path(),
            &format!(
                "{source} epochs={} state={}",
                EPOCHS - first_epoch,
                quoted(&state.to_string())
            ),
            "threads=1",
            pack,
        );
        let tail = tail(&whole, number, first_epoch);
        let samples = resumed.samples();
        let found: Vec<_> = resumed.report.batches.iter().map(batch).collect();
        assert_eq!(found, tail.batches, "{what}");
        assert!(samples == tail.samples, "{what}: the pixels differ");
        assert_eq!(resumed.report.without_times().epochs, tail.epochs, "{what}");
    }
}

#[test]
fn keyed_resumes() {
    assert_resumes(10, "shuffle=keyed", "batch-size=3");
}

#[test]
fn torch_resumes() {
    assert_resumes(10, "shuffle=torch", "batch-size=3");
}

#[test]
fn torch_distributed_resumes() {
    assert_resumes(10, "shuffle=torch-distributed", "batch-size=3");
}

#[test]
fn none_resumes() {
    assert_resumes(10, "shuffle=none", "batch-size=3");
}

#[test]
fn a_rank_resumes_among_its_pads() {
    assert_resumes(4, "shuffle=torch world-size=3 rank=2", "batch-size=1");
    assert_resumes(
        3,
        "shuffle=keyed world-size=3 rank=1 uneven=drop samples-per-epoch=10",
        "batch-size=1",
    );
}

/// Samples that came too late for a batch are not consumed; the state says so, and the next epoch follows.
#[test]
fn a_tail_without_a_batch_continues_into_the_next_epoch() {
    assert_resumes(10, "shuffle=keyed", "batch-size=3 last-batch=drop");
}

/// What fills up the last batch are the epoch's first samples, also where those were delivered before the run resumed.
#[test]
fn padding_repeats_what_an_earlier_run_delivered() {
    assert_resumes(10, "shuffle=torch", "batch-size=4 last-batch=pad");
    assert_resumes(5, "world-size=2 rank=1", "batch-size=2 last-batch=pad");
}

#[test]
fn another_batch_size_continues_behind_the_same_sample() {
    let images = scratch();
    copy_photos(images.path(), SAMPLES);
    let whole = run(images.path(), "seed=2 epochs=2", "", "batch-size=3");
    let state = &whole.report.batches[1].state;
    let source = format!("seed=2 epochs=2 state={}", quoted(&state.to_string()));
    let resumed = run(images.path(), &source, "", "batch-size=4");
    let sizes: Vec<_> = resumed
        .report
        .batches
        .iter()
        .map(|batch| batch.indices.len())
        .collect();
    assert_eq!(sizes, [4, 4, 4, 2]);
    assert!(resumed.samples() == whole.samples()[6..]);
}

/// Behind the final EOS comes the next epoch, and `epochs` counts from there.
#[test]
fn the_last_state_continues_with_the_next_epoch() {
    let images = scratch();
    copy_photos(images.path(), SAMPLES);
    for shuffle in ["keyed", "torch", "none"] {
        let source = format!("seed=2 shuffle={shuffle}");
        let whole = run(images.path(), &format!("{source} epochs=3"), "", "batch-size=4");
        let first = run(images.path(), &source, "", "batch-size=4");
        let state = &first.report.batches.last().unwrap().state;
        let source = format!("{source} epochs=2 state={}", quoted(&state.to_string()));
        let resumed = run(images.path(), &source, "", "batch-size=4");
        assert!(resumed.samples() == whole.samples()[SAMPLES..], "{shuffle}");
    }
}

/// What `line` behind an epochsrc takes from `state` on, and how many faults it tells.
fn told(images: &Path, line: &str, state: &str) -> (Vec<BatchLine>, usize) {
    let folder = scratch();
    let report = folder.path().join("report.jsonl");
    let pipeline = Pipeline::new(&format!(
        "epochsrc name=source location={} shuffle=none ! {line} ! epochsink silent=true report={}",
        location(images),
        report.display()
    ));
    pipeline.element("source").set_property("state", state);
    pipeline.set(gst::State::Playing);
    let mut faults = 0;
    pipeline.wait(|message| {
        faults += usize::from(
            message
                .structure()
                .is_some_and(|said| said.name() == "epochfeed-fault"),
        );
        message.type_() == gst::MessageType::Eos
    });
    pipeline.set(gst::State::Null);
    (Report::read(&report).without_times().batches, faults)
}

/// Without nhwcpack a frame is a batch, and goes on being counted.
#[test]
fn single_frames_keep_their_numbers() {
    let images = scratch();
    tiny_images(images.path(), 5);
    let line = "epochdecode ! video/x-raw,width=16,height=16";
    let (whole, _) = told(images.path(), line, "");
    for number in 0..4 {
        let (resumed, _) = told(images.path(), line, &whole[number].state.to_string());
        assert_eq!(resumed, whole[number + 1..], "behind frame {number}");
    }
}

/// What is read again for padding or as a stand-in has been told of by the run before.
#[test]
fn faults_are_told_by_one_run() {
    let images = scratch();
    let photos = copy_photos(images.path(), 8);
    std::fs::write(&photos[1], "no image").unwrap();
    for on_error in ["skip", "replace"] {
        for last_batch in ["pad", "partial"] {
            let line = format!(
                "epochdecode on-error={on_error} ! video/x-raw,width=16,height=16 \
                 ! nhwcpack batch-size=3 last-batch={last_batch}"
            );
            let (whole, faults) = told(images.path(), &line, "");
            let (_, again) = told(images.path(), &line, &whole[0].state.to_string());
            assert_eq!((faults, again), (1, 0), "{on_error} {last_batch}");
        }
    }
}
