//! A feed whose batches are made and stay on a GPU.
//!
//! Tests that need a GPU say that they did not run where there is none; see `common/gpu.rs`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
#[path = "cuda/driver.rs"]
mod driver;
mod feed_support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use common::gpu::{on_gpu, on_idle_gpu};
use common::{MarkedSet, copy_photos, covered, scratch};
use epochfeed::FeedError;
use epochfeed::cuda::{CudaError, Device, DeviceMemory, Stream};
use epochfeed::elements::epochbuffer::Prefetch;
use epochfeed::elements::faults::OnError;
use epochfeed::elements::nhwcpack::LastBatch;
use epochfeed::feed::{Batch, Builder, Feed, Hold};
use epochfeed::sampler::Shuffle;
use epochfeed::tensor::Dtype;
use feed_support::{LIMIT, all, seen, small, tiny_images, until, within};
use gst::prelude::*;

/// A stream that is held for longer has been waited for.
const PATIENCE: Duration = Duration::from_secs(20);

fn first_batch(feed: &Feed) -> Batch {
    feed.epochs().next().unwrap().unwrap().next().unwrap().unwrap()
}

/// Two epochs of three batches of float32.
fn builder(images: &Path, device: &str) -> Builder {
    Feed::builder(images)
        .shuffle(Shuffle::Torch)
        .seed(3)
        .epochs(2)
        .size(96, 64)
        .batch_size(4)
        .device(device)
}

/// The nick of a property of the feed's nhwcpack.
fn nick(feed: &Feed, property: &str) -> String {
    let value = feed
        .pipeline()
        .by_name("nhwcpack")
        .unwrap()
        .property_value(property);
    let (_, value) = glib::EnumValue::from_value(&value).unwrap();
    value.nick().to_owned()
}

#[test]
fn a_feed_is_on_the_cpu_unless_it_says_otherwise() {
    within(LIMIT, || {
        let images = scratch();
        tiny_images(images.path(), 3);
        for feed in [
            small(images.path()).build().unwrap(),
            small(images.path()).device("cpu").build().unwrap(),
            Feed::validation(images.path()).size(8, 8).build().unwrap(),
        ] {
            assert!(first_batch(&feed).device().is_none());
            assert_eq!(
                (nick(&feed, "path"), nick(&feed, "path-reason")),
                ("fused-cpu".into(), "ok".into())
            );
            let stats = feed.stats().buffer;
            assert_eq!((stats.device_bytes, stats.max_device_bytes), (0, 0));
        }
    });
}

#[test]
fn a_device_that_cannot_be_had_fails_the_build_and_auto_takes_the_cpu() {
    within(LIMIT, || {
        let images = scratch();
        tiny_images(images.path(), 3);
        let error = |device: &str| {
            let error = small(images.path()).device(device).build().unwrap_err();
            assert!(
                matches!(&error, FeedError::Stream { element, .. } if element == "nhwcpack"),
                "{error:?}"
            );
            error.to_string()
        };
        let text = error("gpu");
        assert!(
            text.contains("device is \"gpu\"") && text.contains("cpu or cuda:N"),
            "{text}"
        );
        let text = error("cuda:4000");
        assert!(
            text.contains("cuda:4000") && text.contains("device=auto"),
            "{text}"
        );
        if matches!(Device::count(), Err(CudaError::NoDriver { .. })) {
            assert!(
                text.contains("libcuda.so.1") && text.contains("Install"),
                "{text}"
            );
            let feed = small(images.path()).device("auto").build().unwrap();
            let batch = first_batch(&feed);
            assert!(batch.device().is_none() && batch.as_u8().is_ok());
            assert_eq!(
                (nick(&feed, "path"), nick(&feed, "path-reason")),
                ("fused-cpu".into(), "no-driver".into())
            );
        }
    });
}

/// Frames are decoded into places of a batch there; their boxes travel with them all the same.
#[test]
fn boxes_cover_their_marks_on_a_gpu() {
    on_gpu(|_| {
        let folder = scratch();
        let set = MarkedSet::make(folder.path(), 40);
        let json = set.coco();
        std::fs::write(set.path(&set.images[7]), b"no image").unwrap();
        let batches = |device: &str| {
            let feed = covered::feed(&json, (320, 320))
                .device(device)
                .on_error(OnError::Replace);
            covered::pass(&feed.last_batch(LastBatch::Pad).build().unwrap())
        };
        let (cpu, gpu) = (batches("cpu"), batches("cuda:0"));
        assert!(gpu.iter().all(|batch| batch.device().is_some()));
        assert_eq!(
            covered::assert_boxes_cover_marks(&set, &gpu, (320, 320)).len(),
            39
        );
        let targets = |batches: &[Batch]| -> Vec<_> {
            let rows = batches.iter().map(|batch| batch.targets().unwrap().to_vec());
            rows.collect()
        };
        assert_eq!(targets(&gpu), targets(&cpu));
    });
}

#[test]
fn the_bytes_are_those_of_the_cpu() {
    on_gpu(|_| {
        let images = scratch();
        copy_photos(images.path(), 10);
        for (dtype, hold, fuse) in [
            (Dtype::Float32, Hold::Batches, true),
            (Dtype::Bfloat16, Hold::Frames, true),
            (Dtype::Uint8, Hold::Batches, false),
        ] {
            let all = |device: &str| {
                let builder = builder(images.path(), device).dtype(dtype).hold(hold).fuse(fuse);
                all(&builder.prefetch(Prefetch::Complete).build().unwrap())
            };
            let (cpu, gpu) = (all("cpu"), all("cuda:0"));
            assert_eq!(cpu.len(), 6);
            assert!(gpu == cpu, "{dtype} {hold:?} fuse={fuse}");
        }
    });
}

/// From the second epoch on, the frames are not where they were decoded for the GPU.
#[test]
fn frames_of_the_cache_and_targets_are_those_of_the_cpu() {
    on_gpu(|_| {
        let folder = scratch();
        let annotations = MarkedSet::make(folder.path(), 22).coco();
        let epochs = |device: &str, cache: u64| {
            let builder = builder(&annotations, device).epochs(3).cache(cache);
            let feed = builder.prefetch(Prefetch::Complete).build().unwrap();
            let mut batches = Vec::new();
            for epoch in feed.epochs() {
                for batch in epoch.unwrap().map(Result::unwrap) {
                    batches.push((seen(&batch), batch.targets().map(<[_]>::to_vec)));
                }
            }
            let nhwcpack = feed.pipeline().by_name("nhwcpack").unwrap();
            let stats: gst::Structure = nhwcpack.property("stats");
            (batches, stats.get::<u64>("staged").unwrap_or_default())
        };
        let (cpu, _) = epochs("cpu", 0);
        assert_eq!(cpu.len(), 18);
        assert!(
            cpu.iter()
                .all(|(_, targets)| targets.as_ref().is_some_and(|all| !all.is_empty()))
        );
        // None, some and all of the frames.
        for (cache, staged) in [(0, 0..=0), (7 * 96 * 64 * 3, 1..=44), (1 << 30, 44..=44)] {
            let (gpu, copied) = epochs("cuda:0", cache);
            assert!(gpu == cpu, "a cache of {cache} bytes");
            assert!(
                staged.contains(&copied),
                "a cache of {cache} bytes: {copied} copied"
            );
        }
    });
}

#[test]
fn what_is_held_is_counted_where_it_is() {
    on_gpu(|_| {
        let images = scratch();
        copy_photos(images.path(), 10);
        for (hold, held) in [(Hold::Batches, 3), (Hold::Frames, 10)] {
            let builder = builder(images.path(), "cuda:0").hold(hold);
            let feed = builder.prefetch(Prefetch::Complete).build().unwrap();
            let taken = feed.epochs().next().unwrap().unwrap().map(Result::unwrap).count();
            assert_eq!(taken, 3);
            until("the next epoch is prepared", || {
                feed.stats().buffer.buffers == held
            });
            let stats = feed.stats().buffer;
            let device = if hold == Hold::Batches { stats.bytes } else { 0 };
            assert_eq!(stats.device_bytes, device, "{hold:?} {stats:?}");
            assert!(stats.max_device_bytes >= device && stats.bytes > 0);
        }
    });
}

#[test]
fn a_batch_is_read_where_it_is() {
    on_gpu(|device| {
        let images = scratch();
        copy_photos(images.path(), 4);
        let want = seen(&first_batch(&builder(images.path(), "cpu").build().unwrap())).bytes;
        let batch = first_batch(&builder(images.path(), "cuda:0").build().unwrap());
        let values = batch.device().unwrap();
        assert_eq!((values.ordinal(), values.bytes()), (device.ordinal(), want.len()));
        assert_eq!(values.device().raw_context(), device.raw_context());

        let mut got = vec![0; want.len()];
        for stream in [Stream::new(device).unwrap(), driver::default_stream(device)] {
            got.fill(0);
            // SAFETY: the batch's memory, which is alive.
            let read = |pointer| unsafe { driver::download(&stream, &mut got, pointer) };
            values.read_on(&stream, read).unwrap();
            assert!(got == want);
        }
        got.fill(0);
        values.wait().unwrap();
        // SAFETY: the batch's memory, which is alive and made.
        unsafe { driver::download(&Stream::new(device).unwrap(), &mut got, values.pointer()) };
        assert!(got == want);

        // Whoever fails while queueing leaves the batch as it is.
        let stream = Stream::new(device).unwrap();
        let failed = catch_unwind(AssertUnwindSafe(|| {
            values.read_on(&stream, |_| panic!("not queued"))
        }));
        assert!(failed.is_err());
        assert!(batch.as_bytes().unwrap() == want, "on the host");
    });
}

/// A graph would read the memory each time that it runs. The one that is being made is not spoilt.
#[test]
fn a_batch_is_not_captured() {
    on_idle_gpu(1, || {
        let device = Device::open(0).unwrap();
        let images = scratch();
        copy_photos(images.path(), 4);
        let batch = first_batch(&builder(images.path(), "cuda:0").build().unwrap());
        let stream = Stream::new(&device).unwrap();
        driver::captured(&stream, || {
            let read = batch.device().unwrap().read_on(&stream, |_| panic!("queued"));
            let error = read.unwrap_err().to_string();
            assert!(error.contains("captured"), "{error}");
        });
    });
}

#[test]
fn memory_waits_for_its_readers_though_the_batch_is_dropped() {
    // Alone: beside a held stream the driver may wait for the whole device, in any call of the other tests' (it loads a kernel when
    // it is first launched), with locks that this test's calls need.
    on_idle_gpu(1, || {
        let device = &Device::open(0).unwrap();
        let images = scratch();
        copy_photos(images.path(), 10);
        let want = seen(&first_batch(&builder(images.path(), "cpu").build().unwrap())).bytes;
        // Without the feed, whose threads would wait for the gate with whatever the driver locks meanwhile.
        let batch = first_batch(&builder(images.path(), "cuda:0").build().unwrap());

        // A consumer that is late: its stream stands until the gate opens.
        let (open, gate) = channel::<()>();
        let (stream, other) = (Stream::new(device).unwrap(), Stream::new(device).unwrap());
        let copy = DeviceMemory::new(&stream, want.len()).unwrap();
        let values = batch.device().unwrap();
        values
            .read_on(&stream, |pointer| {
                driver::queue_host_work(&stream, move || {
                    let _ = gate.recv_timeout(PATIENCE);
                });
                // SAFETY: both are alive when this is done: the one is kept here, the other is what is tested.
                unsafe { driver::copy(&stream, copy.pointer(), pointer, want.len()) };
            })
            .unwrap();
        drop(batch);

        // Whoever gets the memory too early writes into it, and has the time to do so.
        let takers: Vec<_> = (0..8)
            .map(|_| DeviceMemory::new(&other, want.len()).unwrap())
            .collect();
        for taker in &takers {
            // SAFETY: memory of this function, made on this stream.
            unsafe { driver::fill(&other, taker.pointer(), taker.len(), 0xa5) };
        }
        let filled = other.record().unwrap();
        let patience = Instant::now() + Duration::from_millis(500);
        while !filled.is_done().unwrap() && Instant::now() < patience {
            std::thread::yield_now();
        }
        open.send(()).expect("a call has waited for the held stream");
        stream.synchronize().unwrap();
        other.synchronize().unwrap();

        let mut got = vec![0; want.len()];
        // SAFETY: memory of this function, written by now.
        unsafe { driver::download(&stream, &mut got, copy.pointer()) };
        assert!(got == want, "the memory was used again before it was read");
    });
}

#[test]
fn memory_comes_back_when_feeds_are_left_early() {
    on_idle_gpu(1, || {
        let images = scratch();
        copy_photos(images.path(), 10);
        let device = Device::open(0).unwrap();
        let mut free = Vec::new();
        for round in 0..20 {
            let builder = builder(images.path(), "cuda:0").prefetch(Prefetch::Complete);
            let feed = builder.build().unwrap();
            let batch = first_batch(&feed);
            if round % 2 == 0 {
                assert!(batch.as_f32().is_ok());
                drop(feed);
                drop(batch);
            } else {
                drop(batch);
                drop(feed);
            }
            device.synchronize().unwrap();
            free.push(device.free_bytes().unwrap().0);
        }
        assert_eq!(free.last(), free.first(), "{free:?}");
    });
}
