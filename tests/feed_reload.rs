//! `reload`: every epoch is drawn from the dataset as it is then; the one that runs keeps what it was drawn from.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
mod feed_support;

use std::path::Path;

use common::{copy_photos, scratch};
use epochfeed::FeedError;
use epochfeed::elements::epochbuffer::Prefetch;
use epochfeed::feed::{Builder, Epoch};
use epochfeed::sampler::{Receipt, Sampler, SamplerConfig, Shuffle};
use feed_support::{LIMIT, failed, indices, rest, small, tiny_images, until, within};

const SEED: u64 = 5;

fn reloading(images: &Path, shuffle: Shuffle) -> Builder {
    small(images)
        .shuffle(shuffle)
        .seed(SEED)
        .batch_size(2)
        .endless()
        .reload(true)
}

/// What is drawn from `size` samples.
fn sampler(shuffle: Shuffle, size: u64) -> Sampler {
    Sampler::new(SamplerConfig::new(shuffle, SEED, size)).unwrap()
}

fn drawn(sampler: &Sampler, receipt: &Receipt) -> Vec<u64> {
    sampler
        .draw(receipt)
        .iter()
        .map(|slot| slot.dataset_index)
        .collect()
}

fn add(images: &Path, name: &str) {
    std::fs::copy(images.join("0000.jpg"), images.join(name)).unwrap();
}

#[track_caller]
fn assert_listed(epoch: &mut Epoch, wanted: &[u64]) {
    let number = epoch.number();
    let batches = rest(epoch);
    assert!(batches.iter().all(|batch| batch.epoch == number));
    assert_eq!(indices(&batches), wanted, "epoch {number}");
    let ledger = epoch.ledger().unwrap();
    assert_eq!(ledger.listed, wanted.len() as u64);
    assert!(ledger.balanced(), "{ledger:?}");
}

#[test]
fn files_come_and_go_between_epochs() {
    within(LIMIT, || {
        for shuffle in Shuffle::ALL {
            for prefetch in [Prefetch::Off, Prefetch::Complete] {
                let images = scratch();
                tiny_images(images.path(), 4);
                let feed = reloading(images.path(), shuffle)
                    .prefetch(prefetch)
                    .build()
                    .unwrap();
                let [four, six, five] = [4, 6, 5].map(|size| sampler(shuffle, size));
                let mut epochs = feed.epochs();
                let mut epoch = epochs.next().unwrap().unwrap();
                // The epoch that runs has been drawn.
                add(images.path(), "0004.jpg");
                add(images.path(), "0005.jpg");
                assert_listed(&mut epoch, &drawn(&four, &four.first()));
                let mut epoch = epochs.next().unwrap().unwrap();
                let receipt = four.next(&four.first(), true);
                assert_listed(&mut epoch, &drawn(&six, &receipt));
                assert_eq!((epoch.listed(), epoch.slots()), (6, 6));
                std::fs::remove_file(images.path().join("0001.jpg")).unwrap();
                let mut epoch = epochs.next().unwrap().unwrap();
                assert_listed(&mut epoch, &drawn(&five, &six.next(&receipt, true)));
            }
        }
    });
}

/// Prepared means drawn: what comes later is in the epoch after.
#[test]
fn any_prepares_from_the_dataset_as_it_is_then() {
    within(LIMIT, || {
        let images = scratch();
        tiny_images(images.path(), 4);
        let feed = reloading(images.path(), Shuffle::Keyed)
            .prefetch(Prefetch::Any)
            .build()
            .unwrap();
        let [four, five] = [4, 5].map(|size| sampler(Shuffle::Keyed, size));
        let mut epochs = feed.epochs();
        assert_listed(&mut epochs.next().unwrap().unwrap(), &drawn(&four, &four.first()));
        until("the next epoch is prepared", || feed.stats().buffer.buffers >= 2);
        add(images.path(), "0004.jpg");
        let receipt = four.next(&four.first(), true);
        let mut epoch = epochs.next().unwrap().unwrap();
        assert_listed(&mut epoch, &drawn(&four, &receipt));
        let receipt = four.next(&receipt, true);
        assert_listed(&mut epochs.next().unwrap().unwrap(), &drawn(&five, &receipt));
        assert_eq!(feed.stats().buffer.invalidated, 0);
    });
}

/// Leaving an epoch early moves to the end of its own order, however long that is.
#[test]
fn a_larger_epoch_can_be_left() {
    within(LIMIT, || {
        let images = scratch();
        tiny_images(images.path(), 4);
        let feed = reloading(images.path(), Shuffle::Torch).build().unwrap();
        let [four, nine] = [4, 9].map(|size| sampler(Shuffle::Torch, size));
        let mut epochs = feed.epochs();
        rest(&mut epochs.next().unwrap().unwrap());
        for number in 4..9 {
            add(images.path(), &format!("{number:04}.jpg"));
        }
        let mut epoch = epochs.next().unwrap().unwrap();
        epoch.next().unwrap().unwrap();
        epoch.break_off().unwrap();
        let receipt = nine.next(&four.next(&four.first(), true), false);
        let mut epoch = epochs.next().unwrap().unwrap();
        assert_listed(&mut epoch, &drawn(&nine, &receipt));
        let (number, ledger) = (1, feed.stats().ledger);
        assert_eq!(epoch.number(), number + 1);
        assert_eq!((ledger.listed, ledger.dropped), (4 + 9 + 9, 7));
    });
}

/// Inside an epoch the dataset must be the state's; where an epoch begins, the new one is drawn from.
#[test]
fn a_state_inside_an_epoch_is_of_its_own_dataset() {
    within(LIMIT, || {
        for shuffle in Shuffle::ALL {
            let images = scratch();
            copy_photos(images.path(), 5);
            let build = || reloading(images.path(), shuffle);
            let feed = build().build().unwrap();
            let mut epochs = feed.epochs();
            rest(&mut epochs.next().unwrap().unwrap());
            let added = images.path().join("zz.jpg");
            std::fs::copy(
                std::fs::read_dir(images.path())
                    .unwrap()
                    .next()
                    .unwrap()
                    .unwrap()
                    .path(),
                &added,
            )
            .unwrap();
            let mut whole = rest(&mut epochs.next().unwrap().unwrap());
            let second = whole.len();
            whole.extend(rest(&mut epochs.next().unwrap().unwrap()));
            for (number, batch) in whole[..second].iter().enumerate() {
                let resumed = build().threads(1).resume(batch.state.as_str()).build().unwrap();
                let left = resumed
                    .epochs()
                    .take(2 - usize::from(number == second - 1))
                    .flat_map(|epoch| rest(&mut epoch.unwrap()));
                assert!(
                    left.eq(whole[number + 1..].iter().cloned()),
                    "{shuffle} batch {number}"
                );
            }
            std::fs::remove_file(&added).unwrap();
            let error = build().resume(whole[0].state.as_str()).build().unwrap_err();
            let error = error.to_string();
            assert!(
                error.contains("size") && error.contains('5') && error.contains('6'),
                "{error}"
            );
            // At its end the next epoch is drawn from what is there: all five, once.
            let resumed = build().resume(whole[second - 1].state.as_str()).build().unwrap();
            let mut next = indices(&rest(&mut resumed.epochs().next().unwrap().unwrap()));
            next.sort_unstable();
            assert_eq!(next, [0, 1, 2, 3, 4]);
            // Without `reload`, that is another dataset.
            let error = build()
                .reload(false)
                .resume(whole[second - 1].state.as_str())
                .build()
                .unwrap_err();
            assert!(error.to_string().contains("size"), "{error}");
        }
    });
}

/// A list that is gone is told by the request that needs it, naming it.
#[test]
fn a_dataset_that_is_gone_is_told_at_the_request() {
    within(LIMIT, || {
        let images = scratch();
        tiny_images(images.path(), 4);
        let list = images.path().join("list.txt");
        std::fs::write(&list, "0000.jpg\n0001.jpg\n").unwrap();
        let feed = reloading(&list, Shuffle::None).build().unwrap();
        let mut epochs = feed.epochs();
        assert_listed(&mut epochs.next().unwrap().unwrap(), &[0, 1]);
        std::fs::remove_file(&list).unwrap();
        let error = match epochs.next().unwrap() {
            Err(error) => error,
            Ok(mut epoch) => epoch.next().unwrap().unwrap_err(),
        };
        let error = error.to_string();
        assert!(
            error.contains("epoch 1") && error.contains("list.txt does not exist"),
            "{error}"
        );
    });
}

/// Of a prepared epoch the failure is kept for the request, which can be repeated.
#[test]
fn a_dataset_that_is_gone_while_preparing_is_asked_for_again() {
    within(LIMIT, || {
        // More than can be on their way at once: the epoch's end is not in sight when its first sample is taken.
        const SAMPLES: u64 = 40;
        let images = scratch();
        tiny_images(images.path(), SAMPLES as usize);
        let list = images.path().join("list.txt");
        let names: Vec<_> = (0..SAMPLES).map(|number| format!("{number:04}.jpg")).collect();
        std::fs::write(&list, names.join("\n")).unwrap();
        let feed = reloading(&list, Shuffle::None)
            .batch_size(1)
            .threads(1)
            .max_buffers(2)
            .prefetch(Prefetch::Any)
            .build()
            .unwrap();
        let mut epochs = feed.epochs();
        let mut epoch = epochs.next().unwrap().unwrap();
        epoch.next().unwrap().unwrap();
        std::fs::remove_file(&list).unwrap();
        assert_eq!(rest(&mut epoch).len() as u64, SAMPLES - 1);
        until("the failure is there", || failed(&feed, 1));
        for restored in [false, true] {
            match epochs.next().unwrap().unwrap_err() {
                FeedError::Prepare { epoch: 1, reason } => {
                    assert!(reason.contains("list.txt does not exist"), "{reason}");
                }
                error => panic!("{error:?}"),
            }
            until("it has failed again", || restored || failed(&feed, 1));
            if !restored {
                std::fs::write(&list, names[..3].join("\n")).unwrap();
            }
        }
        assert_listed(&mut epochs.next().unwrap().unwrap(), &[0, 1, 2]);
    });
}

/// What an epoch was drawn from is known also when the next one has taken its place.
#[test]
fn an_epoch_that_is_over_keeps_its_size() {
    within(LIMIT, || {
        let images = scratch();
        tiny_images(images.path(), 3);
        let feed = reloading(images.path(), Shuffle::None).build().unwrap();
        let mut epochs = feed.epochs();
        rest(&mut epochs.next().unwrap().unwrap());
        add(images.path(), "0003.jpg");
        let mut epoch = epochs.next().unwrap().unwrap();
        rest(&mut epoch);
        assert_eq!((epoch.listed(), epoch.slots()), (4, 4), "at its end");
        // A batch of the next one has been used when another is asked for.
        let mut next = epochs.next().unwrap().unwrap();
        for _ in 0..2 {
            next.next().unwrap().unwrap();
        }
        assert_eq!((epoch.listed(), epoch.slots()), (4, 4), "later");
    });
}
