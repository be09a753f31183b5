//! Stops that begin in a callback. A streaming thread must not stop its own pipeline: it asks another one, by
//! `call_async` or by a message. What handles messages in a main loop stops the pipeline itself.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use common::wait::LIMIT;
use common::{Buffered, Held, repeat, scratch, timed, tiny_images};
use gst::prelude::*;

const AT_ONCE: Duration = Duration::from_secs(1);
/// Batches of an epoch.
const BATCHES: usize = 4;
/// Stops come behind so many messages or batches, one after the other: from the first message of the start to the second
/// epoch.
const MOMENTS: usize = 60;

fn stream(images: &Path, number: usize) -> Buffered {
    let held = Held::ALL[number % 2];
    let prefetch = ["prefetch=complete max-buffers=2", "prefetch=off"][number / 2 % 2];
    Buffered::new(images, "", held, prefetch, 1)
}

/// Counts down to the moment.
fn is_now(left: &AtomicUsize) -> bool {
    left.fetch_sub(1, Ordering::Relaxed) == 0
}

/// Has another thread stop the pipeline, and say when it began to.
fn stop_elsewhere(pipeline: &gst::Element, stopped: Sender<Instant>) {
    let start = Instant::now();
    pipeline.call_async(move |pipeline| {
        pipeline.set_state(gst::State::Null).unwrap();
        stopped.send(start).unwrap();
    });
}

/// What was stopped works once more.
fn assert_starts_again(stream: &Buffered) {
    stream
        .sink()
        .set_callbacks(gst_app::AppSinkCallbacks::builder().build());
    stream.start_over();
    assert_eq!(stream.pull(), Some((0, vec![0, 1])));
    stream.pipeline().set(gst::State::Null);
    assert_eq!(stream.pipeline().errors(), [""; 0]);
}

#[test]
fn in_new_sample_by_another_thread() {
    let images = scratch();
    tiny_images(images.path(), 2 * BATCHES);
    let folder = images.path().to_owned();
    repeat("stop in new-sample", 40, AT_ONCE, move |number| {
        let stream = stream(&folder, number);
        let (send, stopped) = channel();
        let left = AtomicUsize::new(number % (2 * BATCHES));
        let new_sample = move |sink: &gst_app::AppSink| {
            let _ = sink.pull_sample();
            if is_now(&left) {
                let pipeline = sink.parent().unwrap().downcast().unwrap();
                stop_elsewhere(&pipeline, send.clone());
            }
            Ok(gst::FlowSuccess::Ok)
        };
        let callbacks = gst_app::AppSinkCallbacks::builder().new_sample(new_sample);
        stream.sink().set_callbacks(callbacks.build());
        stream.start_over();
        let took = stopped.recv_timeout(LIMIT).unwrap().elapsed();
        assert_starts_again(&stream);
        took
    });
}

#[test]
fn in_new_sample_by_a_message() {
    let images = scratch();
    tiny_images(images.path(), 2 * BATCHES);
    let folder = images.path().to_owned();
    repeat("stop by a message of new-sample's", 40, AT_ONCE, move |number| {
        let stream = stream(&folder, number);
        let left = AtomicUsize::new(number % (2 * BATCHES));
        let new_sample = move |sink: &gst_app::AppSink| {
            if is_now(&left) {
                let message = gst::message::Application::builder(gst::Structure::new_empty("enough"));
                sink.post_message(message.src(sink).build()).unwrap();
            }
            let _ = sink.pull_sample();
            Ok(gst::FlowSuccess::Ok)
        };
        let callbacks = gst_app::AppSinkCallbacks::builder().new_sample(new_sample);
        stream.sink().set_callbacks(callbacks.build());
        stream.start_over();
        let pipeline = stream.pipeline();
        pipeline.wait(|message| message.type_() == gst::MessageType::Application);
        let took = timed(|| pipeline.set(gst::State::Null));
        assert_starts_again(&stream);
        took
    });
}

/// Keeps an appsink empty.
fn take_all(stream: &Buffered) {
    let new_sample = |sink: &gst_app::AppSink| {
        let _ = sink.pull_sample();
        Ok(gst::FlowSuccess::Ok)
    };
    let callbacks = gst_app::AppSinkCallbacks::builder().new_sample(new_sample);
    stream.sink().set_callbacks(callbacks.build());
}

#[test]
fn in_a_sync_handler_at_any_message() {
    let images = scratch();
    tiny_images(images.path(), 2 * BATCHES);
    let folder = images.path().to_owned();
    repeat("stop in a sync handler", MOMENTS, AT_ONCE, move |number| {
        let stream = stream(&folder, number);
        take_all(&stream);
        let (send, stopped) = channel();
        let left = AtomicUsize::new(number % MOMENTS);
        let pipeline = stream.pipeline().0.clone().upcast::<gst::Element>();
        let weak = pipeline.downgrade();
        let bus = pipeline.bus().unwrap();
        bus.set_sync_handler(move |_, _| {
            if is_now(&left) {
                stop_elsewhere(&weak.upgrade().unwrap(), send.clone());
            }
            gst::BusSyncReply::Pass
        });
        // The stop may come while it starts.
        let _ = pipeline.set_state(gst::State::Playing);
        let took = stopped.recv_timeout(LIMIT).unwrap().elapsed();
        bus.unset_sync_handler();
        assert_starts_again(&stream);
        took
    });
}

#[test]
fn in_a_main_loop_at_any_message() {
    let images = scratch();
    tiny_images(images.path(), 2 * BATCHES);
    let folder = images.path().to_owned();
    repeat("stop in a bus watch", MOMENTS, AT_ONCE, move |number| {
        let stream = stream(&folder, number);
        take_all(&stream);
        let context = glib::MainContext::new();
        let took = context
            .with_thread_default(|| {
                let main_loop = glib::MainLoop::new(Some(&context), false);
                let took = Arc::new(std::sync::Mutex::new(None));
                let (quit, slot) = (main_loop.clone(), took.clone());
                let pipeline = stream.pipeline().0.clone();
                let left = AtomicUsize::new(number % MOMENTS);
                let bus = stream.pipeline().0.bus().unwrap();
                let watch = bus.add_watch(move |_, _| {
                    if is_now(&left) {
                        *slot.lock().unwrap() = Some(timed(|| {
                            pipeline.set_state(gst::State::Null).unwrap();
                        }));
                        quit.quit();
                    }
                    glib::ControlFlow::Continue
                });
                stream.start_over();
                main_loop.run();
                drop(watch);
                took.lock().unwrap().take().unwrap()
            })
            .unwrap();
        assert_starts_again(&stream);
        took
    });
}
