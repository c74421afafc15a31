/*
 * hash.cuh: the counter-based random numbers of rng.c and
 * kernels_compress.c on the device: the same bits for the same counters.
 */
#ifndef FR_RUNTIME_KERNELS_CUDA_HASH_CUH
#define FR_RUNTIME_KERNELS_CUDA_HASH_CUH

#include "runtime/kernels_cuda/kernel_launch.cuh"

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
