//! Everything waits: the buffer is full and nobody pulls, or the gate is closed. Stops, flushes, seeks and the end of the
//! stream come through all the same.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::cell::Cell;
use std::time::Duration;

use common::{Buffered, Held, figure, repeat, repetitions, scratch, timed, tiny_images};
use gst::prelude::*;

/// How long anything that must not wait may take.
const AT_ONCE: Duration = Duration::from_secs(1);
const SAMPLES: u64 = 8;
/// What the buffer holds when it is full.
const FULL: u64 = 2;

/// Why nothing moves.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Block {
    /// The sink is full, so the buffer is, so the source waits in a push.
    NobodyPulls(Held),
    /// The epoch has ended, and the buffer is full of the next one.
    GateClosed(Held),
    /// The epoch has ended, and the source waits to be asked for the next one.
    NothingPrepared,
}

const BLOCKS: [Block; 5] = [
    Block::NobodyPulls(Held::Batches),
    Block::NobodyPulls(Held::Frames),
    Block::GateClosed(Held::Batches),
    Block::GateClosed(Held::Frames),
    Block::NothingPrepared,
];

/// A pipeline that comes to stand as `block` says.
struct Blocked {
    block: Block,
    stream: Buffered,
    /// What must not wait took so long at most.
    slowest: Cell<Duration>,
    _images: tempfile::TempDir,
}

impl Blocked {
    fn new(block: Block) -> Self {
        let images = scratch();
        tiny_images(images.path(), SAMPLES as usize);
        let full = format!("prefetch=complete max-buffers={FULL}");
        let (source, held, buffer, room) = match block {
            Block::NobodyPulls(held) => ("", held, &*full, 1),
            Block::GateClosed(held) => ("auto-advance=false", held, &*full, 0),
            Block::NothingPrepared => ("auto-advance=false", Held::Batches, "prefetch=off", 0),
        };
        let stream = Buffered::new(images.path(), source, held, buffer, room);
        Self {
            block,
            stream,
            slowest: Cell::default(),
            _images: images,
        }
    }

    fn started(block: Block) -> Self {
        let blocked = Self::new(block);
        blocked.stream.start_over();
        until_blocked(&blocked.stream, block, 2);
        // GStreamer 1.22 itself may stay in PAUSED when a flush comes before that.
        blocked.stream.pipeline().reach(gst::State::Playing);
        blocked
    }

    /// Does `work`, which must not wait.
    #[track_caller]
    fn at_once(&self, what: &str, work: impl FnOnce()) {
        let took = timed(work);
        assert!(took < AT_ONCE, "{what}, {:?}: {took:?}", self.block);
        self.slowest.set(self.slowest.get().max(took));
    }

    /// Behind a flush, the stream goes on at `position` of `epoch`, and comes to stand again.
    #[track_caller]
    fn assert_goes_on(&self, epoch: u64, position: u64) {
        let stream = &self.stream;
        let mut wanted = batch_at(epoch, position);
        if position == SAMPLES && !matches!(self.block, Block::NobodyPulls(_)) {
            stream.until_epoch_end();
            stream.forget();
            assert!(stream.ask());
            wanted = batch_at(epoch + 1, 0);
        }
        assert_eq!(stream.pull(), wanted, "{:?}", self.block);
        until_blocked(stream, self.block, 3);
        stream.pipeline().reach(gst::State::Playing);
    }

    #[track_caller]
    fn stop(&self, what: &str, times: usize) {
        self.at_once("stopping", || self.stream.pipeline().set(gst::State::Null));
        assert_eq!(self.stream.pipeline().errors(), [""; 0]);
        let slowest = self.slowest.get().as_secs_f64() * 1e3;
        figure(format_args!(
            "{what}, {:?}: {times} times, slowest {slowest:.1} ms",
            self.block
        ));
    }
}

/// Waits until nothing moves any more. Where nobody pulls, `batches` have to come to the sink for that, since
/// [`Buffered::forget`]: one that lies in it, one that waits in front of it, and those that were pulled.
#[track_caller]
fn until_blocked(stream: &Buffered, block: Block, batches: usize) {
    match block {
        Block::NobodyPulls(_) => {
            stream.until_batches(batches);
            stream.until("level-buffers", FULL);
        }
        Block::GateClosed(_) => {
            stream.until_epoch_end();
            stream.until("level-buffers", FULL);
        }
        Block::NothingPrepared => stream.until_epoch_end(),
    }
}

#[test]
fn three_hundred_stops() {
    for block in BLOCKS {
        let blocked = Blocked::new(block);
        let stream = blocked.stream.clone();
        repeat(&format!("PLAYING to NULL, {block:?}"), 300, AT_ONCE, move |_| {
            stream.start_over();
            until_blocked(&stream, block, 2);
            timed(|| stream.pipeline().set(gst::State::Null))
        });
        assert_eq!(blocked.stream.pipeline().errors(), [""; 0]);
    }
}

/// The batch that begins at `position` of `epoch`.
fn batch_at(epoch: u64, position: u64) -> Option<(u64, Vec<u64>)> {
    let epoch = epoch + position / SAMPLES;
    Some((epoch, (0..2).map(|sample| position % SAMPLES + sample).collect()))
}

fn seek(flags: gst::SeekFlags, start: u64) -> gst::Event {
    gst::event::Seek::new(
        1.0,
        flags,
        gst::SeekType::Set,
        gst::format::Default::from_u64(start),
        gst::SeekType::None,
        gst::format::Default::NONE,
    )
}

/// What was not consumed comes again, nothing else does, and nothing is left out.
#[test]
fn a_flush() {
    for block in BLOCKS {
        let blocked = Blocked::started(block);
        let (stream, times) = (&blocked.stream, repetitions(20));
        let source = stream.pipeline().element("source");
        for _ in 0..times {
            let (epoch, position) = stream.place();
            assert_eq!(position % 2, 0, "{block:?}: a half batch cannot have been taken");
            stream.forget();
            blocked.at_once("flushing", || {
                assert!(source.send_event(gst::event::FlushStart::new()));
                assert!(source.send_event(gst::event::FlushStop::new(true)));
            });
            blocked.assert_goes_on(epoch, position);
        }
        blocked.stop("flush", times);
    }
}

/// Whatever was held is discarded, and the epoch that the consumer is in begins anew where the seek says.
#[test]
fn a_flushing_seek() {
    for block in BLOCKS {
        let blocked = Blocked::started(block);
        let (stream, times) = (&blocked.stream, repetitions(20));
        for number in 0..times as u64 {
            let (epoch, position) = stream.place();
            // Where nobody has to ask, the next epoch has begun when all of one has been taken.
            let begun = position == SAMPLES && matches!(block, Block::NobodyPulls(_));
            let (epoch, start) = (epoch + u64::from(begun), number * 2 % SAMPLES);
            stream.forget();
            blocked.at_once("a flushing seek", || {
                assert!(stream.pipeline().0.send_event(seek(gst::SeekFlags::FLUSH, start)));
            });
            blocked.assert_goes_on(epoch, start);
        }
        blocked.stop("flushing seek", times);
    }
}

/// Asks for the next epoch and does not wait for it.
#[test]
fn a_segment_seek() {
    for block in BLOCKS {
        let blocked = Blocked::started(block);
        let (stream, times) = (&blocked.stream, repetitions(20));
        for number in 0..times as u64 {
            stream.forget();
            blocked.at_once("a segment seek", || {
                assert!(stream.pipeline().0.send_event(seek(gst::SeekFlags::SEGMENT, 0)));
            });
            let batches = SAMPLES / 2;
            for batch in 0..batches {
                assert_eq!(stream.pull(), batch_at(number, 2 * batch), "{block:?}");
            }
            until_blocked(stream, block, batches as usize);
        }
        blocked.stop("segment seek", times);
    }
}

/// Asking for the end does not wait; what was read of the epoch that was asked for comes before it, and nothing of the one
/// behind a closed gate.
#[test]
fn an_eos() {
    for block in BLOCKS {
        let blocked = Blocked::new(block);
        let stream = blocked.stream.clone();
        repeat(&format!("EOS, {block:?}"), 20, AT_ONCE, move |_| {
            stream.start_over();
            until_blocked(&stream, block, 2);
            let took = timed(|| assert!(stream.pipeline().0.send_event(gst::event::Eos::new())));
            let taken: Vec<_> = std::iter::from_fn(|| stream.pull()).collect();
            let taken: Vec<_> = taken
                .into_iter()
                .flat_map(|(epoch, indices)| indices.into_iter().map(move |index| (epoch, index)))
                .collect();
            let in_order: Vec<_> = (0..taken.len() as u64)
                .map(|slot| (slot / SAMPLES, slot % SAMPLES))
                .collect();
            assert_eq!(taken, in_order, "{block:?}");
            match block {
                // Two batches have left the buffer, which holds two more, or frames for one.
                Block::NobodyPulls(_) => assert!(taken.len() >= 6, "{block:?}: {taken:?}"),
                _ => assert_eq!(taken.len() as u64, SAMPLES, "{block:?}: {taken:?}"),
            }
            let stop = timed(|| stream.pipeline().set(gst::State::Null));
            took.max(stop)
        });
        assert_eq!(blocked.stream.pipeline().errors(), [""; 0]);
    }
}
