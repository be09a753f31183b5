//! Memory does not grow from epoch to epoch. Each run has a process of its own, whose resident memory is looked at.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
mod feed_support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::process::interrupt;
use common::usage::{growth, resident};
use common::wait::until;
use common::{End, alone, figure, launch, location, repetitions, scratch, tiny_images};
use epochfeed::elements::epochbuffer::Prefetch;
use epochfeed::feed::Hold;
use feed_support::small;

fn epochs() -> usize {
    repetitions(300)
}

/// Before that, pools and caches fill.
const SETTLED: usize = 50;
/// What may be added over all epochs.
const MOST: f64 = 5e6;
const LIMIT: Duration = Duration::from_secs(120);

/// Of the memory at the end of each epoch, in bytes.
#[track_caller]
fn assert_level(what: &str, memory: &[u64], settled: usize) {
    let grown = growth(&memory[settled..]);
    figure(format_args!(
        "{what}: {:+.2} MB from epoch {settled} to {}, {:.0} MB in all",
        grown / 1e6,
        memory.len(),
        memory[memory.len() - 1] as f64 / 1e6
    ));
    assert!(grown < MOST, "{what}: {grown} bytes: {memory:?}");
}

/// Runs `line`, whose epochsink says when an epoch ends, and returns the resident memory at the end of each of the first
/// `epochs` epochs.
fn memory(line: &str, epochs: usize) -> Vec<u64> {
    let memory: Arc<Mutex<Vec<u64>>> = Arc::default();
    let writer = memory.clone();
    let outcome = launch(line).limit(LIMIT).run_watching(move |line, id| {
        let mut memory = writer.lock().unwrap();
        if line.starts_with("epoch ") && memory.len() < epochs {
            memory.push(resident(&id.to_string()).expect("it goes on without end"));
            if memory.len() == epochs {
                interrupt(id);
            }
        }
    });
    assert!(matches!(outcome.end, End::Code(_)), "{outcome}");
    let memory = memory.lock().unwrap().clone();
    assert_eq!(memory.len(), epochs, "{outcome}");
    memory
}

/// A training on `images` without end; `frames` and `batches` are what stands where these are held.
fn training(images: &std::path::Path, decode: &str, frames: &str, batches: &str) -> String {
    format!(
        "epochsrc location={} epochs=-1 ! epochdecode {decode} ! video/x-raw,format=RGB,width=32,height=32 ! {frames} \
         hsvquantize ! nhwcpack batch-size=5 ! {batches} epochsink validation-time=1",
        location(images)
    )
}

#[test]
fn of_pipelines_that_prepare() {
    let images = scratch();
    tiny_images(images.path(), 40);
    let buffer = "epochbuffer prefetch=complete !";
    let lines = [
        ("frames", training(images.path(), "", buffer, "")),
        ("batches", training(images.path(), "", "", buffer)),
    ];
    for (what, line) in lines {
        let memory = memory(&line, epochs());
        assert_level(&format!("memory, elements, {what} held"), &memory, SETTLED);
    }
}

#[test]
fn of_a_pipeline_with_large_images() {
    let images = common::photos()[0].with_file_name("");
    let memory = memory(&training(&images, "", "", ""), 101);
    assert_level("memory, elements, photographs", &memory, 5);
}

#[test]
fn of_a_pipeline_with_faults() {
    let images = common::cases::folder();
    let memory = memory(&training(&images, "on-error=replace", "", ""), 41);
    assert_level("memory, elements, faults", &memory, 5);
}

/// The memory of this process at the end of each epoch of a feed, of which `left` batches are taken, or all.
fn feeds_memory(hold: Hold, left: Option<usize>) -> Vec<u64> {
    let images = scratch();
    tiny_images(images.path(), 40);
    let feed = small(images.path())
        .endless()
        .batch_size(5)
        .prefetch(Prefetch::Complete)
        .hold(hold)
        .build()
        .unwrap();
    let epochs = feed.epochs().take(epochs()).map(|epoch| {
        for batch in epoch.unwrap().take(left.unwrap_or(usize::MAX)) {
            batch.unwrap();
        }
        until("the next epoch is being prepared", || {
            feed.stats().buffer.buffers > 0
        });
        resident("self").unwrap()
    });
    epochs.collect()
}

#[test]
fn of_a_feed_that_holds_batches() {
    alone(LIMIT, || {
        assert_level(
            "memory, feed, batches held",
            &feeds_memory(Hold::Batches, None),
            SETTLED,
        );
    });
}

#[test]
fn of_a_feed_that_holds_frames() {
    alone(LIMIT, || {
        assert_level(
            "memory, feed, frames held",
            &feeds_memory(Hold::Frames, None),
            SETTLED,
        );
    });
}

#[test]
fn of_a_feed_whose_epochs_are_left() {
    alone(LIMIT, || {
        assert_level(
            "memory, feed, epochs left early",
            &feeds_memory(Hold::Batches, Some(3)),
            SETTLED,
        );
    });
}

#[test]
fn the_slope_of_a_leak_is_found() {
    let leak: Vec<u64> = (0..96).map(|epoch| 50_000_000 + epoch * 60_000).collect();
    assert!((growth(&leak) - 96.0 * 60_000.0).abs() < 1.0);
    assert_eq!(growth(&[7; 96]), 0.0);
}
