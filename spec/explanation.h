/*
 * explanation.h: the answer of explain: what the step time of a plan follows,
 * what binds it, and what a single change of the plan would do.
 */
#ifndef FR_SPEC_EXPLANATION_H
#define FR_SPEC_EXPLANATION_H

#include "core/err.h"
#include "spec/tuning.h"

/* What a step is spent on, and what more of would shorten it. */
typedef enum fr_resource {
    FR_RESOURCE_FLOPS,        /* arithmetic; CPUs: all that kernels do */
    FR_RESOURCE_MEMORY_RATE,  /* of a device */
    FR_RESOURCE_NODE_LINKS,   /* NVLink, PCIe: inside a node */
    FR_RESOURCE_NETWORK,      /* NICs and all that is behind them */
    FR_RESOURCE_SWITCHES,     /* of that what is narrower than the NICs below:
                                 oversubscribed trees, links between groups */
    FR_RESOURCE_NODE_LATENCY, /* of a transfer inside a node */
    FR_RESOURCE_NET_LATENCY,  /* between nodes */
    FR_RESOURCE_N
} fr_resource;

const char *fr_resource_name(fr_resource resource);  /* the JSON key */
const char *fr_resource_title(fr_resource resource); /* "NVLink, PCIe" */

/*
 * Elasticity: d ln step / d ln x by simulating again with x changed a little
 * both ways; -0.6 of a rate: 1 % more of it makes the step 0.6 % shorter.
 * Latencies have positive ones.
 */
typedef struct fr_sensitivity {
    bool is_known; /* false: the cluster has no such thing */
    double elasticity;
    double less_s, more_s; /* steps with x smaller and larger */
} fr_sensitivity;

/* One change of the plan. */
typedef struct fr_plan_change {
    char what[48];            /* "tp 4 -> 8" */
    char plan[FR_TUNED_NAME]; /* fr_plan_describe */
    bool fits;
    double step_s; /* 0: too large to say */
    double diff;   /* step / that of the plan - 1 */
    uint64_t peak_bytes, short_by_bytes;
    char why[160]; /* "-12 % exposed tp, +2 % bubble" */
} fr_plan_change;

#define FR_PLAN_CHANGES 96

typedef struct fr_explanation {
    fr_prediction prediction;
    fr_sensitivity of[FR_RESOURCE_N];
    double changed_by; /* factor of x, such as 1.02 */
    /* Of the step: what follows each resource (minus the elasticity of a rate,
     * the elasticity of a latency; of the network without its switches) with
     * the bubble taken out of all of them, and the rest, times that nothing
     * changes (launches of kernels). */
    double share[FR_RESOURCE_N], bubble_share, fixed_share;
    char bound_by[24]; /* largest share: name of a resource, "bubble", or
                          "memory" when the plan does not fit */
    fr_plan_change changes[FR_PLAN_CHANGES]; /* that fit, fastest first; then
                                                those that do not */
    int n_changes, n_fitting;
    int i_more_memory; /* faster than all that fit, but too large; of several
                          the one that is short by least; -1: none */
    int n_illegal;
} fr_explanation;

#endif
