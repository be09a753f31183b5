//! What the definition, `epochfeed::color::reference`, makes of pixels, as the bytes of a batch.

use std::sync::atomic::{AtomicUsize, Ordering};

use epochfeed::color::{Gains, Jitter, reference};
use epochfeed::tensor::{Dtype, Layout, Normalize, PackSpec};
use half::{bf16, f16};

/// Steps 1 to 10 for uint8 pixels; without gains they are as they are.
pub fn levels(pixels: &[[u8; 3]], gains: Option<Gains>) -> Vec<[u8; 3]> {
    match gains.map(Jitter::from) {
        Some(jitter) => pixels
            .iter()
            .map(|rgb| reference::jitter_u8(*rgb, &jitter))
            .collect(),
        None => pixels.to_vec(),
    }
}

/// Steps 2 to 10 for float32 pixels; without gains they are quantized.
pub fn levels_of_floats(pixels: &[[f32; 3]], gains: Option<Gains>) -> Vec<[u8; 3]> {
    match gains.map(Jitter::from) {
        Some(jitter) => pixels
            .iter()
            .map(|rgb| reference::jitter_f32(*rgb, &jitter))
            .collect(),
        None => pixels.iter().map(|rgb| rgb.map(reference::quantize)).collect(),
    }
}

/// Step 11 and the layout.
pub struct Finish {
    /// The bytes of each channel's levels, behind each other.
    tables: [Vec<u8>; 3],
    size: usize,
    layout: Layout,
}

impl Finish {
    pub fn new(spec: &PackSpec) -> Self {
        let element = |channel: usize, level: u8| {
            let restored = reference::restore(level);
            let value = match spec.normalize() {
                Some(Normalize { mean, std }) => (restored - mean[channel]) / std[channel],
                None => restored,
            };
            match spec.dtype() {
                Dtype::Float32 => value.to_ne_bytes().to_vec(),
                Dtype::Float16 => f16::from_f32(value).to_ne_bytes().to_vec(),
                Dtype::Bfloat16 => bf16::from_f32(value).to_ne_bytes().to_vec(),
                Dtype::Uint8 => vec![level],
            }
        };
        let table = |channel| (0..=255).flat_map(|level| element(channel, level)).collect();
        Self {
            tables: [0, 1, 2].map(table),
            size: spec.dtype().size(),
            layout: spec.layout(),
        }
    }

    /// The bytes of one sample.
    pub fn sample(&self, levels: &[[u8; 3]], bytes: &mut Vec<u8>) {
        match self.size {
            1 => self.extend::<1>(levels, bytes),
            2 => self.extend::<2>(levels, bytes),
            _ => self.extend::<4>(levels, bytes),
        }
    }

    fn extend<const SIZE: usize>(&self, levels: &[[u8; 3]], bytes: &mut Vec<u8>) {
        let tables = self.tables.each_ref().map(|table| table.as_chunks::<SIZE>().0);
        let element = |rgb: &[u8; 3], channel: usize| tables[channel][usize::from(rgb[channel])];
        match self.layout {
            Layout::Nhwc => bytes.extend(
                levels
                    .iter()
                    .flat_map(|rgb| [0, 1, 2].map(|channel| element(rgb, channel)))
                    .flatten(),
            ),
            Layout::Nchw => {
                for channel in 0..3 {
                    bytes.extend(levels.iter().flat_map(|rgb| element(rgb, channel)));
                }
            }
        }
    }

    /// The bytes of a batch.
    pub fn batch(&self, samples: &[Vec<[u8; 3]>]) -> Vec<u8> {
        let pixels = samples.iter().map(Vec::len).sum::<usize>();
        let mut bytes = Vec::with_capacity(pixels * 3 * self.size);
        for sample in samples {
            self.sample(sample, &mut bytes);
        }
        bytes
    }
}

/// Fails at the first difference.
#[track_caller]
pub fn assert_equal(got: &[u8], want: &[u8], about: &dyn Fn() -> String) {
    if got != want {
        assert_eq!(got.len(), want.len(), "{}", about());
        let differing = got.iter().zip(want).filter(|(got, want)| got != want).count();
        let at = got
            .iter()
            .zip(want)
            .position(|(got, want)| got != want)
            .unwrap_or(0);
        let near = at & !3..want.len().min((at & !3) + 12);
        panic!(
            "{}: {differing} of {} bytes differ, first at {at}: {:x?} instead of {:x?}",
            about(),
            want.len(),
            &got[near.clone()],
            &want[near]
        );
    }
}

/// Does `work`, once made by `start`, on each of `items`, on as many threads as there are cores.
pub fn in_parallel<T: Sync, W: FnMut(&T)>(items: &[T], start: impl Fn() -> W + Sync) {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(items.len()) {
            scope.spawn(|| {
                let mut work = start();
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(item);
                }
            });
        }
    });
}
