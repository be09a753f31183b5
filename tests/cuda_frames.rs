//! hsvquantize on the GPU: frames in system memory, and those of nvcodec's elements.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::frames::{assert_same, frames, frames_of, video};
use common::{Pipeline, assert_fails, gpu};
use epochfeed::cuda::Device;
use gst::prelude::*;

const FORMATS: [&str; 7] = ["RGB", "BGR", "RGBA", "BGRA", "RGBx", "BGRx", "RGBP"];
const GAINS: &str = "gains=\"0.1,0.2,0.1\"";

/// Runs everywhere: what compares below compares pixels.
#[test]
fn frames_are_compared() {
    for format in FORMATS {
        let video = video(2, format, 7, 5);
        let fused = frames(&format!("{video} ! hsvquantize {GAINS} device=cpu"));
        let native = frames(&format!("{video} ! hsvquantize {GAINS} fuse=false"));
        assert_same(&native, &fused, format);
        assert_ne!(fused, frames(&video), "{format}");
        let pixel = if format.len() == 3 || format == "RGBP" {
            3
        } else {
            4
        };
        assert_eq!(fused[0].len(), 7 * 5 * pixel, "{format}");
    }
}

/// Where `jitter` says that the pixels are computed.
#[track_caller]
fn device(pipeline: &Pipeline) -> (String, String) {
    let said = pipeline.wait_element("epochfeed-path");
    (said.get("path").unwrap(), said.get("device").unwrap())
}

#[test]
fn frames_in_system_memory_equal_the_cpus() {
    gpu::on_gpu(|_| {
        for format in FORMATS {
            for (width, height) in [(640, 480), (641, 3), (7, 5), (1, 1)] {
                // Drawn gains: others for each frame.
                for gains in ["hue=0.5 saturation=1 value=1", GAINS, "gains=\"0,0,0\""] {
                    let line = |device| {
                        let video = video(3, format, width, height);
                        frames(&format!("{video} ! hsvquantize {gains} device={device}"))
                    };
                    let what = format!("{format} of {width}x{height} with {gains}");
                    let wanted = line("cpu");
                    assert_same(&line("cuda:0"), &wanted, &what);
                    assert_same(&line("auto"), &wanted, &what);
                }
            }
        }
    });
}

#[test]
fn a_jitter_on_the_gpu_changes_the_pixels() {
    gpu::on_gpu(|_| {
        let plain = frames(&video(1, "RGB", 64, 48));
        let jittered = frames(&format!(
            "{} ! hsvquantize {GAINS} device=cuda:0",
            video(1, "RGB", 64, 48)
        ));
        assert_ne!(plain, jittered);
    });
}

#[test]
fn the_gpu_is_said_and_taken_by_itself() {
    gpu::on_gpu(|_| {
        for property in ["", "device=auto", "device=cuda:0"] {
            let pipeline = Pipeline::playing(&format!(
                "{} ! hsvquantize {property} ! fakesink",
                video(2, "RGB", 16, 8)
            ));
            assert_eq!(
                device(&pipeline),
                ("fused-cuda".into(), "cuda:0".into()),
                "{property}"
            );
            pipeline.wait_eos();
        }
    });
}

#[test]
fn a_device_that_is_not_there_is_an_error() {
    gpu::on_gpu(|_| {
        let count = Device::count().unwrap();
        assert_fails(
            &format!(
                "{} ! hsvquantize device=cuda:{count} ! fakesink",
                video(1, "RGB", 16, 8)
            ),
            &[&format!("cuda:{count}"), "CUDA_VISIBLE_DEVICES", "device=auto"],
        );
    });
}

fn free(ordinal: usize) -> usize {
    Device::open(ordinal).unwrap().free_bytes().unwrap().0
}

#[test]
fn nothing_is_left_on_the_device() {
    gpu::on_idle_gpu(1, || {
        let cycle = || {
            frames(&format!(
                "{} ! hsvquantize device=cuda:0",
                video(2, "RGBA", 1024, 1024)
            ))
        };
        // Each cycle opens the device and closes it.
        cycle();
        let before = free(0);
        for _ in 0..50 {
            cycle();
        }
        assert_eq!(free(0), before);
    });
}

#[test]
fn the_second_gpu_leaves_nothing_on_the_first() {
    gpu::on_idle_gpu(2, || {
        // Held, so that what is measured is not the measuring.
        let first = Device::open(0).unwrap();
        let (before, _) = first.free_bytes().unwrap();
        let line = format!("{} ! hsvquantize name=jitter {GAINS}", video(3, "RGB", 641, 480));
        let pipeline = Pipeline::new(&format!("{line} device=cuda:1 ! appsink name=sink sync=false"));
        pipeline.set(gst::State::Playing);
        let found = frames_of(&pipeline, "sink");
        assert_eq!(device(&pipeline), ("fused-cuda".into(), "cuda:1".into()));
        assert_eq!(first.free_bytes().unwrap().0, before);
        assert_same(&found, &frames(&format!("{line} device=cpu")), "cuda:1");
    });
}

#[test]
fn frames_in_cuda_memory_equal_the_cpus() {
    gpu::with(&gpu::NVCODEC, || {
        for format in FORMATS {
            for (width, height) in [(640, 480), (641, 3), (7, 5)] {
                let video = video(30, format, width, height);
                let wanted = frames(&format!("{video} ! hsvquantize {GAINS} device=cpu"));
                for device in ["auto", "cuda:0"] {
                    let found = frames(&format!(
                        "{video} ! cudaupload ! video/x-raw(memory:CUDAMemory) \
                                     ! hsvquantize {GAINS} device={device} ! video/x-raw(memory:CUDAMemory) ! cudadownload"
                    ));
                    assert_same(
                        &found,
                        &wanted,
                        &format!("{format} of {width}x{height}, device={device}"),
                    );
                }
            }
        }
    });
}

/// Without caps filters: cudaupload and cudadownload pass either kind of memory, and take what is offered first.
#[test]
fn frames_stay_in_cuda_memory_by_themselves() {
    gpu::with(&gpu::NVCODEC, || {
        let video = video(30, "RGBA", 640, 480);
        let pipeline = Pipeline::playing(&format!(
            "{video} ! cudaupload ! hsvquantize name=jitter {GAINS} ! cudadownload ! appsink name=sink sync=false"
        ));
        let found = frames_of(&pipeline, "sink");
        for pad in ["sink", "src"] {
            let pad = pipeline.element("jitter").static_pad(pad).unwrap();
            let caps = pad.current_caps().unwrap();
            assert!(
                caps.features(0).unwrap().contains("memory:CUDAMemory"),
                "{pad:?}: {caps}"
            );
        }
        assert_eq!(device(&pipeline), ("fused-cuda".into(), "cuda:0".into()));
        assert_same(
            &found,
            &frames(&format!("{video} ! hsvquantize {GAINS} device=cpu")),
            "30 frames",
        );
    });
}

/// A frame that another branch sees, too, is not changed under its eyes.
#[test]
fn a_shared_frame_is_copied() {
    gpu::with(&gpu::NVCODEC, || {
        let video = video(10, "RGB", 321, 240);
        let pipeline = Pipeline::playing(&format!(
            "{video} ! cudaupload ! video/x-raw(memory:CUDAMemory) ! tee name=t \
         t. ! queue ! hsvquantize {GAINS} ! cudadownload ! appsink name=jittered sync=false \
         t. ! queue ! cudadownload ! appsink name=plain sync=false"
        ));
        let plain = frames_of(&pipeline, "plain");
        let jittered = frames_of(&pipeline, "jittered");
        assert_same(&plain, &frames(&video), "the branch beside");
        assert_same(
            &jittered,
            &frames(&format!("{video} ! hsvquantize {GAINS} device=cpu")),
            "the branch with it",
        );
    });
}

/// A JPEG that the GPU decodes stays there to be jittered.
#[test]
fn jpegs_of_nvjpegdec() {
    gpu::with(
        &["nvjpegdec", "cudaconvert", "cudadownload", "jpegenc", "jpegparse"],
        || {
            let decoded = format!(
                "{} ! jpegenc ! jpegparse ! nvjpegdec ! cudaconvert ! video/x-raw(memory:CUDAMemory),format=RGBA",
                video(5, "I420", 640, 480)
            );
            let found = frames(&format!("{decoded} ! hsvquantize {GAINS} ! cudadownload"));
            let wanted = frames(&format!(
                "{decoded} ! cudadownload ! video/x-raw ! hsvquantize {GAINS} device=cpu"
            ));
            assert_same(&found, &wanted, "decoded on the GPU");
        },
    );
}
