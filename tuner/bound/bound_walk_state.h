/* bound_walk_state.h: what a walk keeps from one run to the next. */
#ifndef FR_TUNER_BOUND_BOUND_WALK_STATE_H
#define FR_TUNER_BOUND_BOUND_WALK_STATE_H

#include "sim/bound/estimate.h"
#include "tuner/bound/bound_keep.h"
#include "tuner/bound/bound_layers.h"
#include "tuner/space/decision_lists.h"

/* One thread's. */
typedef struct fr_walk_worker {
    fr_estimator *estimator;
    fr_decision_lists *lists, *plain_lists; /* without balanced splits */
    fr_bound_keep by_bound, by_estimate, nearest;
    uint64_t n_plans, n_too_large, n_pruned, n_estimated;
    fr_goal_scale scale;   /* of the last plan's ranks and threads */
    fr_bound_layers needs; /* of the layers at hand */
    uint32_t n_steps;      /* LAYERS and pipelines that it came to */
    size_t i_failed;       /* LAYERS at which it failed; SIZE_MAX: none */
    fr_err err;
} fr_walk_worker;

struct fr_bound_walk {
    fr_search_input in;
    fr_plan_space_request plain; /* in.request without its balance */
    fr_goal goal;
    fr_job job; /* as the goal counts it */
    fr_goal_subject subject;
    fr_plan_space_choices layers;
    bool is_cut; /* these are not all: the time was over */
    uint64_t n_illegal;
    double *least; /* [layers.n]: the lowest bound of a group that may fit,
                      once a run has seen all of them */
    bool has_least;
    double free_frac;        /* of what a plan needs, left free beside it */
    fr_walk_worker *workers; /* [n_workers] */
    int n_workers;
};

#endif
