/*
 * bound_walk.h: every plan of a GPU space, estimated, and the best kept.
 *
 * One walk goes over all choices of LAYERS, in parallel, and below each over
 * the product of pipelines and gradients.  Gradients that hold the same state
 * are a group: where the least that a device is seen with exceeds it, none of
 * them fits; where the bound of all is no better than what is known, none of
 * them is.  Others are estimated one by one, and kept if they are among those
 * with the lowest bounds (or estimates); the same for any number of threads,
 * because an order of all plans decides: bound, then choices.
 */
#ifndef FR_TUNER_BOUND_BOUND_WALK_H
#define FR_TUNER_BOUND_BOUND_WALK_H

#include "tuner/search/search.h"

typedef struct fr_bounded {
    fr_candidate candidate;
    double bound, estimate;  /* of the goal's value */
    uint64_t short_by_bytes; /* at least; 0: it may fit */
    int64_t n_steps;         /* of a simulation, about: its work */
    bool seems_to_fit;       /* by the estimate of its peak */
} fr_bounded;

typedef fr_vec(fr_bounded) fr_bounded_list;

enum { FR_WALK_KEPT = 4096, FR_WALK_SEEDS = 512 };

typedef struct fr_walk_result {
    uint64_t n_plans, n_too_large, n_pruned, n_estimated;
    fr_bounded_list by_bound;    /* at most FR_WALK_KEPT, ascending */
    fr_bounded_list by_estimate; /* at most FR_WALK_SEEDS, ascending; one of
                                    each group */
    fr_bounded_list nearest;     /* the same, of those too large, by bytes */
    bool is_all;                 /* by_bound holds all that was asked for */
    bool is_cut; /* the time was over: not all plans were passed */
} fr_walk_result;

void fr_walk_result_release(fr_walk_result *result);

typedef struct fr_bound_walk fr_bound_walk;

/* Borrows all of `in`; lists LAYERS and tells in->on_illegal of the rest. */
FR_CHECKED fr_status fr_bound_walk_create(const fr_search_input *in,
                                          fr_bound_walk **out, fr_err *err);
void fr_bound_walk_destroy(fr_bound_walk *walk);

/* All choices of LAYERS; the walk owns them. */
const fr_plan_space_choices *fr_bound_walk_layers(const fr_bound_walk *walk);

/* Does a walk look at these LAYERS? */
typedef bool (*fr_walk_scope_fn)(const void *scope,
                                 const fr_plan_space_choice *layers);

/* The options of a walk. */
typedef struct fr_walk_options {
    bool is_best_only;       /* by_estimate alone: whatever cannot be among
                                them is passed over, group by group */
    bool is_even;            /* only plans whose split of layers is even */
    bool is_unbalanced;      /* no balanced splits, which take long to find */
    bool is_whole;           /* every plan is estimated, whatever its group */
    double limit;            /* plans of a lower bound, HUGE_VAL: all */
    const fr_bounded *after; /* that come after this one, NULL: all */
    fr_walk_scope_fn is_in_scope; /* NULL: all LAYERS are */
    const void *scope;            /* its argument */
    double until_s; /* of fr_clock_s(): then the walk ends, later where no plan
                       that may fit is known; 0: when it has seen all */
} fr_walk_options;

/* Layers that were priced in an earlier run stay priced.  is_cut of the result
 * says nothing of LAYERS beyond the scope.  FR_INTERRUPTED: the
 * request's log has cancelled the walk. */
FR_CHECKED fr_status fr_bound_walk_run(fr_bound_walk *walk,
                                       const fr_walk_options *options,
                                       fr_walk_result *out, fr_err *err);

uint64_t fr_bound_walk_n_illegal(const fr_bound_walk *walk);

#endif
