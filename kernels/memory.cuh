// Accesses that say that their address is in global memory: one that came out of a table would otherwise be looked up
// in all address spaces each time.

#pragma once

/// `CONSTANT`: nothing writes there while the kernel runs.
template <bool CONSTANT>
__device__ __forceinline__ unsigned load_word(const void *at) {
    unsigned w;
    if (CONSTANT) {
        asm("ld.global.nc.u32 %0, [%1];" : "=r"(w) : "l"(at));
    } else {
        asm volatile("ld.global.u32 %0, [%1];" : "=r"(w) : "l"(at) : "memory");
    }
    return w;
}

template <bool CONSTANT>
__device__ __forceinline__ uint2 load_two_words(const void *at) {
    uint2 w;
    if (CONSTANT) {
        asm("ld.global.nc.v2.u32 {%0, %1}, [%2];" : "=r"(w.x), "=r"(w.y) : "l"(at));
    } else {
        asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(w.x), "=r"(w.y) : "l"(at) : "memory");
    }
    return w;
}

template <bool CONSTANT>
__device__ __forceinline__ uint4 load_four_words(const void *at) {
    uint4 w;
    if (CONSTANT) {
        asm("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(w.x), "=r"(w.y), "=r"(w.z), "=r"(w.w) : "l"(at));
    } else {
        asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(w.x), "=r"(w.y), "=r"(w.z), "=r"(w.w)
                     : "l"(at)
                     : "memory");
    }
    return w;
}

/// Stores `OFFSET` bytes behind `at`. As a number in the instruction it costs no addition.
template <int OFFSET = 0>
__device__ __forceinline__ void store(void *at, unsigned w) {
    asm volatile("st.global.u32 [%0 + %1], %2;" : : "l"(at), "n"(OFFSET), "r"(w) : "memory");
}

template <int OFFSET = 0>
__device__ __forceinline__ void store(void *at, uint2 w) {
    asm volatile("st.global.v2.u32 [%0 + %1], {%2, %3};" : : "l"(at), "n"(OFFSET), "r"(w.x), "r"(w.y) : "memory");
}

template <int OFFSET = 0>
__device__ __forceinline__ void store(void *at, uint4 w) {
    asm volatile("st.global.v4.u32 [%0 + %1], {%2, %3, %4, %5};"
                 :
                 : "l"(at), "n"(OFFSET), "r"(w.x), "r"(w.y), "r"(w.z), "r"(w.w)
                 : "memory");
}
