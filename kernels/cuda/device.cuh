/*
 * device.cuh: what the CUDA kernels share on the device: 16-bit floats, loads
 * of 16 bytes, sums over a warp or a block, random numbers.  For .cu files
 * only; kernel_launch.cuh has the host's side of them.
 *
 * Tests compile the same files as C++ for the CPU (FR_EMULATED): so shared
 * memory of a size known at the launch, and the instructions that CUDA's C++
 * has no word for (ptx.cuh), go through names of our own.
 *
 * All arithmetic is in fp32; a 16-bit float is rounded once, when stored.
 */
#ifndef FR_KERNELS_CUDA_DEVICE_CUH
#define FR_KERNELS_CUDA_DEVICE_CUH

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime.h>

#define FR_DEVICE __device__ __forceinline__

#ifdef FR_EMULATED
#define FR_SHARED(name) char *name = emulator_shared()
#else
#define FR_SHARED(name) extern __shared__ __align__(16) char name[]
#endif

struct bf16 {
    uint16_t bits;
};

FR_DEVICE float to_float(float x)
{
    return x;
}

FR_DEVICE float to_float(bf16 x)
{
    return __uint_as_float((unsigned)x.bits << 16);
}

/* Round to nearest, ties to even; a NaN stays a (quiet) NaN. */
FR_DEVICE uint16_t bf16_bits(float x)
{
#ifndef FR_EMULATED
    uint16_t out;
    asm("cvt.rn.bf16.f32 %0, %1;\n" : "=h"(out) : "f"(x));
    return out;
#else
    unsigned bits = __float_as_uint(x);
    unsigned rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
    bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
    return (uint16_t)(is_nan ? (bits >> 16) | 0x40U : rounded);
#endif
}

FR_DEVICE void store(float *at, float x)
{
    *at = x;
}

FR_DEVICE void store(bf16 *at, float x)
{
    at->bits = bf16_bits(x);
}

/* ---- packs: as many elements as 16 bytes hold, or one -------------------- */

/* Elements of T that a thread moves at once. */
template <class T> __host__ FR_DEVICE constexpr int pack_of()
{
    return 16 / (int)sizeof(T);
}

/* x[0..N) as floats; 16-byte aligned where N fills whole 16 bytes. */
template <int N, class T> FR_DEVICE void load(float (&out)[N], const T *x)
{
    if constexpr (N * sizeof(T) % 16 == 0) {
        union {
            uint4 words[N * sizeof(T) / 16];
            T items[N];
        } at;
#pragma unroll
        for (int i = 0; i < (int)(N * sizeof(T) / 16); i++)
            at.words[i] = reinterpret_cast<const uint4 *>(x)[i];
#pragma unroll
        for (int i = 0; i < N; i++)
            out[i] = to_float(at.items[i]);
    } else {
#pragma unroll
        for (int i = 0; i < N; i++)
            out[i] = to_float(x[i]);
    }
}

template <int N, class T> FR_DEVICE void store(T *x, const float (&from)[N])
{
    if constexpr (N * sizeof(T) % 16 == 0) {
        union {
            uint4 words[N * sizeof(T) / 16];
            T items[N];
        } at;
#pragma unroll
        for (int i = 0; i < N; i++)
            store(&at.items[i], from[i]);
#pragma unroll
        for (int i = 0; i < (int)(N * sizeof(T) / 16); i++)
            reinterpret_cast<uint4 *>(x)[i] = at.words[i];
    } else {
#pragma unroll
        for (int i = 0; i < N; i++)
            store(&x[i], from[i]);
    }
}

/* A pack as it lies in memory: half the registers of its floats where elements
 * have 16 bits, so a thread can keep more of them. */
FR_DEVICE uint4 load_words(const void *at)
{
    return *reinterpret_cast<const uint4 *>(at);
}

template <class T> FR_DEVICE void widen(float (&out)[pack_of<T>()], uint4 words)
{
    union {
        uint4 words;
        T items[pack_of<T>()];
    } at = {words};
#pragma unroll
    for (int i = 0; i < pack_of<T>(); i++)
        out[i] = to_float(at.items[i]);
}

/* Floats that are needed again are made again from the words: without this the
 * compiler would keep them, in twice the registers. */
FR_DEVICE void forget_floats(uint4 *words)
{
#ifndef FR_EMULATED
    asm volatile(""
                 : "+r"(words->x), "+r"(words->y), "+r"(words->z),
                   "+r"(words->w));
#else
    (void)words;
#endif
}

/* ---- sums, in an order that depends on the launch alone ------------------ */

struct sum_of {
    template <class T> FR_DEVICE T operator()(T a, T b) const
    {
        return a + b;
    }
};

struct max_of {
    FR_DEVICE float operator()(float a, float b) const
    {
        return a > b || a != a ? a : b; /* a NaN stays */
    }
};

template <class T, class F> FR_DEVICE T warp_reduce(T x, F f)
{
#pragma unroll
    for (int mask = 16; mask > 0; mask /= 2)
        x = f(x, __shfl_xor_sync(0xffffffffU, x, mask));
    return x;
}

template <class T> FR_DEVICE T warp_sum(T x)
{
    return warp_reduce(x, sum_of());
}

/* Over a team of N neighbouring threads: a warp, or the whole block; every
 * thread has the result.  `room`: N / 32 values of shared memory. */
template <int N, class T, class F> FR_DEVICE T team_reduce(T x, T *room, F f)
{
    x = warp_reduce(x, f);
    if constexpr (N > 32) {
        const int warp = (int)threadIdx.x / 32;
        if (threadIdx.x % 32 == 0)
            room[warp] = x;
        __syncthreads();
        x = room[0];
        for (int i = 1; i < N / 32; i++)
            x = f(x, room[i]);
        __syncthreads();
    }
    return x;
}

template <int N, class T> FR_DEVICE T team_sum(T x, T *room)
{
    return team_reduce<N>(x, room, sum_of());
}

/* ---- random numbers ----------------------------------------------------- */

/* Counter-based: the same bits for the same counters as rng.c and
 * kernels_compress.c give on the CPU. */

FR_DEVICE uint64_t hash_mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9U;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebU;
    return x ^ x >> 31;
}

#define HASH_GOLDEN 0x9e3779b97f4a7c15U /* 2^64 / golden ratio */

FR_DEVICE uint64_t hash_u64(uint64_t seed, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t x = hash_mix(seed + HASH_GOLDEN);
    x = hash_mix((x ^ a) + HASH_GOLDEN);
    x = hash_mix((x ^ b) + HASH_GOLDEN);
    return hash_mix((x ^ c) + HASH_GOLDEN);
}

FR_DEVICE double hash_unit(uint64_t word)
{
    return (double)(word >> 11) * 0x1p-53;
}

FR_DEVICE double hash_normal(uint64_t seed, uint64_t a, uint64_t b, uint64_t c)
{
    const uint64_t word = hash_u64(seed, a, b, c);
    const double radius = 1 - hash_unit(word);
    const double angle = hash_unit(hash_mix(word + HASH_GOLDEN));
    return sqrt(-2 * log(radius)) * cos(2 * 3.14159265358979323846 * angle);
}

/* Well-mixed 32 bits of a counter (Ellis's "lowbias32" constants). */
FR_DEVICE uint32_t mix32(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352dU;
    x ^= x >> 15;
    x *= 0x846ca68bU;
    return x ^ x >> 16;
}

#endif
