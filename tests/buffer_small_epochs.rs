//! Epochs of one sample or a few, and batches larger than they are: nothing is prepared twice or forgotten where an epoch is
//! one batch, part of one, or none at all.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
mod feed_support;

use std::path::Path;
use std::time::Duration;

use common::{repeat, scratch, timed, tiny_images};
use epochfeed::elements::epochbuffer::Prefetch;
use epochfeed::elements::nhwcpack::LastBatch;
use epochfeed::feed::{Builder, Hold};
use epochfeed::sampler::{Ledger, Sampler, SamplerConfig, Shuffle};
use feed_support::{all, rest, small};

const EPOCHS: u64 = 4;
const SEED: u64 = 4;
/// How long a few small epochs may take.
const LIMIT: Duration = Duration::from_secs(10);
const LAST: [LastBatch; 3] = [LastBatch::Partial, LastBatch::Drop, LastBatch::Pad];
const PREFETCH: [Prefetch; 3] = [Prefetch::Off, Prefetch::Complete, Prefetch::Any];
const HOLD: [Hold; 2] = [Hold::Batches, Hold::Frames];
/// Samples, and samples of a batch.
const SIZES: [(usize, usize); 6] = [(1, 1), (1, 2), (1, 300), (2, 3), (3, 16), (5, 4)];

/// The batches that an epoch of this order comes to.
fn batches(order: &[u64], size: usize, last: LastBatch) -> Vec<Vec<u64>> {
    let mut batches: Vec<Vec<u64>> = order.chunks(size).map(<[u64]>::to_vec).collect();
    match last {
        LastBatch::Drop => batches.retain(|batch| batch.len() == size),
        LastBatch::Pad => {
            if let Some(batch) = batches.last_mut() {
                let missing = size - batch.len();
                batch.extend(order.iter().cycle().take(missing));
            }
        }
        _ => (),
    }
    batches
}

fn ledger(samples: usize, size: usize, last: LastBatch) -> Ledger {
    let (samples, tail) = (samples as u64, (samples % size) as u64);
    let dropped = if last == LastBatch::Drop { tail } else { 0 };
    let padded = if last == LastBatch::Pad && tail > 0 {
        size as u64 - tail
    } else {
        0
    };
    Ledger {
        listed: samples,
        delivered: samples - dropped,
        dropped,
        padded,
        ..Ledger::default()
    }
}

/// One way to have small epochs.
#[derive(Clone, Copy, Debug)]
struct Arrangement {
    samples: usize,
    batch_size: usize,
    last: LastBatch,
    prefetch: Prefetch,
    hold: Hold,
}

impl Arrangement {
    const COUNT: usize = SIZES.len() * LAST.len() * PREFETCH.len() * HOLD.len();

    /// All of them, one after the other.
    fn nth(number: usize) -> Self {
        let mut rest = number;
        let mut next = |count: usize| {
            let choice = rest % count;
            rest /= count;
            choice
        };
        let (samples, batch_size) = SIZES[next(SIZES.len())];
        Self {
            samples,
            batch_size,
            last: LAST[next(LAST.len())],
            prefetch: PREFETCH[next(PREFETCH.len())],
            hold: HOLD[next(HOLD.len())],
        }
    }

    /// A feed of `images`.
    fn feed(&self, images: &Path) -> Builder {
        small(images)
            .seed(SEED)
            .shuffle(Shuffle::Torch)
            .batch_size(self.batch_size as u32)
            .last_batch(self.last)
            .prefetch(self.prefetch)
            .hold(self.hold)
    }
}

/// Calls `check` with every arrangement and its images.
#[track_caller]
fn every_arrangement(what: &str, check: impl Fn(Arrangement, &Path) + Clone + Send + 'static) {
    repeat(what, Arrangement::COUNT, LIMIT, move |number| {
        let arrangement = Arrangement::nth(number % Arrangement::COUNT);
        let images = scratch();
        tiny_images(images.path(), arrangement.samples);
        timed(|| check(arrangement, images.path()))
    });
}

#[test]
fn every_epoch_is_whole() {
    every_arrangement("small epochs taken whole", |arrangement, images| {
        let Arrangement {
            samples,
            batch_size,
            last,
            ..
        } = arrangement;
        let sampler = Sampler::new(SamplerConfig::new(Shuffle::Torch, SEED, samples as u64)).unwrap();
        let mut receipt = sampler.first();
        let feed = arrangement.feed(images).epochs(EPOCHS as u32).build().unwrap();
        let mut epochs = feed.epochs();
        for number in 0..EPOCHS {
            let mut epoch = epochs.next().unwrap().unwrap();
            let taken = rest(&mut epoch);
            let order: Vec<u64> = sampler
                .draw(&receipt)
                .iter()
                .map(|slot| slot.dataset_index)
                .collect();
            let indices: Vec<_> = taken.iter().map(|batch| batch.indices.clone()).collect();
            assert_eq!(
                indices,
                batches(&order, batch_size, last),
                "{arrangement:?}, epoch {number}"
            );
            assert!(taken.iter().all(|batch| batch.epoch == number), "{arrangement:?}");
            assert_eq!(
                epoch.ledger(),
                Some(ledger(samples, batch_size, last)),
                "{arrangement:?}"
            );
            receipt = sampler.next(&receipt, true);
        }
        assert!(epochs.next().is_none(), "{arrangement:?}");
    });
}

/// Where the next epoch may already be prepared when the one before it is left at its only batch.
#[test]
fn an_epoch_can_be_left_at_any_batch() {
    every_arrangement("small epochs left early", |arrangement, images| {
        let feed = arrangement.feed(images).endless().build().unwrap();
        let mut epochs = feed.epochs();
        for left in [0, 1, usize::MAX, 0, usize::MAX, 1] {
            let mut epoch = epochs.next().unwrap().unwrap();
            let number = epoch.number();
            for batch in epoch.by_ref().take(left) {
                assert_eq!(batch.unwrap().epoch(), number, "{arrangement:?}");
            }
            drop(epoch);
            let (last, ledger) = feed.stats().last_epoch.unwrap();
            assert_eq!(
                (last, ledger.listed),
                (number, arrangement.samples as u64),
                "{arrangement:?}"
            );
            assert!(ledger.balanced(), "{arrangement:?}: {ledger:?}");
        }
    });
}

/// The state behind every batch of a run leads to the rest of it.
fn assert_resumes(arrangement: Arrangement, images: &Path) {
    let run = all(&arrangement.feed(images).epochs(3).build().unwrap());
    for (number, batch) in run.iter().enumerate() {
        // Behind an epoch's last batch, these are one more than are left: how many a resumed run takes is not the subject.
        let left = 3 - batch.epoch;
        let resumed = arrangement.feed(images).resume(batch.state.clone());
        let rest = all(&resumed.epochs(left as u32).build().unwrap());
        assert!(
            rest.starts_with(&run[number + 1..]),
            "{arrangement:?}, behind batch {number}"
        );
    }
}

#[test]
fn every_batch_can_be_resumed_behind() {
    every_arrangement("small epochs resumed", |arrangement, images| {
        assert_resumes(arrangement, images);
    });
}

/// The same through the elements alone, with epochsink asking: its report does not depend on what was prepared.
#[test]
fn reports_do_not_depend_on_what_was_prepared() {
    for (samples, size) in SIZES {
        let images = scratch();
        tiny_images(images.path(), samples);
        for last in ["partial", "drop", "pad"] {
            let report = |frames: &str, batches: &str| {
                let pack = format!("batch-size={size} last-batch={last} {batches}");
                let feed = common::Feed {
                    source: &format!("epochs={EPOCHS} shuffle=torch"),
                    jitter: frames,
                    pack: &pack,
                    sink: "validation-time=2",
                    ..common::Feed::new(images.path())
                };
                feed.report().without_times()
            };
            let wanted = report("", "");
            wanted.assert_adds_up();
            assert_eq!(wanted.epochs.len() as u64, EPOCHS);
            for prefetch in ["complete", "any"] {
                let what = format!("{samples} samples in batches of {size}, {last}, {prefetch}");
                let buffer = format!("! epochbuffer prefetch={prefetch} max-buffers=1");
                assert_eq!(report("", &buffer), wanted, "batches, {what}");
                assert_eq!(report(&buffer, ""), wanted, "frames, {what}");
            }
        }
    }
}
