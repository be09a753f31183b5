//! The unit of work: a few pixels, one plane per channel.

use std::ops::{Deref, DerefMut};

/// Pixels of a block. A multiple of every vector width; three planes of float32 are 768 bytes, so all of a block's
/// planes stay in the first-level cache.
pub(super) const BLOCK: usize = 64;

/// One channel of a block.
///
/// Aligned to a cache line, because a 64-byte vector that straddles two lines is read and written at half the speed.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Plane<T>(pub(super) [T; BLOCK]);

impl<T> Deref for Plane<T> {
    type Target = [T; BLOCK];

    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<T> DerefMut for Plane<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

/// One channel of a block as levels.
pub(super) type Bytes = Plane<u8>;

/// One channel of a block as numbers.
pub(super) type Floats = Plane<f32>;

/// Three channels, R, G, B.
pub(super) type Rgb<T> = [T; 3];

/// A block of levels, all zero.
pub(super) const ZERO_BYTES: Rgb<Bytes> = [Plane([0; BLOCK]); 3];

/// A block of numbers, all zero.
pub(super) const ZERO_FLOATS: Rgb<Floats> = [Plane([0.0; BLOCK]); 3];

/// `2^23`: between it and `2^24` the float32 numbers are the integers, and their low bits are the integer.
const INTEGERS: f32 = (1_u32 << 23) as f32;

/// Levels as numbers.
#[inline(always)]
pub(super) fn widen(levels: &Rgb<Bytes>, out: &mut Rgb<Floats>) {
    for (levels, out) in levels.iter().zip(out) {
        for (level, out) in levels.iter().zip(out.iter_mut()) {
            *out = f32::from(*level);
        }
    }
}

/// Integral numbers 0.0..=255.0 as levels.
///
/// Adding `2^23` is exact for them and leaves the integer in the low byte of the bits, which costs an addition where
/// Rust's saturating cast costs several instructions.
#[inline(always)]
pub(super) fn narrow(numbers: &Rgb<Floats>, out: &mut Rgb<Bytes>) {
    for (numbers, out) in numbers.iter().zip(out) {
        for (number, out) in numbers.iter().zip(out.iter_mut()) {
            *out = (*number + INTEGERS).to_bits() as u8;
        }
    }
}
