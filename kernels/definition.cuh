// The definition of the arithmetic, step by step as in src/color/reference.rs, which says what each step is in
// torchvision and PyTorch. It is used as it stands for gains and pixels that the fast formulation leaves out, and is
// what the tests compare that one with.

#pragma once

#include "exact.cuh"

/// A pixel: numbers, or levels.
struct Rgb {
    float r, g, b;
};

/// The larger of two numbers, NaN if either is (fmaxf would drop it).
__device__ __forceinline__ float maximum(float a, float b) {
    return a > b || a != a ? a : b;
}

/// The smaller of two numbers, NaN if either is.
__device__ __forceinline__ float minimum(float a, float b) {
    return a < b || a != a ? a : b;
}

/// clamp(x, 0, 1), NaN kept.
__device__ __forceinline__ float clamp_unit(float x) {
    return x < 0.0f ? 0.0f : x > 1.0f ? 1.0f : x;
}

/// fmod(x, 1) but for the sign of a zero, which no later step tells apart: the subtraction is exact.
__device__ __forceinline__ float fmod_1(float x) {
    return x - truncf(x);
}

/// Python's x % 1.0. The addition rounds, so the result can be 1.
__device__ __forceinline__ float remainder_1(float x) {
    float m = fmod_1(x);
    return m < 0.0f ? m + 1.0f : m;
}

/// Steps 2 to 9.
__device__ __forceinline__ Rgb defined_jitter(Rgb rgb, float dh, float ks, float kv) {
    const float r = rgb.r, g = rgb.g, b = rgb.b;
    // 2.
    const float maxc = maximum(maximum(r, g), b);
    const float minc = minimum(minimum(r, g), b);
    const float cr = maxc - minc;
    const bool eqc = maxc == minc;
    // 3.
    float s = __fdiv_rn(cr, eqc ? 1.0f : maxc);
    const float d = eqc ? 1.0f : cr;
    const float rc = __fdiv_rn(maxc - r, d);
    const float gc = __fdiv_rn(maxc - g, d);
    const float bc = __fdiv_rn(maxc - b, d);
    // 4. The masks are multiplied, not selected: 0 * NaN stays NaN.
    const float hr = (maxc == r ? 1.0f : 0.0f) * (bc - gc);
    const float hg = (maxc == g && maxc != r ? 1.0f : 0.0f) * ((2.0f + rc) - bc);
    const float hb = (maxc != g && maxc != r ? 1.0f : 0.0f) * ((4.0f + gc) - rc);
    float h = (hr + hg) + hb;
    // 5.
    h = fmod_1(h * EF_INV_6 + 1.0f);
    // 7.
    h = remainder_1(h + dh);
    s = clamp_unit(s * ks);
    const float v = clamp_unit(maxc * kv);
    // 8. The hue can be exactly 1, which is sector 6, so 0; the conversion makes sector 0 of NaN.
    const float h6 = h * 6.0f;
    const float i = floorf(h6);
    const float f = h6 - i;
    const int sector = (int)i % 6;
    // 9.
    const float p = clamp_unit(v * (1.0f - s));
    const float q = clamp_unit(v * (1.0f - s * f));
    const float t = clamp_unit(v * (1.0f - s * (1.0f - f)));
    switch (sector) {
        case 0: return {v, t, p};
        case 1: return {q, v, p};
        case 2: return {p, v, t};
        case 3: return {p, q, v};
        case 4: return {t, p, v};
        default: return {v, p, q};
    }
}

/// Step 10 for any number, as a level: clamp(rint(x * 255), 0, 255), NaN becomes 0. Clamping to integers before
/// rounding equals clamping after it, and fmaxf drops a NaN.
__device__ __forceinline__ float defined_level(float x) {
    return fminf(fmaxf(x * 255.0f, 0.0f), 255.0f) + EF_INTEGERS;
}

/// Steps 2 to 10 for any pixel and any gains, as levels. Rare, so kept out of the loops that call it.
__device__ __noinline__ Rgb defined_levels(Rgb rgb, float dh, float ks, float kv) {
    rgb = defined_jitter(rgb, dh, ks, kv);
    return {defined_level(rgb.r), defined_level(rgb.g), defined_level(rgb.b)};
}
