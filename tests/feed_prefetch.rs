//! What is prepared before it is asked for: there at once, unseen until then, and its failure told with the request.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
mod feed_support;

use std::path::Path;

use common::{copy_photos, scratch};
use epochfeed::FeedError;
use epochfeed::elements::epochbuffer::{Prefetch, PrefetchReason};
use epochfeed::feed::{Builder, Feed, Hold};
use epochfeed::sampler::Shuffle;
use feed_support::{LIMIT, Seen, all, failed, rest, small, tiny_images, until, within};

fn three_epochs(images: &Path, prefetch: Prefetch, hold: Hold) -> Builder {
    small(images)
        .shuffle(Shuffle::Torch)
        .seed(2)
        .epochs(3)
        .batch_size(2)
        .prefetch(prefetch)
        .hold(hold)
}

/// Waits until the whole next epoch of `buffers` is held.
fn wait_prepared(feed: &Feed, buffers: u64) {
    until("the next epoch is prepared", || {
        feed.stats().buffer.buffers >= buffers
    });
}

#[test]
fn preparing_changes_nothing_but_the_time() {
    within(LIMIT, || {
        let images = scratch();
        tiny_images(images.path(), 7);
        let ordinary = all(&three_epochs(images.path(), Prefetch::Off, Hold::Batches)
            .build()
            .unwrap());
        for (hold, held) in [(Hold::Batches, 4), (Hold::Frames, 7)] {
            let feed = three_epochs(images.path(), Prefetch::Complete, hold)
                .build()
                .unwrap();
            let mut taken: Vec<Seen> = Vec::new();
            let mut epochs = feed.epochs();
            for number in 0..3 {
                let mut epoch = epochs.next().unwrap().unwrap();
                let mut batches = epoch.by_ref().map(Result::unwrap).peekable();
                assert_eq!(batches.peek().unwrap().prepared(), number > 0, "{hold:?}");
                taken.extend(batches.map(|batch| feed_support::seen(&batch)));
                if number < 2 {
                    let state = feed.state();
                    wait_prepared(&feed, held);
                    assert_eq!(feed.state(), state, "preparing moves no state");
                    assert_eq!(feed.stats().epochs, number + 1);
                }
            }
            assert!(taken == ordinary, "{hold:?}");
            assert_eq!(feed.stats().buffer.prepared, 2);
        }
    });
}

#[test]
fn the_budget_is_kept() {
    within(LIMIT, || {
        let images = scratch();
        tiny_images(images.path(), 20);
        let feed = small(images.path())
            .epochs(2)
            .prefetch(Prefetch::Complete)
            .max_buffers(3)
            .build()
            .unwrap();
        let mut epochs = feed.epochs();
        assert_eq!(rest(&mut epochs.next().unwrap().unwrap()).len(), 20);
        wait_prepared(&feed, 3);
        assert_eq!(rest(&mut epochs.next().unwrap().unwrap()).len(), 20);
        let stats = feed.stats().buffer;
        assert_eq!((stats.max_buffers, stats.prefetch_active), (3, true));
        let bytes = small(images.path())
            .max_bytes(5000)
            .epochs(2)
            .prefetch(Prefetch::Complete)
            .build()
            .unwrap();
        assert_eq!(all(&bytes).len(), 40);
        let stats = bytes.stats().buffer;
        assert!((1728..=5000).contains(&stats.max_bytes), "{stats:?}");
    });
}

#[test]
fn the_ordinary_path_has_its_reason() {
    within(LIMIT, || {
        let images = scratch();
        tiny_images(images.path(), 6);
        let reason = |builder: Builder| {
            let feed = builder.epochs(2).build().unwrap();
            let stats = feed.stats().buffer;
            (stats.prefetch_active, stats.prefetch_reason)
        };
        let complete = || small(images.path()).prefetch(Prefetch::Complete);
        assert_eq!(reason(complete()), (true, PrefetchReason::Ok));
        assert_eq!(reason(small(images.path())), (false, PrefetchReason::Off));
        assert_eq!(
            reason(complete().max_steps(9)),
            (false, PrefetchReason::StepBound)
        );
        assert_eq!(reason(complete().reload(true)), (false, PrefetchReason::Reload));
        assert_eq!(
            reason(complete().world_size(2)),
            (false, PrefetchReason::WorldSize)
        );
        assert_eq!(
            reason(complete().samples_per_epoch(3)),
            (false, PrefetchReason::SamplesPerEpoch)
        );
        let any = small(images.path())
            .prefetch(Prefetch::Any)
            .max_steps(9)
            .world_size(2);
        assert_eq!(reason(any.samples_per_epoch(3)), (true, PrefetchReason::Ok));
    });
}

/// A file goes away while the next epoch is prepared: this one is given whole, the request says which file, and when it is back
/// the epoch is as if nothing had happened.
#[test]
fn a_failure_of_a_prepared_epoch_is_told_with_the_request() {
    within(LIMIT, || {
        // Far more samples than can be on their way at once: when the first is taken, the epoch's end is not in sight, and
        // nothing of the next one can be read before its first file is gone.
        const SAMPLES: usize = 40;
        let images = scratch();
        let files = copy_photos(images.path(), SAMPLES);
        let build = |prefetch, hold| {
            let builder = small(images.path()).shuffle(Shuffle::None).epochs(3);
            let builder = builder.threads(1).io_depth(1).max_buffers(2);
            builder.prefetch(prefetch).hold(hold).build().unwrap()
        };
        let wanted = all(&build(Prefetch::Off, Hold::Batches));
        for hold in [Hold::Batches, Hold::Frames] {
            let aside = images.path().join("aside");
            let feed = build(Prefetch::Complete, hold);
            let mut epochs = feed.epochs();
            let mut first = epochs.next().unwrap().unwrap();
            let mut taken = vec![feed_support::seen(&first.next().unwrap().unwrap())];
            std::fs::rename(&files[0], &aside).unwrap();
            taken.extend(rest(&mut first));
            assert!(first.next().is_none());
            let delivered = first.ledger().unwrap().delivered;
            assert_eq!(delivered, SAMPLES as u64, "the epoch before is whole");
            let name = files[0].file_name().unwrap().to_str().unwrap();
            // The request may come before the failure: then it is the stream that fails. Here it comes behind it.
            until("the failure is there", || failed(&feed, 1));
            for _ in 0..2 {
                match epochs.next().unwrap().unwrap_err() {
                    FeedError::Prepare { epoch: 1, reason } => assert!(reason.contains(name), "{reason}"),
                    error => panic!("{error:?}"),
                }
                until("it has failed again", || failed(&feed, 1));
            }
            std::fs::rename(&aside, &files[0]).unwrap();
            // What was prepared without the file is still a failure, and told.
            assert!(matches!(epochs.next(), Some(Err(FeedError::Prepare { .. }))));
            for _ in 0..2 {
                taken.extend(rest(&mut epochs.next().unwrap().unwrap()));
            }
            assert!(epochs.next().is_none());
            assert!(taken == wanted, "{hold:?}");
        }
    });
}
