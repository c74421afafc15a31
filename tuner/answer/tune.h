/*
 * tune.h: finds the best plan of a space for a goal, says why the others lose
 * and what one device and one node do alone.
 */
#ifndef FR_TUNER_ANSWER_TUNE_H
#define FR_TUNER_ANSWER_TUNE_H

#include "cost_models/base/cost.h"
#include "spec/result/tuning.h"
#include "tuner/goal/goal.h"
#include "tuner/space/plan_space.h"

typedef struct fr_tune_options {
    fr_plan_space_request space;
    const fr_goal *goal; /* NULL: the step */
    bool is_batch_free;  /* the global batch is chosen too: goal `loss`, whose
                            value counts what that does to convergence */
    bool is_best_only;   /* no baselines, no advice */
    const char *search;  /* NULL: the first of the list that fits */
    double budget_s;     /* of searching; 0: a fixed amount of work, about a
                            second, or up to 10,000 plans on CPUs */
    double until_s;      /* of fr_clock_s(): the end of the budget, shared by
                            what stands beside the answer; fr_tune() sets it */
    bool is_exact;       /* go on until the best is proven to be the best */
    int n_alternatives;
    int n_threads; /* of the search; 0: as many as OpenMP has */
} fr_tune_options;

/*
 * Everything in `options` and `costs` is borrowed.  Where nothing fits,
 * out->best.plan is NULL and out->nearest says what is missing; the same where
 * plans fit but every one breaks a limit of the goal (out->broken).  FR_INPUT
 * when the pinned axes leave no legal plan, with the first reason, and when
 * the cluster has no price or power that the goal needs; FR_INTERRUPTED when
 * space.log cancels the search.  The same bytes for
 * any n_threads (wall_s apart).  fr_tuning_release() frees *out.
 */
FR_CHECKED fr_status fr_tune(const fr_tune_options *options,
                             const fr_cost_model *costs, fr_tuning *out,
                             fr_err *err);

/* "+12 % exposed dp, +3 % bubble": growth of parts against `best`, in shares
 * of its step; returns buf. */
char *fr_tune_why(const fr_prediction *best, const fr_prediction *other,
                  char *buf, size_t n_buf);

/* Name of search strategy i, NULL past the last. */
const char *fr_search_name(int i);

#endif
