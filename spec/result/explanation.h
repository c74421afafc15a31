/*
 * explanation.h: the answer of explain: what the step time of a plan follows,
 * what binds it, and what a single change of the plan would do.
 */
#ifndef FR_SPEC_RESULT_EXPLANATION_H
#define FR_SPEC_RESULT_EXPLANATION_H

#include "core/base/err.h"
#include "spec/result/tuning.h"

/* A resource that a step spends time on, and of which more would shorten it. */
typedef enum fr_resource {
    FR_RESOURCE_FLOPS,        /* arithmetic; CPUs: all that kernels do */
    FR_RESOURCE_MEMORY_RATE,  /* of a device */
    FR_RESOURCE_NODE_LINKS,   /* NVLink, PCIe: inside a node */
    FR_RESOURCE_NETWORK,      /* NICs and all that is behind them */
    FR_RESOURCE_SWITCHES,     /* of that what is narrower than the NICs below:
                                 oversubscribed trees, links between groups */
    FR_RESOURCE_HOST,         /* of GPUs: links to the host, its memory */
    FR_RESOURCE_INPUT,        /* samples read and decoded per second */
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
    bool is_known; /* false: the cluster has no such thing, or the plan does
                      not wait for it */
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
    double p_fits; /* how likely it fits */
    char why[160]; /* "-12 % exposed tp, +2 % bubble" */
    fr_run_features features;
} fr_plan_change;

/* The plan to run next: of the plan and its changes, the one whose measured
 * step best decides between the plan and its fastest change. */
typedef struct fr_measurement {
    char what[48], plan[FR_TUNED_NAME]; /* "this plan", or a change */
    char rival[48];    /* that change; "": there is none, of the plan alone */
    double half_width; /* of the 90 % interval of the ratio of their steps */
    double narrows;    /* by which share of it */
} fr_measurement;

#define FR_PLAN_CHANGES 96

/* The effect of a compressor of gradients on the step. */
typedef enum fr_verdict {
    FR_VERDICT_PAYS,      /* shorter than without, and fits */
    FR_VERDICT_NOT,       /* no shorter */
    FR_VERDICT_TOO_LARGE, /* its state does not fit */
    FR_VERDICT_ILLEGAL    /* not with this plan */
} fr_verdict;

const char *fr_verdict_name(fr_verdict verdict); /* the JSON value */

/* Rates at which it is shorter: multiples of what the cluster has.  An end
 * that lies outside of what was looked at is 0 or INFINITY. */
typedef struct fr_rate_range {
    double from, to;
} fr_rate_range;

#define FR_RATE_RANGES 6

/* One compressor, everything else as in the plan. */
typedef struct fr_compression {
    char name[32];    /* "powersgd-r4" */
    bool is_gathered; /* its payloads cannot be added */
    fr_verdict verdict;
    char why[200]; /* ILLEGAL */
    double step_s; /* on the cluster as it is */
    double diff;   /* step / that without compression - 1 */
    uint64_t peak_bytes, short_by_bytes;
    fr_rate_range pays[FR_RATE_RANGES]; /* ascending */
    int n_pays;
} fr_compression;

#define FR_COMPRESSIONS 8

/*
 * The rate at which compressors of gradients begin to pay: the rate of the
 * links that the gradients cross is multiplied by least to most, and every plan
 * simulated.
 */
typedef struct fr_break_even {
    fr_resource link; /* NETWORK, or NODE_LINKS: no gradient leaves a node */
    double link_Bps;  /* of a NIC, of a device's port; 0: not known */
    double least, most;
    double plain_s; /* the step of the plan without a compressor */
    bool plain_fits;
    fr_compression of[FR_COMPRESSIONS];
    int n; /* 0: no data parallelism */
} fr_break_even;

/* A part that the cluster file calls slow. */
typedef struct fr_slow_part {
    char name[128];                    /* "rack0-3", "rack0-3 device 5" */
    double compute_frac, network_frac; /* of its normal speed */
    double step_s;                     /* were it not slow */
} fr_slow_part;

#define FR_SLOW_PARTS 8 /* the first of them */

typedef struct fr_explanation {
    fr_prediction prediction;
    fr_slow_part slow[FR_SLOW_PARTS];
    int n_slow;
    int64_t n_slow_more; /* that are not looked at one by one */
    double normal_s;     /* the step were nothing slow; 0: nothing is */
    fr_sensitivity of[FR_RESOURCE_N];
    double changed_by; /* factor of x, such as 1.02 */
    /* Shares of the step: the part that follows each resource (minus the
     * elasticity of a rate, the elasticity of a latency; for the network
     * without its switches) after the bubble was subtracted from all of them,
     * the bubble, and the rest, times that nothing changes (launches of
     * kernels). */
    double share[FR_RESOURCE_N], bubble_share, fixed_share;
    char bound_by[24]; /* largest share: name of a resource, "bubble", "fixed",
                          or "memory" when the plan does not fit */
    fr_plan_change changes[FR_PLAN_CHANGES]; /* that fit, fastest first; then
                                                those that do not */
    int n_changes, n_fitting;
    double fit_confidence; /* with which the next change has to fit */
    int i_more_memory; /* faster than all that fit, but too large; of several
                          the one that is short by least; -1: none */
    int n_illegal;
    fr_break_even compression;
    fr_measurement next_measurement;
} fr_explanation;

#endif
