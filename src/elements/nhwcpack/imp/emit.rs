//! What becomes of the frames that were gathered: a batch, at last the one that an epoch's end completes.

use std::time::Instant;

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;

use super::super::super::coordinator::{Registration, Taken};
use super::super::super::cuda::BatchAllocator;
use super::super::super::epoch_end::EpochEnd;
use super::super::super::faults;
use super::super::super::identity;
use super::super::super::util::{lock, nanoseconds_since};
use super::super::batch::{self, BatchError, Frame};
use super::super::gpu::Gpu;
use super::super::settings::LastBatch;
use super::{NhwcPack, Stream};
use crate::workers::Urgency;

impl NhwcPack {
    /// A buffer for a batch of `count` frames of `slot` bytes each.
    fn buffer(&self, stream: &mut Stream, count: usize, slot: usize) -> Result<gst::Buffer, BatchError> {
        let too_large =
            || glib::bool_error!("a batch of {count} frames of {slot} bytes is too large for a buffer");
        let size = slot.checked_mul(count).ok_or_else(too_large)?;
        let batches = stream.gpu.as_ref().map(Gpu::batches);
        // A device says why it gave nothing.
        let because = |error: glib::BoolError| {
            let failure = batches.and_then(BatchAllocator::take_failure);
            failure.map_or(BatchError::GStreamer(error), BatchError::Cuda)
        };
        if count != stream.batch_size {
            let Some(batches) = batches else {
                return Ok(gst::Buffer::with_size(size)?);
            };
            let memory = batches.alloc(size, None).map_err(because)?;
            let mut buffer = gst::Buffer::new();
            buffer.make_mut().append_memory(memory);
            return Ok(buffer);
        }
        let pool = match &stream.pool {
            Some(pool) => pool.clone(),
            None => {
                let pool = gst::BufferPool::new();
                let mut config = pool.config();
                // No maximum: downstream's queues bound how many there are.
                config.set_params(None, u32::try_from(size).map_err(|_| too_large())?, 0, 0);
                if let Some(batches) = batches {
                    config.set_allocator(Some(batches), None);
                }
                pool.set_config(config)?;
                pool.set_active(true)?;
                stream.pool = Some(pool.clone());
                pool
            }
        };
        pool.acquire_buffer(None)
            .map_err(|flow| because(glib::bool_error!("no buffer to write to: {flow}")))
    }

    /// Packs and pushes what has been gathered. With `end`, nothing comes behind it in its epoch.
    pub(super) fn emit(
        &self,
        stream: &mut Stream,
        end: Option<&EpochEnd>,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        let frames = std::mem::take(&mut stream.frames);
        let Some((info, _)) = stream.input.clone() else {
            return Err(gst::FlowError::NotNegotiated);
        };
        // What fills the batch up repeats the epoch's start; the state lies behind the farthest frame.
        let farthest = frames.iter().max_by_key(|frame| frame.sample.index);
        let (Some(first), Some(farthest)) = (frames.first(), farthest) else {
            return Ok(gst::FlowSuccess::Ok);
        };
        let state = stream
            .registration
            .as_ref()
            .filter(|_| farthest.stamped)
            .and_then(|registration| {
                let sample = &farthest.sample;
                let coordinator = registration.coordinator();
                let mut taken = Taken::up_to(sample);
                let length = coordinator
                    .order(sample.epoch)
                    .map_or(taken.position, |order| order.len());
                if let Some(end) = end.filter(|end| end.epoch == sample.epoch) {
                    taken = Taken::all(length, &end.ledger);
                } else if stream.last_batch == LastBatch::Drop
                    && length.saturating_sub(taken.position) < stream.batch_size as u64
                {
                    // What is left is too little for another batch, and belongs to what is behind.
                    taken.position = length;
                }
                coordinator.state_at(sample.epoch, taken)
            })
            .unwrap_or_default();

        let wanted =
            |registration: &Registration| registration.coordinator().is_requested(first.sample.epoch);
        let urgency = match &stream.registration {
            Some(registration) if first.stamped && !wanted(registration) => Urgency::Ahead,
            _ => Urgency::Demanded,
        };
        let start = Instant::now();
        let slot = stream
            .spec
            .sample_bytes(info.width() as usize, info.height() as usize);
        let meta = batch::meta(&frames, &info, stream.batches, state.clone());
        if meta.targets.is_none() {
            self.check_boxes(stream, &frames, &info);
        }
        let made = self.buffer(stream, frames.len(), slot).and_then(|mut buffer| {
            let writable = buffer.make_mut();
            let workers = &stream.workers;
            match &mut stream.gpu {
                Some(gpu) => gpu.pack(&frames, &info, workers, urgency, writable)?,
                None => batch::pack(&frames, &info, &stream.spec, workers, urgency, writable)?,
            }
            writable.set_pts(first.buffer.pts());
            let durations = frames.iter().map(|frame| frame.buffer.duration());
            writable.set_duration(durations.sum::<Option<gst::ClockTime>>());
            writable.set_offset(first.buffer.offset());
            if std::mem::take(&mut stream.discont) {
                writable.set_flags(gst::BufferFlags::DISCONT);
            } else {
                writable.unset_flags(gst::BufferFlags::DISCONT);
            }
            meta.set(writable)?;
            Ok(buffer)
        });
        let buffer = made.map_err(|error| {
            gst::element_imp_error!(
                self,
                gst::StreamError::Failed,
                (
                    "Cannot pack the batch that begins with {}: {error}",
                    faults::describe(&first.sample)
                ),
                ["{info:?}, {:?}", stream.spec]
            );
            gst::FlowError::Error
        })?;
        let count = frames.len();
        // Released before the push, which may take long.
        drop(frames);
        stream.batches += 1;
        {
            let mut stats = lock(&self.stats);
            stats.batches += 1;
            stats.busy += nanoseconds_since(start);
            stats.gpu = stream.gpu.as_ref().map(Gpu::counts).unwrap_or_default();
        }

        let plain = batch::caps(&info, &stream.spec, count, stream.batch_size);
        let on_device = stream.gpu.is_some().then(|| batch::on_device(&plain));
        let known = |caps: &gst::Caps| stream.caps.as_ref() == Some(caps);
        let sent = known(&plain) || on_device.as_ref().is_some_and(known);
        // Who does not name the feature, nor takes anything, gets the same memory as if it were plain: mapping it gives the
        // bytes.
        let caps = match on_device {
            _ if sent => stream.caps.clone().unwrap_or(plain),
            Some(caps) if self.src_pad.peer_query_accept_caps(&caps) => caps,
            _ => plain,
        };
        if !sent {
            if !self.src_pad.push_event(gst::event::Caps::new(&caps)) && !stream.flushing(&self.src_pad) {
                return Err(self.refused(stream, count, &caps));
            }
            stream.caps = Some(caps.clone());
        }
        if let Some(segment) = stream.segment.take() {
            self.src_pad.push_event(segment);
        }
        let start = Instant::now();
        let pushed = self.src_pad.push(buffer);
        lock(&self.stats).wait_output += nanoseconds_since(start);
        match pushed {
            Ok(success) => {
                self.acknowledge(stream, meta.epoch, &state);
                Ok(success)
            }
            Err(gst::FlowError::NotNegotiated) => Err(self.refused(stream, count, &caps)),
            Err(flow) => Err(flow),
        }
    }

    /// Counts a batch whose boxes got lost on the way, and warns, once.
    fn check_boxes(&self, stream: &mut Stream, frames: &[Frame], info: &gst_video::VideoInfo) {
        let Some(frame) = batch::without_boxes(frames, info) else {
            return;
        };
        lock(&self.stats).targets_lost += 1;
        if !std::mem::replace(&mut stream.boxes_lost, true) {
            let size = (info.width(), info.height());
            identity::warn_of_boxes(&*self.obj(), &self.sink_pad, &frame.sample, size);
        }
    }

    /// Posts why downstream refused a batch.
    fn refused(&self, stream: &Stream, count: usize, caps: &gst::Caps) -> gst::FlowError {
        let remedy = if count == stream.batch_size {
            "Check the caps filter or the next element"
        } else {
            "Set last-batch=pad or last-batch=drop, so that every batch has the same size"
        };
        gst::element_imp_error!(
            self,
            gst::StreamError::Format,
            ("The next element does not take a batch of {count} frames ({caps}); {remedy}")
        );
        gst::FlowError::NotNegotiated
    }

    /// Where nothing of ours follows, a batch that was pushed counts as consumed.
    fn acknowledge(&self, stream: &Stream, epoch: u64, state: &str) {
        if let Some(registration) = stream
            .registration
            .as_ref()
            .filter(|registration| registration.counts())
            && let Err(error) = registration.acknowledge(epoch, state)
        {
            error.warn(&*self.obj());
        }
    }

    /// Completes the last batch of an epoch. Returns how many samples were left out, how many of the frames left
    /// out were padding, and how much padding was added.
    pub(super) fn complete(
        &self,
        stream: &mut Stream,
        end: Option<&EpochEnd>,
    ) -> Result<(u64, u64, u64), gst::FlowError> {
        let mut counts = (0, 0, 0);
        let missing = stream.batch_size.saturating_sub(stream.frames.len());
        if !stream.frames.is_empty() {
            match stream.last_batch {
                LastBatch::Partial => {
                    self.emit(stream, end)?;
                }
                LastBatch::Drop => {
                    let frames = std::mem::take(&mut stream.frames);
                    counts.0 = frames.iter().filter(|frame| frame.counts()).count() as u64;
                    counts.1 = frames.iter().filter(|frame| frame.sample.pad).count() as u64;
                    if stream.batches == 0 {
                        gst::element_imp_warning!(
                            self,
                            gst::LibraryError::Settings,
                            (
                                "No batch came of an epoch: its {} samples are fewer than batch-size={}",
                                frames.len(),
                                stream.batch_size
                            ),
                            ["Set a smaller batch-size, or last-batch=partial or last-batch=pad"]
                        );
                    }
                }
                LastBatch::Pad => {
                    let padding: Vec<_> = stream
                        .first
                        .iter()
                        .cycle()
                        .take(missing)
                        .map(Frame::padding)
                        .collect();
                    counts.2 = padding.len() as u64;
                    stream.frames.extend(padding);
                    self.emit(stream, end)?;
                }
            }
        }
        stream.first.clear();
        stream.batches = 0;
        stream.discont = true;
        let mut stats = lock(&self.stats);
        stats.dropped += counts.0;
        stats.padded += counts.2;
        stats.level = 0;
        stats.idle_since = None;
        Ok(counts)
    }
}
