/*
 * search_run.h: one search of a space: for the plan that is best for a goal,
 * over one global batch or several.
 *
 * The batch is no axis of the space, as all prices depend on it: each has a
 * space and a search of its own, which has to beat what is known before.
 */
#ifndef FR_TUNER_SEARCH_SEARCH_RUN_H
#define FR_TUNER_SEARCH_SEARCH_RUN_H

#include "tuner/answer/rank_plans.h"
#include "tuner/answer/tune.h"

enum { FR_SEARCH_RUN_BATCHES = 48 };

typedef struct fr_search_run {
    fr_goal goal;
    size_t n; /* batches */
    fr_job jobs[FR_SEARCH_RUN_BATCHES];
    fr_plan_space_request requests[FR_SEARCH_RUN_BATCHES];
    fr_trial_list trials; /* their requests are those above */
    bool is_complete;     /* every plan was looked at */
    bool has_fit;         /* one that was fits the memory */
    fr_plan usual;        /* a trial's that no search has proposed */
} fr_search_run;

/*
 * Looks through options->space with *space in its place, for *goal; counts,
 * reasons and the bound of what was not looked at go to *counts.  work_frac:
 * of the fixed amount of work.  Destroy takes NULL.
 */
FR_CHECKED fr_status fr_search_run_create(const fr_tune_options *options,
                                          const fr_plan_space_request *space,
                                          const fr_goal *goal, double work_frac,
                                          const fr_cost_model *costs,
                                          fr_search_run **out,
                                          fr_tuning *counts, fr_err *err);
void fr_search_run_destroy(fr_search_run *run);

/*
 * Batches that goal `loss` tries where none is given: that of the job, and
 * every power of two from one sequence to eight times the critical batch
 * (beyond it the fewest steps are at most a ninth fewer), the nearest to the
 * critical batch first.  Returns how many.
 */
size_t fr_search_run_batches(const fr_goal *goal, const fr_job *job,
                             int64_t out[FR_SEARCH_RUN_BATCHES]);

#endif
