//! The definition of the arithmetic, one pixel at a time.
//!
//! It is torchvision's (v1) max/min/sector HSV jitter, evaluated in the order of PyTorch's eager mode on CUDA, then
//! quantize and restore. Step numbers are those of the project's design; the words in quotes are what each step is in
//! torchvision's `_rgb2hsv`, `_hsv2rgb` and in PyTorch. Everything is float32 with IEEE rounding to nearest: no
//! contraction to fused multiply-add (Rust never contracts), no fast math, no approximate result.
//!
//! [`crate::color::native`] is made of these functions; [`crate::color::fused`] computes the same bits faster, and
//! every claim of equality there is tested against this file. Step 12 (max, min and clamp propagate NaN) is in
//! [`maximum`], [`minimum`] and `f32::clamp`.

use super::Jitter;

/// `f32(1/255)`. PyTorch's CUDA kernels turn the division by a scalar constant into this multiplication.
pub const INV_255: f32 = 1.0 / 255.0;

/// `f32(1/6)`, for the same reason.
pub const INV_6: f32 = 1.0 / 6.0;

/// The larger of two numbers; NaN if either is NaN, as `torch.max` along a dimension.
#[inline(always)]
pub fn maximum(a: f32, b: f32) -> f32 {
    if a > b || a.is_nan() { a } else { b }
}

/// The smaller of two numbers; NaN if either is NaN, as `torch.min` along a dimension.
#[inline(always)]
pub fn minimum(a: f32, b: f32) -> f32 {
    if a < b || a.is_nan() { a } else { b }
}

/// Steps 2 to 9: an RGB pixel, jittered in HSV.
///
/// The input is meant to be in the unit range but may be anything; what the steps make of NaN, infinities and numbers
/// out of range is part of the definition. The output lies in [0, 1] or is NaN.
///
/// ```
/// use epochfeed::color::{Gains, Jitter, reference::hsv_jitter};
///
/// let no_colour = Jitter::from(Gains::new(0.0, -1.0, 0.0)?);
/// assert_eq!(hsv_jitter([0.25, 0.5, 0.0], &no_colour), [0.5; 3]);
/// # Ok::<(), epochfeed::color::GainsError>(())
/// ```
#[inline]
pub fn hsv_jitter([r, g, b]: [f32; 3], jitter: &Jitter) -> [f32; 3] {
    // 2. "maxc = torch.max(img, dim=-3).values", "minc = torch.min(…)", "eqc = maxc == minc", "cr = maxc - minc"
    let maxc = maximum(maximum(r, g), b);
    let minc = minimum(minimum(r, g), b);
    let cr = maxc - minc;
    let eqc = maxc == minc;

    // 3. "s = cr / torch.where(eqc, ones, maxc)", "cr_divisor = torch.where(eqc, ones, cr)",
    //    "rc = (maxc - r) / cr_divisor" and likewise gc, bc: tensor by tensor, so true divisions.
    let s = cr / if eqc { 1.0 } else { maxc };
    let d = if eqc { 1.0 } else { cr };
    let rc = (maxc - r) / d;
    let gc = (maxc - g) / d;
    let bc = (maxc - b) / d;

    // 4. "hr = (maxc == r) * (bc - gc)", "hg = ((maxc == g) & (maxc != r)) * (2.0 + rc - bc)",
    //    "hb = ((maxc != g) & (maxc != r)) * (4.0 + gc - rc)", "h = hr + hg + hb". The masks are multiplied, not
    //    selected: 0 × NaN stays NaN.
    let mask = |condition: bool| f32::from(u8::from(condition));
    let hr = mask(maxc == r) * (bc - gc);
    let hg = mask(maxc == g && maxc != r) * ((2.0 + rc) - bc);
    let hb = mask(maxc != g && maxc != r) * ((4.0 + gc) - rc);
    let h = (hr + hg) + hb;

    // 5. "h = torch.fmod(h / 6.0 + 1.0, 1.0)"
    let h = fmod_1(h * INV_6 + 1.0);

    // 7. "h = (h + hue_factor) % 1.0", "s = (s * saturation_factor).clamp(0, 1)", "v = (v * value_factor).clamp(0, 1)"
    let h = remainder_1(h + jitter.dh);
    let s = (s * jitter.ks).clamp(0.0, 1.0);
    let v = (maxc * jitter.kv).clamp(0.0, 1.0);

    // 8. "i = torch.floor(h * 6.0)", "f = h * 6.0 - i", "i = i.to(torch.int32) % 6". h can have been rounded to
    //    exactly 1, which is sector 6, so 0; the saturating cast makes sector 0 of NaN.
    let h6 = h * 6.0;
    let i = h6.floor();
    let f = h6 - i;
    let sector = (i as i32) % 6;

    // 9. "p = torch.clamp(v * (1.0 - s), 0.0, 1.0)", "q = torch.clamp(v * (1.0 - s * f), …)",
    //    "t = torch.clamp(v * (1.0 - s * (1.0 - f)), …)", and the sector chooses (torchvision: a mask and an einsum).
    let p = (v * (1.0 - s)).clamp(0.0, 1.0);
    let q = (v * (1.0 - s * f)).clamp(0.0, 1.0);
    let t = (v * (1.0 - s * (1.0 - f))).clamp(0.0, 1.0);
    match sector {
        0 => [v, t, p],
        1 => [q, v, p],
        2 => [p, v, t],
        3 => [p, q, v],
        4 => [t, p, v],
        _ => [v, p, q],
    }
}

/// Step 10: a number to its level, `clamp(rint(x * 255), 0, 255)`, ties to even; NaN becomes 0.
///
/// "(x * 255).round().clamp(0, 255).to(torch.uint8)"
#[inline(always)]
pub fn quantize(x: f32) -> u8 {
    // `as u8` saturates at both ends and makes 0 of NaN, which is the clamp of the step.
    (x * 255.0).round_ties_even() as u8
}

/// Steps 1 and 11: a level to its number, "u.to(torch.float32) / 255".
#[inline(always)]
pub fn restore(level: u8) -> f32 {
    f32::from(level) * INV_255
}

/// Steps 1 to 10 for a uint8 pixel.
#[inline]
pub fn jitter_u8(rgb: [u8; 3], jitter: &Jitter) -> [u8; 3] {
    jitter_f32(rgb.map(restore), jitter)
}

/// Steps 2 to 10 for a float32 pixel.
#[inline]
pub fn jitter_f32(rgb: [f32; 3], jitter: &Jitter) -> [u8; 3] {
    hsv_jitter(rgb, jitter).map(quantize)
}

/// `fmod(x, 1)`: what is left of `x` after its integer part, with the sign of `x`; NaN for an infinity.
///
/// The subtraction is exact, because the fraction of a float32 fits into its own significand, so this equals the C
/// function in all but the sign of a zero, which no later step tells apart.
#[inline(always)]
fn fmod_1(x: f32) -> f32 {
    x - x.trunc()
}

/// Python's `x % 1.0`: `fmod`, plus 1 when that is negative. The addition rounds, so the result can be 1.
#[inline(always)]
fn remainder_1(x: f32) -> f32 {
    let m = fmod_1(x);
    if m < 0.0 { m + 1.0 } else { m }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used)]
mod tests {
    use super::*;

    #[test]
    fn fractions_equal_the_c_functions() {
        // Every exponent, a few significands, both signs; `%` is fmodf.
        for exponent in 0..=255_u32 {
            for significand in [0, 1, 0x2a_aaaa, 0x40_0000, 0x55_5555, 0x7f_ffff] {
                for sign in [0, 1 << 31] {
                    let x = f32::from_bits(sign | exponent << 23 | significand);
                    let (got, want) = (fmod_1(x), x % 1.0);
                    assert!(got == want || got.is_nan() && want.is_nan(), "{x:e}");
                    let want = if want != 0.0 && want < 0.0 {
                        want + 1.0
                    } else {
                        want
                    };
                    let got = remainder_1(x);
                    assert!(got == want || got.is_nan() && want.is_nan(), "{x:e}");
                }
            }
        }
    }

    #[test]
    fn quantize_rounds_ties_to_even_and_clamps() {
        // Multiples of 1/510 that hit a tie exactly after the multiplication by 255.
        for (x, level) in [(0.5_f32, 128), (0.5 / 255.0, 0), (1.5 / 255.0, 2), (1.0, 255)] {
            assert_eq!(quantize(x), level, "{x}");
        }
        for (x, level) in [
            (-1.0, 0),
            (2.0, 255),
            (f32::NAN, 0),
            (f32::INFINITY, 255),
            (f32::NEG_INFINITY, 0),
        ] {
            assert_eq!(quantize(x), level, "{x}");
        }
    }

    #[test]
    fn every_level_survives_restore_and_quantize() {
        for level in 0..=255 {
            assert_eq!(quantize(restore(level)), level);
        }
    }
}
