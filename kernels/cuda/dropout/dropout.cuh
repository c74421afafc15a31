/*
 * dropout.cuh: which elements are dropped, on the device: the same bits as
 * kernels/cpu/dropout has for the same place in training.  For .cu files in
 * runtime/ only.
 */
#ifndef FR_KERNELS_CUDA_DROPOUT_DROPOUT_CUH
#define FR_KERNELS_CUDA_DROPOUT_DROPOUT_CUH

#include "kernels/cuda/kernel_launch.cuh"

extern "C" {
#include "core/numbers/rng.h"
}

/* Philox4x32-10 (Salmon et al., SC 2011): four words of a counter. */
FR_DEVICE uint4 philox(uint4 counter, uint32_t k0, uint32_t k1)
{
#pragma unroll
    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)counter.x * 0xd2511f53U;
        const uint64_t b = (uint64_t)counter.z * 0xcd9e8d57U;
        counter = {(uint32_t)(b >> 32) ^ counter.y ^ k0, (uint32_t)b,
                   (uint32_t)(a >> 32) ^ counter.w ^ k1, (uint32_t)a};
        k0 += 0x9e3779b9U;
        k1 += 0xbb67ae85U;
    }
    return counter;
}

/* The values that all elements of an instruction share.  The step is read where
 * the kernel runs, so that one graph of launches serves all steps. */
struct drop_place {
    const fr_cuda_step *step;
    uint32_t key[2]; /* of the seed */
    uint32_t place;  /* the layer's, and the one in it */
    uint32_t limit;  /* words below it drop their element */
    float scale;     /* of the others */
};

/* `place`: see kernels_dropout.c; a rate of 0 drops nothing. */
static inline drop_place drop_place_of(const fr_cuda_launch *launch, int place,
                                       double rate)
{
    enum { N_PLACES = 4 };
    const fr_kernel_call *call = &launch->call;
    const uint64_t seed = fr_hash_u64(call->job->seed, 0x64726f70, 0, 0);
    return {launch->step,
            {(uint32_t)seed, (uint32_t)(seed >> 32)},
            (uint32_t)(call->layer * N_PLACES + place),
            (uint32_t)(rate * 0x1p32),
            (float)(1.0 / (1.0 - rate))};
}

/* The words of elements 4 `group` to 4 group + 3 of a row, which is named by
 * its place in a sequence and by the sequence (and head). */
FR_DEVICE uint4 drop_words(const drop_place &at, uint32_t group,
                           uint32_t position, uint32_t sequence)
{
    return philox({group, position, sequence, at.place}, at.key[0],
                  at.key[1] ^ (uint32_t)at.step->i_step);
}

FR_DEVICE uint32_t word_of(const uint4 &words, int i)
{
    const uint32_t low = i % 2 ? words.y : words.x;
    const uint32_t high = i % 2 ? words.w : words.z;
    return i % 4 < 2 ? low : high;
}

/* 0 where the element is dropped, else the scale. */
FR_DEVICE float drop_factor(const drop_place &at, const uint4 &words, int i)
{
    return word_of(words, i) < at.limit ? 0.0F : at.scale;
}

#endif
