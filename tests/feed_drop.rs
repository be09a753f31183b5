//! A feed, an epoch and a batch can be dropped at any moment, on any thread.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
mod feed_support;

use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::{copy_photos, repeat, scratch, timed};
use epochfeed::elements::epochbuffer::Prefetch;
use epochfeed::feed::{Builder, Feed, Hold};
use epochfeed::sampler::Shuffle;
use epochfeed::{Epoch, FeedError};
use feed_support::{LIMIT, all, rest, small, tiny_images, until, within};
use gst::prelude::*;

/// How long a feed may take to stop.
const STOP: Duration = Duration::from_secs(2);

#[track_caller]
fn stops(what: &str, drop_it: impl FnOnce()) {
    let start = Instant::now();
    drop_it();
    let took = start.elapsed();
    assert!(took < STOP, "{what}: {took:?}");
}

/// A feed that would go on for ever.
fn endless(images: &Path, prefetch: Prefetch, hold: Hold) -> Builder {
    small(images)
        .shuffle(Shuffle::Torch)
        .endless()
        .batch_size(2)
        .prefetch(prefetch)
        .hold(hold)
}

#[test]
fn a_feed_stops_at_any_moment() {
    within(LIMIT, || {
        let images = scratch();
        copy_photos(images.path(), 7);
        for (prefetch, hold) in [
            (Prefetch::Off, Hold::Batches),
            (Prefetch::Any, Hold::Batches),
            (Prefetch::Any, Hold::Frames),
        ] {
            let build = || endless(images.path(), prefetch, hold).build().unwrap();
            let what = |moment: &str| format!("{moment}, {prefetch:?} {hold:?}");
            for _ in 0..20 {
                let feed = build();
                stops(&what("just built"), || drop(feed));
                let feed = build();
                let epoch = feed.epochs().next();
                stops(&what("just asked"), || drop((feed, epoch)));
            }
            for taken in 1..=8 {
                let feed = build();
                let batches: Vec<_> = feed
                    .epochs()
                    .flat_map(|epoch| epoch.unwrap())
                    .take(taken)
                    .collect();
                stops(&what("taking"), || drop(feed));
                assert!(
                    batches
                        .iter()
                        .all(|batch| batch.as_ref().unwrap().as_bytes().unwrap().len() >= 1728)
                );
            }
            let feed = build();
            rest(&mut feed.epochs().next().unwrap().unwrap());
            if prefetch != Prefetch::Off {
                until("the next is prepared", || feed.stats().buffer.buffers >= 4);
            }
            stops(&what("at the boundary"), || drop(feed));
            let feed = build();
            feed.epochs().next().unwrap().unwrap().next();
            stops(&what("broken off"), || drop(feed));
        }
        let feed = small(images.path()).build().unwrap();
        all(&feed);
        stops("at the end", || drop(feed));
        std::fs::write(images.path().join("zero.jpg"), b"").unwrap();
        let feed = small(images.path()).build().unwrap();
        assert!(feed.epochs().next().unwrap().unwrap().any(|batch| batch.is_err()));
        stops("after an error", || drop(feed));
    });
}

/// The budget is full and nobody takes: every thread of the pipeline waits.
#[test]
fn a_full_feed_stops() {
    let images = scratch();
    tiny_images(images.path(), 100);
    for hold in [Hold::Batches, Hold::Frames] {
        let folder = images.path().to_owned();
        repeat(&format!("drop of a full feed, {hold:?}"), 50, STOP, move |_| {
            let feed = small(&folder).hold(hold).max_buffers(4).build().unwrap();
            until("it is full", || feed.stats().buffer.buffers == 4);
            timed(|| drop(feed))
        });
    }
}

#[test]
fn whoever_still_takes_is_told() {
    let images = scratch();
    tiny_images(images.path(), 5);
    let folder = images.path().to_owned();
    repeat("drop of a feed in use", 50, STOP, move |_| {
        let feed = small(&folder).endless().prefetch(Prefetch::Any).build().unwrap();
        let mut epochs = feed.epochs();
        let (send, taken) = channel();
        let consumer = std::thread::spawn(move || {
            loop {
                let epoch = match epochs.next().expect("it is endless") {
                    Ok(epoch) => epoch,
                    Err(error) => return (error, epochs.next().is_none()),
                };
                for batch in epoch {
                    match batch {
                        Ok(_) => send.send(()).unwrap(),
                        Err(error) => return (error, epochs.next().is_some()),
                    }
                }
            }
        });
        for _ in 0..7 {
            taken.recv().unwrap();
        }
        let took = timed(|| drop(feed));
        let (error, ended) = consumer.join().unwrap();
        assert!(matches!(error, FeedError::Closed) && ended, "{error:?}");
        took
    });
}

/// The elements of a feed with a source pad of which a thread of the pipeline pushes, and its sink.
const PADS: [(&str, &str); 6] = [
    ("epochsrc", "src"),
    ("epochdecode", "src"),
    ("hsvquantize", "src"),
    ("nhwcpack", "src"),
    ("epochbuffer", "src"),
    ("feedsink", "sink"),
];

/// Has `work` done on the streaming thread of a pad, once, at its `number`-th buffer from now.
fn on_streaming_thread(
    pipeline: &gst::Pipeline,
    (element, pad): (&str, &str),
    number: usize,
    work: impl FnOnce() + Send + 'static,
) {
    let pad = pipeline.by_name(element).unwrap().static_pad(pad).unwrap();
    on_pads_thread(&pad, number, work);
}

fn on_pads_thread(pad: &gst::Pad, number: usize, work: impl FnOnce() + Send + 'static) {
    let state = Mutex::new((number, Some(work)));
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, _| {
        let work = {
            let mut state = state.lock().unwrap();
            match state.0.checked_sub(1) {
                Some(left) => {
                    state.0 = left;
                    None
                }
                None => state.1.take(),
            }
        };
        if let Some(work) = work {
            work();
        }
        gst::PadProbeReturn::Ok
    });
}

#[test]
fn a_feed_dropped_in_a_callback_stops_when_that_has_returned() {
    within(LIMIT, || {
        let images = scratch();
        tiny_images(images.path(), 9);
        for pad in PADS {
            for number in [0, 3] {
                let feed = endless(images.path(), Prefetch::Any, Hold::Batches)
                    .build()
                    .unwrap();
                let pipeline = feed.pipeline().clone();
                let (give, taken) = channel::<Feed>();
                let (send, dropped) = channel();
                on_streaming_thread(&pipeline, pad, number, move || {
                    let feed = taken.recv().unwrap();
                    let start = Instant::now();
                    drop(feed);
                    send.send(start.elapsed()).unwrap();
                });
                let mut epochs = feed.epochs();
                let consumer = std::thread::spawn(move || {
                    loop {
                        match epochs.next() {
                            Some(Ok(epoch)) => {
                                if let Some(error) = epoch.into_iter().find_map(Result::err) {
                                    return error;
                                }
                            }
                            Some(Err(error)) => return error,
                            None => panic!("it is endless"),
                        }
                    }
                });
                give.send(feed).unwrap();
                assert!(dropped.recv().unwrap() < STOP);
                stops("after the callback", || {
                    until("it has stopped", || pipeline.current_state() == gst::State::Null)
                });
                assert!(matches!(consumer.join().unwrap(), FeedError::Closed), "{pad:?}");
            }
        }
    });
}

#[test]
fn a_feed_can_be_dropped_while_a_message_is_handled() {
    within(LIMIT, || {
        let images = scratch();
        tiny_images(images.path(), 9);
        let slot: Arc<Mutex<Option<Feed>>> = Arc::default();
        let (send, dropped) = channel();
        let handler = slot.clone();
        let feed = endless(images.path(), Prefetch::Any, Hold::Batches)
            .on_message(move |message| {
                // The end of the second epoch: posted by the source's thread.
                let fields = message.structure();
                if fields.is_some_and(|fields| fields.get::<u64>("epoch") == Ok(1)) {
                    let feed = handler.lock().unwrap().take();
                    drop(feed);
                    let _ = send.send(());
                }
            })
            .build()
            .unwrap();
        let pipeline = feed.pipeline().clone();
        let mut epochs = feed.epochs();
        *slot.lock().unwrap() = Some(feed);
        let last = std::iter::from_fn(|| epochs.next()).find_map(|epoch| match epoch {
            Ok(epoch) => epoch.into_iter().find_map(Result::err),
            Err(error) => Some(error),
        });
        assert!(matches!(last, Some(FeedError::Closed)), "{last:?}");
        dropped.recv().unwrap();
        stops("after the message", || {
            until("it has stopped", || pipeline.current_state() == gst::State::Null)
        });
    });
}

/// An epoch that is dropped on a streaming thread is left as everywhere else, and the next one is whole.
#[test]
fn an_epoch_can_be_dropped_in_a_callback() {
    within(LIMIT, || {
        let images = scratch();
        tiny_images(images.path(), 9);
        let build = || small(images.path()).shuffle(Shuffle::Torch).epochs(2);
        let wanted = {
            let feed = build().build().unwrap();
            drop(feed.epochs().next());
            all(&feed)
        };
        assert_eq!(wanted.len(), 9);
        for pad in PADS {
            for prefetch in [Prefetch::Off, Prefetch::Any] {
                let (give, given) = channel::<Epoch>();
                let (send, dropped) = channel();
                // The probe must see the first buffer, so it is there before the pipeline runs.
                let work = Mutex::new(Some(move || {
                    drop(given.recv().unwrap());
                    send.send(()).unwrap();
                }));
                let feed = build()
                    .prefetch(prefetch)
                    .on_message(move |message| {
                        let source = message
                            .src()
                            .and_then(|source| source.downcast_ref::<gst::Element>());
                        if let (gst::MessageView::StateChanged(change), Some(element)) =
                            (message.view(), source)
                            && change.current() == gst::State::Ready
                            && element.name() == pad.0
                            && let Some(work) = work.lock().unwrap().take()
                        {
                            on_pads_thread(&element.static_pad(pad.1).unwrap(), 0, work);
                        }
                    })
                    .build()
                    .unwrap();
                let mut epochs = feed.epochs();
                give.send(epochs.next().unwrap().unwrap()).unwrap();
                dropped.recv().unwrap();
                let mut taken = epochs.next().unwrap().unwrap();
                assert!(rest(&mut taken) == wanted, "{pad:?} {prefetch:?}");
                assert_eq!(feed.stats().ledger.dropped, 9);
            }
        }
    });
}

#[test]
fn a_streaming_thread_cannot_take_what_it_has_to_make() {
    within(LIMIT, || {
        let images = scratch();
        tiny_images(images.path(), 9);
        let feed = small(images.path()).endless().build().unwrap();
        let mut epochs = feed.epochs();
        let mut on_thread = feed.epochs();
        let (send, received) = channel();
        on_streaming_thread(feed.pipeline(), ("feedsink", "sink"), 0, move || {
            send.send(on_thread.next()).unwrap();
        });
        for _ in 0..2 {
            assert_eq!(rest(&mut epochs.next().unwrap().unwrap()).len(), 9);
        }
        let refused = received.recv().unwrap().unwrap().unwrap_err();
        assert!(matches!(refused, FeedError::StreamingThread), "{refused:?}");
    });
}
