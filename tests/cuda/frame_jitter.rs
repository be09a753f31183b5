//! `FrameJitter`: frames in place, in host and in device memory, as the CPU jitters them.

use epochfeed::color::{FrameMut, Gains, PixelFormat};
use epochfeed::cuda::{CudaError, Device, DeviceFrame, FrameJitter};

use super::batch::Batch;
use super::definition::{assert_equal, levels};
use super::frames::{Frames, Gaps};
use super::memory::{Uploaded, stream};
use crate::common::gpu::on_gpu;

const SIZES: [(usize, usize); 7] = [
    (1, 1),
    (3, 5),
    (36, 3),
    (31, 33),
    (64, 48),
    (640, 480),
    (641, 479),
];
const GAPS: [Gaps; 4] = [
    Gaps {
        row: 0,
        sample: 0,
        shift: 0,
    },
    Gaps {
        row: 1,
        sample: 0,
        shift: 1,
    },
    Gaps {
        row: 4,
        sample: 0,
        shift: 4,
    },
    Gaps {
        row: 32,
        sample: 0,
        shift: 16,
    },
];

/// A frame in every format and with every gap, and its bytes after the jitter: nothing else is changed.
fn each(mut check: impl FnMut(&Frames, Gaps, Gains, &[u8], &dyn Fn() -> String)) {
    for (number, size) in SIZES.into_iter().enumerate() {
        let batch = Batch::numbered(number, size, 1);
        for gains in [batch.gains[0], Gains::new(0.01, 0.3, -0.2).unwrap(), Gains::ZERO] {
            let jittered = [levels(&batch.samples[0], Some(gains))];
            for (format, gaps) in PixelFormat::ALL
                .iter()
                .flat_map(|format| GAPS.map(|gaps| (*format, gaps)))
            {
                let frames = Frames::new(format, size, &batch.samples, gaps);
                let about = || format!("{format:?} of {size:?}, {gaps:?}, gains {gains}");
                check(&frames, gaps, gains, &frames.with(&jittered), &about);
            }
        }
    }
}

#[test]
fn frames_in_host_memory() {
    on_gpu(|device| {
        let mut jitter = FrameJitter::new(device).unwrap();
        each(|frames, _, gains, want, about| {
            let mut bytes = frames.bytes.clone();
            let (width, height, stride) = (frames.width, frames.height, frames.row_stride);
            let mut frame = match frames.format {
                PixelFormat::Rgbp => {
                    let (red, rest) = bytes.split_at_mut(frames.plane_stride);
                    let (green, blue) = rest.split_at_mut(frames.plane_stride);
                    FrameMut::planar(width, height, [red, green, blue], [stride; 3])
                }
                format => FrameMut::packed(format, width, height, &mut bytes, stride),
            }
            .unwrap();
            jitter
                .host_frame(&mut frame, gains)
                .unwrap_or_else(|error| panic!("{}: {error}", about()));
            assert_equal(&bytes, want, about);
        });
    });
}

#[test]
fn frames_in_device_memory() {
    on_gpu(|device| {
        let stream = stream(device);
        let mut jitter = FrameJitter::new(device).unwrap();
        each(|frames, gaps, gains, want, about| {
            let memory = Uploaded::new(&stream, &frames.bytes, gaps.shift);
            let plane = |number: u64| memory.pointer() + number * frames.plane_stride as u64;
            let frame = DeviceFrame {
                format: frames.format,
                width: frames.width,
                height: frames.height,
                planes: [0, 1, 2].map(plane),
                strides: [frames.row_stride; 3],
            };
            // SAFETY: the uploaded frame, used by nobody else.
            unsafe { jitter.device_frame(&frame, gains) }.unwrap();
            assert_equal(&memory.bytes(&stream), want, about);
        });
    });
}

#[test]
fn uneven_planes_are_an_error_and_the_next_frame_works() {
    on_gpu(|device| {
        let stream = stream(device);
        let mut jitter = FrameJitter::new(device).unwrap();
        let batch = Batch::new((8, 4), 1);
        let frames = Frames::new(PixelFormat::Rgbp, batch.size, &batch.samples, Gaps::default());
        let memory = Uploaded::new(&stream, &frames.bytes, 0);
        let plane = |number: u64| memory.pointer() + number * frames.plane_stride as u64;
        let even = DeviceFrame {
            format: PixelFormat::Rgbp,
            width: 8,
            height: 4,
            planes: [0, 1, 2].map(plane),
            strides: [8; 3],
        };
        let uneven = DeviceFrame {
            planes: [plane(0), plane(2), plane(1)],
            ..even
        };
        // SAFETY: refused before anything is read.
        let error = unsafe { jitter.device_frame(&uneven, batch.gains[0]) }.unwrap_err();
        assert!(matches!(error, CudaError::Driver { .. }), "{error}");
        assert!(
            error.to_string().contains("planes are at uneven distances"),
            "{error}"
        );
        // SAFETY: the uploaded frame, used by nobody else.
        unsafe { jitter.device_frame(&even, batch.gains[0]) }.unwrap();
        let about = || "after the error".to_owned();
        assert_equal(&memory.bytes(&stream), &frames.with(&batch.jittered), &about);
        assert_eq!(jitter.device().ordinal(), Device::open(0).unwrap().ordinal());
    });
}
