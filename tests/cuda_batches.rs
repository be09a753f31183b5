//! Batches that nhwcpack makes on a GPU: the bytes of the CPU, one copy and one launch each, and memory that comes back.
//!
//! Tests that need a GPU say that they did not run where there is none; see `common/gpu.rs`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
#[path = "cuda/driver.rs"]
mod driver;

use common::gpu::{on_gpu, on_idle_gpu};
use common::{Pipeline, Seen, Watched, assert_fails, location, scratch};
use epochfeed::cuda::{CudaError, Device, DeviceMemory, Stream};
use epochfeed::elements::cuda::{BATCH_FEATURE, device_memory};
use gst::prelude::*;

/// All that arrives at the end of the pipeline of `line`, whose nhwcpack is called `pack`, and that element's figures.
#[track_caller]
fn all(line: &str) -> (Vec<Seen>, gst::Structure) {
    let watched = Watched::new(line);
    watched.start();
    let mut seen = Vec::new();
    while seen.last() != Some(&Seen::Eos) {
        seen.push(watched.next());
    }
    let stats = watched.pipeline.element("pack").property("stats");
    (seen, stats)
}

fn figure(stats: &gst::Structure, name: &str) -> u64 {
    stats.get(name).unwrap()
}

/// A folder of the first `count` photographs.
fn some_photos(count: usize) -> (tempfile::TempDir, String) {
    let folder = scratch();
    common::copy_photos(folder.path(), count);
    let location = location(folder.path());
    (folder, location)
}

/// Compares CPU and GPU; `line` has DEVICE where the device belongs. Returns the GPU's figures.
#[track_caller]
fn compare(line: &str) -> gst::Structure {
    let (cpu, _) = all(&line.replace("DEVICE", "cpu"));
    let (gpu, stats) = all(&line.replace("DEVICE", "cuda:0"));
    assert!(
        cpu.iter().any(|seen| matches!(seen, Seen::Batch(..))),
        "{line}: no batch"
    );
    assert_eq!(gpu, cpu, "{line}");
    stats
}

#[test]
fn the_bytes_are_those_of_the_cpu() {
    on_gpu(|_| {
        let (_folder, photos) = some_photos(11);
        for (size, batch, rest) in [
            ("width=320,height=240", 4, "dtype=float32"),
            ("width=320,height=240", 7, "dtype=uint8 last-batch=drop"),
            ("width=641,height=479", 3, "dtype=float16 last-batch=pad"),
            ("width=64,height=64", 1, "dtype=bfloat16 layout=nchw"),
            (
                "width=33,height=1",
                5,
                "dtype=float32 layout=nchw mean=0.4,0.5,0.6 std=0.2,0.3,0.25",
            ),
            (
                "width=640,height=640,format=BGR",
                64,
                "dtype=bfloat16 mean=0.5 std=0.5",
            ),
        ] {
            let stats = compare(&format!(
                "epochsrc name=source location={photos} epochs=2 seed=9 ! epochdecode ! video/x-raw,{size} ! \
                 hsvquantize ! nhwcpack name=pack device=DEVICE batch-size={batch} {rest} ! fakesink name=sink"
            ));
            assert_eq!(
                figure(&stats, "staged"),
                0,
                "{rest}: frames are decoded into their slots"
            );
            assert_eq!(figure(&stats, "launches"), figure(&stats, "batches"), "{rest}");
            if !rest.contains("pad") {
                assert_eq!(
                    figure(&stats, "copies"),
                    figure(&stats, "batches"),
                    "{rest}: one copy a batch"
                );
            }
        }
    });
}

#[test]
fn frames_of_anyone_are_taken() {
    on_gpu(|_| {
        for format in ["RGB", "BGR", "RGBA", "BGRx", "RGBP"] {
            let stats = compare(&format!(
                "videotestsrc num-buffers=11 ! video/x-raw,format={format},width=321,height=240 ! \
                 hsvquantize gains=0.1,0.2,-0.1 ! nhwcpack name=pack device=DEVICE batch-size=4 ! fakesink name=sink"
            ));
            assert_eq!(figure(&stats, "launches"), 3, "{format}");
            // How the frames of videotestsrc's own pool lie is not ours to say.
            assert!((3..=11).contains(&figure(&stats, "copies")), "{format}: {stats}");
        }
        // Jittered before they come, and not at all.
        for hsvquantize in ["hsvquantize fuse=false gains=0.1,0.2,-0.1 !", ""] {
            compare(&format!(
                "videotestsrc num-buffers=6 ! video/x-raw,format=RGB,width=64,height=48 ! {hsvquantize} \
                 nhwcpack name=pack device=DEVICE batch-size=4 ! fakesink name=sink"
            ));
        }
    });
}

#[test]
fn other_decoders_and_elements_between_change_nothing() {
    on_gpu(|_| {
        let (_folder, photos) = some_photos(9);
        for middle in [
            "epochdecode ! queue ! video/x-raw,width=100,height=80 ! hsvquantize ! queue !",
            "epochdecode ! epochbuffer prefetch=complete ! video/x-raw,width=100,height=80 ! hsvquantize !",
            "epochdecode ! video/x-raw,width=100,height=80 ! videoflip method=horizontal-flip ! hsvquantize !",
            "jpegdec ! videoscale ! videoconvert ! video/x-raw,format=RGB,width=100,height=80 ! hsvquantize !",
        ] {
            if middle
                .split(' ')
                .any(|name| name.starts_with("video") && missing(name))
                || missing("jpegdec")
            {
                println!("not run, an element is missing: {middle}");
                continue;
            }
            compare(&format!(
                "epochsrc name=source location={photos} epochs=2 seed=1 ! {middle} \
                 nhwcpack name=pack device=DEVICE batch-size=4 ! fakesink name=sink"
            ));
        }
    });
}

/// Whether `name`, if it is an element's, is not there.
fn missing(name: &str) -> bool {
    common::pipeline::init();
    !name.contains('/') && gst::ElementFactory::find(name).is_none()
}

#[test]
fn faulty_samples_cost_copies_and_nothing_else() {
    on_gpu(|_| {
        let (folder, photos) = some_photos(12);
        std::fs::write(folder.path().join("0-not-a-picture.jpg"), b"\xff\xd8 nothing").unwrap();
        for on_error in ["skip", "replace"] {
            let stats = compare(&format!(
                "epochsrc name=source location={photos} epochs=3 seed=5 ! epochdecode on-error={on_error} ! \
                 video/x-raw,width=64,height=48 ! hsvquantize ! \
                 nhwcpack name=pack device=DEVICE batch-size=4 ! fakesink name=sink"
            ));
            let (batches, copies) = (figure(&stats, "batches"), figure(&stats, "copies"));
            assert!(
                (batches..=3 * batches).contains(&copies),
                "{copies} copies for {batches} batches"
            );
        }
    });
}

#[test]
fn a_prepared_epoch_is_the_same() {
    on_gpu(|_| {
        let (_folder, photos) = some_photos(10);
        let line = |prefetch: &str, place: &str| {
            let buffer = format!("epochbuffer name=buffer prefetch={prefetch} !");
            let (frames, batches) = if place == "frames" {
                (buffer.as_str(), "")
            } else {
                ("", buffer.as_str())
            };
            format!(
                "epochsrc name=source location={photos} epochs=4 seed=2 ! epochdecode ! \
                 video/x-raw,width=160,height=120 ! {frames} hsvquantize ! \
                 nhwcpack name=pack device=cuda:0 batch-size=4 ! {batches} fakesink name=sink"
            )
        };
        let (plain, _) = all(&line("off", "batches"));
        for place in ["frames", "batches"] {
            assert_eq!(all(&line("complete", place)).0, plain, "{place}");
        }
    });
}

/// One batch of the pipeline of `line`, which ends in an appsink called `sink`.
fn one(line: &str) -> (Pipeline, gst::Sample) {
    let pipeline = Pipeline::playing(line);
    let sink = pipeline.element("sink").downcast::<gst_app::AppSink>().unwrap();
    let sample = sink
        .try_pull_sample(common::pipeline::LIMIT)
        .unwrap_or_else(|| panic!("no batch: {:?}", pipeline.errors()));
    (pipeline, sample)
}

#[test]
fn a_consumer_has_it_on_the_device_and_on_the_host() {
    on_gpu(|device| {
        let front = "videotestsrc num-buffers=8 ! video/x-raw,format=RGB,width=64,height=48 ! hsvquantize ! \
                     nhwcpack name=pack device=cuda:0 batch-size=4 !";
        let (_plain, sample) = one(&format!("{front} appsink name=sink caps=other/tensors"));
        assert!(
            !sample.caps().unwrap().to_string().contains("EpochfeedCUDA"),
            "nobody asked for the feature"
        );
        let want = sample.buffer().unwrap().map_readable().unwrap().to_vec();

        let (pipeline, sample) = one(&format!("{front} appsink name=sink"));
        let caps = sample.caps().unwrap();
        assert!(caps.features(0).unwrap().contains(BATCH_FEATURE), "{caps}");
        let memory = sample.buffer().unwrap().peek_memory(0);
        let batch = device_memory(memory).unwrap();
        assert_eq!(batch.len(), want.len());
        assert_eq!(batch.device().ordinal(), device.ordinal());
        let stream = Stream::new(device).unwrap();
        let mut got = vec![0; want.len()];
        batch.begin_read(&stream).unwrap();
        // SAFETY: the batch's memory, which the sample holds.
        unsafe { driver::download(&stream, &mut got, batch.pointer()) };
        batch.end_read(&stream).unwrap();
        assert!(got == want, "the device's bytes differ from the host's");
        assert!(sample.buffer().unwrap().map_readable().unwrap().as_slice() == want);

        // GStreamer's way to the device address.
        let mut info = std::mem::MaybeUninit::<gst::ffi::GstMapInfo>::uninit();
        let flags = gst::ffi::GST_MAP_READ | (gst::ffi::GST_MAP_FLAG_LAST << 1);
        // SAFETY: a memory that the sample holds, and a description that is written when this succeeds.
        unsafe {
            let memory = memory.as_mut_ptr();
            assert_ne!(gst::ffi::gst_memory_map(memory, info.as_mut_ptr(), flags), 0);
            let mut info = info.assume_init();
            assert_eq!(info.data as u64, batch.pointer());
            gst::ffi::gst_memory_unmap(memory, &mut info);
        }
        // Who wants to write gets memory of its own.
        let mut copy = sample.buffer().unwrap().copy();
        let writable = copy.make_mut();
        writable.map_writable().unwrap()[0] ^= 1;
        assert!(device_memory(writable.peek_memory(0)).is_none());
        assert!(
            sample.buffer().unwrap().map_readable().unwrap().as_slice() == want,
            "the batch is as it was"
        );

        // A batch outlives its pipeline.
        drop(pipeline);
        assert!(sample.buffer().unwrap().map_readable().unwrap().as_slice() == want);
    });
}

#[test]
fn a_full_device_is_an_error_and_a_smaller_batch_runs() {
    on_idle_gpu(1, || {
        let device = Device::open(0).unwrap();
        let stream = Stream::new(&device).unwrap();
        let pipeline = Pipeline::new(
            "videotestsrc num-buffers=300 ! video/x-raw,format=RGB,width=1024,height=1024 ! \
             nhwcpack name=pack device=cuda:0 batch-size=64 ! fakesink name=sink",
        );
        // The kernels are loaded first, as they would be by any earlier run.
        pipeline.reach(gst::State::Null);
        pipeline.element("pack").set_property("batch-size", 1u32);
        pipeline.set(gst::State::Playing);
        pipeline.wait_eos();
        pipeline.set(gst::State::Null);
        device.synchronize().unwrap();

        // Leaves 600 MiB: enough for a batch's frames (201 MB), not for its values (805 MB) too.
        let (free, _) = device.free_bytes().unwrap();
        let hog = DeviceMemory::new(&stream, free - (600 << 20)).unwrap();
        pipeline.element("pack").set_property("batch-size", 64u32);
        let before = device.free_bytes().unwrap().0;
        let _ = pipeline.0.set_state(gst::State::Playing);
        let error = pipeline.wait_error();
        for part in [
            "cuda:0 has no room for 805306368 bytes",
            "are free",
            "smaller batches",
        ] {
            assert!(error.contains(part), "{part:?} is not in {error}");
        }
        pipeline.set(gst::State::Null);
        device.synchronize().unwrap();
        assert_eq!(device.free_bytes().unwrap().0, before, "nothing is left behind");

        pipeline.element("pack").set_property("batch-size", 8u32);
        pipeline.set(gst::State::Playing);
        pipeline.wait_eos();
        pipeline.set(gst::State::Null);
        drop(hog);
    });
}

#[test]
fn memory_comes_back_after_each_of_many_runs() {
    on_idle_gpu(1, || {
        let (_folder, photos) = some_photos(10);
        let line = format!(
            "epochsrc name=source location={photos} epochs=2 ! epochdecode ! video/x-raw,width=160,height=120 ! \
             hsvquantize ! nhwcpack name=pack device=cuda:0 batch-size=4 ! epochbuffer prefetch=complete ! \
             fakesink name=sink"
        );
        let device = Device::open(0).unwrap();
        let mut free = Vec::new();
        for _ in 0..50 {
            all(&line);
            device.synchronize().unwrap();
            free.push(device.free_bytes().unwrap().0);
        }
        assert_eq!(free.last(), free.first(), "{free:?}");
    });
}

#[test]
fn a_second_device_leaves_the_first_alone() {
    on_idle_gpu(2, || {
        let (_folder, photos) = some_photos(6);
        let line = |device: &str| {
            format!(
                "epochsrc name=source location={photos} seed=4 ! epochdecode ! video/x-raw,width=160,height=120 ! \
                 hsvquantize ! nhwcpack name=pack device={device} batch-size=4 ! fakesink name=sink"
            )
        };
        let first = Device::open(0).unwrap();
        let before = first.free_bytes().unwrap().0;
        let (second, stats) = all(&line("cuda:1"));
        assert_eq!(first.free_bytes().unwrap().0, before);
        assert_eq!(figure(&stats, "launches"), 2);
        assert_eq!(second, all(&line("cpu")).0);
    });
}

#[test]
fn without_a_driver_it_says_so() {
    if !matches!(Device::count(), Err(CudaError::NoDriver { .. })) {
        println!("not run: there is a driver");
        return;
    }
    let line = |device: &str| {
        format!(
            "videotestsrc num-buffers=2 ! video/x-raw,format=RGB,width=8,height=8 ! \
             nhwcpack name=pack device={device} ! fakesink name=sink"
        )
    };
    let words = [
        "device is cuda:0",
        "libcuda.so.1 is not found",
        "Install the driver",
        "device=auto",
    ];
    assert_fails(&line("cuda:0"), &words);
    for (device, reason) in [("auto", "no-driver"), ("cpu", "ok")] {
        let pipeline = Pipeline::playing(&line(device));
        let path = pipeline.wait_element("epochfeed-path");
        assert_eq!(path.get("path"), Ok("fused-cpu"), "{path}");
        assert_eq!(path.get("path-reason"), Ok(reason), "{path}");
        assert_eq!(path.has_field("detail"), device == "auto", "{path}");
        pipeline.wait_eos();
        let value = pipeline.element("pack").property_value("path-reason");
        let (_, value) = glib::EnumValue::from_value(&value).unwrap();
        assert_eq!(value.nick(), reason);
    }
}

#[test]
fn the_device_has_three_forms() {
    assert_fails(
        "videotestsrc ! video/x-raw,format=RGB ! nhwcpack device=gpu ! fakesink",
        &["device is \"gpu\"", "auto, cpu or cuda:N"],
    );
}
