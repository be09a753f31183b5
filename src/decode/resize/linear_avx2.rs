//! The inner loops of [`linear`](super::linear) for processors with AVX2. Same arithmetic, same bytes.

use std::arch::x86_64::*;

use super::linear::{Column, Passes, horizontal_scalar, vertical_body};

/// Only to be used where AVX2 was detected: [`Passes::best`] does.
pub(super) const PASSES: Passes = Passes { horizontal, vertical };

/// See [`horizontal_scalar`].
fn horizontal(src: &[u8], columns: &[Column], out: &mut [i16]) {
    // SAFETY: `PASSES` is only chosen after AVX2 was detected.
    unsafe { horizontal_avx2(src, columns, out) }
}

/// See [`vertical_body`].
fn vertical(upper: &[i16], lower: &[i16], weights: [i16; 2], out: &mut [u8]) {
    // SAFETY: `PASSES` is only chosen after AVX2 was detected.
    unsafe { vertical_avx2(upper, lower, weights, out) }
}

#[target_feature(enable = "avx2")]
fn vertical_avx2(upper: &[i16], lower: &[i16], weights: [i16; 2], out: &mut [u8]) {
    vertical_body(upper, lower, weights, out);
}

/// Two destination pixels a step, one in each 128-bit half: their six source bytes are spread to the pairs
/// (p0, p1) of each channel as 16-bit numbers, and one multiply-add gives the three sums.
#[target_feature(enable = "avx2")]
fn horizontal_avx2(src: &[u8], columns: &[Column], out: &mut [i16]) {
    // Eight bytes are loaded for six, and four sums stored for three: the last columns go the plain way.
    let loadable = columns
        .iter()
        .rev()
        .take_while(|c| c.offset as usize + 8 > src.len())
        .count();
    let (fast, _) = columns.as_chunks::<2>();
    let steps = ((columns.len() - loadable.max(1)) / 2).min(fast.len());
    let spread = _mm256_setr_epi8(
        0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, //
        0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1,
    );
    let load = |c: &Column| match src.get(c.offset as usize..).and_then(<[u8]>::first_chunk::<8>) {
        Some(bytes) => i64::from_le_bytes(*bytes),
        None => 0,
    };
    let weights = |c: &Column| i32::from(c.weights[0] as u16) | (i32::from(c.weights[1]) << 16);
    for (index, [a, b]) in fast[..steps].iter().enumerate() {
        let bytes = _mm256_set_epi64x(0, load(b), 0, load(a));
        let pairs = _mm256_shuffle_epi8(bytes, spread);
        let weights = _mm256_set_m128i(_mm_set1_epi32(weights(b)), _mm_set1_epi32(weights(a)));
        let sums = _mm256_srai_epi32::<4>(_mm256_madd_epi16(pairs, weights));
        let packed = _mm256_packs_epi32(sums, sums);
        let out = &mut out[index * 6..];
        store(&mut out[..4], _mm256_extract_epi64::<0>(packed));
        store(&mut out[3..7], _mm256_extract_epi64::<2>(packed));
    }
    horizontal_scalar(src, &columns[steps * 2..], &mut out[steps * 6..]);
}

/// Writes four 16-bit numbers; the fourth is overwritten by the next store.
#[inline(always)]
fn store(out: &mut [i16], four: i64) {
    for (out, bytes) in out.iter_mut().zip(four.to_le_bytes().as_chunks::<2>().0) {
        *out = i16::from_le_bytes(*bytes);
    }
}
