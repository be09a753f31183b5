//! Seeks and flushes that come from another thread while the pipeline stops or starts: whichever is first, no task goes on
//! behind the stop.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use common::wait::until;
use common::{Buffered, Held, repeat, scratch, timed, tiny_images};
use gst::prelude::*;

const AT_ONCE: Duration = Duration::from_secs(1);

fn seek(flags: gst::SeekFlags) -> gst::Event {
    gst::event::Seek::new(
        1.0,
        flags,
        gst::SeekType::Set,
        gst::format::Default::ZERO,
        gst::SeekType::None,
        gst::format::Default::NONE,
    )
}

/// Disturbs the stream once, in one of four ways.
fn disturb(stream: &Buffered, turn: usize) {
    let pipeline = &stream.pipeline().0;
    match turn % 4 {
        0 | 1 => drop(pipeline.send_event(seek(gst::SeekFlags::FLUSH))),
        2 => drop(pipeline.send_event(seek(gst::SeekFlags::SEGMENT))),
        _ => {
            let source = stream.pipeline().element("source");
            source.send_event(gst::event::FlushStart::new());
            source.send_event(gst::event::FlushStop::new(true));
        }
    }
}

/// The tasks of all source pads have stopped.
#[track_caller]
fn assert_stands_still(stream: &Buffered) {
    for element in stream.pipeline().0.children() {
        for pad in element.pads() {
            assert_eq!(
                pad.task_state(),
                gst::TaskState::Stopped,
                "{}:{}",
                element.name(),
                pad.name()
            );
        }
    }
}

/// Starts and stops the stream while it is disturbed all the time, from before the start or from its first batches on.
fn start_and_stop(stream: &Buffered, number: usize) -> Duration {
    let (done, disturbed) = (AtomicBool::new(false), AtomicUsize::new(0));
    if number.is_multiple_of(2) {
        stream.start_over();
        stream.until_batches(2);
    }
    let took = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let turn = disturbed.fetch_add(1, Ordering::Relaxed);
                disturb(stream, number / 2 + turn);
            }
        });
        if !number.is_multiple_of(2) {
            stream.start_over();
        }
        // At another moment each time.
        let moment = number / 8 % 4;
        until("the stream is disturbed", || {
            disturbed.load(Ordering::Relaxed) > moment
        });
        let took = timed(|| stream.pipeline().set(gst::State::Null));
        done.store(true, Ordering::Relaxed);
        took
    });
    assert_stands_still(stream);
    took
}

#[test]
fn stops_under_seeks_and_flushes() {
    for (held, prefetch) in [
        (Held::Batches, "prefetch=complete max-buffers=2"),
        (Held::Frames, "prefetch=complete max-buffers=2"),
        (Held::Batches, "prefetch=off"),
    ] {
        let images = scratch();
        tiny_images(images.path(), 8);
        let stream = Buffered::new(images.path(), "", held, prefetch, 1);
        let what = format!("PLAYING to NULL under seeks, {held:?}, {prefetch}");
        let again = stream.clone();
        repeat(&what, 100, AT_ONCE, move |number| start_and_stop(&again, number));
        // It still works.
        stream.start_over();
        assert_eq!(stream.pull(), Some((0, vec![0, 1])));
    }
}

/// A flushing seek of the application's, and the buffer's own, which has an epoch prepared again: in any order the epoch that
/// was asked for comes whole.
#[test]
fn a_seek_meets_the_buffers_own() {
    let images = scratch();
    tiny_images(images.path(), 6);
    for held in Held::ALL {
        for turn in 0..20u32 {
            let stream = Buffered::new(images.path(), "auto-advance=false", held, "prefetch=complete", 0);
            stream.pipeline().set(gst::State::Playing);
            stream.until_epoch_end();
            for _ in 0..3 {
                stream.pull();
            }
            stream.until("level-buffers", if held == Held::Frames { 6 } else { 3 });
            stream.pipeline().reach(gst::State::Playing);
            stream.set_jitter(0.3);
            let other = stream.clone();
            let seeking = std::thread::spawn(move || {
                for _ in 0..turn * 2000 {
                    std::hint::spin_loop();
                }
                other.pipeline().0.send_event(seek(gst::SeekFlags::FLUSH))
            });
            stream.ask();
            assert!(seeking.join().unwrap(), "{held:?}, turn {turn}");
            let mut taken = Vec::new();
            while taken.last() != Some(&(1, vec![4, 5])) {
                taken.push(stream.pull().expect("a batch"));
            }
            let whole = [(1, vec![0, 1]), (1, vec![2, 3]), (1, vec![4, 5])];
            assert!(taken.ends_with(&whole), "{held:?}, turn {turn}: {taken:?}");
            assert_eq!(stream.pipeline().errors(), [""; 0], "{held:?}, turn {turn}");
        }
    }
}
