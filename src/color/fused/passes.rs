//! The loops over a frame's blocks: load, compute, store.

use super::backend::Task;
use super::block::{BLOCK, Bytes, Floats, Rgb, ZERO_BYTES, ZERO_FLOATS, narrow, widen};
use super::kernel;
use super::load::{ByteRun, FloatRun};
use super::store::{ByteRunMut, Slot};
use crate::color::frame::{FloatOrder, Planes, PlanesMut};
use crate::color::{FloatFrame, FrameMut, FrameRef, Jitter, PixelFormat};
use crate::tensor::{CHANNELS, PackSpec};

/// A uint8 frame, jittered in place.
pub(super) struct JitterFrame<'t, 'f> {
    pub(super) frame: &'t mut FrameMut<'f>,
    pub(super) jitter: &'t Jitter,
}

/// A uint8 frame into a sample's slot, whose size has been checked.
pub(super) struct PackBytes<'t, 'f> {
    pub(super) frame: &'t FrameRef<'f>,
    pub(super) jitter: Option<&'t Jitter>,
    pub(super) spec: &'t PackSpec,
    pub(super) dst: &'t mut [u8],
}

/// A float32 image into a sample's slot, whose size has been checked.
pub(super) struct PackFloats<'t, 'f> {
    pub(super) src: &'t FloatFrame<'f>,
    pub(super) jitter: Option<&'t Jitter>,
    pub(super) spec: &'t PackSpec,
    pub(super) dst: &'t mut [u8],
}

impl Task for JitterFrame<'_, '_> {
    #[inline(always)]
    fn run(self) {
        let Self { frame, jitter } = self;
        let mut bytes = ZERO_BYTES;
        let mut levels = ZERO_FLOATS;
        let (runs, len) = runs_of(&frame.as_ref());
        for index in 0..runs {
            let mut run = run_of_mut(frame, index, len);
            for (at, len) in blocks(len) {
                run.as_ref().load(at, len, &mut bytes);
                jitter_bytes(&bytes, jitter, &mut levels);
                narrow(&levels, &mut bytes);
                run.store(at, len, &bytes);
            }
        }
    }
}

impl Task for PackBytes<'_, '_> {
    #[inline(always)]
    fn run(self) {
        let Self {
            frame,
            jitter,
            spec,
            dst,
        } = self;
        let mut slot = Slot::new(dst, frame.width * frame.height, spec);
        let mut bytes = ZERO_BYTES;
        let mut levels = ZERO_FLOATS;
        let (runs, len) = runs_of(frame);
        for index in 0..runs {
            let run = run_of(frame, index, len);
            let first = index * len;
            for (at, len) in blocks(len) {
                run.load(at, len, &mut bytes);
                match jitter {
                    Some(jitter) => jitter_bytes(&bytes, jitter, &mut levels),
                    // Nothing changes the levels: a uint8 tensor is a copy of them.
                    None if !spec.dtype().is_float() => {
                        slot.store_levels(first + at, len, &bytes);
                        continue;
                    }
                    None => widen(&bytes, &mut levels),
                }
                finish(&mut levels, spec, &mut slot, first + at, len);
            }
        }
    }
}

impl Task for PackFloats<'_, '_> {
    #[inline(always)]
    fn run(self) {
        let Self {
            src,
            jitter,
            spec,
            dst,
        } = self;
        let pixels = src.width * src.height;
        let mut slot = Slot::new(dst, pixels, spec);
        let mut values = ZERO_FLOATS;
        let mut levels = ZERO_FLOATS;
        let run = match src.order {
            FloatOrder::Hwc => FloatRun::Interleaved(src.data),
            FloatOrder::Chw => FloatRun::Planar([0, 1, 2].map(|c| &src.data[c * pixels..(c + 1) * pixels])),
        };
        for (at, len) in blocks(pixels) {
            run.load(at, len, &mut values);
            match jitter {
                Some(jitter) => kernel::jitter::<true>(&values, jitter, &mut levels),
                None => kernel::quantize(&values, &mut levels),
            }
            finish(&mut levels, spec, &mut slot, at, len);
        }
    }
}

/// Steps 1 to 10 for a block of levels.
#[inline(always)]
fn jitter_bytes(bytes: &Rgb<Bytes>, jitter: &Jitter, levels: &mut Rgb<Floats>) {
    let mut values = ZERO_FLOATS;
    widen(bytes, &mut values);
    kernel::restore(&mut values);
    kernel::jitter::<false>(&values, jitter, levels);
}

/// Step 11 for a block of levels, and the store.
#[inline(always)]
fn finish(levels: &mut Rgb<Floats>, spec: &PackSpec, slot: &mut Slot<'_>, at: usize, len: usize) {
    if !spec.dtype().is_float() {
        let mut bytes = ZERO_BYTES;
        narrow(levels, &mut bytes);
        slot.store_levels(at, len, &bytes);
        return;
    }
    kernel::restore(levels);
    if let Some(normalize) = spec.normalize() {
        kernel::normalize(levels, normalize);
    }
    slot.store_values(at, len, levels);
}

/// Start and length of the blocks of a run; only the last one can be short.
#[inline(always)]
fn blocks(len: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..len).step_by(BLOCK).map(move |at| (at, BLOCK.min(len - at)))
}

/// How many runs a frame has and how many pixels each: one, when its rows have no padding, else one per row.
fn runs_of(frame: &FrameRef<'_>) -> (usize, usize) {
    let (width, height) = (frame.width, frame.height);
    let contiguous = match frame.planes {
        Planes::Packed { format, stride, .. } => stride == width * format.pixel_stride(),
        Planes::Planar { strides, .. } => strides == [width; CHANNELS],
    };
    if contiguous {
        (1, width * height)
    } else {
        (height, width)
    }
}

/// Run `index` of `len` pixels. (With one run the strides do not matter.)
#[inline(always)]
fn run_of<'a>(frame: &FrameRef<'a>, index: usize, len: usize) -> ByteRun<'a> {
    match frame.planes {
        Planes::Packed { format, data, stride } => {
            let bytes = &data[index * stride..][..len * format.pixel_stride()];
            if format.pixel_stride() == 3 {
                ByteRun::Three {
                    bytes,
                    bgr: is_bgr(format),
                }
            } else {
                ByteRun::Four {
                    bytes,
                    bgr: is_bgr(format),
                }
            }
        }
        Planes::Planar { data, strides } => {
            ByteRun::Planar([0, 1, 2].map(|c| &data[c][index * strides[c]..][..len]))
        }
    }
}

/// As [`run_of`], for writing.
#[inline(always)]
fn run_of_mut<'a>(frame: &'a mut FrameMut<'_>, index: usize, len: usize) -> ByteRunMut<'a> {
    match &mut frame.planes {
        PlanesMut::Packed { format, data, stride } => {
            let bytes = &mut data[index * *stride..][..len * format.pixel_stride()];
            if format.pixel_stride() == 3 {
                ByteRunMut::Three {
                    bytes,
                    bgr: is_bgr(*format),
                }
            } else {
                ByteRunMut::Four {
                    bytes,
                    bgr: is_bgr(*format),
                }
            }
        }
        PlanesMut::Planar {
            data: [r, g, b],
            strides,
        } => {
            let [sr, sg, sb] = strides.map(|stride| index * stride);
            ByteRunMut::Planar([&mut r[sr..][..len], &mut g[sg..][..len], &mut b[sb..][..len]])
        }
    }
}

fn is_bgr(format: PixelFormat) -> bool {
    format.offsets() == [2, 1, 0]
}
