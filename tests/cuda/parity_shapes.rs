//! Odd sizes, gaps, addresses, batches, element types, layouts and normalisations: CUDA gives the bytes of the definition.

use std::sync::Arc;

use epochfeed::color::{Jitter, PixelFormat, fused, reference};
use epochfeed::cuda::{Device, DeviceGains, FusedColor, Images, LaunchGains, Stream};
use epochfeed::tensor::PackSpec;

use super::batch::Batch;
use super::definition::{Finish, assert_equal, in_parallel, levels};
use super::frames::{Frames, Gaps, planes, planes_at};
use super::memory::{Room, Uploaded, stream};
use super::vectors::{Noise, specs, triples};
use crate::common::gpu::on_gpu;

const SIZES: [(usize, usize); 16] = [
    (1, 1),
    (3, 5),
    (2, 2),
    (4, 1),
    (1, 257),
    (31, 33),
    (36, 3),
    (63, 65),
    (127, 129),
    (132, 8),
    (255, 257),
    (511, 2),
    (513, 3),
    (640, 3),
    (640, 640),
    (641, 479),
];
const BATCHES: [usize; 3] = [1, 7, 64];
/// What takes the kernel of four pixels at a time, and what does not.
const GAPS: [Gaps; 6] = [
    Gaps {
        row: 0,
        sample: 0,
        shift: 0,
    },
    Gaps {
        row: 4,
        sample: 0,
        shift: 4,
    },
    Gaps {
        row: 1,
        sample: 3,
        shift: 0,
    },
    Gaps {
        row: 16,
        sample: 32,
        shift: 16,
    },
    Gaps {
        row: 0,
        sample: 5,
        shift: 1,
    },
    Gaps {
        row: 0,
        sample: 0,
        shift: 2,
    },
];
const FORMATS: [PixelFormat; 5] = [
    PixelFormat::Rgb,
    PixelFormat::Bgr,
    PixelFormat::Rgba,
    PixelFormat::Bgrx,
    PixelFormat::Rgbp,
];

/// Larger batches are tried in fewer ways: they are the same to a kernel but for the sample's number.
fn is_large((width, height): (usize, usize), batch: usize) -> bool {
    width * height * batch > 2_000_000
}

/// A thread's stream, its launchers and its room.
struct Bench {
    stream: Stream,
    fused: Vec<(FusedColor, Finish)>,
    room: Room,
}

impl Bench {
    fn new(device: &Arc<Device>) -> Self {
        let stream = stream(device);
        let of = |spec: PackSpec| (FusedColor::new(device, spec.clone()).unwrap(), Finish::new(&spec));
        Self {
            fused: specs().into_iter().map(of).collect(),
            // 64 of 640 x 640 are made in uint8 only.
            room: Room::new(&stream, 64 * 641 * 640 * 3),
            stream,
        }
    }

    fn frames(&mut self, batch: &Batch) {
        let large = is_large(batch.size, batch.samples.len());
        for (format, gaps) in FORMATS.iter().flat_map(|format| GAPS.map(|gaps| (*format, gaps))) {
            if large && (gaps.row == 4 || gaps.row == 16 || format != PixelFormat::Rgb) {
                continue;
            }
            let frames = Frames::new(format, batch.size, &batch.samples, gaps);
            let input = Uploaded::new(&self.stream, &frames.bytes, gaps.shift);
            // SAFETY: uploaded as described, and not written again.
            let images = unsafe { frames.at(input.pointer()) };
            self.outputs(
                batch,
                &images,
                &batch.samples,
                &format!("{format:?}, {gaps:?}"),
                large,
            );
            assert!(
                input.bytes(&self.stream) == frames.bytes,
                "{format:?}, {gaps:?}: the input was written to"
            );
        }
    }

    fn planes(&mut self, batch: &Batch) {
        let large = is_large(batch.size, batch.samples.len());
        let floats: Vec<Vec<[f32; 3]>> = batch
            .samples
            .iter()
            .map(|pixels| pixels.iter().map(|rgb| rgb.map(reference::restore)).collect())
            .collect();
        let bytes = planes(&floats);
        for shift in [0, 4] {
            let input = Uploaded::new(&self.stream, &bytes, shift);
            // SAFETY: uploaded as described, and not written again.
            let images = unsafe { planes_at(input.pointer(), floats.len(), batch.size) };
            // Restored levels are quantized to themselves.
            let kind = format!("float32 planes, shift {shift}");
            self.outputs(batch, &images, &batch.samples, &kind, large);
        }
    }

    /// Every element type, layout and normalisation, with and without gains.
    fn outputs(&mut self, batch: &Batch, images: &Images, plain: &[Vec<[u8; 3]>], kind: &str, large: bool) {
        let (width, height) = batch.size;
        for (fused, finish) in &self.fused {
            let spec = fused.spec();
            if large && (spec.normalize().is_some() || spec.dtype().size() > 1) {
                continue;
            }
            let ways = [
                (LaunchGains::Host(&batch.gains), &batch.jittered[..]),
                (LaunchGains::None, plain),
            ];
            for (gains, levels) in ways {
                let want = finish.batch(levels);
                // An element behind full alignment: no kernel may store more than that at once then.
                for shift in [0, spec.dtype().size()] {
                    let about = || {
                        format!(
                            "{} of {width}x{height}, {kind}, to {spec:?} shifted by {shift}, {gains:?}",
                            batch.samples.len()
                        )
                    };
                    let output = self.room.poisoned(&self.stream, want.len(), shift);
                    fused
                        .launch(&self.stream, images, gains, &output)
                        .unwrap_or_else(|error| panic!("{}: {error}", about()));
                    assert_equal(self.room.taken(&self.stream, &about), &want, &about);
                }
            }
        }
    }
}

/// No GPU needed: what the device's bytes are compared with are the CPU's.
#[test]
fn what_is_expected_is_what_the_cpu_gives() {
    let batch = Batch::new((31, 33), 2);
    for spec in specs() {
        let (finish, bytes) = (Finish::new(&spec), spec.sample_bytes(31, 33));
        for (format, gaps) in FORMATS.iter().flat_map(|format| GAPS.map(|gaps| (*format, gaps))) {
            let frames = Frames::new(format, batch.size, &batch.samples, gaps);
            let mut got = vec![0; 2 * bytes];
            for (sample, slot) in got.chunks_exact_mut(bytes).enumerate() {
                let jitter = Jitter::from(batch.gains[sample]);
                fused::pack(&frames.sample(sample), Some(&jitter), &spec, slot).unwrap();
            }
            assert_equal(&got, &finish.batch(&batch.jittered), &|| {
                format!("{format:?}, {gaps:?}, {spec:?}")
            });
        }
    }
}

#[test]
fn every_shape_is_the_definitions() {
    on_gpu(|device| {
        let mut cases: Vec<_> = SIZES
            .iter()
            .flat_map(|size| BATCHES.map(|batch| (*size, batch)))
            .collect();
        // The longest first, so that no thread begins with one at the end.
        cases.sort_by_key(|((width, height), batch)| std::cmp::Reverse(width * height * batch));
        in_parallel(&cases, || {
            let mut bench = Bench::new(device);
            move |(size, batch)| {
                let batch = Batch::new(*size, *batch);
                bench.frames(&batch);
                bench.planes(&batch);
            }
        });
    });
}

/// Gains that are in device memory already, and samples that all are the same frame.
#[test]
fn gains_of_the_device_and_a_repeated_frame() {
    on_gpu(|device| {
        let mut bench = Bench::new(device);
        let size = (63, 65);
        let pixels = Noise::new(3).pixels(size.0 * size.1);
        let gains = triples();
        let bytes: Vec<u8> = gains
            .iter()
            .flat_map(|gains| [gains.hue, gains.saturation, gains.value])
            .flat_map(f64::to_ne_bytes)
            .collect();
        let device_gains = Uploaded::new(&bench.stream, &bytes, 0);
        let mut frames = Frames::new(
            PixelFormat::Rgb,
            size,
            std::slice::from_ref(&pixels),
            Gaps::default(),
        );
        let input = Uploaded::new(&bench.stream, &frames.bytes, 0);
        (frames.samples, frames.sample_stride) = (gains.len(), 0);
        // SAFETY: one uploaded frame, which every sample is.
        let images = unsafe { frames.at(input.pointer()) };
        // SAFETY: uploaded, and not written again.
        let on_device = unsafe { DeviceGains::from_raw(device_gains.pointer(), gains.len()) };
        let jittered: Vec<_> = gains.iter().map(|gains| levels(&pixels, Some(*gains))).collect();
        for (fused, finish) in &bench.fused {
            let want = finish.batch(&jittered);
            let about = || format!("{:?}", fused.spec());
            let output = bench.room.poisoned(&bench.stream, want.len(), 0);
            fused
                .launch(&bench.stream, &images, LaunchGains::Device(on_device), &output)
                .unwrap();
            assert_equal(bench.room.taken(&bench.stream, &about), &want, &about);
        }
    });
}
