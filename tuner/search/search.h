/*
 * search.h: in which order the candidates of a space are looked at.
 *
 * A strategy is asked for batches and told what they cost; batches are
 * evaluated in parallel, so an answer must depend on nothing but what was
 * told before, which makes any number of threads give the same result.
 */
#ifndef FR_TUNER_SEARCH_SEARCH_H
#define FR_TUNER_SEARCH_SEARCH_H

#include "cost_models/base/cost.h"
#include "spec/result/tuning.h"
#include "tuner/goal/goal.h"
#include "tuner/space/plan_space.h"

#define FR_SEARCH_BATCH 64

/* All borrowed. */
typedef struct fr_search_input {
    const fr_plan_space_request *request;
    const fr_cost_model *costs;
    const fr_goal *goal; /* NULL: the step */
    int n_threads;
    double known;        /* the value of a plan elsewhere that has to be beaten;
                            HUGE_VAL: there is none */
    double budget_s;     /* of the clock; 0: a fixed amount of work */
    double list_until_s; /* of fr_clock_s(): the end of listing LAYERS; 0: when
                            all are listed */
    double work_frac;    /* of that; 0: all */
    bool is_exact;       /* no end before the proof */
    fr_illegal_fn on_illegal;
    void *context; /* of on_illegal */
} fr_search_input;

typedef struct fr_search {
    const char *name;
    const char *summary;
    bool (*fits)(const fr_plan_space_request *request);
    /* Is it the one to take where nobody has named one?  NULL: if it fits. */
    bool (*suits)(const fr_search_input *in);
    fr_status (*create)(const fr_search_input *in, void **out, fr_err *err);
    /* Up to n_max candidates to evaluate; *n == 0: the search is over. */
    fr_status (*ask)(void *search, size_t n_max, fr_candidate *candidates,
                     size_t *n, fr_err *err);
    /* value: of the goal, HUGE_VAL where the plan does not fit or breaks a
     * constraint. */
    void (*tell)(void *search, const fr_candidate *candidate, double value,
                 bool fits);
    /* Adds counts of what was never asked for, and lowers certificate.bound to
     * what nothing of that is better than. */
    void (*report)(const void *search, fr_tuning *tuning);
    void (*destroy)(void *search);
} fr_search;

/* NULL at the end; the first that fits and suits is the default. */
extern const fr_search *const fr_searches[];

#endif
