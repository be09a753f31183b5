//! The native path: one pass per operation, every intermediate materialised in between.
//!
//! This is how an eager framework runs the arithmetic, and what the fused path is compared with: load, HSV jitter,
//! quantize, restore, normalise, cast, layout copy, each of them a loop over the whole frame that calls the definition
//! in [`crate::color::reference`]. It is always available and chosen with `fuse=false`.

use half::{bf16, f16};

use super::frame::{FloatOrder, Planes, PlanesMut};
use super::reference::{hsv_jitter, quantize, restore};
use super::{FloatFrame, FrameMut, FrameRef, Jitter};
use crate::tensor::{CHANNELS, Dtype, Layout, Normalize, PackError, PackSpec};

/// The intermediates, kept between calls for their allocation only: every call overwrites what it reads.
#[derive(Debug, Default)]
pub struct Scratch {
    /// One float32 RGB pixel each, in row order.
    values: Vec<[f32; CHANNELS]>,
    /// One level triple each, in row order.
    levels: Vec<[u8; CHANNELS]>,
    /// The values cast to the output's element type, channels last.
    cast: Vec<u8>,
}

impl Scratch {
    /// Nothing allocated yet; it grows to the largest frame it sees.
    pub fn new() -> Self {
        Self::default()
    }
}

/// Jitters `frame` in place; alpha, padding bytes and row padding stay as they are.
pub fn jitter_frame(frame: &mut FrameMut<'_>, jitter: &Jitter, scratch: &mut Scratch) {
    copy_levels(&frame.as_ref(), &mut scratch.levels);
    jitter_levels(jitter, scratch);
    write_levels(&scratch.levels, frame);
}

/// Packs one uint8 frame into `dst`, one sample's slot: restore, normalise, cast and layout copy of its levels.
///
/// # Errors
/// [`PackError::SlotSize`] when `dst` is not [`PackSpec::sample_bytes`] long.
pub fn pack(
    frame: &FrameRef<'_>,
    spec: &PackSpec,
    dst: &mut [u8],
    scratch: &mut Scratch,
) -> Result<(), PackError> {
    spec.check_slot(frame.width, frame.height, dst)?;
    copy_levels(frame, &mut scratch.levels);
    write_tensor(spec, dst, scratch);
    Ok(())
}

/// All the passes: what [`jitter_frame`] and then [`pack`] make of a frame, which itself is left alone.
///
/// # Errors
/// [`PackError::SlotSize`] when `dst` is not [`PackSpec::sample_bytes`] long.
pub fn jitter_and_pack(
    frame: &FrameRef<'_>,
    jitter: &Jitter,
    spec: &PackSpec,
    dst: &mut [u8],
    scratch: &mut Scratch,
) -> Result<(), PackError> {
    spec.check_slot(frame.width, frame.height, dst)?;
    copy_levels(frame, &mut scratch.levels);
    jitter_levels(jitter, scratch);
    write_tensor(spec, dst, scratch);
    Ok(())
}

/// Packs one float32 image into `dst`; without a jitter the values are quantized and restored.
///
/// # Errors
/// [`PackError::SlotSize`] when `dst` is not [`PackSpec::sample_bytes`] long.
pub fn pack_f32(
    src: &FloatFrame<'_>,
    jitter: Option<&Jitter>,
    spec: &PackSpec,
    dst: &mut [u8],
    scratch: &mut Scratch,
) -> Result<(), PackError> {
    spec.check_slot(src.width, src.height, dst)?;
    copy_values(src, &mut scratch.values);
    if let Some(jitter) = jitter {
        jitter_values(jitter, &mut scratch.values);
    }
    quantize_values(scratch);
    write_tensor(spec, dst, scratch);
    Ok(())
}

/// Gathers the levels of a frame, whatever its format and strides, in the order R, G, B.
fn copy_levels(frame: &FrameRef<'_>, levels: &mut Vec<[u8; CHANNELS]>) {
    levels.clear();
    levels.reserve(frame.width * frame.height);
    match frame.planes {
        Planes::Packed { format, data, stride } => {
            let step = format.pixel_stride();
            let offsets = format.offsets();
            for row in data.chunks(stride).take(frame.height) {
                let pixels = row[..frame.width * step].chunks_exact(step);
                levels.extend(pixels.map(|pixel| offsets.map(|offset| pixel[offset])));
            }
        }
        Planes::Planar { data, strides } => {
            for y in 0..frame.height {
                levels.extend((0..frame.width).map(|x| [0, 1, 2].map(|c| data[c][y * strides[c] + x])));
            }
        }
    }
}

fn copy_values(src: &FloatFrame<'_>, values: &mut Vec<[f32; CHANNELS]>) {
    values.clear();
    match src.order {
        FloatOrder::Hwc => values.extend_from_slice(src.data.as_chunks().0),
        FloatOrder::Chw => {
            let pixels = src.width * src.height;
            values.extend((0..pixels).map(|i| [0, 1, 2].map(|c| src.data[c * pixels + i])));
        }
    }
}

/// Load, HSV jitter and quantize, three passes.
fn jitter_levels(jitter: &Jitter, scratch: &mut Scratch) {
    scratch.values.clear();
    scratch
        .values
        .extend(scratch.levels.iter().map(|pixel| pixel.map(restore)));
    jitter_values(jitter, &mut scratch.values);
    quantize_values(scratch);
}

fn jitter_values(jitter: &Jitter, values: &mut [[f32; CHANNELS]]) {
    for pixel in values {
        *pixel = hsv_jitter(*pixel, jitter);
    }
}

fn quantize_values(scratch: &mut Scratch) {
    scratch.levels.clear();
    scratch
        .levels
        .extend(scratch.values.iter().map(|pixel| pixel.map(quantize)));
}

fn write_levels(levels: &[[u8; CHANNELS]], frame: &mut FrameMut<'_>) {
    let rows = levels.chunks_exact(frame.width);
    match &mut frame.planes {
        PlanesMut::Packed { format, data, stride } => {
            let offsets = format.offsets();
            for (row, levels) in data.chunks_mut(*stride).zip(rows) {
                for (pixel, rgb) in row.chunks_exact_mut(format.pixel_stride()).zip(levels) {
                    for (offset, level) in offsets.into_iter().zip(rgb) {
                        pixel[offset] = *level;
                    }
                }
            }
        }
        PlanesMut::Planar { data, strides } => {
            for (y, levels) in rows.enumerate() {
                for (x, rgb) in levels.iter().enumerate() {
                    for c in 0..CHANNELS {
                        data[c][y * strides[c] + x] = rgb[c];
                    }
                }
            }
        }
    }
}

/// Restore, normalise and cast (a pass each), then the layout copy.
fn write_tensor(spec: &PackSpec, dst: &mut [u8], scratch: &mut Scratch) {
    scratch.cast.clear();
    if spec.dtype().is_float() {
        scratch.values.clear();
        scratch
            .values
            .extend(scratch.levels.iter().map(|pixel| pixel.map(restore)));
        if let Some(normalize) = spec.normalize() {
            normalize_values(normalize, &mut scratch.values);
        }
    }
    let values = scratch.values.as_flattened();
    match spec.dtype() {
        Dtype::Float32 => scratch.cast.extend(values.iter().flat_map(|v| v.to_ne_bytes())),
        Dtype::Float16 => scratch
            .cast
            .extend(values.iter().flat_map(|v| f16::from_f32(*v).to_ne_bytes())),
        Dtype::Bfloat16 => scratch
            .cast
            .extend(values.iter().flat_map(|v| bf16::from_f32(*v).to_ne_bytes())),
        Dtype::Uint8 => scratch.cast.extend_from_slice(scratch.levels.as_flattened()),
    }
    copy_layout(&scratch.cast, spec, dst);
}

fn normalize_values(normalize: &Normalize, values: &mut [[f32; CHANNELS]]) {
    for pixel in values {
        for ((value, mean), std) in pixel.iter_mut().zip(normalize.mean).zip(normalize.std) {
            *value = (*value - mean) / std;
        }
    }
}

/// Copies channels-last elements to where the layout wants them.
fn copy_layout(elements: &[u8], spec: &PackSpec, dst: &mut [u8]) {
    match spec.layout() {
        Layout::Nhwc => dst.copy_from_slice(elements),
        Layout::Nchw => {
            let size = spec.dtype().size();
            let plane_bytes = dst.len() / CHANNELS;
            for (c, plane) in dst.chunks_exact_mut(plane_bytes).enumerate() {
                let channel = elements.chunks_exact(size).skip(c).step_by(CHANNELS);
                for (to, from) in plane.chunks_exact_mut(size).zip(channel) {
                    to.copy_from_slice(from);
                }
            }
        }
    }
}
