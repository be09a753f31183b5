// Step 11: levels to the elements of a tensor, four pixels (12 elements) at a time.

#pragma once

#include "definition.cuh"

/// The element types, as they are in memory. Half types are moved as their bits, two in a word.
struct Float32 {
    static constexpr int size = 4;
};
struct Float16 {
    static constexpr int size = 2;
};
struct Bfloat16 {
    static constexpr int size = 2;
};
struct Uint8 {
    static constexpr int size = 1;
};

/// How a launch normalises; the same for all its threads.
enum Normalization {
    EF_RESTORE_ONLY,
    EF_BY_INVERSE,
    EF_BY_DIVISION,
};

/// (y - mean) / std, per channel.
struct Normalize {
    Normalization kind;
    float mean[3], std[3], inverse[3];
};

/// The normalisation of a launch; none when `std0` is 0, which no standard deviation is.
///
/// The way by `inverse` needs numbers of which no quotient or residual under- or overflows: what is divided is 0 or at
/// least 2^-54, because a restored level is a multiple of 2^-31 and a mean from 2^-30 on one of 2^-53.
__device__ __forceinline__ Normalize read_normalize(
    float mean0, float mean1, float mean2, float std0, float std1, float std2) {
    Normalize n = {EF_RESTORE_ONLY, {mean0, mean1, mean2}, {std0, std1, std2}, {0.0f, 0.0f, 0.0f}};
    if (std0 != 0.0f) {
        n.kind = EF_BY_INVERSE;
        for (int c = 0; c < 3; c++) {
            const float mean = fabsf(n.mean[c]), std = fabsf(n.std[c]);
            const bool tame = mean == 0.0f || (mean >= 0x1p-30f && mean <= 0x1p30f);
            if (!(tame && std >= 0x1p-30f && std <= 0x1p30f)) {
                n.kind = EF_BY_DIVISION;
            }
            n.inverse[c] = __frcp_rn(n.std[c]);
        }
    }
    return n;
}

/// (y - mean) / std, not for EF_BY_DIVISION.
///
/// `inverse` is the correctly rounded reciprocal, so that a quotient within one unit in the last place, improved by its
/// residual, is the correctly rounded one (Markstein); the first improvement brings it there.
__device__ __forceinline__ float normalized(float y, const Normalize &normalize, int channel) {
    if (normalize.kind == EF_RESTORE_ONLY) {
        return y;
    }
    const float std = normalize.std[channel], inverse = normalize.inverse[channel];
    y = y - normalize.mean[channel];
    float q = y * inverse;
    q = improve(q, residual(y, q, std), inverse);
    return improve(q, residual(y, q, std), inverse);
}

/// A pixel of levels as the numbers that are cast to the element type; levels themselves for Uint8.
template <class T>
__device__ __forceinline__ Rgb values_of(T, Rgb level, const Normalize &normalize) {
    return {normalized(restore(level.r), normalize, 0), normalized(restore(level.g), normalize, 1),
            normalized(restore(level.b), normalize, 2)};
}

__device__ __forceinline__ Rgb values_of(Uint8, Rgb level, const Normalize &) {
    return level;
}

/// Round-to-nearest-even casts of two numbers to half types; the first is the lower half of the word.
__device__ __forceinline__ unsigned cast_two(Float16, float a, float b) {
    unsigned two;
#if __CUDA_ARCH__ >= 800
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(b), "f"(a));
#else
    asm("{\n\t"
        ".reg .b16 low, high;\n\t"
        "cvt.rn.f16.f32 low, %1;\n\t"
        "cvt.rn.f16.f32 high, %2;\n\t"
        "mov.b32 %0, {low, high};\n\t"
        "}"
        : "=r"(two)
        : "f"(a), "f"(b));
#endif
    return two;
}

__device__ __forceinline__ unsigned cast_two(Bfloat16, float a, float b) {
    unsigned two;
#if __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(b), "f"(a));
#else
    // The upper half after adding just under half a unit of it (exactly half when it is odd). No value is NaN.
    const unsigned x = __float_as_uint(a), y = __float_as_uint(b);
    two = __byte_perm(x + 0x7fffu + (x >> 16 & 1u), y + 0x7fffu + (y >> 16 & 1u), 0x7632);
#endif
    return two;
}

/// Four values as elements.
__device__ __forceinline__ void words_of(Float32, float a, float b, float c, float d, unsigned (&words)[4]) {
    words[0] = __float_as_uint(a);
    words[1] = __float_as_uint(b);
    words[2] = __float_as_uint(c);
    words[3] = __float_as_uint(d);
}

template <class T>
__device__ __forceinline__ void words_of(T type, float a, float b, float c, float d, unsigned (&words)[2]) {
    words[0] = cast_two(type, a, b);
    words[1] = cast_two(type, c, d);
}

/// The lowest byte of a level is its integer.
__device__ __forceinline__ void words_of(Uint8, float a, float b, float c, float d, unsigned (&words)[1]) {
    const unsigned low = __byte_perm(__float_as_uint(a), __float_as_uint(b), 0x0040);
    const unsigned high = __byte_perm(__float_as_uint(c), __float_as_uint(d), 0x0040);
    words[0] = __byte_perm(low, high, 0x5410);
}

/// Stores one value as element `at` of a tensor.
__device__ __forceinline__ void store_element(Float32, void *tensor, long long at, float value) {
    ((float *)tensor)[at] = value;
}

template <class T>
__device__ __forceinline__ void store_element(T type, void *tensor, long long at, float value) {
    ((unsigned short *)tensor)[at] = (unsigned short)cast_two(type, value, value);
}

__device__ __forceinline__ void store_element(Uint8, void *tensor, long long at, float value) {
    ((unsigned char *)tensor)[at] = (unsigned char)__float_as_uint(value);
}
