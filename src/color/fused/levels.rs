//! Steps 2 to 9 for restored levels (uint8 input), where nothing is NaN, infinite or out of the unit range.
//!
//! The same numbers as in [`crate::color::reference`], found with fewer instructions of the kind that limits a
//! processor here (multiplications, comparisons and float minima share its ports; integer minima have others). Every
//! comment says why the result is the same; the proof is the test over all 2^24 colours.

use crate::color::Jitter;
use crate::color::reference::INV_6;

use super::kernel::rint;

/// The bits of 1.0.
const ONE: i32 = 0x3f80_0000;

/// A float's bits as an integer: for numbers that are not negative the order is the same, and every negative number
/// is a negative integer. So below, a minimum or maximum with at least one number that is not negative is the float
/// one, and `max(0)` makes zero of whatever two negative numbers gave.
#[inline(always)]
fn bits(x: f32) -> i32 {
    x.to_bits() as i32
}

#[inline(always)]
fn float(bits: i32) -> f32 {
    f32::from_bits(bits as u32)
}

/// The smaller of two numbers, where a negative one loses: as unsigned integers the negative numbers are above all
/// others.
#[inline(always)]
fn positive_of(x: f32, y: f32) -> f32 {
    f32::from_bits(x.to_bits().min(y.to_bits()))
}

/// Whether [`pixel`] may take these gains: a hue that [`rint`] can round, factors that are finite and not negative.
#[inline(always)]
pub(super) fn takes(jitter: &Jitter) -> bool {
    let factor = |k: f32| k.is_finite() && k >= 0.0;
    super::kernel::hue_is_tame(jitter) && factor(jitter.ks) && factor(jitter.kv)
}

/// Steps 2 to 9 for one pixel of restored levels. The result is in [0, 1].
#[inline(always)]
pub(super) fn pixel([r, g, b]: [f32; 3], jitter: &Jitter) -> [f32; 3] {
    // 2.
    let (ri, gi, bi) = (bits(r), bits(g), bits(b));
    let maxc = float(ri.max(gi).max(bi));
    let minc = float(ri.min(gi).min(bi));
    let cr = maxc - minc;
    let grey = maxc == minc;

    // 3. and 4. The numerators are selected before they are divided: (0 + bc) - gc, (2 + rc) - bc or (4 + gc) - rc.
    // The two masked terms of the definition that are left out add a zero.
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

    // 5. The quotients are in [0, 1], so h is in [-1, 5] and x in [5/6, 11/6] up to rounding: fmod(x, 1) takes 1 away
    // or nothing, and x - 1 is exact (two floats within a factor of two of each other).
    let x = h * INV_6 + 1.0;
    let h = positive_of(x, x - 1.0);

    // 7. m = x - rint(x) is exact and in [-1/2, 1/2]. If m is negative, m + 1 is the definition's result: for x > 0
    // both are the exact fraction of x (representable), and for x < 0 either m is fmod(x, 1) and this is the
    // definition's own addition, or the definition's addition is exact, too. A zero m is never -0 unless h and dh
    // are, and h is not.
    let x = h + jitter.dh;
    let m = x - rint(x);
    let h = positive_of(m, m + 1.0);
    let s = float(bits(s * jitter.ks).min(ONE));
    let v = float(bits(maxc * jitter.kv).min(ONE));

    // 8. and 9. Every channel is v * (1 - s * k): k is 0 where the definition takes v, 1 for p, f for q and 1 - f for
    // t. k is piecewise linear in h6, and where it is neither 0 nor 1 these give the definition's number: f = h6 - i
    // is exact; for red (sectors 1 and 4) and blue (2 and 5), h6 and the differences below are multiples of 2^-23
    // and of magnitude 2 at most, so nothing rounds; green has 1 - h6 in sector 0, the definition's own subtraction,
    // and the exact h6 - 3 in sector 3. In the other sectors the differences may round, but rounding keeps the order,
    // so they stay on their side of 0 or 1 and the clamp gives the constant. h6 = 6 gives sector 0's k. With s, k and
    // v in [0, 1] the products need no clamp.
    let h6 = h * 6.0;
    let kr = bits(2.0 - (h6 - 3.0).abs());
    let kg = bits(1.0 - h6).max(bits(h6 - 3.0));
    let kb = bits((h6 - 4.0).abs() - 1.0);
    [kr, kg, kb].map(|k| v * (1.0 - s * float(k.clamp(0, ONE))))
}
