//! Every uint8 colour under many gains: CUDA gives the bytes of the definition.

use std::sync::{Arc, Mutex};

use epochfeed::color::{Gains, PixelFormat, reference};
use epochfeed::cuda::{Device, FusedColor, Images, LaunchGains, Stream};
use epochfeed::tensor::{Dtype, Layout};
use sha2::{Digest, Sha256};

use super::definition::{Finish, assert_equal, in_parallel, levels};
use super::frames::{Frames, Gaps, planes, planes_at};
use super::memory::{Room, Uploaded, stream};
use super::vectors::{digests, spec, triples};
use crate::common::gpu::on_gpu;

/// 16 values of red at a time: 2^20 colours, r-major.
const REDS: usize = 16;
const SIDE: usize = 1024;
const SIZE: (usize, usize) = (SIDE, SIDE);

fn colours(slice: usize) -> Vec<[u8; 3]> {
    (0..SIDE * SIDE)
        .map(|i| [(slice * REDS + (i >> 16)) as u8, (i >> 8) as u8, i as u8])
        .collect()
}

/// Every way in and out of the device that a colour is tried on.
struct Ways {
    device: Arc<Device>,
    stream: Stream,
    fused: Vec<(FusedColor, Finish)>,
    room: Room,
}

/// A slice of the colours on the device.
struct Inputs {
    pixels: Vec<[u8; 3]>,
    frames: Vec<(Frames, Uploaded)>,
    planes: Uploaded,
}

impl Ways {
    fn new(device: &Arc<Device>) -> Self {
        let stream = stream(device);
        let fused = Dtype::ALL.map(|dtype| {
            let spec = spec(dtype, Layout::Nhwc, None);
            (FusedColor::new(device, spec.clone()).unwrap(), Finish::new(&spec))
        });
        Self {
            device: device.clone(),
            room: Room::new(&stream, SIDE * SIDE * 12),
            fused: fused.into(),
            stream,
        }
    }

    fn inputs(&self, slice: usize) -> Inputs {
        let pixels = colours(slice);
        let floats: Vec<[f32; 3]> = pixels.iter().map(|rgb| rgb.map(reference::restore)).collect();
        let samples = [pixels.clone()];
        let frames = [
            PixelFormat::Rgb,
            PixelFormat::Bgr,
            PixelFormat::Rgbx,
            PixelFormat::Bgrx,
            PixelFormat::Rgbp,
        ]
        .map(|format| {
            let frames = Frames::new(format, SIZE, &samples, Gaps::default());
            let uploaded = Uploaded::new(&self.stream, &frames.bytes, 0);
            (frames, uploaded)
        });
        Inputs {
            pixels,
            frames: frames.into(),
            planes: Uploaded::new(&self.stream, &planes(&[floats]), 0),
        }
    }

    /// All ways of one slice under one triple.
    fn check(&mut self, inputs: &Inputs, gains: Gains) {
        let want = levels(&inputs.pixels, Some(gains));
        let mut bytes = Vec::new();
        for number in 0..self.fused.len() {
            bytes.clear();
            self.fused[number].1.sample(&want, &mut bytes);
            let dtype = self.fused[number].0.spec().dtype();
            for (frames, uploaded) in &inputs.frames {
                // The types between are the same code behind the loading of a frame.
                if frames.format != PixelFormat::Rgb && !matches!(dtype, Dtype::Float32 | Dtype::Uint8) {
                    continue;
                }
                // SAFETY: uploaded as described, and not written again.
                let images = unsafe { frames.at(uploaded.pointer()) };
                self.launch(number, &images, gains, &bytes, frames.format.as_str());
            }
            // SAFETY: as above.
            let images = unsafe { planes_at(inputs.planes.pointer(), 1, SIZE) };
            self.launch(number, &images, gains, &bytes, "float32 planes");
        }
    }

    fn launch(&mut self, number: usize, images: &Images, gains: Gains, want: &[u8], kind: &str) {
        let output = self.room.poisoned(&self.stream, want.len(), 0);
        let fused = &self.fused[number].0;
        fused
            .launch(&self.stream, images, LaunchGains::Host(&[gains]), &output)
            .unwrap();
        let about = || {
            format!(
                "{kind} to {}, gains {gains}, on {}",
                fused.spec().dtype(),
                self.device.name()
            )
        };
        assert_equal(self.room.taken(&self.stream, &about), want, &about);
    }
}

#[test]
fn all_colours_are_the_definitions() {
    on_gpu(|device| {
        let triples = triples();
        let slices: Vec<usize> = (0..256 / REDS).collect();
        in_parallel(&slices, || {
            let mut ways = Ways::new(device);
            let triples = &triples;
            move |slice| {
                let inputs = ways.inputs(*slice);
                for gains in triples {
                    ways.check(&inputs, *gains);
                }
            }
        });
        println!("2^24 colours under {} triples, 16 ways each", triples.len());
    });
}

#[test]
fn all_colours_have_the_published_digests() {
    on_gpu(|device| {
        let rows = digests();
        let all: Vec<[u8; 3]> = (0..256 / REDS).flat_map(colours).collect();
        let size = (4096, 4096);
        let frames = Frames::new(PixelFormat::Rgb, size, &[all], Gaps::default());
        let up = stream(device);
        let input = Uploaded::new(&up, &frames.bytes, 0);
        // Page-locking this much takes longer than anything else here: one room for all.
        let room = Mutex::new(Room::new(&up, 4096 * 4096 * 12));
        in_parallel(&rows, || {
            let (frames, input, room, stream) = (&frames, &input, &room, &up);
            move |row| {
                for (dtype, want) in [(Dtype::Uint8, &row.uint8), (Dtype::Float32, &row.float32)] {
                    if dtype == Dtype::Float32 && cfg!(target_endian = "big") {
                        continue; // the digests are of little-endian numbers
                    }
                    let fused = FusedColor::new(device, spec(dtype, Layout::Nhwc, None)).unwrap();
                    // SAFETY: uploaded as described, and not written again.
                    let images = unsafe { frames.at(input.pointer()) };
                    let about = || format!("{dtype}, gains {}", row.gains);
                    let mut room = room.lock().unwrap();
                    let output = room.poisoned(stream, 4096 * 4096 * 3 * dtype.size(), 0);
                    fused
                        .launch(stream, &images, LaunchGains::Host(&[row.gains]), &output)
                        .unwrap();
                    let bytes = room.taken(stream, &about).to_vec();
                    drop(room);
                    let digest = Sha256::digest(&bytes);
                    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                    assert_eq!(&hex, want, "{}", about());
                }
            }
        });
    });
}
