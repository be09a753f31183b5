//! The arithmetic of a block, without branches.
//!
//! Each function equals the steps of [`crate::color::reference`] bit for bit; where it looks different, the comment
//! says why it is the same. "Level" is an integral float32 from 0 to 255.

use super::block::{BLOCK, Floats, Rgb};
use crate::color::Jitter;
use crate::color::reference::{self, INV_6, INV_255};
use crate::tensor::Normalize;

/// `1.5 * 2^23`. For `|x| <= 2^22`, `x + ROUND` lies between `2^23` and `2^24`, where the float32 numbers are the
/// integers; so the addition rounds `x` to an integer, ties to even, and the subtraction is exact.
const ROUND: f32 = 12_582_912.0;

/// Up to here a hue gain keeps `h + dh` within what [`ROUND`] rounds.
const TAME_HUE: f32 = 1_048_576.0;

/// `rint(x)` for `|x| <= 2^22`; NaN stays NaN.
#[inline(always)]
fn rint(x: f32) -> f32 {
    (x + ROUND) - ROUND
}

/// `clamp(x, 0, 1)`; NaN stays NaN. Written so that each line is one `maxps`/`minps`, which return their second
/// operand when the operands do not compare.
#[inline(always)]
fn unit(x: f32) -> f32 {
    let x = if 0.0 > x { 0.0 } else { x };
    if 1.0 < x { 1.0 } else { x }
}

/// As [`unit`], for a number that is not NaN or whose NaN shall become 0.
#[inline(always)]
fn unit_or_zero(x: f32) -> f32 {
    let x = if x > 0.0 { x } else { 0.0 };
    if x < 1.0 { x } else { 1.0 }
}

/// As [`unit`], for a NaN that shall become 1.
#[inline(always)]
fn unit_or_one(x: f32) -> f32 {
    let x = if x < 1.0 { x } else { 1.0 };
    if x > 0.0 { x } else { 0.0 }
}

/// Steps 2 to 10 for a block: values in, levels out.
///
/// `ANY` says whether the values may be anything (float32 input) or are restored levels (uint8 input), for which
/// nothing below can be NaN or out of range. Gains that are legal but beyond every use (more than 2^20 turns, or a
/// factor that overflows float32) take the definition itself, so that the common case may rely on finite factors.
#[inline(always)]
pub(super) fn jitter<const ANY: bool>(values: &Rgb<Floats>, jitter: &Jitter, levels: &mut Rgb<Floats>) {
    let tame = jitter.dh.abs() <= TAME_HUE && jitter.ks.is_finite() && jitter.kv.is_finite();
    if !tame {
        return jitter_by_definition(values, jitter, levels);
    }
    let [r, g, b] = values;
    let [out_r, out_g, out_b] = levels;
    for i in 0..BLOCK {
        let [r, g, b] = pixel::<ANY>([r[i], g[i], b[i]], jitter);
        out_r[i] = level::<ANY>(r);
        out_g[i] = level::<ANY>(g);
        out_b[i] = level::<ANY>(b);
    }
}

#[cold]
fn jitter_by_definition(values: &Rgb<Floats>, jitter: &Jitter, levels: &mut Rgb<Floats>) {
    let [r, g, b] = values;
    for i in 0..BLOCK {
        let rgb = reference::jitter_f32([r[i], g[i], b[i]], jitter);
        for (plane, level) in levels.iter_mut().zip(rgb) {
            plane[i] = f32::from(level);
        }
    }
}

/// Steps 2 to 9 for one pixel.
#[inline(always)]
fn pixel<const ANY: bool>([r, g, b]: [f32; 3], jitter: &Jitter) -> [f32; 3] {
    // 2.
    let (maxc, minc) = if ANY {
        (
            reference::maximum(reference::maximum(r, g), b),
            reference::minimum(reference::minimum(r, g), b),
        )
    } else {
        let max = if r > g { r } else { g };
        let min = if r < g { r } else { g };
        (if max > b { max } else { b }, if min < b { min } else { b })
    };
    let cr = maxc - minc;
    let grey = maxc == minc;

    // 3. and 4. Two of the three quotients are used, so the numerators are selected before they are divided:
    // (0 + bc) - gc, (2 + rc) - bc or (4 + gc) - rc. Selecting equals the sum of masked terms: two terms are a zero
    // times a number in [-1, 5], which adds nothing (the sign of a zero hue means nothing to step 5), unless a
    // quotient is NaN. NaN comes from a NaN or infinite channel only: if the maximum is infinite or NaN every
    // quotient is NaN; if it is finite and another channel is -inf, that channel's own quotient is NaN and it is one
    // of the two that are used (the quotient left out is the maximum's own). So NaN in the sum is NaN here.
    let s = cr / if grey { 1.0 } else { maxc };
    let d = if grey { 1.0 } else { cr };
    let (dr, dg, db) = (maxc - r, maxc - g, maxc - b);
    let is_r = maxc == r;
    let is_g = maxc == g;
    let offset = if is_r {
        0.0
    } else if is_g {
        2.0
    } else {
        4.0
    };
    let first = if is_r {
        db
    } else if is_g {
        dr
    } else {
        dg
    };
    let second = if is_r {
        dg
    } else if is_g {
        db
    } else {
        dr
    };
    let h = (offset + first / d) - second / d;

    // 5. The quotients are in [0, 1], so h is in [-1, 5], and x in [5/6, 11/6] up to rounding: fmod(x, 1) takes 1 away
    // or nothing. Exactly: the difference of two floats within a factor of two has no rounding.
    let x = h * INV_6 + 1.0;
    let h = if x >= 1.0 { x - 1.0 } else { x };

    // 7. With n = rint(x), the exact x - n is fmod(x, 1) when that is below one half in magnitude, and one away
    // from it, exactly, when not: then adding 1 to the negative one gives fmod back (it is representable), and for the
    // positive one of a negative x, `fmod + 1` is the same exact number. So all that rounds is the one addition
    // that rounds in the definition.
    let x = h + jitter.dh;
    let m = x - rint(x);
    let h = if m < 0.0 { m + 1.0 } else { m };
    let s = unit(s * jitter.ks);
    let v = unit(maxc * jitter.kv);

    // 8. and 9. Every channel is v * (1 - s * k): k is 0 where the definition takes v, 1 for p, f for q and 1 - f for
    // t. k is a piecewise linear function of h6, and computing its pieces from h6 directly gives the same numbers: f
    // = h6 - i is exact (Sterbenz' lemma), 1 - f is exact in the sectors 2 and 4, where f is a multiple of 2^-22,
    // and in sector 0, where f = h6, 1 - h6 is the definition's own subtraction. h6 = 6 gives sector 0's k. For s, k
    // and v in [0, 1] the products need no clamp.
    let h6 = h * 6.0;
    let (rising, falling) = (h6 - 1.0, 5.0 - h6);
    let kr = unit_or_zero(if rising < falling { rising } else { falling });
    let (falling, rising) = (1.0 - h6, h6 - 3.0);
    let kg = unit(if falling > rising { falling } else { rising });
    let (falling, rising) = (3.0 - h6, h6 - 5.0);
    let kb = unit_or_one(if falling > rising { falling } else { rising });
    let rgb = [kr, kg, kb].map(|k| v * (1.0 - s * k));
    if !ANY {
        return rgb;
    }
    // A NaN hue is sector 0 with f NaN: (v, NaN, p); above it made k (0, NaN, 1). A NaN s does not reach v in the
    // definition, and 0 * NaN would, so v is selected by sector.
    let v_is_r = !(h6 >= 1.0 && h6 < 5.0);
    let v_is_g = h6 >= 1.0 && h6 < 3.0;
    let v_is_b = h6 >= 3.0 && h6 < 5.0;
    [
        if v_is_r { v } else { rgb[0] },
        if v_is_g { v } else { rgb[1] },
        if v_is_b { v } else { rgb[2] },
    ]
}

/// Step 10 for a number in [0, 1], or NaN where `ANY`.
#[inline(always)]
fn level<const ANY: bool>(x: f32) -> f32 {
    let x = x * 255.0;
    // 255 * 1 is the largest product, so only NaN needs a hand: it does not compare.
    rint(if ANY && !(x > 0.0) { 0.0 } else { x })
}

/// Step 10 for a block of any numbers.
#[inline(always)]
pub(super) fn quantize(values: &Rgb<Floats>, levels: &mut Rgb<Floats>) {
    for (values, levels) in values.iter().zip(levels) {
        for (value, level) in values.iter().zip(levels) {
            let x = *value * 255.0;
            // Clamping to integers before rounding equals clamping after it; NaN becomes 0 in the first line.
            let x = if x > 0.0 { x } else { 0.0 };
            *level = rint(if x < 255.0 { x } else { 255.0 });
        }
    }
}

/// Steps 1 and 11: levels to numbers, in place.
#[inline(always)]
pub(super) fn restore(levels: &mut Rgb<Floats>) {
    for value in levels.as_flattened_mut() {
        *value *= INV_255;
    }
}

/// Step 11's `(y - mean) / std`, in place.
#[inline(always)]
pub(super) fn normalize(values: &mut Rgb<Floats>, normalize: &Normalize) {
    for ((values, mean), std) in values.iter_mut().zip(normalize.mean).zip(normalize.std) {
        for value in values {
            *value = (*value - mean) / std;
        }
    }
}
