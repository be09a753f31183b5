//! The frames of a batch, and how they become one buffer.

use std::sync::Mutex;

use super::super::cuda::BATCH_FEATURE;
use super::super::meta::{BatchMeta, BatchTargets, BoxesMeta, GainsMeta, SampleMeta};
use super::super::util::lock;
use super::super::video::{self, ViewError};
use crate::color::{Gains, GainsError, Jitter, fused};
use crate::cuda::CudaError;
use crate::tensor::{Dtype, Layout, PackError, PackSpec};
use crate::workers::{Class, Client, Stage, Urgency};

/// A frame that waits for its batch.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub buffer: gst::Buffer,
    pub sample: SampleMeta,
    /// Whether the sample came with its meta; else it is named by the number of its frame.
    pub stamped: bool,
    pub gains: Gains,
    /// The gains are still to be applied.
    pub jitter: bool,
}

impl Frame {
    /// The `number`-th frame of the stream. With `deferred` its gains are still to be applied.
    pub fn new(buffer: gst::Buffer, number: u64, deferred: bool) -> Result<Self, FrameError> {
        let sample = SampleMeta::get(&buffer);
        let stated = GainsMeta::get(&buffer);
        let gains = match (stated, deferred) {
            (Some(meta), _) if meta.applied || deferred => Gains::new(meta.hue, meta.saturation, meta.value)?,
            (_, true) => return Err(FrameError::NoGains),
            // Gains that nobody has applied and that the caps do not promise are not this frame's.
            _ => Gains::ZERO,
        };
        let jitter = deferred && stated.is_some_and(|meta| !meta.applied);
        Ok(Self {
            stamped: sample.is_some(),
            sample: sample.unwrap_or_else(|| SampleMeta {
                index: number,
                dataset_index: number,
                replaced_from: -1,
                ..SampleMeta::default()
            }),
            buffer,
            gains,
            jitter,
        })
    }

    /// This frame as one that only fills up a batch.
    pub fn padding(&self) -> Self {
        let mut frame = self.clone();
        frame.sample.pad = true;
        // It repeats what was delivered and stands in nobody's place.
        frame.sample.replaced_from = -1;
        frame
    }

    /// Whether it counts as delivered: neither padding nor in another sample's place.
    pub fn counts(&self) -> bool {
        !self.sample.pad && self.sample.replaced_from < 0
    }
}

/// Why a frame cannot be part of a batch.
#[derive(Debug, thiserror::Error)]
pub(super) enum FrameError {
    #[error("its caps promise gains (meta:EpochfeedGains), but it has no epochfeed-gains meta")]
    NoGains,
    #[error("{0}")]
    Gains(#[from] GainsError),
}

/// Why a batch cannot be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum BatchError {
    #[error("{0}")]
    GStreamer(#[from] glib::BoolError),
    #[error("{0}")]
    View(#[from] ViewError),
    #[error("{0}")]
    Pack(#[from] PackError),
    #[error("{0}")]
    Cuda(#[from] CudaError),
    #[error("its buffer is not of this element's device memory (a bug; please report it)")]
    Memory,
}

/// Caps of a batch of `count` frames of `info`.
pub(super) fn caps(info: &gst_video::VideoInfo, spec: &PackSpec, count: usize, full: usize) -> gst::Caps {
    let (width, height) = (info.width(), info.height());
    // NNStreamer's order: the innermost dimension first.
    let dimensions = match spec.layout() {
        Layout::Nhwc => format!("3:{width}:{height}:{count}"),
        Layout::Nchw => format!("{width}:{height}:3:{count}"),
    };
    let types = match spec.dtype() {
        Dtype::Bfloat16 => "bfloat16",
        dtype => dtype.nnstreamer_type(),
    };
    // Batches a second; a rate that does not fit is given as unknown.
    let fps = info.fps();
    let framerate = i32::try_from(full)
        .ok()
        .and_then(|full| fps.denom().checked_mul(full))
        .map_or(gst::Fraction::new(0, 1), |denominator| {
            gst::Fraction::new(fps.numer(), denominator)
        });
    gst::Caps::builder("other/tensors")
        .field("format", "static")
        .field("num_tensors", 1i32)
        .field("types", types)
        .field("dimensions", dimensions)
        .field("layout", spec.layout().as_str())
        .field("framerate", framerate)
        .build()
}

/// The same `caps` for batches in device memory.
pub(super) fn on_device(caps: &gst::Caps) -> gst::Caps {
    let mut caps = caps.clone();
    let features = gst::CapsFeatures::new([BATCH_FEATURE]);
    caps.make_mut().set_features_simple(Some(features));
    caps
}

/// Writes `frames` into `buffer`, one slot each, on the workers and the calling thread, as urgently as said.
pub(super) fn pack(
    frames: &[Frame],
    info: &gst_video::VideoInfo,
    spec: &PackSpec,
    workers: &Client,
    urgency: Urgency,
    buffer: &mut gst::BufferRef,
) -> Result<(), BatchError> {
    let slot = spec.sample_bytes(info.width() as usize, info.height() as usize);
    let mut map = buffer.map_writable()?;
    // Each slot is locked once, by whoever packs it: the lock hands out disjoint parts of one buffer.
    let slots: Vec<_> = map.chunks_exact_mut(slot).map(Mutex::new).collect();
    let failed = Mutex::new(None);
    workers.for_each(
        Class::new(urgency, Stage::Pack),
        frames.len().min(slots.len()),
        |index| {
            let packed = pack_one(&frames[index], info, spec, &mut lock(&slots[index]));
            if let Err(error) = packed {
                lock(&failed).get_or_insert(error);
            }
        },
    );
    drop(slots);
    failed
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
        .map_or(Ok(()), Err)
}

fn pack_one(
    frame: &Frame,
    info: &gst_video::VideoInfo,
    spec: &PackSpec,
    slot: &mut [u8],
) -> Result<(), BatchError> {
    let pixels = gst_video::VideoFrameRef::from_buffer_ref_readable(&frame.buffer, info)?;
    let jitter = frame.jitter.then(|| Jitter::from(frame.gains));
    fused::pack(&video::view(&pixels)?, jitter.as_ref(), spec, slot)?;
    Ok(())
}

/// The frame that lacks the boxes which its dataset has, or has those of another size, if there is one.
pub(super) fn without_boxes<'a>(frames: &'a [Frame], info: &gst_video::VideoInfo) -> Option<&'a Frame> {
    let boxes: Vec<_> = frames.iter().map(|frame| BoxesMeta::get(&frame.buffer)).collect();
    let annotated = boxes.iter().any(Option::is_some) || frames.iter().any(|frame| frame.sample.annotated);
    let size = (info.width(), info.height());
    let fits = |boxes: &Option<BoxesMeta>| boxes.as_ref().is_some_and(|boxes| boxes.fitted(size).is_some());
    let mut found = frames.iter().zip(&boxes).filter(|(_, boxes)| !fits(boxes));
    found.next().filter(|_| annotated).map(|(frame, _)| frame)
}

/// The meta of a batch.
pub(super) fn meta(frames: &[Frame], info: &gst_video::VideoInfo, batch: u64, state: String) -> BatchMeta {
    let first = frames
        .first()
        .map(|frame| frame.sample.clone())
        .unwrap_or_default();
    let each = |field: fn(&SampleMeta) -> u64| frames.iter().map(|frame| field(&frame.sample)).collect();
    BatchMeta {
        epoch: first.epoch,
        batch,
        seed: first.seed,
        recipe: first.recipe,
        prepared: first.prepared,
        index: each(|sample| sample.index),
        dataset_index: each(|sample| sample.dataset_index),
        uri: frames.iter().map(|frame| frame.sample.uri.clone()).collect(),
        gains: frames
            .iter()
            .map(|frame| [frame.gains.hue, frame.gains.saturation, frame.gains.value])
            .collect(),
        pad: frames.iter().map(|frame| frame.sample.pad).collect(),
        replaced_from: frames.iter().map(|frame| frame.sample.replaced_from).collect(),
        source_width: frames.iter().map(|frame| frame.sample.source_width).collect(),
        source_height: frames.iter().map(|frame| frame.sample.source_height).collect(),
        targets: BatchTargets::of(
            frames.iter().map(|frame| BoxesMeta::get(&frame.buffer)),
            (info.width(), info.height()),
        ),
        state,
    }
}
