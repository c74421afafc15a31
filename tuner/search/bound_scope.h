/*
 * bound_scope.h: the LAYERS of a vast space that a search by bounds looks at:
 * first the layouts of ranks with the default choices of all else, then all
 * choices of the best layouts.
 *
 * A layout is the number of ranks with tp, pp, cp, ep and etp.
 */
#ifndef FR_TUNER_SEARCH_BOUND_SCOPE_H
#define FR_TUNER_SEARCH_BOUND_SCOPE_H

#include "tuner/bound/bound_walk.h"

enum { FR_SCOPE_LAYOUTS = 16, FR_SCOPE_ON_THE_SIDE = 4, FR_SCOPE_AXES = 6 };

typedef struct fr_scope_layout {
    int64_t value[FR_SCOPE_AXES];
} fr_scope_layout;

typedef struct fr_bound_scope {
    const fr_plan_space_request *request;
    int64_t world; /* the most ranks of any of them */
    fr_scope_layout layouts[FR_SCOPE_LAYOUTS];
    int n_layouts; /* 0: every layout with default choices */
} fr_bound_scope;

/* Are there too many LAYERS to look at each within some seconds, or, in a
 * search for a baseline, within one? */
bool fr_bound_scope_is_vast(const fr_plan_space_request *request,
                            const fr_plan_space_choices *layers,
                            bool is_side_search);

/* Every layout of the most ranks, with default choices; borrows the request. */
void fr_bound_scope_coarse(const fr_plan_space_request *request,
                           const fr_plan_space_choices *layers,
                           fr_bound_scope *out);

/* Adds the layouts of the first of a list, up to n_max in all (at most
 * FR_SCOPE_LAYOUTS), each with all of its choices. */
void fr_bound_scope_add(const fr_bounded_list *list, int n_max,
                        fr_bound_scope *scope);

/* Is a choice of LAYERS within the scope?  A fr_walk_scope_fn. */
bool fr_bound_scope_has(const void *scope, const fr_plan_space_choice *layers);

#endif
