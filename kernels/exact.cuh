// Single float32 operations whose rounding or clamping C++ cannot name.
//
// The sources are compiled without contraction (`--fmad=false`), so that `a * b + c` is two roundings everywhere. A
// fused multiply-add appears only where one rounding is what is wanted, and only as one of the functions below: the
// comment in its assembly is the name under which generate.py allows it, and any other one in the PTX is an error.

#pragma once

/// 2^23. The float32 numbers from here to 2^24 are the integers, so that adding it rounds to an integer, ties to even,
/// and the lowest bits of the sum are that integer. "A level" below is 2^23 + (0 to 255).
#define EF_INTEGERS 8388608.0f

/// float32(1/255) and float32(1/6): PyTorch's CUDA kernels multiply by the reciprocal of a constant divisor.
#define EF_INV_255 (1.0f / 255.0f)
#define EF_INV_6 (1.0f / 6.0f)

/// A level's number, float32(level) * float32(1/255).
///
/// (2^23 + u) * c - 2^23 * c is u * c before rounding, and 2^23 * c is a float32, so the one rounding here is that of
/// the multiplication in the definition.
__device__ __forceinline__ float restore(float level) {
    float y;
    asm("fma.rn.f32 %0, %1, %2, %3; // exact:restore"
        : "=f"(y)
        : "f"(level), "f"(EF_INV_255), "f"(-EF_INTEGERS * EF_INV_255));
    return y;
}

/// a - q * d, which is a float32 when q is the quotient a / d but for a few units in the last place and nothing
/// underflows. That is the only use.
__device__ __forceinline__ float residual(float a, float q, float d) {
    float r;
    asm("fma.rn.f32 %0, %1, %2, %3; // exact:residual" : "=f"(r) : "f"(-q), "f"(d), "f"(a));
    return r;
}

/// base + rest * y, rounded once: a step towards a quotient or a reciprocal.
__device__ __forceinline__ float improve(float base, float rest, float y) {
    float q;
    asm("fma.rn.f32 %0, %1, %2, %3; // exact:improve" : "=f"(q) : "f"(rest), "f"(y), "f"(base));
    return q;
}

/// 1 / x with a relative error of 2^-23 at most; infinite for zero and (flushed) subnormal numbers.
__device__ __forceinline__ float approximate_reciprocal(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/// clamp(a * b, 0, 1); NaN becomes 0. The clamp costs nothing, it is a flag of the instruction.
__device__ __forceinline__ float mul_unit(float a, float b) {
    float y;
    asm("mul.rn.sat.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
}

/// clamp(a + b, 0, 1); NaN becomes 0.
__device__ __forceinline__ float add_unit(float a, float b) {
    float y;
    asm("add.rn.sat.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
}

/// clamp(a - b, 0, 1); NaN becomes 0.
__device__ __forceinline__ float sub_unit(float a, float b) {
    float y;
    asm("sub.rn.sat.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
}
