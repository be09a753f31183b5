// Steps 2 to 10 in the fewest instructions: the numbers of definition.cuh bit for bit, found differently.
//
// On the way from bytes to bytes this is bound by arithmetic, not by memory, so instructions count. Additions,
// multiplications and fused ones have the full rate; comparisons, selections, minima and everything on integers have
// half of it, reciprocals an eighth. Hence clamps that are flags of an instruction, predicated additions in place of
// selections, and as few divisions as possible: two, not four.

#pragma once

#include "definition.cuh"
#include "gains.cuh"

/// The larger of two numbers, of which one that is negative or NaN wins.
__device__ __forceinline__ float larger(float a, float b) {
    // As unsigned integers the numbers that are not negative have their own order, and the others are above them all.
    return __uint_as_float(max(__float_as_uint(a), __float_as_uint(b)));
}

/// The smaller of two numbers, of which one that is negative or NaN loses.
__device__ __forceinline__ float positive_of(float a, float b) {
    return __uint_as_float(min(__float_as_uint(a), __float_as_uint(b)));
}

/// a / d for numbers whose quotient and residual neither overflow nor underflow; NaN for 0 / 0.
///
/// A reciprocal y, improved by a Newton step, and a quotient, improved by its residual: what the compiler makes of a
/// division within the guard that it puts around it, and so correctly rounded. For differences of restored levels
/// quotients.py shows it for every y that the approximation may give.
__device__ __forceinline__ float quotient(float a, float d) {
    float y = approximate_reciprocal(d);
    y = improve(y, residual(1.0f, y, d), y);
    const float q = a * y;
    return improve(q, residual(a, q, d), y);
}

/// cr / maxc for restored levels, without the Newton step; NaN for 0 / 0.
///
/// With y a reciprocal of relative error e, and q = a * y rounded with relative error f, the improved quotient is
/// a/d * (1 - e * (e + f + e * f)) before its rounding: at most 1.6 * 2^-46 off, since |e| <= 2^-23 and |f| <= 2^-24.
/// That rounds to the quotient unless a/d is as close as that to the middle of two float32 numbers. quotients.py finds
/// the few pairs of levels where it is, and shows that no y that the approximation may give is wrong for them. (For
/// the hue's quotients some are, hence its Newton step.)
__device__ __forceinline__ float level_saturation(float cr, float maxc) {
    const float y = approximate_reciprocal(maxc);
    const float q = cr * y;
    return improve(q, residual(cr, q, maxc), y);
}

/// Steps 8 to 10 with the hue h in [0, 1] or NaN, s and v in [0, 1].
__device__ __forceinline__ Rgb levels_of(float h, float s, float v) {
    // 8. and 9. Every channel is v * (1 - s * k): k is 0 where the definition takes v, 1 for p, f for q and 1 - f for
    // t, and it is piecewise linear in h6. Where it is neither 0 nor 1 these give the definition's number: f = h6 - i
    // is exact; for red (sectors 1 and 4) and blue (2 and 5), h6 and the differences below are multiples of 2^-23
    // and of magnitude 2 at most, so nothing rounds; green has 1 - h6 in sector 0, the definition's own subtraction,
    // and the exact h6 - 3 in sector 3, and one of its two terms is zero. Elsewhere the differences may round, but
    // rounding keeps the order, so the clamps give the constants. h6 = 6 gives sector 0's k. A NaN hue is a grey's,
    // whose s is 0: k is 0, and all channels are v.
    const float h6 = h * 6.0f;
    const float kr = sub_unit(2.0f, fabsf(h6 - 3.0f));
    const float kg = sub_unit(1.0f, h6) + sub_unit(h6, 3.0f);
    const float kb = sub_unit(fabsf(h6 - 4.0f), 1.0f);
    // 10. The products are in [0, 1], so the clamps of both steps change nothing.
    return {v * (1.0f - s * kr) * 255.0f + EF_INTEGERS,
            v * (1.0f - s * kg) * 255.0f + EF_INTEGERS,
            v * (1.0f - s * kb) * 255.0f + EF_INTEGERS};
}

/// Steps 3 to 5, the hue, for a pixel with the given minimum and range; NaN for a grey. `LEVELS` promises restored
/// levels.
///
/// A channel at the minimum has the quotient cr / cr = 1, one at the maximum 0; only the third one's has to be
/// computed. With n the difference of the two channels that are not the minimum, taken around the circle, and
/// q = n / cr in [-1, 1], the definition's hue is
///
///     b minimal:  g <= r: 1 + q    = (0 + q) + 1      g > r:  (2 + q) - 1
///     r minimal:  b <= g: 3 + q    = (4 + q) - 1      b > g:  (4 + q) - 1
///     g minimal:  r < b:  5 + q    = (6 + q) - 1      r >= b: (0 + q) - 1
///
/// where the right-hand forms round alike: in [2, 4] and in [4, 8] float32 has one spacing each, and 1 is an even
/// number of it. Ties of two maxima or minima give the same number in either line, except that g = b goes to the
/// first and r = b > g to the last, as in the definition.
///
/// The cases are additions under predicates, which are as fast as additions; selections would not be. Each overrides
/// the ones before it.
template <bool LEVELS>
__device__ __forceinline__ float hue_of(float r, float g, float b, float minc, float cr) {
    float n, h;
    int b_minimal, g_minimal, b_rest, g_next;
    asm("{\n\t"
        ".reg .f32 n;\n\t"
        ".reg .pred b, g, b_rest, g_next;\n\t"
        "setp.eq.f32 b, %7, %8;\n\t"
        "setp.ne.and.f32 g, %5, %8, !b;\n\t"
        "sub.rn.f32 n, %5, %7;\n\t"
        "@!g sub.rn.f32 n, %7, %6;\n\t"
        "@b sub.rn.f32 n, %6, %5;\n\t"
        "setp.lt.and.f32 b_rest, n, 0f00000000, b;\n\t"
        "setp.ge.and.f32 g_next, n, 0f00000000, g;\n\t"
        "mov.f32 %0, n;\n\t"
        "selp.s32 %1, 1, 0, b;\n\t"
        "selp.s32 %2, 1, 0, g;\n\t"
        "selp.s32 %3, 1, 0, b_rest;\n\t"
        "selp.s32 %4, 1, 0, g_next;\n\t"
        "}"
        : "=f"(n), "=r"(b_minimal), "=r"(g_minimal), "=r"(b_rest), "=r"(g_next)
        : "f"(r), "f"(g), "f"(b), "f"(minc));
    const float q = quotient(n, cr);
    asm("{\n\t"
        ".reg .f32 t, h;\n\t"
        ".reg .pred b, g, b_rest, g_next;\n\t"
        "setp.ne.s32 b, %2, 0;\n\t"
        "setp.ne.s32 g, %3, 0;\n\t"
        "setp.ne.s32 b_rest, %4, 0;\n\t"
        "setp.ne.s32 g_next, %5, 0;\n\t"
        "add.rn.f32 t, %1, 0f40c00000;\n\t"         // 6
        "@!g add.rn.f32 t, %1, 0f40800000;\n\t"     // 4
        "@b add.rn.f32 t, %1, 0f40000000;\n\t"      // 2
        "add.rn.f32 h, t, 0fbf800000;\n\t"          // -1
        "@g_next add.rn.f32 h, %1, 0fbf800000;\n\t" // -1
        "@b_rest add.rn.f32 h, %1, 0f3f800000;\n\t" // 1
        "mov.f32 %0, h;\n\t"
        "}"
        : "=f"(h)
        : "f"(q), "r"(b_minimal), "r"(g_minimal), "r"(b_rest), "r"(g_next));
    // 5. x is in [5/6, 11/6] up to rounding, so fmod takes 1 away or nothing, and exactly (two floats within a factor
    // of two of each other).
    float x = h * EF_INV_6 + 1.0f;
    if (!LEVELS) {
        return positive_of(x, x - 1.0f);
    }
    // Of levels, only the last case has a negative h: there, g < b makes q < 1, which it also is after rounding.
    asm("{\n\t"
        ".reg .pred p;\n\t"
        "setp.eq.s32 p, %1, 0;\n\t"
        "@p add.rn.f32 %0, %0, 0fbf800000;\n\t"
        "}"
        : "+f"(x)
        : "r"(g_next));
    return x;
}

/// Steps 2 to 10: a pixel of restored levels (`LEVELS`), or one that `is_tame`, to levels.
template <bool LEVELS>
__device__ __forceinline__ Rgb fast_levels(Rgb rgb, const Jitter &jitter) {
    const float r = rgb.r, g = rgb.g, b = rgb.b;
    // 2.
    const float maxc = larger(larger(r, g), b);
    const float minc = positive_of(positive_of(r, g), b);
    const float cr = maxc - minc;
    // 3. to 5. Greys get the hue 0 / 0, which their s = 0 makes harmless.
    float h = hue_of<LEVELS>(r, g, b, minc, cr);
    // 7. A hue gain in [0, 1] moves h into [0, 2], one in [-1, 0] into [-1, 1]: the remainder is one of x and x - 1 or
    // x + 1, whichever is not negative and smaller. (2 becomes 1 where the definition says 0: the same sector.)
    const float x = h + jitter.dh;
    h = positive_of(x, x + jitter.turn);
    const float s = mul_unit(LEVELS ? level_saturation(cr, maxc) : quotient(cr, maxc), jitter.ks);
    const float v = mul_unit(maxc, jitter.kv);
    return levels_of(h, s, v);
}

/// Whether a float32 pixel is one for `fast_levels<false>`: no NaN, nothing negative (-0 included), the maximum 0 or
/// between 2^-36 and 2^60.
///
/// Then cr is 0 or at least 2^-60, and no quotient that matters underflows: a q below 2^-40 vanishes in the next
/// addition, and s is 2^-120 at least.
__device__ __forceinline__ bool is_tame(Rgb rgb) {
    const unsigned maxc = __float_as_uint(larger(larger(rgb.r, rgb.g), rgb.b));
    // 0 wraps around and passes.
    return maxc <= 0x5d800000u && maxc - 1u >= 0x2d800000u - 1u;
}
