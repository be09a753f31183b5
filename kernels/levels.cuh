// uint8 pixels to levels: steps 1 to 10.

#pragma once

#include "fast.cuh"
#include "frames.cuh"
#include "memory.cuh"

/// The numbers of a pixel of levels.
__device__ __forceinline__ Rgb restored(Rgb level) {
    return {restore(level.r), restore(level.g), restore(level.b)};
}

/// Steps 1 to 10 for one pixel of levels, not for EF_DEFINED.
__device__ __forceinline__ Rgb jittered(Rgb level, const Jitter &jitter) {
    return jitter.way == EF_PLAIN ? level : fast_levels<true>(restored(level), jitter);
}

/// Steps 1 to 10 for one pixel of levels.
__device__ __forceinline__ Rgb jittered_any(Rgb level, const Jitter &jitter) {
    if (jitter.way == EF_DEFINED) {
        return defined_levels(restored(level), jitter.dh, jitter.ks, jitter.kv);
    }
    return jittered(level, jitter);
}

/// Byte `i` of packed words as a level: under the upper bits of 2^23.
__device__ __forceinline__ float level_of(const unsigned *w, int i) {
    return __uint_as_float(__byte_perm(w[i / 4], __float_as_uint(EF_INTEGERS), 0x7440 | i % 4));
}

/// Pixels of packed RGB to levels, jittered; not for EF_DEFINED.
template <int PIXELS>
__device__ __forceinline__ void jittered_run(
    const unsigned (&w)[3 * PIXELS / 4], const Jitter &jitter, Rgb (&level)[PIXELS]) {
#pragma unroll
    for (int i = 0; i < PIXELS; i++) {
        level[i] = jittered({level_of(w, 3 * i), level_of(w, 3 * i + 1), level_of(w, 3 * i + 2)}, jitter);
    }
}

/// Loads what a thread of the common loops works on: four or eight pixels of packed RGB.
template <bool CONSTANT>
__device__ __forceinline__ void load_run(const void *at, unsigned (&w)[3]) {
#pragma unroll
    for (int i = 0; i < 3; i++) {
        w[i] = load_word<CONSTANT>((const unsigned *)at + i);
    }
}

template <bool CONSTANT>
__device__ __forceinline__ void load_run(const void *at, unsigned (&w)[6]) {
#pragma unroll
    for (int i = 0; i < 3; i++) {
        const uint2 two = load_two_words<CONSTANT>((const uint2 *)at + i);
        w[2 * i] = two.x;
        w[2 * i + 1] = two.y;
    }
}

/// One pixel of a frame of any format, as levels.
__device__ __forceinline__ Rgb load_pixel(const Plane (&planes)[3], int format, long long row, int column) {
    const int size = bytes_per_pixel(format);
    const bool planar = format == EF_PLANAR, bgr = format == EF_BGR || format == EF_BGRX;
    const unsigned char *r = planes[0].data + row * planes[0].row_stride + (long long)column * size;
    const unsigned char *g = planar ? planes[1].data + row * planes[1].row_stride + column : r + 1;
    const unsigned char *b = planar ? planes[2].data + row * planes[2].row_stride + column : r + 2;
    const unsigned w[3] = {bgr ? *b : *r, *g, bgr ? *r : *b};
    return {level_of(w, 0), level_of(w + 1, 0), level_of(w + 2, 0)};
}

/// The reverse of `load_pixel`; a fourth byte is left to the caller.
__device__ __forceinline__ void store_pixel_bytes(
    const Plane (&planes)[3], int format, long long row, int column, Rgb level) {
    const int size = bytes_per_pixel(format);
    const bool planar = format == EF_PLANAR, bgr = format == EF_BGR || format == EF_BGRX;
    unsigned char *r = planes[0].data + row * planes[0].row_stride + (long long)column * size;
    unsigned char *g = planar ? planes[1].data + row * planes[1].row_stride + column : r + 1;
    unsigned char *b = planar ? planes[2].data + row * planes[2].row_stride + column : r + 2;
    *r = (unsigned char)__float_as_uint(bgr ? level.b : level.r);
    *g = (unsigned char)__float_as_uint(level.g);
    *b = (unsigned char)__float_as_uint(bgr ? level.r : level.b);
}
