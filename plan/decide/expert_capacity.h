/*
 * expert_capacity.h: how many rows of one rank an expert takes at most.
 */
#ifndef FR_PLAN_DECIDE_EXPERT_CAPACITY_H
#define FR_PLAN_DECIDE_EXPERT_CAPACITY_H

#include "plan/decide/plan.h"

#include <math.h>

/*
 * Of `rows` tokens of a micro-batch that a rank routes, top_k copies each, so
 * many go to one expert: their mean over all experts times the plan's factor,
 * rounded up (Megatron-LM, core/transformer/moe/moe_utils.py, get_capacity()),
 * and never more than all.
 */
static inline int64_t fr_expert_capacity(const fr_plan *plan, int64_t rows,
                                         int64_t top_k, int64_t n_experts)
{
    const double mean = (double)(rows * top_k) / (double)n_experts;
    const double most = ceil(mean * plan->expert_capacity);
    return plan->expert_capacity > 0 && most < (double)rows ? (int64_t)most
                                                            : rows;
}

#endif
