//! Batches on a GPU: where the frames are, and what goes over the bus.

use std::sync::{Arc, Mutex};

use gst_video::prelude::*;

use super::super::cuda::{BatchAllocator, FrameAllocator, Header, Slot, device_memory};
use super::super::util::lock;
use super::super::video;
use super::batch::{BatchError, Frame};
use crate::color::Gains;
use crate::cuda::{CudaError, Device, HostBatch, HostRun, Packer};
use crate::tensor::PackSpec;
use crate::workers::{Class, Client, Stage, Urgency};

/// What packs on a device.
pub(super) struct Gpu {
    packer: Packer,
    batches: BatchAllocator,
    /// Where frames are best; epochdecode takes them from here.
    frames: FrameAllocator,
    /// Where frames that are elsewhere are gathered.
    staging: FrameAllocator,
    staged: u64,
}

/// What has been done so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Copies of frames to the device.
    pub copies: u64,
    pub launches: u64,
    /// Frames that had to be gathered on the CPU first.
    pub staged: u64,
}

impl Gpu {
    /// For batches of at most `batch` frames on `device`.
    pub fn new(device: &Arc<Device>, spec: PackSpec, batch: usize) -> Result<Self, CudaError> {
        if batch > Packer::MAX_BATCH {
            return Err(CudaError::TooLarge {
                what: "batch-size",
                value: batch,
                limit: Packer::MAX_BATCH,
            });
        }
        let packer = Packer::new(device, spec)?;
        Ok(Self {
            batches: BatchAllocator::new(packer.stream())?,
            packer,
            frames: FrameAllocator::new(device, batch),
            staging: FrameAllocator::new(device, batch),
            staged: 0,
        })
    }

    /// What makes the batches.
    pub fn batches(&self) -> &BatchAllocator {
        &self.batches
    }

    /// Where frames are best.
    pub fn frames(&self) -> &FrameAllocator {
        &self.frames
    }

    pub fn counts(&self) -> Counts {
        let (copies, launches) = self.packer.counts();
        Counts {
            copies,
            launches,
            staged: self.staged,
        }
    }

    /// Lets go of frames that are on the device. A failure is the next batch's.
    pub fn release(&mut self) {
        let _ = self.packer.release();
    }

    /// Queues what makes `buffer`, of this element's batches, of `frames`.
    pub fn pack(
        &mut self,
        frames: &[Frame],
        info: &gst_video::VideoInfo,
        workers: &Client,
        urgency: Urgency,
        buffer: &gst::BufferRef,
    ) -> Result<(), BatchError> {
        let format = video::pixel_format(info.format())?;
        let stride = FrameAllocator::stride(info.size());
        // Frames that were gathered are let go at once: whoever made them may have no others.
        let (runs, header, held, staged) = match self.in_place(frames, info) {
            Some((runs, header)) => {
                let held: Vec<gst::Buffer> = frames.iter().map(|frame| frame.buffer.clone()).collect();
                (runs, header, held, Vec::new())
            }
            None => {
                let staged = self.gather(frames, info, workers, urgency)?;
                self.staged += frames.len() as u64;
                let data = staged
                    .first()
                    .map_or(std::ptr::null(), |slot| slot.as_ref().as_ptr());
                let header = self
                    .staging
                    .place(data, info.size())
                    .and_then(|place| self.staging.header(place));
                let run = HostRun {
                    data,
                    frames: staged.len(),
                    header: std::ptr::null_mut(),
                };
                (vec![run], header, Vec::new(), staged)
            }
        };
        let mut runs = runs;
        if let ([run], Some(header)) = (&mut runs[..], &header) {
            let pointer = header.pointer(Packer::header_bytes(run.frames));
            run.header = pointer.unwrap_or(std::ptr::null_mut());
        }
        let mut offsets = [0; 3];
        for (offset, of_plane) in offsets.iter_mut().zip(info.offset()) {
            *offset = *of_plane;
        }
        let [row_stride] = video::strides(info.stride())?;
        let jittered = frames.iter().any(|frame| frame.jitter);
        // A sample of zero gains is as it is.
        let gains = |frame: &Frame| if frame.jitter { frame.gains } else { Gains::ZERO };
        let batch = HostBatch {
            format,
            width: info.width() as usize,
            height: info.height() as usize,
            offsets,
            row_stride,
            sample_stride: stride,
            runs,
            gains: jittered.then(|| frames.iter().map(gains).collect()),
            keep: Box::new((held, staged, header)),
        };
        let memory = (buffer.n_memory() == 1).then(|| buffer.peek_memory(0));
        let Some(output) = memory.and_then(device_memory) else {
            return Err(BatchError::Memory);
        };
        // SAFETY: the runs are slots of frames or staged memory, page-locked, all laid out as `info` says (`in_place` checks,
        // `gather` makes them so), one stride from the next; `keep` holds them, and a frame that is held by two is not
        // written. The header, if any, is ours while `keep` holds it.
        unsafe { self.packer.pack(batch, output) }?;
        Ok(())
    }

    /// The runs that `frames` lie in, where all of them are in page-locked slots.
    fn in_place(
        &self,
        frames: &[Frame],
        info: &gst_video::VideoInfo,
    ) -> Option<(Vec<HostRun>, Option<Header>)> {
        let mut runs: Vec<HostRun> = Vec::new();
        let mut first = None;
        let mut last = None;
        for frame in frames {
            let buffer = frame.buffer.as_ref();
            if buffer.n_memory() != 1 || !laid_out_as(buffer, info) {
                return None;
            }
            let data = buffer.map_readable().ok()?.as_ptr();
            let place = self.frames.place(data, info.size())?;
            first.get_or_insert(place);
            match (runs.last_mut(), last) {
                (Some(run), Some(before)) if place.follows(before) => run.frames += 1,
                _ => runs.push(HostRun {
                    data,
                    frames: 1,
                    header: std::ptr::null_mut(),
                }),
            }
            last = Some(place);
        }
        let header = match runs.len() {
            1 => first.and_then(|first| self.frames.header(first)),
            _ => None,
        };
        Some((runs, header))
    }

    /// Copies `frames` side by side into page-locked memory.
    fn gather(
        &self,
        frames: &[Frame],
        info: &gst_video::VideoInfo,
        workers: &Client,
        urgency: Urgency,
    ) -> Result<Vec<Slot>, BatchError> {
        self.staging.begin_batch();
        let slots: Result<Vec<_>, _> = frames
            .iter()
            .map(|_| self.staging.slot(info.size()).map(Mutex::new))
            .collect();
        let slots = slots?;
        let failed = Mutex::new(None);
        workers.for_each(Class::new(urgency, Stage::Pack), frames.len(), |index| {
            let mut slot = lock(&slots[index]);
            if let Err(error) = copy(&frames[index].buffer, info, slot.as_mut()) {
                lock(&failed).get_or_insert(error);
            }
        });
        let failed = failed
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(error) = failed {
            return Err(error);
        }
        let slots = slots.into_iter();
        Ok(slots
            .map(|slot| {
                slot.into_inner()
                    .unwrap_or_else(std::sync::PoisonError::into_inner)
            })
            .collect())
    }
}

/// Whether the pixels of `buffer` lie as `info` says, which a video meta may change.
fn laid_out_as(buffer: &gst::BufferRef, info: &gst_video::VideoInfo) -> bool {
    buffer
        .meta::<gst_video::VideoMeta>()
        .is_none_or(|meta| meta.offset() == info.offset() && meta.stride() == info.stride())
        && buffer.size() >= info.size()
}

/// Copies the pixels of `buffer` to `to`, laid out as `info` says.
fn copy(buffer: &gst::BufferRef, info: &gst_video::VideoInfo, to: &mut [u8]) -> Result<(), BatchError> {
    let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(buffer, info)?;
    let pixel = video::pixel_format(info.format())?.pixel_stride();
    let row_bytes = info.width() as usize * pixel;
    let short = || glib::bool_error!("a frame ends before its last row");
    for plane in 0..info.n_planes() {
        let from = frame.plane_data(plane)?;
        let place = plane as usize;
        let [from_stride] = video::strides(&frame.plane_stride()[place..])?;
        let [to_stride] = video::strides(&info.stride()[place..])?;
        let offset = info.offset()[place];
        for row in 0..info.height() as usize {
            let from = from
                .get(row * from_stride..)
                .and_then(|from| from.get(..row_bytes));
            let to = to
                .get_mut(offset + row * to_stride..)
                .and_then(|to| to.get_mut(..row_bytes));
            let (from, to) = from.zip(to).ok_or_else(short)?;
            to.copy_from_slice(from);
        }
    }
    Ok(())
}
