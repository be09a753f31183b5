// float32 images into a batch.

#include "fast.cuh"
#include "store.cuh"

/// Steps 2 to 10 for one pixel of any numbers.
__device__ __forceinline__ Rgb jittered_floats(Rgb rgb, const Jitter &jitter) {
    if (jitter.way == EF_FAST && is_tame(rgb)) {
        return fast_levels<false>(rgb, jitter);
    }
    if (jitter.way == EF_PLAIN) {
        return {defined_level(rgb.r), defined_level(rgb.g), defined_level(rgb.b)};
    }
    return defined_levels(rgb, jitter.dh, jitter.ks, jitter.kv);
}

#define EF_PACK_FLOATS_PARAMETERS                                                                                      \
    const float *base, long long sample_stride, long long plane_stride, long long pixel_stride, int width, int height, \
        const double *gains, void *out, int nchw, float mean0, float mean1, float mean2, float std0, float std1,       \
        float std2

__device__ __forceinline__ void load_floats(const float *at, float (&values)[4]) {
    const float4 four = __ldg((const float4 *)at);
    values[0] = four.x;
    values[1] = four.y;
    values[2] = four.z;
    values[3] = four.w;
}

/// Groups of four pixels of an image whose planes are contiguous. `COMMON` promises the fast formulation, channels last
/// and no normalisation, so that nothing of it is asked in the loop.
template <class T, bool COMMON>
__device__ __forceinline__ void pack_groups(
    const float *image, long long plane_stride, long long pixels, const Jitter &given, const Tensor &tensor,
    const Normalize &normalize) {
    const Jitter jitter = COMMON ? fast(given) : given;
    const Tensor out = {tensor.data, COMMON ? 0 : tensor.nchw};
    const int groups = (int)(pixels / 4);
    const int lane = threadIdx.x & 31;
    for (int first = blockIdx.x * blockDim.x + threadIdx.x - lane; first < groups; first += gridDim.x * blockDim.x) {
        const int count = min(32, groups - first);
        Rgb value[4];
        if (lane < count) {
            float r[4], g[4], b[4];
            const float *at = image + 4ll * (first + lane);
            load_floats(at, r);
            load_floats(at + plane_stride, g);
            load_floats(at + 2 * plane_stride, b);
            bool tame = COMMON;
#pragma unroll
            for (int i = 0; i < 4; i++) {
                tame = tame && is_tame({r[i], g[i], b[i]});
            }
            // One question for four pixels; the other way is for images with values that no camera gave.
            if (tame) {
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    value[i] = fast_levels<false>({r[i], g[i], b[i]}, jitter);
                }
            } else {
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    value[i] = jittered_floats({r[i], g[i], b[i]}, jitter);
                }
            }
#pragma unroll
            for (int i = 0; i < 4; i++) {
                value[i] = values_of(T(), value[i], COMMON ? Normalize{} : normalize);
            }
        }
        store_groups<T>(out, groups, blockIdx.y, first, count, value);
    }
}

/// One pixel a thread, of anything.
template <class T>
__device__ __forceinline__ void pack_pixels(
    const float *image, long long plane_stride, long long pixel_stride, long long pixels, const Jitter &jitter,
    const Tensor &out, const Normalize &normalize) {
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < pixels; i += step) {
        const float *at = image + i * pixel_stride;
        const Rgb level = jittered_floats({at[0], at[plane_stride], at[2 * plane_stride]}, jitter);
        store_pixel<T>(out, pixels, blockIdx.y, i, level, normalize);
    }
}

/// `FOURS` promises sizes, strides and addresses that groups of four pixels can have, and a pixel stride of 1.
template <class T, bool FOURS>
__device__ __forceinline__ void pack_floats(EF_PACK_FLOATS_PARAMETERS) {
    const Jitter jitter = read_gains<false>(gains, blockIdx.y);
    const long long pixels = (long long)width * height;
    const float *image = base + blockIdx.y * sample_stride;
    if (FOURS && jitter.way == EF_FAST && !nchw && std0 == 0.0f) {
        pack_groups<T, true>(image, plane_stride, pixels, jitter, {out, nchw}, Normalize{});
        return;
    }
    const Normalize normalize = read_normalize(mean0, mean1, mean2, std0, std1, std2);
    if (FOURS && jitter.way != EF_DEFINED && normalize.kind != EF_BY_DIVISION) {
        pack_groups<T, false>(image, plane_stride, pixels, jitter, {out, nchw}, normalize);
    } else {
        pack_pixels<T>(image, plane_stride, pixel_stride, pixels, jitter, {out, nchw}, normalize);
    }
}

#define EF_PACK_FLOATS(NAME, TYPE, FOURS)                                                                              \
    extern "C" __global__ void NAME(EF_PACK_FLOATS_PARAMETERS) {                                                       \
        pack_floats<TYPE, FOURS>(base, sample_stride, plane_stride, pixel_stride, width, height, gains, out, nchw,     \
                                 mean0, mean1, mean2, std0, std1, std2);                                               \
    }

EF_PACK_FLOATS(epochfeed_pack_floats_float32, Float32, true)
EF_PACK_FLOATS(epochfeed_pack_floats_float16, Float16, true)
EF_PACK_FLOATS(epochfeed_pack_floats_bfloat16, Bfloat16, true)
EF_PACK_FLOATS(epochfeed_pack_floats_uint8, Uint8, true)
EF_PACK_FLOATS(epochfeed_pack_any_floats_float32, Float32, false)
EF_PACK_FLOATS(epochfeed_pack_any_floats_float16, Float16, false)
EF_PACK_FLOATS(epochfeed_pack_any_floats_bfloat16, Bfloat16, false)
EF_PACK_FLOATS(epochfeed_pack_any_floats_uint8, Uint8, false)
