// uint8 frames into a batch.

#include "frames.cuh"
#include "levels.cuh"
#include "store.cuh"

#define EF_PACK_BYTES_PARAMETERS                                                                                       \
    unsigned char *base, long long sample_stride, long long plane_stride, long long row_stride,                        \
        const long long *table, int format, int width, int height, const double *gains, void *out, int nchw,           \
        float mean0, float mean1, float mean2, float std0, float std1, float std2

/// Whole warps of runs of a frame that is packed RGB without row padding, jittered into a channels-last tensor without
/// normalisation: what nearly every launch is, so nothing is asked in the loop. Gives the number of pixels done.
template <class T>
__device__ __forceinline__ long long pack_common(
    const unsigned char *frame, void *out, long long pixels, const Jitter &jitter) {
    // As many as are stored in three chunks of at most 16 bytes.
    constexpr int run = T::size == 4 ? 4 : 8;
    using C = typename Run<T, run>::Type;
    const int lane = threadIdx.x & 31;
    const int warps = (int)(pixels / (32 * run));
    const int step = gridDim.x * blockDim.x / 32;
    const unsigned char *from = frame + (long long)lane * (3 * run);
    unsigned w[3 * run / 4], ahead[3 * run / 4];
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (warp < warps) {
        load_run<true>(from + (long long)warp * (96 * run), w);
    }
    for (; warp < warps; warp += step) {
        // The next pixels are on their way while these are worked on.
        if (warp + step < warps) {
            load_run<true>(from + (long long)(warp + step) * (96 * run), ahead);
        }
        Rgb level[run];
        jittered_run<run>(w, fast(jitter), level);
#pragma unroll
        for (int i = 0; i < run; i++) {
            level[i] = values_of(T(), level[i], Normalize{});
        }
        store_lines(run_of<T>(level).chunk, (C *)out + (long long)warp * 96, 32);
#pragma unroll
        for (int i = 0; i < 3 * run / 4; i++) {
            w[i] = ahead[i];
        }
    }
    return (long long)warps * (32 * run);
}

/// Groups of four pixels from pixel `start` of each frame on, of any format and layout.
template <class T>
__device__ __forceinline__ void pack_groups(
    const Plane (&planes)[3], int width, long long pixels, long long start, const Jitter &jitter, int format,
    const Tensor &out, const Normalize &normalize) {
    const bool contiguous = is_contiguous(planes, format, width);
    const int groups = (int)(pixels / 4);
    const int lane = threadIdx.x & 31;
    const int begin = (int)(start / 4) + blockIdx.x * blockDim.x + threadIdx.x - lane;
    for (int first = begin; first < groups; first += gridDim.x * blockDim.x) {
        const int count = min(32, groups - first);
        Rgb value[4];
        if (lane < count) {
            unsigned w[3];
            uint4 fourth;
            load_four<true>(planes, format, place_of(planes, format, contiguous, width, first + lane), w, fourth);
            jittered_run<4>(w, jitter, value);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                value[i] = values_of(T(), value[i], normalize);
            }
        }
        store_groups<T>(out, groups, blockIdx.y, first, count, value);
    }
}

/// One pixel a thread, of anything.
template <class T>
__device__ __forceinline__ void pack_pixels(
    const Plane (&planes)[3], int width, long long pixels, const Jitter &jitter, int format, const Tensor &out,
    const Normalize &normalize) {
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x; at < pixels; at += step) {
        const long long row = at / width;
        const Rgb level = jittered_any(load_pixel(planes, format, row, (int)(at - row * width)), jitter);
        store_pixel<T>(out, pixels, blockIdx.y, at, level, normalize);
    }
}

/// `FOURS` promises sizes, strides and addresses that groups of four pixels can have.
template <class T, bool FOURS>
__device__ __forceinline__ void pack_bytes(EF_PACK_BYTES_PARAMETERS) {
    const Jitter jitter = read_gains<true>(gains, blockIdx.y);
    Plane planes[3];
    planes_of({base, sample_stride, plane_stride, row_stride, table}, blockIdx.y, format, planes);
    const long long pixels = (long long)width * height;
    long long done = 0;
    if (FOURS && format == EF_RGB && is_contiguous(planes, format, width) && (size_t)planes[0].data % 8 == 0 &&
        pixels % 8 == 0 && jitter.way == EF_FAST && !nchw && std0 == 0.0f) {
        unsigned char *sample = (unsigned char *)out + 3 * T::size * pixels * blockIdx.y;
        done = pack_common<T>(planes[0].data, sample, pixels, jitter);
        if (done == pixels) {
            return;
        }
    }
    const Normalize normalize = read_normalize(mean0, mean1, mean2, std0, std1, std2);
    if (FOURS && jitter.way != EF_DEFINED && normalize.kind != EF_BY_DIVISION) {
        pack_groups<T>(planes, width, pixels, done, jitter, format, {out, nchw}, normalize);
    } else {
        pack_pixels<T>(planes, width, pixels, jitter, format, {out, nchw}, normalize);
    }
}

#define EF_PACK_BYTES(NAME, TYPE, FOURS)                                                                               \
    extern "C" __global__ void NAME(EF_PACK_BYTES_PARAMETERS) {                                                        \
        pack_bytes<TYPE, FOURS>(base, sample_stride, plane_stride, row_stride, table, format, width, height, gains,    \
                                out, nchw, mean0, mean1, mean2, std0, std1, std2);                                     \
    }

EF_PACK_BYTES(epochfeed_pack_bytes_float32, Float32, true)
EF_PACK_BYTES(epochfeed_pack_bytes_float16, Float16, true)
EF_PACK_BYTES(epochfeed_pack_bytes_bfloat16, Bfloat16, true)
EF_PACK_BYTES(epochfeed_pack_bytes_uint8, Uint8, true)
EF_PACK_BYTES(epochfeed_pack_any_bytes_float32, Float32, false)
EF_PACK_BYTES(epochfeed_pack_any_bytes_float16, Float16, false)
EF_PACK_BYTES(epochfeed_pack_any_bytes_bfloat16, Bfloat16, false)
EF_PACK_BYTES(epochfeed_pack_any_bytes_uint8, Uint8, false)
