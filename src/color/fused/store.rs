//! From a block's planes into the frame or the tensor.

use super::block::{BLOCK, Bytes, Floats, Rgb};
use super::half::{bf16_bits, f16_bits};
use super::load::ByteRun;
use crate::tensor::{CHANNELS, Dtype, Layout, PackSpec};

/// A [`ByteRun`] that is changed in place.
pub(super) enum ByteRunMut<'a> {
    /// `R G B` (or `B G R`) `R G B …`
    Three { bytes: &'a mut [u8], bgr: bool },
    /// `R G B x …` (or `B G R x`)
    Four { bytes: &'a mut [u8], bgr: bool },
    /// A slice of each plane.
    Planar([&'a mut [u8]; 3]),
}

impl ByteRunMut<'_> {
    /// The same run, for reading.
    #[inline(always)]
    pub(super) fn as_ref(&self) -> ByteRun<'_> {
        match self {
            ByteRunMut::Three { bytes, bgr } => ByteRun::Three { bytes, bgr: *bgr },
            ByteRunMut::Four { bytes, bgr } => ByteRun::Four { bytes, bgr: *bgr },
            ByteRunMut::Planar([r, g, b]) => ByteRun::Planar([r, g, b]),
        }
    }

    /// Stores the first `len <= BLOCK` levels to the pixels from `at` on; a fourth byte keeps its value.
    #[inline(always)]
    pub(super) fn store(&mut self, at: usize, len: usize, levels: &Rgb<Bytes>) {
        match self {
            ByteRunMut::Three { bytes, bgr } => {
                let levels = ends_swapped(*bgr, levels);
                interleave(levels, |level| level, &mut bytes[3 * at..3 * (at + len)]);
            }
            ByteRunMut::Four { bytes, bgr } => {
                let (pixels, _) = bytes[4 * at..4 * (at + len)].as_chunks_mut();
                merge_four(ends_swapped(*bgr, levels), pixels);
            }
            ByteRunMut::Planar(planes) => {
                for (plane, levels) in planes.iter_mut().zip(levels) {
                    plane[at..at + len].copy_from_slice(&levels[..len]);
                }
            }
        }
    }
}

#[inline(always)]
fn ends_swapped(bgr: bool, [r, g, b]: &Rgb<Bytes>) -> [&Bytes; 3] {
    if bgr { [b, g, r] } else { [r, g, b] }
}

/// Where a block's pixels go within a sample's slot.
pub(super) struct Slot<'a> {
    /// The whole slot.
    pub(super) dst: &'a mut [u8],
    /// Pixels of the sample.
    pub(super) pixels: usize,
    /// Whether a pixel's channels lie together.
    layout: Layout,
    dtype: Dtype,
}

impl<'a> Slot<'a> {
    /// `dst` has been checked to have the sample's size.
    pub(super) fn new(dst: &'a mut [u8], pixels: usize, spec: &PackSpec) -> Self {
        Self {
            dst,
            pixels,
            layout: spec.layout(),
            dtype: spec.dtype(),
        }
    }

    /// Stores the first `len <= BLOCK` levels to a uint8 tensor, from pixel `at` of the sample on.
    #[inline(always)]
    pub(super) fn store_levels(&mut self, at: usize, len: usize, levels: &Rgb<Bytes>) {
        let (elements, _) = self.dst.as_chunks_mut::<1>();
        place(
            self.layout,
            elements,
            self.pixels,
            at,
            len,
            levels,
            u8::to_ne_bytes,
        );
    }

    /// Casts and stores the first `len <= BLOCK` numbers to a floating-point tensor, from pixel `at` on.
    #[inline(always)]
    pub(super) fn store_values(&mut self, at: usize, len: usize, values: &Rgb<Floats>) {
        match self.dtype {
            Dtype::Float16 => self.store_half(at, len, values, f16_bits),
            Dtype::Bfloat16 => self.store_half(at, len, values, bf16_bits),
            // A uint8 tensor takes `store_levels`.
            Dtype::Float32 | Dtype::Uint8 => {
                let (elements, _) = self.dst.as_chunks_mut::<4>();
                place(
                    self.layout,
                    elements,
                    self.pixels,
                    at,
                    len,
                    values,
                    f32::to_ne_bytes,
                );
            }
        }
    }

    /// The cast is a loop of its own: mixed with the stores of stride three it would not be vectorised.
    #[inline(always)]
    fn store_half(&mut self, at: usize, len: usize, values: &Rgb<Floats>, cast: impl Fn(f32) -> u16) {
        let mut halves = [[0_u16; BLOCK]; CHANNELS];
        for (halves, values) in halves.iter_mut().zip(values) {
            for (half, value) in halves.iter_mut().zip(values) {
                *half = cast(*value);
            }
        }
        let (elements, _) = self.dst.as_chunks_mut::<2>();
        place(
            self.layout,
            elements,
            self.pixels,
            at,
            len,
            &halves,
            u16::to_ne_bytes,
        );
    }
}

/// Writes planes to where the layout wants them. Elements are byte arrays, because a slot need not be aligned.
#[inline(always)]
fn place<T: Copy, const SIZE: usize>(
    layout: Layout,
    elements: &mut [[u8; SIZE]],
    pixels: usize,
    at: usize,
    len: usize,
    planes: &Rgb<[T; BLOCK]>,
    bytes: impl Fn(T) -> [u8; SIZE] + Copy,
) {
    match layout {
        Layout::Nhwc => {
            let [r, g, b] = planes;
            interleave(
                [r, g, b],
                bytes,
                &mut elements[CHANNELS * at..CHANNELS * (at + len)],
            );
        }
        Layout::Nchw => {
            for (c, plane) in planes.iter().enumerate() {
                let out = &mut elements[c * pixels + at..c * pixels + at + len];
                for (out, value) in out.iter_mut().zip(plane) {
                    *out = bytes(*value);
                }
            }
        }
    }
}

/// Interleaves the first `out.len() / 3` pixels of three planes.
#[inline(always)]
fn interleave<T: Copy, E>([r, g, b]: [&[T; BLOCK]; 3], element: impl Fn(T) -> E + Copy, out: &mut [E]) {
    // The whole block is by far the most frequent case and has a fixed length.
    if let Ok(out) = <&mut [E; CHANNELS * BLOCK]>::try_from(&mut *out) {
        for i in 0..BLOCK {
            out[3 * i] = element(r[i]);
            out[3 * i + 1] = element(g[i]);
            out[3 * i + 2] = element(b[i]);
        }
        return;
    }
    let (pixels, _) = out.as_chunks_mut::<CHANNELS>();
    for (((pixel, r), g), b) in pixels.iter_mut().zip(r).zip(g).zip(b) {
        *pixel = [element(*r), element(*g), element(*b)];
    }
}

/// Replaces the first three bytes of each pixel. Whole words are read and written, which vectorises where stores
/// that leave out every fourth byte do not.
#[inline(always)]
fn merge_four([first, second, third]: [&Bytes; 3], pixels: &mut [[u8; 4]]) {
    for (((pixel, a), b), c) in pixels.iter_mut().zip(first).zip(second).zip(third) {
        let kept = u32::from_le_bytes(*pixel) & 0xff00_0000;
        let word = kept | u32::from(*c) << 16 | u32::from(*b) << 8 | u32::from(*a);
        *pixel = word.to_le_bytes();
    }
}
