/*
 * search.h: in which order the candidates of a space are looked at.
 *
 * A strategy is asked for batches and told what they cost; batches are
 * evaluated in parallel, so an answer must depend on nothing but what was
 * told before, which makes any number of threads give the same result.
 */
#ifndef FR_TUNER_SEARCH_H
#define FR_TUNER_SEARCH_H

#include "tuner/plan_space.h"

#define FR_SEARCH_BATCH 64

typedef struct fr_search {
    const char *name;
    const char *summary;
    bool is_exhaustive; /* every candidate is asked for */
    void *(*create)(const fr_plan_space *space, fr_err *err); /* NULL: failed */
    /* Up to n_max candidates to evaluate; 0: the search is over. */
    size_t (*ask)(void *search, size_t n_max, size_t *candidates);
    /* cost: seconds per step, HUGE_VAL where the plan is infeasible. */
    void (*tell)(void *search, size_t candidate, double cost);
    void (*destroy)(void *search);
} fr_search;

/* NULL at the end; the first is the default. */
extern const fr_search *const fr_searches[];

#endif
