//! One 640×640 frame through the arithmetic on one core, every backend, beside the native path and a copy of the
//! output. `benches/color.sh` runs this and OpenCV's path pinned to one core, and prints the ratios.
//!
//! Prints tab-separated lines `name, median ms, minimum ms, ratio of the medians to the copy`. All cases take turns in
//! short bursts, so that a noisy neighbour hits all of them alike while each finds its own memory in the cache.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::hint::black_box;
use std::time::Instant;

use epochfeed::color::fused::{self, Backend};
use epochfeed::color::{FloatFrame, FrameMut, FrameRef, Gains, Jitter, PixelFormat, native};
use epochfeed::tensor::{Dtype, Layout, PackSpec};

const SIDE: usize = 640;
/// Every case gets so many turns of so many calls.
const BURSTS: usize = 20;
const CALLS: usize = 10;

struct Case<'a> {
    name: String,
    calls: usize,
    run: Box<dyn FnMut() + 'a>,
    times: Vec<f64>,
}

impl<'a> Case<'a> {
    fn new(name: impl Into<String>, calls: usize, run: impl FnMut() + 'a) -> Self {
        Self {
            name: name.into(),
            calls,
            run: Box::new(run),
            times: Vec::new(),
        }
    }

    fn median(&mut self) -> f64 {
        self.times.sort_by(f64::total_cmp);
        self.times[self.times.len() / 2]
    }
}

fn main() {
    let pixels = noise(SIDE * SIDE * 3);
    let floats: Vec<f32> = pixels.iter().map(|u| f32::from(*u) / 255.0).collect();
    let frame = FrameRef::packed(PixelFormat::Rgb, SIDE, SIDE, &pixels, SIDE * 3).unwrap();
    let float_frame = FloatFrame::hwc(SIDE, SIDE, &floats).unwrap();
    let jitter = Jitter::from(Gains::new(0.01, 0.35, -0.25).unwrap());
    let spec = |dtype, layout| PackSpec::new(dtype, layout, None).unwrap();
    let float32 = spec(Dtype::Float32, Layout::Nhwc);
    let bytes = float32.sample_bytes(SIDE, SIDE);

    // Two buffers of the output's size, as warm as the others' output.
    let from = vec![1_u8; bytes];
    let mut to = vec![0_u8; bytes];
    // Declared before the cases that borrow them.
    let (mut native_slot, mut scratch) = (vec![0; bytes], native::Scratch::new());
    let mut cases = Vec::new();
    cases.push(Case::new("copy of the output (4.9 MB)", CALLS, || {
        to.copy_from_slice(black_box(&from));
        black_box(&mut to);
    }));
    for backend in Backend::available() {
        let name = backend.as_str();
        for (what, spec, jitter) in [
            ("u8 -> float32 nhwc", float32.clone(), Some(&jitter)),
            (
                "u8 -> float32 nchw",
                spec(Dtype::Float32, Layout::Nchw),
                Some(&jitter),
            ),
            (
                "u8 -> bfloat16 nhwc",
                spec(Dtype::Bfloat16, Layout::Nhwc),
                Some(&jitter),
            ),
            (
                "u8 -> float16 nhwc",
                spec(Dtype::Float16, Layout::Nhwc),
                Some(&jitter),
            ),
            (
                "u8 -> uint8 nhwc",
                spec(Dtype::Uint8, Layout::Nhwc),
                Some(&jitter),
            ),
            ("u8 -> float32 nhwc, no jitter", float32.clone(), None),
        ] {
            let mut slot = vec![0; spec.sample_bytes(SIDE, SIDE)];
            cases.push(Case::new(format!("fused {name} {what}"), CALLS, move || {
                fused::pack_on(backend, black_box(&frame), jitter, &spec, &mut slot).unwrap();
                black_box(&mut slot);
            }));
        }
        let (mut slot, spec, jitter) = (vec![0; bytes], float32.clone(), &jitter);
        cases.push(Case::new(
            format!("fused {name} float32 -> float32 nhwc"),
            CALLS,
            move || {
                fused::pack_f32_on(backend, black_box(&float_frame), Some(jitter), &spec, &mut slot).unwrap();
                black_box(&mut slot);
            },
        ));
        let mut own = pixels.clone();
        cases.push(Case::new(format!("fused {name} u8 in place"), CALLS, move || {
            let mut frame = FrameMut::packed(PixelFormat::Rgb, SIDE, SIDE, &mut own, SIDE * 3).unwrap();
            fused::jitter_frame_on(backend, black_box(&mut frame), jitter);
        }));
    }
    cases.push(Case::new("native u8 -> float32 nhwc", 1, || {
        native::jitter_and_pack(
            black_box(&frame),
            &jitter,
            &float32,
            &mut native_slot,
            &mut scratch,
        )
        .unwrap();
        black_box(&mut native_slot);
    }));

    for _ in 0..BURSTS {
        for case in &mut cases {
            // The first call of a burst brings the case's own memory into the cache.
            (case.run)();
            for _ in 0..case.calls {
                let start = Instant::now();
                (case.run)();
                case.times.push(start.elapsed().as_secs_f64() * 1e3);
            }
        }
    }
    let copy = cases[0].median();
    println!("case\tmedian_ms\tmin_ms\ttimes_copy");
    for case in &mut cases {
        let median = case.median();
        println!(
            "{}\t{median:.3}\t{:.3}\t{:.2}",
            case.name,
            case.times[0],
            median / copy
        );
    }
}

/// Bytes without structure: an xorshift generator.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect()
}
