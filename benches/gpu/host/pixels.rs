//! Noise as frames and planes, on the host and on the device, and the CPU's batches of it.

use std::any::Any;
use std::sync::Arc;

use epochfeed::color::{FloatFrame, FrameRef, GainRanges, Gains, Jitter, PixelFormat, draw_gains, fused};
use epochfeed::cuda::{Device, DeviceMemory, HostBatch, HostRun, Images, Packer, PinnedMemory, Stream};
use epochfeed::tensor::{Dtype, PackSpec};

use crate::{BATCH, PIXELS, SIDE, driver};

/// Bytes of a frame.
pub const FRAME: usize = PIXELS * 3;

/// Bytes without structure: an xorshift generator.
pub fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect()
}

/// The gains of batch `number`, of the usual ranges.
pub fn gains(number: usize) -> Vec<Gains> {
    let first = number * BATCH;
    (first..first + BATCH)
        .map(|index| draw_gains(7, 0, index as u64, &GainRanges::default()))
        .collect()
}

/// A batch of images of one input type.
pub struct Source {
    pub dtype: Dtype,
    pub bytes: Vec<u8>,
}

impl Source {
    /// RGB frames (uint8) or planes (float32, all of them levels or between two).
    pub fn new(dtype: Dtype, seed: u64) -> Self {
        let levels = noise(seed, BATCH * FRAME);
        let bytes = match dtype {
            Dtype::Uint8 => levels,
            _ => levels
                .iter()
                .flat_map(|level| (f32::from(*level) / 255.5).to_ne_bytes())
                .collect(),
        };
        Self { dtype, bytes }
    }

    /// On the device.
    pub fn upload(&self, stream: &Stream) -> DeviceMemory {
        let memory = DeviceMemory::new(stream, self.bytes.len()).unwrap();
        // SAFETY: fresh memory of that size, in its stream's order.
        unsafe { driver::upload(stream, memory.pointer(), &self.bytes) };
        memory
    }

    /// The CPU's batch, made by all cores.
    pub fn cpu(&self, gains: &[Gains], spec: &PackSpec, batch: &mut [u8]) {
        let (sample, slot) = (self.bytes.len() / BATCH, spec.sample_bytes(SIDE, SIDE));
        let samples: Vec<_> = batch
            .chunks_exact_mut(slot)
            .zip(self.bytes.chunks_exact(sample))
            .zip(gains)
            .collect();
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let share = samples.len().div_ceil(threads);
        let mut samples = samples.into_iter();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                let share: Vec<_> = samples.by_ref().take(share).collect();
                scope.spawn(|| {
                    for ((slot, pixels), gains) in share {
                        self.cpu_sample(pixels, *gains, spec, slot);
                    }
                });
            }
        });
    }

    fn cpu_sample(&self, pixels: &[u8], gains: Gains, spec: &PackSpec, slot: &mut [u8]) {
        let jitter = Jitter::from(gains);
        if self.dtype == Dtype::Uint8 {
            let frame = FrameRef::packed(PixelFormat::Rgb, SIDE, SIDE, pixels, SIDE * 3).unwrap();
            fused::pack(&frame, Some(&jitter), spec, slot).unwrap();
        } else {
            let values: Vec<f32> = pixels
                .as_chunks::<4>()
                .0
                .iter()
                .map(|bytes| f32::from_ne_bytes(*bytes))
                .collect();
            let frame = FloatFrame::chw(SIDE, SIDE, &values).unwrap();
            fused::pack_f32(&frame, Some(&jitter), spec, slot).unwrap();
        }
    }
}

/// A batch at `pointer`, as a program with tensors describes it.
///
/// # Safety
/// As [`Images::from_raw`].
pub unsafe fn images(pointer: u64, dtype: Dtype) -> Images {
    let strides = match dtype {
        Dtype::Uint8 => [FRAME, 1, SIDE * 3, 3],
        _ => [FRAME, PIXELS, SIDE, 1],
    };
    // SAFETY: the caller's promise.
    unsafe {
        Images::from_raw(
            pointer,
            dtype,
            [BATCH, 3, SIDE, SIDE],
            strides.map(|stride| stride as i64),
        )
    }
}

/// Frames of a batch in page-locked memory, with room for their gains in front.
pub struct Slot(Arc<PinnedMemory>);

impl Slot {
    pub fn new(device: &Arc<Device>, frames: &Source) -> Self {
        let header = Packer::header_bytes(BATCH);
        let memory = PinnedMemory::new(device, header + frames.bytes.len()).unwrap();
        // SAFETY: fresh memory of that size.
        unsafe {
            memory
                .as_ptr()
                .add(header)
                .copy_from_nonoverlapping(frames.bytes.as_ptr(), frames.bytes.len());
        }
        Self(Arc::new(memory))
    }

    /// The batch: one run, its gains in front.
    pub fn batch(&self, gains: Vec<Gains>) -> HostBatch {
        let header = self.0.as_ptr();
        // SAFETY: the frames begin there.
        let data = unsafe { header.add(Packer::header_bytes(BATCH)) };
        let keep: Box<dyn Any + Send> = Box::new(self.0.clone());
        HostBatch {
            format: PixelFormat::Rgb,
            width: SIDE,
            height: SIDE,
            offsets: [0; 3],
            row_stride: SIDE * 3,
            sample_stride: FRAME,
            runs: vec![HostRun {
                data,
                frames: BATCH,
                header,
            }],
            gains: Some(gains),
            keep,
        }
    }
}
