//! The arithmetic of a block, without branches.
//!
//! Each function equals the steps of [`crate::color::reference`] bit for bit; where it looks different, the comment
//! says why it is the same. "Level" is an integral float32 from 0 to 255.

use super::block::{BLOCK, Bytes, Floats, Rgb, ZERO_FLOATS, widen};
use super::levels;
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
pub(super) fn rint(x: f32) -> f32 {
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

/// Whether `h + dh` stays within what [`rint`] rounds.
#[inline(always)]
pub(super) fn hue_is_tame(jitter: &Jitter) -> bool {
    jitter.dh.abs() <= TAME_HUE
}

/// Steps 1 to 10 for a block of uint8 input: levels in, levels out; with `RESTORE` also step 11's multiplication.
///
/// Gains that are legal but beyond every use (a negative factor, a million turns) take the definition itself, pixel
/// by pixel, so that the common case may rely on what they are.
#[inline(always)]
pub(super) fn jitter_levels<const RESTORE: bool>(bytes: &Rgb<Bytes>, jitter: &Jitter, out: &mut Rgb<Floats>) {
    if !levels::takes(jitter) {
        let mut values = ZERO_FLOATS;
        widen(bytes, &mut values);
        restore(&mut values);
        jitter_by_definition(&values, jitter, out);
        if RESTORE {
            restore(out);
        }
        return;
    }
    let [r, g, b] = bytes;
    let [out_r, out_g, out_b] = out;
    for i in 0..BLOCK {
        let rgb = levels::pixel([r[i], g[i], b[i]].map(reference::restore), jitter);
        // 10. The products are in [0, 255].
        let [r, g, b] = rgb
            .map(|x| rint(x * 255.0))
            .map(|level| if RESTORE { level * INV_255 } else { level });
        (out_r[i], out_g[i], out_b[i]) = (r, g, b);
    }
}

/// Steps 2 to 10 for a block of any numbers (float32 input): values in, levels out.
///
/// As with [`jitter_levels`], gains beyond every use (a factor that overflows float32) take the definition.
#[inline(always)]
pub(super) fn jitter_any(values: &Rgb<Floats>, jitter: &Jitter, out: &mut Rgb<Floats>) {
    if !(hue_is_tame(jitter) && jitter.ks.is_finite() && jitter.kv.is_finite()) {
        return jitter_by_definition(values, jitter, out);
    }
    let [r, g, b] = values;
    let [out_r, out_g, out_b] = out;
    for i in 0..BLOCK {
        let rgb = pixel([r[i], g[i], b[i]], jitter);
        // 10. The products are in [0, 255] or NaN, which does not compare and becomes 0.
        let [r, g, b] = rgb
            .map(|x| x * 255.0)
            .map(|x| rint(if x > 0.0 { x } else { 0.0 }));
        (out_r[i], out_g[i], out_b[i]) = (r, g, b);
    }
}

/// Rare enough that it need not be compiled for every instruction set.
#[cold]
#[inline(never)]
fn jitter_by_definition(values: &Rgb<Floats>, jitter: &Jitter, out: &mut Rgb<Floats>) {
    let [r, g, b] = values;
    for i in 0..BLOCK {
        let rgb = reference::jitter_f32([r[i], g[i], b[i]], jitter);
        for (plane, level) in out.iter_mut().zip(rgb) {
            plane[i] = f32::from(level);
        }
    }
}

/// Steps 2 to 9 for one pixel of any numbers. The result is in [0, 1] or NaN.
#[inline(always)]
fn pixel([r, g, b]: [f32; 3], jitter: &Jitter) -> [f32; 3] {
    // 2.
    let maxc = reference::maximum(reference::maximum(r, g), b);
    let minc = reference::minimum(reference::minimum(r, g), b);
    let cr = maxc - minc;
    let grey = maxc == minc;

    // 3. and 4. As in `levels::pixel`, the numerators are selected before they are divided. The definition also
    // adds the other masked terms, which are a zero times a number in [-1, 5], or NaN if a quotient is NaN. The same
    // NaN appears here: an infinite or NaN maximum makes every quotient NaN; under a finite one, a quotient is NaN
    // only where it is inf / inf (a channel at -inf, or a range that overflows), for the channel farthest from the
    // maximum, and the quotient left out is the maximum's own.
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

    // 5. and 7. As in `levels::pixel`: the quotients are in [0, 1] or NaN, which passes through.
    let x = h * INV_6 + 1.0;
    let h = if x >= 1.0 { x - 1.0 } else { x };
    let x = h + jitter.dh;
    let m = x - rint(x);
    let h = if m < 0.0 { m + 1.0 } else { m };
    let s = unit(s * jitter.ks);
    let v = unit(maxc * jitter.kv);

    // 8. and 9. As in `levels::pixel`. A NaN hue is sector 0 with f NaN, (v, NaN, p): k is (0, NaN, 1). A NaN s (a
    // zero factor times an infinite saturation) does not reach v in the definition, and 0 * NaN would; so v is
    // selected by sector.
    let h6 = h * 6.0;
    let kr = unit_or_zero(2.0 - (h6 - 3.0).abs());
    let (falling, rising) = (1.0 - h6, h6 - 3.0);
    let kg = unit(if falling > rising { falling } else { rising });
    let kb = unit_or_one((h6 - 4.0).abs() - 1.0);
    let not_v = |k: f32| v * (1.0 - s * k);
    [
        if (1.0..5.0).contains(&h6) { not_v(kr) } else { v },
        if (1.0..3.0).contains(&h6) { v } else { not_v(kg) },
        if (3.0..5.0).contains(&h6) { v } else { not_v(kb) },
    ]
}

/// Step 10 for a block of any numbers.
#[inline(always)]
pub(super) fn quantize(values: &Rgb<Floats>, levels: &mut Rgb<Floats>) {
    for (values, levels) in values.iter().zip(levels) {
        for (value, level) in values.iter().zip(levels.iter_mut()) {
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
    for levels in levels {
        for value in levels.iter_mut() {
            *value *= INV_255;
        }
    }
}

/// Step 11's `(y - mean) / std`, in place.
#[inline(always)]
pub(super) fn normalize(values: &mut Rgb<Floats>, normalize: &Normalize) {
    for ((values, mean), std) in values.iter_mut().zip(normalize.mean).zip(normalize.std) {
        for value in values.iter_mut() {
            *value = (*value - mean) / std;
        }
    }
}
