//! No object of GStreamer's is alive after a feed was dropped, wherever it stood. Each test runs in a process of its own, at
//! whose end the `leaks` tracer lists what is left.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
mod feed_support;

use std::path::Path;
use std::sync::mpsc::channel;

use common::{alive_after, scratch};
use epochfeed::elements::epochbuffer::Prefetch;
use epochfeed::feed::{Builder, Feed, Hold};
use epochfeed::{Batch, FeedError};
use feed_support::{rest, small, tiny_images, until};
use gst::prelude::*;

/// A feed that runs.
struct Run {
    feed: Feed,
    images: tempfile::TempDir,
    hold: Hold,
}

/// Builds a feed of three epochs of four batches in each arrangement, and drops it where `go_on` has brought it; what that
/// returns is dropped after the feed.
fn dropped<T>(build: impl Fn(Builder) -> Builder, go_on: impl Fn(&Run) -> T) {
    for hold in [Hold::Frames, Hold::Batches] {
        let images = scratch();
        tiny_images(images.path(), 8);
        let builder = small(images.path()).epochs(3).batch_size(2).hold(hold);
        let feed = build(builder).build().unwrap();
        let run = Run { feed, images, hold };
        let taken = go_on(&run);
        drop(run.feed);
        drop(taken);
    }
}

fn preparing(builder: Builder) -> Builder {
    builder.prefetch(Prefetch::Complete)
}

fn take(feed: &Feed, count: usize) -> Vec<Batch> {
    let epoch = feed.epochs().next().unwrap().unwrap();
    epoch.take(count).map(Result::unwrap).collect()
}

fn take_epoch(feed: &Feed) {
    assert_eq!(rest(&mut feed.epochs().next().unwrap().unwrap()).len(), 4);
}

fn whole(hold: Hold) -> u64 {
    if hold == Hold::Frames { 8 } else { 4 }
}

fn until_held(feed: &Feed, buffers: u64) {
    until("the next epoch is prepared", || {
        feed.stats().buffer.buffers == buffers
    });
}

fn spoil(images: &Path) {
    std::fs::remove_file(images.join("0007.jpg")).unwrap();
}

#[test]
fn at_the_first_batch() {
    let alive = alive_after(|| {
        dropped(preparing, |Run { feed, .. }| {
            // In both orders: the batch outlives the feed, and the epoch is still there when the feed goes.
            let mut epoch = feed.epochs().next().unwrap().unwrap();
            let batch = epoch.next().unwrap().unwrap();
            (batch, epoch)
        });
    });
    assert_eq!(alive, [""; 0]);
}

#[test]
fn in_mid_epoch() {
    let alive = alive_after(|| {
        for taken in 1..4 {
            // Broken off: the epoch is dropped before the feed.
            dropped(preparing, |Run { feed, .. }| take(feed, taken));
        }
    });
    assert_eq!(alive, [""; 0]);
}

#[test]
fn with_the_boundary_closed() {
    let alive = alive_after(|| dropped(|builder| builder, |Run { feed, .. }| take_epoch(feed)));
    assert_eq!(alive, [""; 0]);
}

#[test]
fn with_the_boundary_preparing() {
    let alive = alive_after(|| {
        dropped(
            |builder| preparing(builder).max_buffers(2),
            |Run { feed, .. }| {
                take_epoch(feed);
                until_held(feed, 2);
            },
        );
        dropped(preparing, |Run { feed, hold, .. }| {
            take_epoch(feed);
            until_held(feed, whole(*hold));
        });
    });
    assert_eq!(alive, [""; 0]);
}

#[test]
fn after_an_error() {
    let alive = alive_after(|| {
        dropped(
            |builder| builder,
            |Run { feed, images, .. }| {
                take_epoch(feed);
                spoil(images.path());
                let mut epoch = feed.epochs().next().unwrap().unwrap();
                let error = epoch.find_map(Result::err).unwrap();
                assert!(matches!(error, FeedError::Stream { .. }), "{error}");
                error
            },
        );
    });
    assert_eq!(alive, [""; 0]);
}

#[test]
fn after_an_error_while_preparing() {
    let alive = alive_after(|| {
        for ask in [false, true] {
            dropped(preparing, |Run { feed, images, hold }| {
                take_epoch(feed);
                until_held(feed, whole(*hold));
                spoil(images.path());
                take_epoch(feed);
                let failed = || {
                    let buffer = feed.pipeline().by_name("epochbuffer").unwrap();
                    buffer.property::<gst::Structure>("stats").get::<u64>("failed")
                };
                until("the last epoch has failed", || failed() == Ok(1));
                // Told to nobody, or to somebody who gives up.
                if ask {
                    let error = feed.epochs().next().unwrap().unwrap_err();
                    assert!(matches!(error, FeedError::Prepare { epoch: 2, .. }), "{error}");
                }
            });
        }
    });
    assert_eq!(alive, [""; 0]);
}

#[test]
fn after_a_start_that_failed() {
    let alive = alive_after(|| {
        let error = small(Path::new("/does/not/exist")).build().unwrap_err();
        assert!(error.to_string().contains("/does/not/exist"), "{error}");
    });
    assert_eq!(alive, [""; 0]);
}

/// The thread that a stop is handed over to takes nothing along.
#[test]
fn after_a_drop_in_a_callback() {
    let alive = alive_after(|| {
        let images = scratch();
        tiny_images(images.path(), 8);
        let feed = small(images.path()).endless().build().unwrap();
        let pipeline = feed.pipeline().downgrade();
        let pad = feed.pipeline().by_name("nhwcpack").unwrap().static_pad("src");
        let mut epochs = feed.epochs();
        let (give, given) = channel::<Feed>();
        let given = std::sync::Mutex::new(given);
        pad.unwrap().add_probe(gst::PadProbeType::BUFFER, move |_, _| {
            drop(given.lock().unwrap().recv());
            gst::PadProbeReturn::Remove
        });
        give.send(feed).unwrap();
        let closed = std::iter::from_fn(|| epochs.next()).find_map(|epoch| {
            epoch
                .and_then(|mut epoch| epoch.find_map(Result::err).map_or(Ok(()), Err))
                .err()
        });
        assert!(matches!(closed, Some(FeedError::Closed)), "{closed:?}");
        drop(epochs);
        until("the pipeline is gone", || pipeline.upgrade().is_none());
    });
    assert_eq!(alive, [""; 0]);
}
