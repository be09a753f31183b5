//! From a run of pixels into a block's planes.

use super::block::{BLOCK, Bytes, Floats, Rgb};

/// Pixels of a frame that lie behind each other in memory: a row, or a frame whose rows have no padding.
#[derive(Clone, Copy)]
pub(super) enum ByteRun<'a> {
    /// `R G B` (or `B G R`) `R G B …`
    Three { bytes: &'a [u8], bgr: bool },
    /// `R G B x …` (or `B G R x`)
    Four { bytes: &'a [u8], bgr: bool },
    /// A slice of each plane.
    Planar([&'a [u8]; 3]),
}

impl ByteRun<'_> {
    /// Loads the block of `len <= BLOCK` pixels from pixel `at` on; what is behind them in the planes is unspecified.
    #[inline(always)]
    pub(super) fn load(&self, at: usize, len: usize, out: &mut Rgb<Bytes>) {
        match *self {
            ByteRun::Three { bytes, bgr } => {
                let bytes = &bytes[3 * at..3 * (at + len)];
                with_full_block(bytes, |block| split_three(block, out));
                swap_ends(bgr, out);
            }
            ByteRun::Four { bytes, bgr } => {
                let bytes = &bytes[4 * at..4 * (at + len)];
                with_full_block(bytes, |block| split_four(block, out));
                swap_ends(bgr, out);
            }
            ByteRun::Planar(planes) => {
                for (plane, out) in planes.into_iter().zip(out) {
                    with_full_block(&plane[at..at + len], |block: &[u8; BLOCK]| **out = *block);
                }
            }
        }
    }
}

/// Contiguous float32 pixels.
#[derive(Clone, Copy)]
pub(super) enum FloatRun<'a> {
    /// `R G B R G B …`
    Interleaved(&'a [f32]),
    /// A plane each of R, G, B.
    Planar([&'a [f32]; 3]),
}

impl FloatRun<'_> {
    /// As [`ByteRun::load`].
    #[inline(always)]
    pub(super) fn load(&self, at: usize, len: usize, out: &mut Rgb<Floats>) {
        match *self {
            FloatRun::Interleaved(values) => {
                let values = &values[3 * at..3 * (at + len)];
                with_full_block(values, |block| split_floats(block, out));
            }
            FloatRun::Planar(planes) => {
                for (plane, out) in planes.into_iter().zip(out) {
                    with_full_block(&plane[at..at + len], |block: &[f32; BLOCK]| **out = *block);
                }
            }
        }
    }
}

/// Calls `f` with `items` as an array of a whole block, which has a fixed length for the vectoriser; a short one (the
/// end of a run) is copied in front of zeros first.
#[inline(always)]
fn with_full_block<T: Copy + Default, const N: usize>(items: &[T], f: impl FnOnce(&[T; N])) {
    match items.try_into() {
        Ok(block) => f(block),
        Err(_) => {
            let mut block = [T::default(); N];
            block[..items.len()].copy_from_slice(items);
            f(&block);
        }
    }
}

#[inline(always)]
fn swap_ends(bgr: bool, planes: &mut Rgb<Bytes>) {
    if bgr {
        planes.swap(0, 2);
    }
}

#[inline(always)]
fn split_three(pixels: &[u8; 3 * BLOCK], [r, g, b]: &mut Rgb<Bytes>) {
    for i in 0..BLOCK {
        r[i] = pixels[3 * i];
        g[i] = pixels[3 * i + 1];
        b[i] = pixels[3 * i + 2];
    }
}

#[inline(always)]
fn split_four(pixels: &[u8; 4 * BLOCK], [r, g, b]: &mut Rgb<Bytes>) {
    for i in 0..BLOCK {
        r[i] = pixels[4 * i];
        g[i] = pixels[4 * i + 1];
        b[i] = pixels[4 * i + 2];
    }
}

#[inline(always)]
fn split_floats(pixels: &[f32; 3 * BLOCK], [r, g, b]: &mut Rgb<Floats>) {
    for i in 0..BLOCK {
        r[i] = pixels[3 * i];
        g[i] = pixels[3 * i + 1];
        b[i] = pixels[3 * i + 2];
    }
}
