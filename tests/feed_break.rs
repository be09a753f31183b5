//! An epoch that is left early: the next one is a new epoch, in the order that follows one that was not exhausted.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
mod feed_support;
mod vectors;

use std::collections::BTreeMap;
use std::path::Path;

use common::scratch;
use epochfeed::elements::epochbuffer::Prefetch;
use epochfeed::feed::{Feed, Hold};
use epochfeed::sampler::{Ledger, Receipt, Sampler, SamplerConfig, Shuffle, State};
use feed_support::{LIMIT, all, indices, rest, seen, small, tiny_images, until, within};

/// Takes from each epoch all, or so many samples and no more.
#[track_caller]
fn take(feed: &Feed, taken: &[Option<usize>]) -> Vec<Vec<u64>> {
    let mut epochs = feed.epochs();
    let mut orders = Vec::new();
    for count in taken {
        let mut epoch = epochs.next().expect("an epoch").unwrap();
        let batches = match count {
            None => rest(&mut epoch),
            Some(count) => epoch
                .by_ref()
                .take(*count)
                .map(|batch| seen(&batch.unwrap()))
                .collect(),
        };
        assert!(batches.iter().all(|batch| batch.epoch == epoch.number()));
        orders.push(indices(&batches));
    }
    orders
}

/// Every run of PyTorch's RandomSampler in the table of up to 1,000 samples: whole, broken off in the middle and behind the
/// last sample.
#[test]
fn torch_goes_on_as_random_sampler_does() {
    within(LIMIT * 2, || {
        let mut runs: BTreeMap<(String, u64, usize), Vec<vectors::Row>> = BTreeMap::new();
        for row in vectors::read("torch.tsv") {
            let size = row.get("size");
            if size <= 1000 {
                let run = (row.text("run").to_owned(), row.get("seed"), size);
                runs.entry(run).or_default().push(row);
            }
        }
        assert!(runs.len() > 15, "{}", runs.len());
        for ((run, seed, size), rows) in runs {
            let images = scratch();
            tiny_images(images.path(), size);
            for prefetch in [Prefetch::Off, Prefetch::Any] {
                let feed = small(images.path())
                    .shuffle(Shuffle::Torch)
                    .seed(seed)
                    .epochs(rows.len() as u32)
                    .prefetch(prefetch)
                    .build()
                    .unwrap();
                let taken: Vec<Option<usize>> = rows
                    .iter()
                    .map(|row| (!row.flag("exhausted")).then(|| row.get("count")))
                    .collect();
                for (row, order) in rows.iter().zip(take(&feed, &taken)) {
                    println!("{run} {seed} {size} {prefetch:?}");
                    row.assert_lists(&order);
                }
                assert!(feed.epochs().next().is_none());
            }
        }
    });
}

/// The receipts of `epochs` epochs of which those in `broken` are broken off.
fn receipts(sampler: &Sampler, broken: &[u64], epochs: u64) -> Vec<Receipt> {
    let mut receipts = vec![sampler.first()];
    for epoch in 0..epochs - 1 {
        let next = sampler.next(&receipts[epoch as usize], !broken.contains(&epoch));
        receipts.push(next);
    }
    receipts
}

fn order(sampler: &Sampler, receipt: &Receipt) -> Vec<u64> {
    sampler
        .draw(receipt)
        .iter()
        .map(|slot| slot.dataset_index)
        .collect()
}

/// In every order, wherever the epoch is left and wherever the next one is prepared: the next is whole, its batches are those of
/// a run that resumes there, and the account says what was dropped.
#[test]
fn every_order_goes_on_with_a_new_epoch() {
    within(LIMIT * 2, || {
        const SIZE: usize = 7;
        let images = scratch();
        tiny_images(images.path(), SIZE);
        let settings = [
            (Prefetch::Off, Hold::Batches),
            (Prefetch::Complete, Hold::Batches),
            (Prefetch::Any, Hold::Frames),
        ];
        for shuffle in Shuffle::ALL {
            for (prefetch, hold) in settings {
                for left in 0..=4u64 {
                    every_order(images.path(), shuffle, prefetch, hold, left);
                }
            }
        }
    });
}

/// Three epochs in batches of two (four of them), of which the second is left behind its `left`-th batch.
#[track_caller]
fn every_order(images: &Path, shuffle: Shuffle, prefetch: Prefetch, hold: Hold, left: u64) {
    let what = format!("{shuffle} {prefetch:?} {hold:?} behind batch {left}");
    let build = || small(images).shuffle(shuffle).seed(3).batch_size(2);
    let feed = build().epochs(3).prefetch(prefetch).hold(hold).build().unwrap();
    let sampler = Sampler::new(SamplerConfig::new(shuffle, 3, 7)).unwrap();
    let receipts = receipts(&sampler, &[1], 3);

    let mut epochs = feed.epochs();
    let first = rest(&mut epochs.next().unwrap().unwrap());
    assert_eq!(indices(&first), order(&sampler, &receipts[0]), "{what}");
    let mut second = epochs.next().unwrap().unwrap();
    for _ in 0..left {
        second.next().unwrap().unwrap();
    }
    let delivered = (2 * left).min(7);
    drop(second);
    let ledger = Ledger {
        listed: 7,
        delivered,
        dropped: 7 - delivered,
        ..Ledger::default()
    };
    assert_eq!(feed.stats().last_epoch, Some((1, ledger)), "{what}");
    let mut third = epochs.next().unwrap().unwrap();
    // The state says so before the first batch is there.
    let state = State::from_json(&feed.state().unwrap()).unwrap();
    assert_eq!(
        (state.epoch, state.position, &state.receipt),
        (2, 0, &receipts[2]),
        "{what}"
    );
    let last = rest(&mut third);
    assert_eq!(indices(&last), order(&sampler, &receipts[2]), "{what}");
    assert_eq!(third.ledger().unwrap().delivered, 7, "{what}");
    assert!(epochs.next().is_none(), "{what}");
    assert_eq!(feed.stats().ledger.listed, 21, "{what}");
    assert!(feed.stats().ledger.balanced(), "{what}");

    let resumed = build().resume(state.to_json()).build().unwrap();
    assert!(all(&resumed) == last, "{what}: resuming gives something else");
}

/// Of the epoch that follows nothing is read before it is asked for, unless it may be prepared: then the one in the new order is.
#[test]
fn what_follows_is_prepared_only_where_it_may_be() {
    within(LIMIT, || {
        let images = scratch();
        tiny_images(images.path(), 100);
        let samples = |feed: &Feed| {
            let source = feed.pipeline().children();
            let source = source.iter().find(|child| child.name() == "epochsrc").unwrap();
            let stats = source.property::<gst::Structure>("stats");
            (
                stats.get::<u64>("samples").unwrap(),
                stats.get::<u64>("epochs").unwrap(),
            )
        };
        let build = |prefetch| {
            small(images.path())
                .shuffle(Shuffle::Torch)
                .epochs(2)
                .prefetch(prefetch)
                .build()
                .unwrap()
        };
        use gst::prelude::*;

        let feed = build(Prefetch::Off);
        let mut epochs = feed.epochs();
        let mut first = epochs.next().unwrap().unwrap();
        first.next().unwrap().unwrap();
        first.break_off().unwrap();
        // The source stands behind the end of the epoch: only the request moves it.
        let (read, ended) = samples(&feed);
        assert!(read <= 100 && ended >= 1, "{read} samples, {ended} ends");
        let second = rest(&mut epochs.next().unwrap().unwrap());
        assert_eq!(second.len(), 100);
        assert_eq!(
            samples(&feed).0,
            read + 100,
            "something was read between the epochs"
        );

        let feed = build(Prefetch::Any);
        let mut epochs = feed.epochs();
        let mut first = epochs.next().unwrap().unwrap();
        first.next().unwrap().unwrap();
        first.break_off().unwrap();
        until("the next epoch is prepared", || {
            feed.stats().buffer.buffers == 100
        });
        let mut prepared = epochs.next().unwrap().unwrap();
        let batch = prepared.next().unwrap().unwrap();
        assert!(batch.prepared());
        let mut taken = vec![seen(&batch)];
        taken.extend(rest(&mut prepared));
        assert_eq!(indices(&taken), indices(&second));
    });
}

/// Leaving is no reason to lose the rest after a restart: only going on is.
#[test]
fn dropping_alone_moves_no_state() {
    within(LIMIT, || {
        let images = scratch();
        tiny_images(images.path(), 7);
        let build = || small(images.path()).shuffle(Shuffle::Torch).seed(5).batch_size(2);
        let feed = build().epochs(2).build().unwrap();
        let mut epoch = feed.epochs().next().unwrap().unwrap();
        let first = epoch.next().unwrap().unwrap();
        epoch.next().unwrap().unwrap();
        // The trainer failed on the second batch.
        drop(epoch);
        assert_eq!(feed.state().as_deref(), Some(first.state()));
        let whole = all(&build().build().unwrap());
        let resumed = build().resume(feed.state().unwrap()).build().unwrap();
        assert!(all(&resumed) == whole[1..]);

        // On purpose, it is another thing.
        let feed = build().epochs(2).build().unwrap();
        let mut epoch = feed.epochs().next().unwrap().unwrap();
        epoch.next().unwrap().unwrap();
        epoch.break_off().unwrap();
        let state = State::from_json(&feed.state().unwrap()).unwrap();
        assert_eq!((state.epoch, state.position), (1, 0));
    });
}

/// The last epoch of a feed can be left like any other.
#[test]
fn behind_the_last_epoch_nothing_comes() {
    within(LIMIT, || {
        let images = scratch();
        tiny_images(images.path(), 7);
        for left in 0..=7 {
            let feed = small(images.path()).shuffle(Shuffle::Torch).build().unwrap();
            let mut epochs = feed.epochs();
            let mut epoch = epochs.next().unwrap().unwrap();
            for _ in 0..left {
                epoch.next().unwrap().unwrap();
            }
            drop(epoch);
            assert!(epochs.next().is_none());
            let state = State::from_json(&feed.state().unwrap()).unwrap();
            assert_eq!((state.epoch, state.position), (1, 0), "left behind {left}");
        }
    });
}

/// Another epoch is asked for while one is still held: that one gives nothing more.
#[test]
fn an_epoch_that_was_overtaken_ends() {
    within(LIMIT, || {
        let images = scratch();
        tiny_images(images.path(), 7);
        let feed = small(images.path()).epochs(2).build().unwrap();
        let mut epochs = feed.epochs();
        let mut first = epochs.next().unwrap().unwrap();
        first.next().unwrap().unwrap();
        let mut second = epochs.next().unwrap().unwrap();
        assert!(first.next().is_none());
        drop(first);
        assert_eq!(rest(&mut second).len(), 7);
        assert_eq!(feed.stats().ledger.dropped, 6);
    });
}

/// Left again and again, at whatever moment the stream is in: the seeks meet elements that start, negotiate, wait and end.
#[test]
fn leaving_over_and_over() {
    within(LIMIT * 2, || {
        let images = scratch();
        tiny_images(images.path(), 9);
        let sampler = Sampler::new(SamplerConfig::new(Shuffle::Torch, 1, 9)).unwrap();
        for (prefetch, hold) in [
            (Prefetch::Off, Hold::Batches),
            (Prefetch::Any, Hold::Batches),
            (Prefetch::Any, Hold::Frames),
        ] {
            for batch_size in [1, 4] {
                let build = small(images.path()).shuffle(Shuffle::Torch).seed(1).endless();
                let feed = build
                    .batch_size(batch_size)
                    .prefetch(prefetch)
                    .hold(hold)
                    .build()
                    .unwrap();
                let mut receipt = sampler.first();
                let batches = 9u64.div_ceil(batch_size.into());
                for (number, epoch) in feed.epochs().take(300).enumerate() {
                    let mut epoch = epoch.unwrap();
                    // One more than there are: to the end.
                    let count = number as u64 * 7 % (batches + 2);
                    let taken: Vec<_> = epoch
                        .by_ref()
                        .take(count as usize)
                        .map(|batch| seen(&batch.unwrap()))
                        .collect();
                    assert!(
                        order(&sampler, &receipt).starts_with(&indices(&taken)),
                        "epoch {number}"
                    );
                    receipt = sampler.next(&receipt, count > batches);
                }
                // The last one was asked for and dropped.
                assert_eq!(feed.stats().epochs, 300);
                assert!(feed.stats().ledger.balanced());
            }
        }
    });
}

/// A recipe that changed has the prepared epoch read again when it is asked for: it can be left while that is under way.
#[test]
fn an_epoch_that_is_prepared_again_can_be_left() {
    within(LIMIT, || {
        use gst::prelude::*;

        let images = scratch();
        tiny_images(images.path(), 9);
        for (hold, full) in [(Hold::Batches, 3), (Hold::Frames, 9)] {
            let build = small(images.path())
                .shuffle(Shuffle::None)
                .endless()
                .batch_size(4);
            let feed = build.prefetch(Prefetch::Any).hold(hold).build().unwrap();
            let mut jitter = feed.pipeline().iterate_all_by_element_factory_name("hsvquantize");
            let jitter = jitter.next().unwrap().unwrap();
            let mut epochs = feed.epochs();
            for turn in 0..40u64 {
                let mut epoch = epochs.next().unwrap().unwrap();
                assert_eq!(epoch.number(), 2 * turn);
                let taken = rest(&mut epoch);
                assert_eq!(
                    indices(&taken),
                    (0..9).collect::<Vec<_>>(),
                    "{hold:?}, turn {turn}"
                );
                until("the next epoch is prepared", || {
                    feed.stats().buffer.buffers == full
                });
                jitter.set_property("hue", (1 + turn % 7) as f64 / 10.0);
                let left = epochs.next().unwrap().unwrap();
                // At another moment each time: some time is spent, nothing is waited for.
                for _ in 0..turn * 500 {
                    std::hint::spin_loop();
                }
                drop(left);
            }
        }
    });
}
