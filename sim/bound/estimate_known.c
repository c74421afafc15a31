/*
 * estimate_known.c: what the estimator has no closed form for.  One row for
 * each: fr_estimate_knows(), the refusals of fr_estimate_plan() and the plan
 * that stands for such a one in searches are all made from this list.
 */
#include "plan/collective/collective.h"
#include "sim/bound/estimate.h"

typedef struct unknown {
    bool (*has)(const fr_plan *plan);
    void (*leave)(fr_plan *plan); /* the nearest plan without it */
    const char *text;
} unknown;

static bool has_offload(const fr_plan *plan)
{
    return plan->activation_offload_frac > 0;
}

static void leave_offload(fr_plan *plan)
{
    plan->activation_offload_frac = 0;
}

static bool has_small_units(const fr_plan *plan)
{
    return plan->zero_stage == 3 &&
           plan->execution.zero_unit != FR_ZERO_UNIT_LAYER;
}

static void leave_small_units(fr_plan *plan)
{
    plan->execution.zero_unit = FR_ZERO_UNIT_LAYER;
}

static bool has_servers(const fr_plan *plan)
{
    return fr_collective_is_by_servers(plan->collective);
}

static void leave_servers(fr_plan *plan)
{
    plan->collective = FR_COLLECTIVE_AUTO;
}

static bool has_dispatch(const fr_plan *plan)
{
    return plan->expert_dispatch != FR_DISPATCH_ALL_TO_ALL;
}

static void leave_dispatch(fr_plan *plan)
{
    plan->expert_dispatch = FR_DISPATCH_ALL_TO_ALL;
}

static const unknown all_unknown[] = {
    {has_offload, leave_offload,
     "no estimate of offloaded activations; choose to simulate"},
    {has_small_units, leave_small_units,
     "no estimate of gathers by parameter; choose to simulate, or zero_unit "
     "layer"},
    {has_servers, leave_servers,
     "no estimate of parameter servers; choose to simulate, or collective "
     "auto"},
    {has_dispatch, leave_dispatch,
     "no estimate of dispatch by node; choose to simulate"},
};
enum { N_UNKNOWN = sizeof all_unknown / sizeof all_unknown[0] };

const char *fr_estimate_unknown(const fr_plan *plan)
{
    for (int i = 0; i < N_UNKNOWN; i++)
        if (all_unknown[i].has(plan))
            return all_unknown[i].text;
    return NULL;
}

bool fr_estimate_knows(const fr_plan *plan)
{
    return fr_estimate_unknown(plan) == NULL;
}

void fr_estimate_leave_unknown(const fr_plan *plan, fr_plan *out)
{
    *out = *plan;
    for (int i = 0; i < N_UNKNOWN; i++)
        if (all_unknown[i].has(plan))
            all_unknown[i].leave(out);
}
