//! The unit of work: a few pixels, one plane per channel.

/// Pixels of a block. A multiple of every vector width; three planes of float32 are 768 bytes, so all of a block's
/// planes stay in the first-level cache.
pub(super) const BLOCK: usize = 64;

/// One channel of a block as levels.
pub(super) type Bytes = [u8; BLOCK];

/// One channel of a block as numbers.
pub(super) type Floats = [f32; BLOCK];

/// Three channels, R, G, B.
pub(super) type Rgb<T> = [T; 3];

/// A block of levels, all zero.
pub(super) const ZERO_BYTES: Rgb<Bytes> = [[0; BLOCK]; 3];

/// A block of numbers, all zero.
pub(super) const ZERO_FLOATS: Rgb<Floats> = [[0.0; BLOCK]; 3];

/// `2^23`: between it and `2^24` the float32 numbers are the integers, and their low bits are the integer.
const INTEGERS: f32 = (1_u32 << 23) as f32;

/// Levels as numbers.
#[inline(always)]
pub(super) fn widen(levels: &Rgb<Bytes>, out: &mut Rgb<Floats>) {
    for (levels, out) in levels.iter().zip(out) {
        for (level, out) in levels.iter().zip(out) {
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
        for (number, out) in numbers.iter().zip(out) {
            *out = (*number + INTEGERS).to_bits() as u8;
        }
    }
}
