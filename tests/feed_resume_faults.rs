//! A feed that resumes among faulty samples, or has an epoch's last batch to fill up, repeats the samples that the
//! uninterrupted run would have repeated, although it has not delivered them itself.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
mod feed_support;

use std::path::Path;

use common::{copy_photos, scratch};
use epochfeed::elements::faults::OnError;
use epochfeed::elements::nhwcpack::LastBatch;
use epochfeed::feed::{Builder, Feed, Hold, Sample};
use epochfeed::sampler::{Ledger, Sampler, Shuffle, State};
use feed_support::{LIMIT, Seen, seen, small, within};

const SAMPLES: usize = 11;
const EPOCHS: usize = 3;

/// Photographs, four of which are broken in different ways: the first two, so that nothing good comes before them in
/// dataset order, and two in a row.
fn broken_photos(folder: &Path) {
    let paths = copy_photos(folder, SAMPLES);
    std::fs::write(&paths[0], "").unwrap();
    std::fs::write(&paths[1], "no image").unwrap();
    // Found by the decoder, not by the source.
    for path in &paths[6..8] {
        let mut bytes = std::fs::read(path).unwrap();
        bytes.truncate(300);
        std::fs::write(path, bytes).unwrap();
    }
}

/// Batches with all that is said of their samples, and what each epoch came to.
fn taken(feed: &Feed, epochs: usize) -> (Vec<(Seen, Vec<Sample>)>, Vec<Ledger>) {
    let mut batches = Vec::new();
    let mut ledgers = Vec::new();
    for epoch in feed.epochs().take(epochs) {
        let mut epoch = epoch.unwrap();
        for batch in &mut epoch {
            let batch = batch.unwrap();
            batches.push((seen(&batch), batch.samples().to_vec()));
        }
        ledgers.push(epoch.ledger().unwrap());
    }
    (batches, ledgers)
}

/// Resumes behind each batch of three epochs.
#[track_caller]
fn assert_resumes(build: &dyn Fn() -> Builder, what: &str) {
    let (whole, ledgers) = taken(&build().endless().build().unwrap(), EPOCHS);
    for (number, (batch, _)) in whole.iter().enumerate() {
        let state = State::from_json(&batch.state).unwrap();
        // What is left of the epoch may give no batch; it is an epoch of the run all the same.
        let order = Sampler::new(state.config()).unwrap().draw(&state.receipt);
        let ended = usize::from(state.position == order.len());
        let epochs = EPOCHS - batch.epoch as usize - ended;
        let feed = build().endless().threads(1 + number as u32 % 3);
        let (batches, ends) = taken(&feed.resume(batch.state.as_str()).build().unwrap(), epochs);
        assert!(batches == whole[number + 1..], "{what}: behind batch {number}");
        assert!(
            ends == ledgers[EPOCHS - epochs..],
            "{what}: behind batch {number}"
        );
    }
}

fn each_way(last_batch: LastBatch, batch_size: u32) {
    within(LIMIT * 3, move || {
        let images = scratch();
        broken_photos(images.path());
        for on_error in [OnError::Replace, OnError::Skip] {
            for shuffle in [Shuffle::None, Shuffle::Torch, Shuffle::Keyed] {
                let build = || {
                    small(images.path())
                        .shuffle(shuffle)
                        .seed(3)
                        .on_error(on_error)
                        .batch_size(batch_size)
                        .last_batch(last_batch)
                };
                assert_resumes(&build, &format!("{shuffle} {on_error:?} {last_batch:?}"));
            }
        }
    });
}

#[test]
fn the_last_good_sample_stands_in() {
    each_way(LastBatch::Partial, 2);
}

#[test]
fn the_first_samples_fill_up_the_last_batch() {
    each_way(LastBatch::Pad, 4);
}

#[test]
fn batches_that_are_larger_than_what_was_delivered() {
    each_way(LastBatch::Pad, 3);
}

#[test]
fn a_tail_without_a_batch_is_behind() {
    each_way(LastBatch::Drop, 2);
}

/// Ranks replace what they may not skip, and their epochs end with padding.
#[test]
fn shared_epochs() {
    within(LIMIT * 3, || {
        let images = scratch();
        broken_photos(images.path());
        for rank in 0..3 {
            for hold in [Hold::Frames, Hold::Batches] {
                let build = || {
                    small(images.path())
                        .seed(1)
                        .rank(rank)
                        .world_size(3)
                        .hold(hold)
                        .on_error(OnError::Skip)
                        .batch_size(3)
                        .last_batch(LastBatch::Pad)
                };
                assert_resumes(&build, &format!("rank {rank} {hold:?}"));
            }
        }
    });
}
