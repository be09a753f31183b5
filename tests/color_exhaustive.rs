//! Every uint8 colour, under the 32 gain triples of `color_sha256.tsv`.
//!
//! The digests are of the output that eager PyTorch gave on a CUDA device for all 2^24 colours, r-major, as uint8 and
//! as restored float32. The definition's bytes must have those digests; native and every backend of fused, from uint8
//! and from float32 input, must give the definition's bytes.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::atomic::{AtomicUsize, Ordering};

use epochfeed::color::fused::{self, Backend};
use epochfeed::color::{FloatFrame, FrameMut, FrameRef, Gains, Jitter, PixelFormat, native, reference};
use epochfeed::tensor::{Dtype, Layout, PackSpec};
use sha2::{Digest, Sha256};

/// One value of r: 256 × 256 colours at a time keep everything in the cache.
const SIDE: usize = 256;
const CHUNK: usize = SIDE * SIDE;

struct Row {
    gains: Gains,
    uint8: String,
    float32: String,
}

fn rows() -> Vec<Row> {
    let rows: Vec<Row> = include_str!("data/color/color_sha256.tsv")
        .lines()
        .skip(1)
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            Row {
                gains: fields[..3].join(",").parse().unwrap(),
                uint8: fields[3].to_owned(),
                float32: fields[4].to_owned(),
            }
        })
        .collect();
    assert_eq!(rows.len(), 32);
    rows
}

/// The colours (r, g, b) of one r, in the order of the digests.
fn colours(r: u8) -> Vec<[u8; 3]> {
    (0..CHUNK).map(|i| [r, (i >> 8) as u8, i as u8]).collect()
}

fn hex(digest: Sha256) -> String {
    digest
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// What every path must give for one chunk, and the buffers to give it in.
struct Chunk {
    input: Vec<[u8; 3]>,
    floats: Vec<[f32; 3]>,
    planes: Vec<f32>,
    levels: Vec<u8>,
    restored: Vec<u8>,
    output: Vec<u8>,
    scratch: native::Scratch,
}

impl Chunk {
    fn new() -> Self {
        Self {
            input: Vec::new(),
            floats: Vec::new(),
            planes: vec![0.0; CHUNK * 3],
            levels: vec![0; CHUNK * 3],
            restored: vec![0; CHUNK * 12],
            output: vec![0; CHUNK * 12],
            scratch: native::Scratch::new(),
        }
    }

    /// The definition.
    fn define(&mut self, r: u8, jitter: &Jitter) {
        self.input = colours(r);
        self.floats = self.input.iter().map(|rgb| rgb.map(reference::restore)).collect();
        for (i, rgb) in self.floats.iter().enumerate() {
            for c in 0..3 {
                self.planes[c * CHUNK + i] = rgb[c];
            }
        }
        for (rgb, out) in self.input.iter().zip(self.levels.as_chunks_mut::<3>().0) {
            *out = reference::jitter_u8(*rgb, jitter);
        }
        for (level, out) in self.levels.iter().zip(self.restored.as_chunks_mut::<4>().0) {
            *out = reference::restore(*level).to_ne_bytes();
        }
    }

    fn check_native(&mut self, gains: &Gains, jitter: &Jitter) {
        let frame =
            FrameRef::packed(PixelFormat::Rgb, SIDE, SIDE, self.input.as_flattened(), SIDE * 3).unwrap();
        let float32 = PackSpec::default();
        native::jitter_and_pack(&frame, jitter, &float32, &mut self.output, &mut self.scratch).unwrap();
        assert!(
            self.output == self.restored,
            "native, uint8 to float32, gains {gains}"
        );
        let mut bytes = self.input.as_flattened().to_vec();
        let mut frame = FrameMut::packed(PixelFormat::Rgb, SIDE, SIDE, &mut bytes, SIDE * 3).unwrap();
        native::jitter_frame(&mut frame, jitter, &mut self.scratch);
        assert!(bytes == self.levels, "native, in place, gains {gains}");
    }

    fn check_fused(&mut self, backend: Backend, gains: &Gains, jitter: &Jitter) {
        let name = backend.as_str();
        let frame =
            FrameRef::packed(PixelFormat::Rgb, SIDE, SIDE, self.input.as_flattened(), SIDE * 3).unwrap();
        let float32 = PackSpec::default();
        fused::pack_on(backend, &frame, Some(jitter), &float32, &mut self.output).unwrap();
        assert!(
            self.output == self.restored,
            "fused {name}, uint8 to float32, gains {gains}"
        );
        let uint8 = PackSpec::new(Dtype::Uint8, Layout::Nhwc, None).unwrap();
        fused::pack_on(
            backend,
            &frame,
            Some(jitter),
            &uint8,
            &mut self.output[..CHUNK * 3],
        )
        .unwrap();
        assert!(
            self.output[..CHUNK * 3] == self.levels,
            "fused {name}, uint8 to uint8, gains {gains}"
        );
        let hwc = FloatFrame::hwc(SIDE, SIDE, self.floats.as_flattened()).unwrap();
        fused::pack_f32_on(backend, &hwc, Some(jitter), &float32, &mut self.output).unwrap();
        assert!(
            self.output == self.restored,
            "fused {name}, float32 to float32, gains {gains}"
        );
        let chw = FloatFrame::chw(SIDE, SIDE, &self.planes).unwrap();
        fused::pack_f32_on(backend, &chw, Some(jitter), &uint8, &mut self.output[..CHUNK * 3]).unwrap();
        assert!(
            self.output[..CHUNK * 3] == self.levels,
            "fused {name}, float32 to uint8, gains {gains}"
        );
    }
}

/// Calls `work` for every row, on as many threads as there are cores.
fn in_parallel(rows: &[Row], work: impl Fn(&Row) + Sync) {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(row);
                }
            });
        }
    });
}

#[test]
fn all_colours_equal_the_published_digests() {
    in_parallel(&rows(), |row| {
        let jitter = Jitter::from(row.gains);
        let mut chunk = Chunk::new();
        let (mut uint8, mut float32) = (Sha256::new(), Sha256::new());
        for r in 0..=255 {
            chunk.define(r, &jitter);
            uint8.update(&chunk.levels);
            // The digests are of little-endian numbers.
            if cfg!(target_endian = "little") {
                float32.update(&chunk.restored);
            }
            chunk.check_native(&row.gains, &jitter);
            for backend in Backend::available() {
                chunk.check_fused(backend, &row.gains, &jitter);
            }
        }
        assert_eq!(hex(uint8), row.uint8, "uint8, gains {}", row.gains);
        if cfg!(target_endian = "little") {
            assert_eq!(hex(float32), row.float32, "float32, gains {}", row.gains);
        }
    });
}

#[test]
fn zero_gains_are_the_identity() {
    let jitter = Jitter::from(Gains::ZERO);
    let mut scratch = native::Scratch::new();
    for r in 0..=255 {
        let input = colours(r);
        for rgb in &input {
            assert_eq!(reference::jitter_u8(*rgb, &jitter), *rgb);
        }
        let mut bytes = input.as_flattened().to_vec();
        for backend in Backend::available() {
            let mut frame = FrameMut::packed(PixelFormat::Rgb, SIDE, SIDE, &mut bytes, SIDE * 3).unwrap();
            fused::jitter_frame_on(backend, &mut frame, &jitter);
            assert!(bytes == input.as_flattened(), "fused {}", backend.as_str());
        }
        let mut frame = FrameMut::packed(PixelFormat::Rgb, SIDE, SIDE, &mut bytes, SIDE * 3).unwrap();
        native::jitter_frame(&mut frame, &jitter, &mut scratch);
        assert!(bytes == input.as_flattened(), "native");
    }
}
