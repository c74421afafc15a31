/*
 * labels.h: what is to be told of a whole sample, which depends on (seed, step,
 * sample) alone: the class of an image, or whether the halves of a text are
 * swapped (sentence order: Lan et al. 2019, ALBERT, arXiv 1909.11942, section
 * 3.1).
 */
#ifndef FR_SPEC_MODEL_LABELS_H
#define FR_SPEC_MODEL_LABELS_H

#include "core/numbers/rng.h"

/* Positions are drawn from 1 on (masked tokens): 0 is free. */
static inline int32_t fr_sample_label(uint64_t seed, int64_t i_step,
                                      int64_t sample, int64_t n_labels)
{
    return (
        int32_t)(fr_hash_uniform(seed, (uint64_t)i_step, (uint64_t)sample, 0) *
                 (double)n_labels);
}

/* Is 1 where the halves are swapped. */
enum { FR_ORDER_LABELS = 2 };

#endif
