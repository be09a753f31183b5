//! Batches of frames that are in host memory: one copy and one launch each, the copy of one beside the kernel of another.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;

use cudarc::driver::result;

use super::device::Device;
use super::error::CudaError;
use super::kernels::Kernel;
use super::launch::{Frames, MAX_BATCH};
use super::memory::{DeviceMemory, PinnedMemory};
use super::stream::{Event, Stream};
use crate::color::{Gains, PixelFormat};
use crate::tensor::PackSpec;

/// Batches whose copies may be under way. Two fill the bus; a third is queued behind.
const IN_FLIGHT: usize = 3;
/// Addresses that every kernel reads at full speed.
const ALIGNMENT: usize = 256;

/// Frames of a batch that lie behind each other in page-locked memory.
#[derive(Debug)]
pub struct HostRun {
    /// The first byte of the first of them; the next is [`HostBatch::sample_stride`] further.
    pub data: *const u8,
    /// How many.
    pub frames: usize,
    /// Where gains can be written to so that they travel with the frames: [`Packer::header_bytes`] bytes that end where
    /// `data` begins. Null where there are none.
    pub header: *mut u8,
}

/// A batch of frames in page-locked host memory, all laid out alike.
#[derive(Debug)]
pub struct HostBatch {
    /// Of the pixels.
    pub format: PixelFormat,
    /// In pixels.
    pub width: usize,
    /// In pixels.
    pub height: usize,
    /// Bytes from a frame's start to each of its planes.
    pub offsets: [usize; 3],
    /// Bytes from a row to the next.
    pub row_stride: usize,
    /// Bytes from a frame to the next.
    pub sample_stride: usize,
    /// The frames, in order.
    pub runs: Vec<HostRun>,
    /// One for each frame, or nothing to apply.
    pub gains: Option<Vec<Gains>>,
    /// What keeps the memory of `runs`; dropped when the copies have ended.
    pub keep: Box<dyn Any + Send>,
}

/// Moments of a batch, for measuring; see [`Packer::time`].
#[derive(Clone, Debug)]
pub struct PackTimes {
    /// Before and behind the copies.
    pub copy: [Event; 2],
    /// Before and behind the kernel.
    pub kernel: [Event; 2],
}

/// Makes batches in device memory of frames in page-locked host memory.
///
/// The calling thread queues and goes on. It waits, for the oldest copy, only where three batches are on their
/// way: the GPU is behind then.
#[derive(Debug)]
pub struct Packer {
    spec: PackSpec,
    /// Frames on the device. Two, so that one is filled while the kernel reads the other.
    inputs: [Option<Arc<DeviceMemory>>; 2],
    next: usize,
    /// Where gains wait that do not travel with their frames, one place for each batch on its way.
    gains: [Option<PinnedMemory>; IN_FLIGHT],
    batches: usize,
    /// What keeps the memory of copies under way, with their ends.
    pending: VecDeque<(Event, Box<dyn Any + Send>)>,
    copies: u64,
    launches: u64,
    times: Option<Vec<PackTimes>>,
    copy: Stream,
    compute: Stream,
}

impl Packer {
    /// Frames of a batch, at most.
    pub const MAX_BATCH: usize = MAX_BATCH;

    /// For batches as `spec` says. Loads the kernels.
    ///
    /// # Errors
    /// [`CudaError`]: the kernels or the streams cannot be had.
    pub fn new(device: &Arc<Device>, spec: PackSpec) -> Result<Self, CudaError> {
        device.function(Kernel::PackBytes(spec.dtype()), false)?;
        Ok(Self {
            spec,
            inputs: Default::default(),
            next: 0,
            gains: Default::default(),
            batches: 0,
            pending: VecDeque::new(),
            copies: 0,
            launches: 0,
            times: None,
            copy: Stream::new(device)?,
            compute: Stream::new(device)?,
        })
    }

    /// Whose it is.
    pub fn device(&self) -> &Arc<Device> {
        self.compute.device()
    }

    /// The stream that writes the batches; memory for them is best made on it.
    pub fn stream(&self) -> &Stream {
        &self.compute
    }

    /// Bytes in front of the first of `frames` frames where their gains travel.
    pub fn header_bytes(frames: usize) -> usize {
        (frames.saturating_mul(size_of::<[f64; 3]>())).next_multiple_of(ALIGNMENT)
    }

    /// Copies of frames, and launches, so far.
    pub fn counts(&self) -> (u64, u64) {
        (self.copies, self.launches)
    }

    /// Notes the moments of each batch from now on, for [`take_times`](Self::take_times).
    pub fn time(&mut self) {
        self.times = Some(Vec::new());
    }

    /// The moments of the batches since they were last taken.
    pub fn take_times(&mut self) -> Vec<PackTimes> {
        self.times.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Queues the copies of `batch` and the launch that makes it at the start of `output`, whose earlier users are waited for
    /// on the device, and which knows afterwards when it is written.
    ///
    /// # Errors
    /// [`CudaError`]; nothing refers to the batch's memory any more then.
    ///
    /// # Safety
    /// The frames, and the headers, are page-locked memory as described, which `batch.keep` keeps and which nobody writes
    /// before that is dropped.
    pub unsafe fn pack(&mut self, batch: HostBatch, output: &DeviceMemory) -> Result<(), CudaError> {
        self.release()?;
        // SAFETY: the caller's promise.
        let queued = unsafe { self.queue(&batch, output) };
        let ended = self.copy.record_for_host();
        match (queued, ended) {
            (Ok(()), Ok(ended)) => {
                self.pending.push_back((ended, batch.keep));
                self.batches += 1;
                Ok(())
            }
            (queued, ended) => {
                // Part of it may be under way.
                let _ = self.copy.synchronize();
                queued.and(ended.map(drop))
            }
        }
    }

    /// Lets go of what has been copied. With a full queue waits for the oldest.
    ///
    /// # Errors
    /// [`CudaError`] of what was queued before.
    pub fn release(&mut self) -> Result<(), CudaError> {
        while let Some((ended, _)) = self.pending.front() {
            if self.pending.len() >= IN_FLIGHT {
                ended.synchronize()?;
            } else if !ended.is_done()? {
                break;
            }
            self.pending.pop_front();
        }
        Ok(())
    }

    /// # Safety
    /// As [`pack`](Self::pack), until what is queued on the copy stream has ended.
    unsafe fn queue(&mut self, batch: &HostBatch, output: &DeviceMemory) -> Result<(), CudaError> {
        let count: usize = batch.runs.iter().map(|run| run.frames).sum();
        let gains = batch.gains.as_ref().map_or(count, Vec::len);
        if gains != count {
            return Err(CudaError::Count { gains, frames: count });
        }
        if count == 0 {
            return Ok(());
        }
        let header = Self::header_bytes(count);
        let frames_bytes = batch.sample_stride.saturating_mul(count);
        let bytes = header.saturating_add(frames_bytes);
        let wanted = self
            .spec
            .sample_bytes(batch.width, batch.height)
            .saturating_mul(count);
        if output.len() < wanted {
            return Err(CudaError::TooLarge {
                what: "a batch in bytes",
                value: wanted,
                limit: output.len(),
            });
        }
        let input = self.input(bytes)?;
        let base = input.pointer() + header as u64;
        input.begin_write(&self.copy)?;
        let copy_start = self.moment(&self.copy)?;

        // SAFETY: the caller's promise.
        unsafe { self.copy_all(batch, count, base) }?;

        let copy_end = self.moment(&self.copy)?;
        input.end_write(&self.copy)?;
        input.begin_read(&self.compute)?;
        output.begin_write(&self.compute)?;
        let kernel_start = self.moment(&self.compute)?;
        let frames = Frames {
            format: batch.format,
            width: batch.width,
            height: batch.height,
            batch: count,
            base: base + batch.offsets[0] as u64,
            strides: [
                batch.sample_stride as i64,
                batch.offsets[1].wrapping_sub(batch.offsets[0]) as i64,
                batch.row_stride as i64,
            ],
        };
        let gains = batch.gains.as_ref().map_or(0, |_| base - header as u64);
        // SAFETY: input and output are as large as the frames and the batch, and in the streams' order.
        unsafe {
            self.compute
                .pack_frames(&frames, gains, output.pointer(), &self.spec)
        }?;
        let kernel_end = self.moment(&self.compute)?;
        input.end_read(&self.compute)?;
        output.end_write(&self.compute)?;
        self.launches += 1;
        self.next = 1 - self.next;
        if let (Some(times), Some(a), Some(b), Some(c), Some(d)) =
            (&mut self.times, copy_start, copy_end, kernel_start, kernel_end)
        {
            times.push(PackTimes {
                copy: [a, b],
                kernel: [c, d],
            });
        }
        Ok(())
    }

    /// Queues the copies: one, where the frames are one run with room in front; else one a run, and the gains.
    ///
    /// # Safety
    /// As [`queue`](Self::queue); `base` is device memory for all frames, with that for the gains in front of it.
    unsafe fn copy_all(&mut self, batch: &HostBatch, count: usize, base: u64) -> Result<(), CudaError> {
        let header = Self::header_bytes(count);
        let gains: Option<Vec<[f64; 3]>> = batch.gains.as_ref().map(|gains| {
            let values = gains
                .iter()
                .map(|gains| [gains.hue, gains.saturation, gains.value]);
            values.take(count).collect()
        });
        if let ([run], Some(gains)) = (&batch.runs[..], &gains)
            && !run.header.is_null()
        {
            let size = size_of_val(gains.as_slice());
            // SAFETY: the header is of that size and nobody else's, by the caller's promise.
            unsafe { run.header.copy_from_nonoverlapping(gains.as_ptr().cast(), size) };
            self.copies += 1;
            let bytes = header + batch.sample_stride * count;
            // SAFETY: header and frames are one piece of memory.
            return unsafe { self.copy_up(base - header as u64, run.header, bytes) };
        }
        if let Some(gains) = &gains {
            let size = size_of_val(gains.as_slice());
            let from = self.gains_place(size)?;
            // SAFETY: ours, of that size; the copy that used this place before has ended: fewer than IN_FLIGHT are under way.
            unsafe {
                from.copy_from_nonoverlapping(gains.as_ptr().cast(), size);
                self.copy_up(base - header as u64, from, size)?;
            }
        }
        let mut to = base;
        for run in &batch.runs {
            let bytes = batch.sample_stride * run.frames;
            // SAFETY: the caller's promise.
            unsafe { self.copy_up(to, run.data, bytes) }?;
            self.copies += 1;
            to += bytes as u64;
        }
        Ok(())
    }

    /// # Safety
    /// `from` is `bytes` bytes of page-locked memory, left alone until the copy stream has done this, and `to` that much
    /// device memory in its order.
    unsafe fn copy_up(&self, to: u64, from: *const u8, bytes: usize) -> Result<(), CudaError> {
        self.compute.device().run("copying frames to the device", || {
            // SAFETY: the caller's promise.
            unsafe {
                let from = std::slice::from_raw_parts(from, bytes);
                result::memcpy_htod_async(to, from, self.copy.inner().cu_stream())
            }
        })
    }

    /// The input of the next batch, of at least `bytes`.
    fn input(&mut self, bytes: usize) -> Result<Arc<DeviceMemory>, CudaError> {
        let input = &mut self.inputs[self.next];
        if let Some(memory) = input.as_ref().filter(|memory| memory.len() >= bytes) {
            return Ok(memory.clone());
        }
        // Before the larger one is made: both may not fit.
        *input = None;
        let memory = Arc::new(DeviceMemory::new(&self.copy, bytes)?);
        *input = Some(memory.clone());
        Ok(memory)
    }

    /// Where the gains of the next batch wait.
    fn gains_place(&mut self, bytes: usize) -> Result<*mut u8, CudaError> {
        let place = &mut self.gains[self.batches % IN_FLIGHT];
        if let Some(memory) = place.as_ref().filter(|memory| memory.len() >= bytes) {
            return Ok(memory.as_ptr());
        }
        let memory = PinnedMemory::new(self.compute.device(), bytes)?;
        let pointer = memory.as_ptr();
        *place = Some(memory);
        Ok(pointer)
    }

    fn moment(&self, stream: &Stream) -> Result<Option<Event>, CudaError> {
        self.times.as_ref().map(|_| stream.record_timed()).transpose()
    }
}

impl Drop for Packer {
    fn drop(&mut self) {
        // What keeps the frames goes behind their copies. Where waiting fails the context is lost, and nothing copies.
        let _ = self.copy.synchronize();
        self.pending.clear();
    }
}
