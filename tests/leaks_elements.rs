//! No object of GStreamer's is alive after a pipeline with an epochbuffer was stopped, wherever the stream stood. Each test
//! runs in a process of its own, at whose end the `leaks` tracer lists what is left.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::Path;

use common::{Buffered, Held, alive_after, scratch, tiny_images};

/// Batches of an epoch.
const BATCHES: usize = 4;
/// What prepares the next epoch, and nothing behind it.
const PREPARES: &str = "auto-advance=false";

/// A stream that runs.
struct Run {
    stream: Buffered,
    images: tempfile::TempDir,
    held: Held,
}

/// Starts a stream in each arrangement, over images that `prepare` may spoil, and stops it where `go_on` has brought it.
fn stopped(source: &str, buffer: &str, prepare: impl Fn(&Path), go_on: impl Fn(&Run)) {
    for held in Held::ALL {
        let images = scratch();
        tiny_images(images.path(), 2 * BATCHES);
        prepare(images.path());
        let stream = Buffered::new(images.path(), source, held, buffer, 0);
        stream.start_over();
        let run = Run { stream, images, held };
        go_on(&run);
        run.stream.pipeline().set(gst::State::Null);
    }
}

/// A file that is no image takes the place of the last one.
fn spoil(images: &Path) {
    std::fs::remove_file(last(images)).unwrap();
    std::fs::write(last(images), b"").unwrap();
}

fn last(images: &Path) -> std::path::PathBuf {
    images.join(format!("{:04}.jpg", 2 * BATCHES - 1))
}

/// Takes a whole epoch.
fn take_epoch(stream: &Buffered) {
    for _ in 0..BATCHES {
        stream.pull().unwrap();
    }
    stream.until_epoch_end();
}

/// How many buffers a whole epoch is.
fn whole(held: Held) -> u64 {
    let batches = BATCHES as u64;
    match held {
        Held::Frames => 2 * batches,
        Held::Batches => batches,
    }
}

#[test]
fn at_the_first_batch() {
    let alive = alive_after(|| {
        stopped(
            "",
            "prefetch=complete",
            |_| (),
            |Run { stream, .. }| {
                stream.pull().unwrap();
            },
        );
    });
    assert_eq!(alive, [""; 0]);
}

#[test]
fn in_mid_epoch() {
    let alive = alive_after(|| {
        stopped(
            "",
            "prefetch=complete max-buffers=1",
            |_| (),
            |Run { stream, .. }| {
                for _ in 0..BATCHES - 1 {
                    stream.pull().unwrap();
                }
            },
        );
    });
    assert_eq!(alive, [""; 0]);
}

#[test]
fn with_the_boundary_closed() {
    let alive = alive_after(|| {
        stopped(
            PREPARES,
            "prefetch=off",
            |_| (),
            |Run { stream, .. }| take_epoch(stream),
        );
    });
    assert_eq!(alive, [""; 0]);
}

#[test]
fn with_the_boundary_preparing() {
    let alive = alive_after(|| {
        // The buffer is full, and the rest of the epoch is on its way to it.
        stopped(
            PREPARES,
            "prefetch=complete max-buffers=2",
            |_| (),
            |Run { stream, .. }| {
                take_epoch(stream);
                stream.until("level-buffers", 2);
            },
        );
        stopped(
            PREPARES,
            "prefetch=complete",
            |_| (),
            |Run { stream, held, .. }| {
                take_epoch(stream);
                stream.until("level-buffers", whole(*held));
            },
        );
    });
    assert_eq!(alive, [""; 0]);
}

#[test]
fn after_an_error() {
    let alive = alive_after(|| {
        stopped("", "prefetch=complete", spoil, |Run { stream, .. }| {
            let error = stream.pipeline().wait_error();
            assert!(error.contains("0007.jpg"), "{error}");
        });
    });
    assert_eq!(alive, [""; 0]);
}

/// The failure is held back until somebody asks, and nobody does.
#[test]
fn after_an_error_while_preparing() {
    let alive = alive_after(|| {
        stopped(
            PREPARES,
            "prefetch=complete",
            |_| (),
            |Run { stream, images, held }| {
                take_epoch(stream);
                stream.until("level-buffers", whole(*held));
                spoil(images.path());
                stream.forget();
                assert!(stream.ask());
                take_epoch(stream);
                stream.until("failed", 1);
            },
        );
    });
    assert_eq!(alive, [""; 0]);
}

#[test]
fn after_what_was_prepared_was_thrown_away() {
    let alive = alive_after(|| {
        stopped(
            PREPARES,
            "prefetch=complete",
            |_| (),
            |Run { stream, held, .. }| {
                take_epoch(stream);
                stream.until("level-buffers", whole(*held));
                stream.set_jitter(0.25);
                stream.forget();
                assert!(stream.ask());
                take_epoch(stream);
                assert_eq!(stream.stat("invalidated"), 1);
            },
        );
    });
    assert_eq!(alive, [""; 0]);
}

/// What all of this rests on.
#[test]
fn a_leak_is_found() {
    let alive = alive_after(|| {
        gst::init().unwrap();
        std::mem::forget(gst::Buffer::with_size(7).unwrap());
    });
    assert!(
        alive.iter().any(|object| object.contains("GstBuffer")),
        "{alive:?}"
    );
}
