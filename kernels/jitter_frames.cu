// uint8 frames into uint8 frames of the same format, in place or not.

#include "levels.cuh"
#include "store.cuh"

#define EF_JITTER_FRAMES_PARAMETERS                                                                                    \
    unsigned char *base, long long sample_stride, long long plane_stride, long long row_stride,                        \
        const long long *table, unsigned char *out_base, long long out_sample_stride, long long out_plane_stride,      \
        long long out_row_stride, const long long *out_table, int format, int width, int height, const double *gains

/// Whole warps of eight pixels a thread, as in pack_bytes.cu; a frame of packed RGB without row padding is a uint8
/// tensor. In place each warp has loaded its pixels before it stores them.
__device__ __forceinline__ long long jitter_common(
    const unsigned char *frame, unsigned char *out, long long pixels, const Jitter &jitter) {
    const int lane = threadIdx.x & 31;
    const int warps = (int)(pixels / 256);
    const int step = gridDim.x * blockDim.x / 32;
    for (int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32; warp < warps; warp += step) {
        unsigned w[6];
        load_run<false>(frame + (long long)(32 * warp + lane) * 24, w);
        Rgb level[8];
        jittered_run<8>(w, fast(jitter), level);
        store_lines(run_of<Uint8>(level).chunk, (uint2 *)out + (long long)warp * 96, 32);
    }
    return (long long)warps * 256;
}

/// Groups of four pixels from pixel `start` on. Each thread stores where it has loaded.
__device__ __forceinline__ void jitter_groups(
    const Plane (&from)[3], const Plane (&to)[3], int format, int width, long long pixels, long long start,
    const Jitter &jitter) {
    const bool from_contiguous = is_contiguous(from, format, width), to_contiguous = is_contiguous(to, format, width);
    const int groups = (int)(pixels / 4);
    const int begin = (int)(start / 4) + blockIdx.x * blockDim.x + threadIdx.x;
    for (int group = begin; group < groups; group += gridDim.x * blockDim.x) {
        unsigned w[3];
        uint4 fourth;
        load_four<false>(from, format, place_of(from, format, from_contiguous, width, group), w, fourth);
        Rgb level[4];
        jittered_run<4>(w, jitter, level);
        const Run<Uint8, 4> run = run_of<Uint8>(level);
        store_four(to, format, place_of(to, format, to_contiguous, width, group), run.chunk, fourth);
    }
}

/// One pixel a thread, of anything.
__device__ __forceinline__ void jitter_pixels(
    const Plane (&from)[3], const Plane (&to)[3], int format, int width, long long pixels, const Jitter &jitter) {
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x; at < pixels; at += step) {
        const long long row = at / width;
        const int column = (int)(at - row * width);
        const Rgb level = jittered_any(load_pixel(from, format, row, column), jitter);
        if (bytes_per_pixel(format) == 4) {
            to[0].data[row * to[0].row_stride + 4ll * column + 3] =
                from[0].data[row * from[0].row_stride + 4ll * column + 3];
        }
        store_pixel_bytes(to, format, row, column, level);
    }
}

/// `FOURS` promises sizes, strides and addresses that groups of four pixels can have.
template <bool FOURS>
__device__ __forceinline__ void jitter_frames(EF_JITTER_FRAMES_PARAMETERS) {
    const Jitter jitter = read_gains<true>(gains, blockIdx.y);
    Plane from[3], to[3];
    planes_of({base, sample_stride, plane_stride, row_stride, table}, blockIdx.y, format, from);
    planes_of({out_base, out_sample_stride, out_plane_stride, out_row_stride, out_table}, blockIdx.y, format, to);
    const long long pixels = (long long)width * height;
    if (!FOURS || jitter.way == EF_DEFINED) {
        jitter_pixels(from, to, format, width, pixels, jitter);
        return;
    }
    long long done = 0;
    if (format == EF_RGB && is_contiguous(from, format, width) && is_contiguous(to, format, width) &&
        ((size_t)from[0].data | (size_t)to[0].data) % 8 == 0 && jitter.way == EF_FAST) {
        done = jitter_common(from[0].data, to[0].data, pixels, jitter);
    }
    jitter_groups(from, to, format, width, pixels, done, jitter);
}

extern "C" __global__ void epochfeed_jitter_frames(EF_JITTER_FRAMES_PARAMETERS) {
    jitter_frames<true>(base, sample_stride, plane_stride, row_stride, table, out_base, out_sample_stride,
                        out_plane_stride, out_row_stride, out_table, format, width, height, gains);
}

extern "C" __global__ void epochfeed_jitter_any_frames(EF_JITTER_FRAMES_PARAMETERS) {
    jitter_frames<false>(base, sample_stride, plane_stride, row_stride, table, out_base, out_sample_stride,
                         out_plane_stride, out_row_stride, out_table, format, width, height, gains);
}
