// The arithmetic as plainly as it can be written, one pixel a thread: what the kernels under test are compared with,
// and itself compared with the published digests and with eager PyTorch. Compiled here with --fmad=false.

static __device__ float maximum(float a, float b) { return a != a ? a : b != b ? b : a > b ? a : b; }
static __device__ float minimum(float a, float b) { return a != a ? a : b != b ? b : a < b ? a : b; }
static __device__ float clamp(float x) { return x != x ? x : x < 0.0f ? 0.0f : x > 1.0f ? 1.0f : x; }

static __device__ unsigned char quantize(float x) {
    const float y = rintf(x * 255.0f);
    return y != y || y < 0.0f ? 0 : y > 255.0f ? 255 : (unsigned char)y;
}

static __device__ void jitter(float r, float g, float b, const double *gains, unsigned char *out) {
    const float maxc = maximum(maximum(r, g), b), minc = minimum(minimum(r, g), b);
    const bool eqc = maxc == minc;
    const float cr = maxc - minc;
    float s = cr / (eqc ? 1.0f : maxc);
    const float d = eqc ? 1.0f : cr;
    const float rc = (maxc - r) / d, gc = (maxc - g) / d, bc = (maxc - b) / d;
    const float hr = (float)(maxc == r) * (bc - gc);
    const float hg = (float)(maxc == g && maxc != r) * (2.0f + rc - bc);
    const float hb = (float)(maxc != g && maxc != r) * (4.0f + gc - rc);
    float h = hr + hg + hb;
    h = fmodf(h * (1.0f / 6.0f) + 1.0f, 1.0f);
    h = fmodf(h + (float)gains[0], 1.0f);
    if (h != 0.0f && h < 0.0f) {
        h = h + 1.0f;
    }
    s = clamp(s * (float)(1.0 + gains[1]));
    const float v = clamp(maxc * (float)(1.0 + gains[2]));
    const float h6 = h * 6.0f, i = floorf(h6), f = h6 - i;
    const float p = clamp(v * (1.0f - s)), q = clamp(v * (1.0f - s * f)), t = clamp(v * (1.0f - s * (1.0f - f)));
    float x = v, y = t, z = p;
    switch ((int)i % 6) {
        case 1: x = q, y = v, z = p; break;
        case 2: x = p, y = v, z = t; break;
        case 3: x = p, y = q, z = v; break;
        case 4: x = t, y = p, z = v; break;
        case 5: x = v, y = p, z = q; break;
    }
    out[0] = quantize(x);
    out[1] = quantize(y);
    out[2] = quantize(z);
}

extern "C" __global__ void jitter_floats(const float *rgb, long long pixels, const double *gains, unsigned char *out) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < pixels) {
        jitter(rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2], gains, out + 3 * i);
    }
}

extern "C" __global__ void jitter_bytes(
    const unsigned char *rgb, long long pixels, const double *gains, unsigned char *out) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const float c = 1.0f / 255.0f;
    if (i < pixels) {
        jitter((float)rgb[3 * i] * c, (float)rgb[3 * i + 1] * c, (float)rgb[3 * i + 2] * c, gains, out + 3 * i);
    }
}

/// As many bytes in as out, 16 at a time: the ceiling beside the driver's own copy.
extern "C" __global__ void copy(const uint4 *from, uint4 *to, long long count) {
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        to[i] = from[i];
    }
}
