// Step 6: what one sample's jitter is, in the form that the arithmetic takes.

#pragma once

#include "exact.cuh"

/// Which code a sample takes. It is the same for all threads of a block.
enum Way {
    /// No jitter: quantize and restore only.
    EF_PLAIN,
    /// The fast formulation.
    EF_FAST,
    /// The definition, for gains that are legal but beyond every use.
    EF_DEFINED,
};

struct Jitter {
    float dh;   // added to the hue, in turns
    float turn; // what brings a hue that dh moved out of [0, 1] back: one turn against the sign of dh
    float ks;   // multiplies the saturation
    float kv;   // multiplies the value
    Way way;
};

/// Reads the gains of `sample` from a [batch, 3] array, which may be absent.
///
/// `IDENTITY` says that zero gains leave every input as it is after quantizing, which holds for uint8 pixels (a test
/// proves it for all 2^24 colours) and not for float32 ones.
template <bool IDENTITY>
__device__ __forceinline__ Jitter read_gains(const double *gains, int sample) {
    Jitter jitter = {0.0f, 0.0f, 1.0f, 1.0f, EF_PLAIN};
    if (gains) {
        gains += 3 * (long long)sample;
        jitter.dh = (float)gains[0];
        jitter.turn = jitter.dh < 0.0f ? 1.0f : -1.0f;
        // The addition is float64, as in eager PyTorch with Python numbers.
        jitter.ks = (float)(1.0 + gains[1]);
        jitter.kv = (float)(1.0 + gains[2]);
        // A saturation of 0 * infinity would have to stay NaN, which clamping instructions make 0.
        const bool fast = fabsf(jitter.dh) <= 1.0f && fabsf(jitter.ks) <= 3.0e38f;
        jitter.way = fast ? EF_FAST : EF_DEFINED;
        if (IDENTITY && jitter.dh == 0.0f && jitter.ks == 1.0f && jitter.kv == 1.0f) {
            jitter.way = EF_PLAIN;
        }
    }
    return jitter;
}

/// The same gains, of which the compiler knows that they are for the fast formulation.
__device__ __forceinline__ Jitter fast(const Jitter &jitter) {
    return {jitter.dh, jitter.turn, jitter.ks, jitter.kv, EF_FAST};
}
