/*
 * expert_capacity.h: how many rows of one rank an expert takes at most.
 */
#ifndef FR_PLAN_DECIDE_EXPERT_CAPACITY_H
#define FR_PLAN_DECIDE_EXPERT_CAPACITY_H

#include "plan/decide/plan.h"

#include <math.h>

/*
 * Returns the most copies of tokens that may go to one expert, if a rank routes
 * `rows` tokens of a micro-batch with top_k copies each: their mean over all
 * experts times the plan's factor, rounded up (Megatron-LM,
 * core/transformer/moe/moe_utils.py, get_capacity()), and never more than all.
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
