//! A feed or an epoch that is dropped in somebody's callback: while a message is handled, in another pipeline's callback,
//! on a thread of GStreamer's pool.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
mod feed_support;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::{Pipeline, repeat, repetitions, scratch, timed};
use epochfeed::elements::epochbuffer::Prefetch;
use epochfeed::feed::{Builder, Feed, Hold};
use epochfeed::sampler::Shuffle;
use epochfeed::{Epoch, FeedError};
use feed_support::{LIMIT, all, rest, small, tiny_images, until, within};
use gst::prelude::*;

/// How long a feed may take to stop.
const STOP: Duration = Duration::from_secs(2);
const SAMPLES: usize = 9;

fn endless(images: &Path, number: usize) -> Builder {
    small(images)
        .endless()
        .batch_size(2)
        .prefetch([Prefetch::Any, Prefetch::Off][number % 2])
        .hold([Hold::Batches, Hold::Frames][number / 2 % 2])
}

/// Takes of one epoch after the other: all, nothing, three batches, and so on, until an error comes.
fn consume(feed: &Feed) -> impl FnOnce() -> Option<FeedError> + Send + 'static {
    let mut epochs = feed.epochs();
    move || {
        for count in [usize::MAX, 0, 3].into_iter().cycle() {
            let taken = epochs
                .next()?
                .map(|epoch| epoch.take(count).find_map(Result::err));
            match taken {
                Ok(None) => (),
                Ok(Some(error)) | Err(error) => return Some(error),
            }
        }
        None
    }
}

/// Drops a feed while its `number`-th message is handled, counted from the moment that the consumer begins. Returns how
/// long it took until the pipeline stood still; `None` if there are not so many messages.
fn drop_at_message(builder: Builder, number: usize) -> Option<Duration> {
    let slot: Arc<Mutex<Option<Feed>>> = Arc::default();
    let (send, dropped) = channel();
    let (left, handler) = (AtomicUsize::new(number), slot.clone());
    let feed = builder
        .on_message(move |_| {
            // Whatever is posted while it stops comes here, too, on any thread.
            let Ok(mut slot) = handler.try_lock() else { return };
            if slot.is_some() && left.fetch_sub(1, Ordering::Relaxed) == 0 {
                let feed = slot.take();
                drop(slot);
                let start = Instant::now();
                drop(feed);
                let _ = send.send(start);
            }
        })
        .build()
        .unwrap();
    let pipeline = feed.pipeline().clone();
    let consume = consume(&feed);
    *slot.lock().unwrap() = Some(feed);
    let error = consume();
    let Ok(start) = dropped.try_recv().or_else(|_| match &error {
        // The handler may still be on its way out.
        Some(FeedError::Closed) => Ok(dropped.recv().unwrap()),
        _ => Err(()),
    }) else {
        // The handler keeps the slot, and the feed keeps the handler.
        drop(slot.lock().unwrap().take());
        return None;
    };
    until("it has stopped", || pipeline.current_state() == gst::State::Null);
    Some(start.elapsed())
}

#[test]
fn a_feed_dropped_at_any_message_stops() {
    let images = scratch();
    tiny_images(images.path(), SAMPLES);
    let folder = images.path().to_owned();
    repeat("drop of a feed in on_message", 200, STOP, move |number| {
        let builder = endless(&folder, number);
        drop_at_message(builder, number / 4 % 50).expect("it is endless")
    });
}

#[test]
fn a_feed_dropped_when_it_fails_stops() {
    let images = scratch();
    tiny_images(images.path(), SAMPLES);
    std::fs::write(images.path().join("0009.jpg"), b"").unwrap();
    let folder = images.path().to_owned();
    // The message of the failure is one of these.
    let messages = 20;
    within(LIMIT, move || {
        for number in 0..repetitions(4 * messages) {
            let took = drop_at_message(endless(&folder, number), number / 4 % messages);
            assert!(took.is_none_or(|took| took < STOP), "{number}: {took:?}");
        }
    });
}

/// An epoch that is left while a message is handled is left as everywhere else.
#[test]
fn an_epoch_can_be_dropped_while_a_message_is_handled() {
    let images = scratch();
    tiny_images(images.path(), SAMPLES);
    let folder = images.path().to_owned();
    repeat("drop of an epoch in on_message", 40, STOP, move |number| {
        let build = || {
            // All of it fits in front of the consumer, so that its end is told while nothing is taken.
            endless(&folder, number)
                .shuffle(Shuffle::Torch)
                .batch_size(SAMPLES as u32)
        };
        let wanted = {
            let feed = build().epochs(2).build().unwrap();
            drop(feed.epochs().next());
            all(&feed)
        };
        let (give, given) = channel::<Epoch>();
        let (send, dropped) = channel();
        let work = Mutex::new(Some(move || {
            let epoch = given.recv().unwrap();
            send.send(timed(|| drop(epoch))).unwrap();
        }));
        let feed = build()
            .on_message(move |message| {
                let fields = message.structure();
                let ended = fields.is_some_and(|fields| fields.name() == "epochfeed-epoch");
                let work = if ended { work.lock().unwrap().take() } else { None };
                if let Some(work) = work {
                    work();
                }
            })
            .build()
            .unwrap();
        let mut epochs = feed.epochs();
        give.send(epochs.next().unwrap().unwrap()).unwrap();
        let took = dropped.recv_timeout(LIMIT).unwrap();
        assert!(rest(&mut epochs.next().unwrap().unwrap()) == wanted, "{number}");
        took
    });
}

/// Where the callback is not on one of the feed's own threads, the feed has stopped when the drop returns.
#[test]
fn elsewhere_a_drop_waits_for_the_end() {
    let images = scratch();
    tiny_images(images.path(), SAMPLES);
    let folder = images.path().to_owned();
    repeat(
        "drop of a feed in another pipeline's callback",
        40,
        STOP,
        move |number| {
            let feed = endless(&folder, number).build().unwrap();
            let pipeline = feed.pipeline().clone();
            feed.epochs().next().unwrap().unwrap().next().unwrap().unwrap();
            let (send, dropped) = channel();
            let slot = Mutex::new(Some(feed));
            let drop_it = move || {
                if let Some(feed) = slot.lock().unwrap().take() {
                    let took = timed(|| drop(feed));
                    send.send((took, pipeline.current_state())).unwrap();
                }
            };
            let other = Pipeline::new("videotestsrc num-buffers=1 ! appsink name=sink sync=false");
            let sink = other.element("sink").downcast::<gst_app::AppSink>().unwrap();
            if number.is_multiple_of(2) {
                let new_sample = move |_: &gst_app::AppSink| {
                    drop_it();
                    Ok(gst::FlowSuccess::Ok)
                };
                sink.set_callbacks(
                    gst_app::AppSinkCallbacks::builder()
                        .new_sample(new_sample)
                        .build(),
                );
                other.set(gst::State::Playing);
            } else {
                other.0.call_async(move |_| drop_it());
            }
            let (took, state) = dropped.recv_timeout(LIMIT).unwrap();
            assert_eq!(state, gst::State::Null);
            took
        },
    );
}
