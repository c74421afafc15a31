/*
 * bucket_cut.h: where gradient buckets begin.  Units of parameters come in the
 * order in which backward completes them; a bucket takes them until it has the
 * bytes wanted.  Experts and the rest are never together, since other ranks sum
 * them, and what stands alone (the tied matrix, which both of its holders sum
 * in the same order) has a bucket of its own.
 */
#ifndef FR_PLAN_OUTLINE_BUCKET_CUT_H
#define FR_PLAN_OUTLINE_BUCKET_CUT_H

#include "plan/decide/plan.h"

typedef struct fr_bucket_cut {
    uint64_t wanted_bytes, element_bytes;
    bool is_each; /* every unit is a bucket */
    bool is_open, is_expert;
    uint64_t n; /* elements of the bucket so far, without its padding */
} fr_bucket_cut;

static inline fr_bucket_cut fr_bucket_cut_of(const fr_plan *plan)
{
    return (fr_bucket_cut){.wanted_bytes = plan->bucket_bytes,
                           .element_bytes = fr_dtype_bytes(plan->grad_dtype),
                           .is_each = plan->zero_stage >= 2};
}

/* The next unit, of n elements: does a bucket begin with it? */
static inline bool fr_bucket_cut_next(fr_bucket_cut *cut, uint64_t n,
                                      bool is_expert, bool is_alone)
{
    bool is_begin = !cut->is_open || is_alone || is_expert != cut->is_expert;
    cut->n = n + (is_begin ? 0 : cut->n);
    cut->is_expert = is_expert;
    cut->is_open = !is_alone && !cut->is_each &&
                   (cut->wanted_bytes == 0 ||
                    cut->n * cut->element_bytes < cut->wanted_bytes);
    return is_begin;
}

#endif
