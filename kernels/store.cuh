// Where the elements go: full lines of a channels-last tensor, or its planes.

#pragma once

#include "memory.cuh"
#include "values.cuh"

/// Channel `c`, known at compile time.
__device__ __forceinline__ float channel_of(Rgb rgb, int c) {
    return c == 0 ? rgb.r : c == 1 ? rgb.g : rgb.b;
}

/// What a thread stores at once.
template <int WORDS>
struct Chunk;
template <>
struct Chunk<4> {
    using Type = uint4;
};
template <>
struct Chunk<2> {
    using Type = uint2;
};
template <>
struct Chunk<1> {
    using Type = unsigned;
};

/// The elements of `PIXELS` pixels in channels-last order, as three chunks.
template <class T, int PIXELS>
union Run {
    static constexpr int words = T::size * PIXELS / 4;
    using Type = typename Chunk<words>::Type;
    Type chunk[3];
    unsigned word[3 * PIXELS / 4][T::size];
};

template <class T, int PIXELS>
__device__ __forceinline__ Run<T, PIXELS> run_of(const Rgb (&value)[PIXELS]) {
    Run<T, PIXELS> run;
#pragma unroll
    for (int i = 0; i < 3 * PIXELS / 4; i++) {
        float four[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int element = 4 * i + j;
            four[j] = channel_of(value[element / 3], element % 3);
        }
        words_of(T(), four[0], four[1], four[2], four[3], run.word[i]);
    }
    return run;
}

/// Scratch of a block in shared memory, given at launch: 48 bytes a thread are enough for every kernel.
extern __shared__ uint4 scratch[];

/// Stores the runs of a warp behind each other: thread l holds the chunks 3l to 3l + 2 and stores l, l + 32 and l + 64,
/// so that each store of the warp is of whole lines. Those of the first `count` threads only.
///
/// The warp's threads all come here, and no larger barrier is needed, because each warp has its own part of the
/// scratch: the same one whatever `C` is, since warps of a block go on from long runs to short ones at different times.
/// (Strides of 3, 6 and 12 words meet no bank twice among the threads that are served together.)
template <class C>
__device__ __forceinline__ void store_lines(const C (&own)[3], C *out, int count) {
    const int lane = threadIdx.x & 31;
    C *chunks = (C *)(scratch + (threadIdx.x - lane) * 3);
#pragma unroll
    for (int i = 0; i < 3; i++) {
        chunks[3 * lane + i] = own[i];
    }
    __syncwarp();
    constexpr int line = 32 * sizeof(C);
    out += lane;
    chunks += lane;
    if (count == 32 || lane < 3 * count) {
        store<0>(out, chunks[0]);
    }
    if (count == 32 || 32 + lane < 3 * count) {
        store<line>(out, chunks[32]);
    }
    if (count == 32 || 64 + lane < 3 * count) {
        store<2 * line>(out, chunks[64]);
    }
    // The next round writes where this one is still read.
    __syncwarp();
}

/// The tensor of a launch.
struct Tensor {
    void *data;
    int nchw;
};

/// Stores a warp's groups of four pixels: group `first` + lane of `sample`, for lanes below `count`.
template <class T>
__device__ __forceinline__ void store_groups(
    const Tensor &out, long long groups, int sample, int first, int count, const Rgb (&value)[4]) {
    using C = typename Run<T, 4>::Type;
    if (!out.nchw) {
        store_lines(run_of<T>(value).chunk, (C *)out.data + 3 * (sample * groups + first), count);
        return;
    }
    const int lane = threadIdx.x & 31;
    if (lane < count) {
#pragma unroll
        for (int c = 0; c < 3; c++) {
            Run<T, 4> run;
            words_of(T(), channel_of(value[0], c), channel_of(value[1], c), channel_of(value[2], c),
                     channel_of(value[3], c), run.word[c]);
            store((C *)out.data + (3ll * sample + c) * groups + first + lane, run.chunk[c]);
        }
    }
}

/// Stores one pixel of levels, for sizes and addresses that groups cannot have.
template <class T>
__device__ __forceinline__ void store_pixel(
    const Tensor &out, long long pixels, int sample, long long pixel, Rgb level, const Normalize &normalize) {
    Rgb value = level;
    if (normalize.kind == EF_BY_DIVISION) {
        value = {__fdiv_rn(restore(level.r) - normalize.mean[0], normalize.std[0]),
                 __fdiv_rn(restore(level.g) - normalize.mean[1], normalize.std[1]),
                 __fdiv_rn(restore(level.b) - normalize.mean[2], normalize.std[2])};
    } else {
        value = values_of(T(), level, normalize);
    }
#pragma unroll
    for (int c = 0; c < 3; c++) {
        const long long at = out.nchw ? (3ll * sample + c) * pixels + pixel : 3 * (sample * pixels + pixel) + c;
        store_element(T(), out.data, at, channel_of(value, c));
    }
}
