//! A feed that is built with a state goes on exactly behind it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
mod feed_support;

use std::path::Path;

use common::{copy_photos, scratch};
use epochfeed::elements::epochbuffer::Prefetch;
use epochfeed::elements::nhwcpack::LastBatch;
use epochfeed::feed::{Builder, Feed};
use epochfeed::sampler::Shuffle;
use feed_support::{LIMIT, Seen, all, rest, seen, small, tiny_images, within};

const SAMPLES: usize = 7;
const EPOCHS: u32 = 3;

fn whole(builder: Builder) -> Vec<Seen> {
    all(&builder.epochs(EPOCHS).build().unwrap())
}

#[test]
fn every_batchs_state_resumes() {
    within(LIMIT * 2, || {
        let images = scratch();
        copy_photos(images.path(), SAMPLES);
        for shuffle in Shuffle::ALL {
            for last_batch in [LastBatch::Partial, LastBatch::Drop] {
                let build = || {
                    small(images.path())
                        .shuffle(shuffle)
                        .seed(9)
                        .batch_size(2)
                        .last_batch(last_batch)
                };
                let whole = whole(build());
                for (number, batch) in whole.iter().enumerate() {
                    // More epochs than there were: what follows begins as the whole run goes on.
                    let feed = build()
                        .epochs(EPOCHS)
                        .threads(1 + number as u32 % 3)
                        .prefetch(if number.is_multiple_of(2) {
                            Prefetch::Any
                        } else {
                            Prefetch::Off
                        })
                        .resume(batch.state.clone())
                        .build()
                        .unwrap();
                    let wanted = &whole[number + 1..];
                    let taken: Vec<_> = feed
                        .epochs()
                        .flat_map(|epoch| epoch.unwrap())
                        .take(wanted.len())
                        .map(|batch| seen(&batch.unwrap()))
                        .collect();
                    assert!(taken == wanted, "{shuffle} {last_batch:?} behind batch {number}");
                }
            }
        }
    });
}

/// `Feed::state` is behind what has been used: a batch is when the next one is asked for, the last one with the epoch's end.
#[test]
fn the_feeds_state_follows_what_was_used() {
    within(LIMIT, || {
        let images = scratch();
        tiny_images(images.path(), 4);
        let build = || small(images.path()).shuffle(Shuffle::Torch);
        let feed = build().epochs(2).build().unwrap();
        assert_eq!(feed.state(), None);
        let epoch = feed.epochs().next().unwrap().unwrap();
        let mut before = None;
        for batch in epoch {
            let batch = batch.unwrap();
            assert_eq!(feed.state(), before, "an unused batch is not behind");
            before = Some(batch.state().to_owned());
        }
        let at_end = feed.state().unwrap();
        let second = all(&feed);
        let resumed = all(&build().resume(at_end.clone()).build().unwrap());
        assert!(resumed == second);
        // Until something is used, a feed that resumes is where it began.
        let resumed = build().resume(at_end.clone()).build().unwrap();
        let epoch = resumed.epochs().next().unwrap().unwrap();
        assert_eq!((epoch.number(), resumed.state()), (1, Some(at_end)));
    });
}

/// The account of an epoch that was resumed is that of the whole epoch.
#[test]
fn the_ledger_of_a_resumed_epoch_is_whole() {
    within(LIMIT, || {
        let images = scratch();
        tiny_images(images.path(), 5);
        let state = all(&small(images.path()).build().unwrap())[1].state.clone();
        let feed = small(images.path()).resume(state).build().unwrap();
        let mut epoch = feed.epochs().next().unwrap().unwrap();
        assert_eq!(rest(&mut epoch).len(), 3);
        let ledger = epoch.ledger().unwrap();
        assert_eq!((ledger.listed, ledger.delivered, ledger.dropped), (5, 5, 0));
    });
}

fn on_file(images: &Path, state: &Path) -> Feed {
    small(images)
        .shuffle(Shuffle::Torch)
        .endless()
        .state_location(state)
        .build()
        .unwrap()
}

/// Three batches a life, over and over: the file takes each life to where the one before stopped using.
#[test]
fn a_file_takes_a_run_over_its_restarts() {
    within(LIMIT, || {
        let images = scratch();
        tiny_images(images.path(), 7);
        let folder = scratch();
        let file = folder.path().join("state.json");
        let wanted = all(&small(images.path())
            .shuffle(Shuffle::Torch)
            .epochs(4)
            .build()
            .unwrap());
        let mut taken: Vec<Seen> = Vec::new();
        while taken.len() < wanted.len() {
            let feed = on_file(images.path(), &file);
            let lived = feed.epochs().flat_map(|epoch| epoch.unwrap()).take(4);
            let mut lived: Vec<_> = lived.map(|batch| seen(&batch.unwrap())).collect();
            // The fourth was taken and not used.
            lived.pop();
            taken.extend(lived);
        }
        assert!(taken[..wanted.len()] == wanted);
        let saved = std::fs::read_to_string(&file).unwrap();
        assert!(saved == taken.last().unwrap().state);
    });
}

#[test]
fn a_state_that_cannot_be_saved_is_said_and_loses_nothing() {
    within(LIMIT, || {
        let images = scratch();
        tiny_images(images.path(), 4);
        let folder = scratch();
        let state = folder.path().join("gone/state.json");
        let feed = on_file(images.path(), &state);
        let mut epoch = feed.epochs().next().unwrap().unwrap();
        let mut taken = vec![seen(&epoch.next().unwrap().unwrap())];
        let error = epoch.next().unwrap().unwrap_err();
        assert!(matches!(error, epochfeed::FeedError::SaveState { .. }), "{error}");
        std::fs::create_dir(state.parent().unwrap()).unwrap();
        taken.extend(rest(&mut epoch));
        let wanted = all(&small(images.path()).shuffle(Shuffle::Torch).build().unwrap());
        assert!(taken == wanted);
        assert!(state.exists());
    });
}

/// Before its first batch was used, a feed that resumes from a file is where the file says.
#[test]
fn a_feed_on_a_file_begins_with_its_state() {
    within(LIMIT, || {
        let images = scratch();
        tiny_images(images.path(), 4);
        let folder = scratch();
        let file = folder.path().join("state.json");
        let feed = on_file(images.path(), &file);
        let mut epoch = feed.epochs().next().unwrap().unwrap();
        let first = epoch.next().unwrap().unwrap();
        epoch.next().unwrap().unwrap();
        drop(epoch);
        drop(feed);
        let feed = on_file(images.path(), &file);
        assert_eq!(feed.state().as_deref(), Some(first.state()));
    });
}
