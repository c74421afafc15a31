/*
 * dropout.h: which elements are dropped.
 *
 * Random bits are a function of where an element stands in training: seed,
 * step, layer, place in the layer, sequence of the global batch, position, and
 * feature or head and key.  So the mask does not depend on how ranks share the
 * work, and what is computed again is dropped again.
 */
#ifndef FR_KERNELS_CPU_DROPOUT_DROPOUT_H
#define FR_KERNELS_CPU_DROPOUT_DROPOUT_H

#include "kernels/cpu/kernels_cpu.h"

/* Philox4x32-10 (Salmon et al., SC 2011): four words of a counter. */
void fr_philox(const uint32_t counter[4], const uint32_t key[2],
               uint32_t out[4]);

/* A row of elements that are dropped by themselves. */
typedef struct fr_dropout_row {
    uint32_t key[2];
    uint32_t word[3]; /* counters but for the element's */
    double rate;
} fr_dropout_row;

/* out[i]: 0 where element first + i is dropped, else 1 / (1 - rate). */
void fr_dropout_factors(const fr_dropout_row *row, int64_t first, int64_t n,
                        float *out);

/* The same of keys [first, first + n) that a query sees: of a local sequence, a
 * local head, at a position. */
void fr_dropout_keys(const fr_kernel_call *call, const int64_t query[3],
                     int64_t first, int64_t n, float *out);

#endif
