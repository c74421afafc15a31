/* rank_plans.h: from evaluated candidates to the answer of tune. */
#ifndef FR_TUNER_ANSWER_RANK_PLANS_H
#define FR_TUNER_ANSWER_RANK_PLANS_H

#include "core/base/vec.h"
#include "spec/result/tuning.h"
#include "tuner/goal/goal.h"
#include "tuner/search/evaluate.h"

/* A plan that was asked for, and what it costs. */
typedef struct fr_trial {
    const fr_plan_space_request *request; /* borrowed */
    fr_candidate candidate;
    const fr_plan *plan; /* borrowed; NULL: the candidate's */
    fr_evaluation evaluation;
    double value; /* of the goal; HUGE_VAL: does not fit, breaks a limit */
} fr_trial;

typedef fr_vec(fr_trial) fr_trial_list;

void fr_trial_plan(const fr_trial *trial, fr_plan *out);

/*
 * Fills best, robust, alternatives, layouts, pareto, and nearest where nothing
 * fits, adds to the counts, and makes the certificate of its bound, that of
 * what was not looked at.
 */
FR_CHECKED fr_status fr_rank_plans(const fr_goal *goal,
                                   const fr_trial_list *trials,
                                   int n_alternatives, fr_tuning *tuning,
                                   fr_err *err);

/* The best of those looked at; plan NULL: none.  The caller frees the plan. */
FR_CHECKED fr_status fr_rank_first(const fr_goal *goal,
                                   const fr_trial_list *trials, fr_tuned *out,
                                   fr_err *err);

/* With a plan of its own. */
FR_CHECKED fr_status fr_tuned_copy(const fr_tuned *from, fr_tuned *out,
                                   fr_err *err);

/*
 * Is `other` worse by less than the model can tell?  By less than the value
 * grows with a step that is longer by half the 90 % interval, or by 5 %.  Two
 * plans of one model on one cluster have most of their error in common: of
 * those that differ by more than 5 %, 98 % are ranked right, on CPUs and on
 * GPUs (docs/validation.md).
 */
bool fr_is_tie(const fr_goal *goal, const fr_goal_scale *scale,
               const fr_tuned *best, const fr_tuned *other);

/*
 * < 0: `a` is the more robust: it fits with the higher probability, else waits
 * less for other devices, else has the narrower interval; each in whole
 * percents, the last two of step_s, the step of the best plan.
 */
int fr_robustness_compare(const fr_prediction *a, const fr_prediction *b,
                          double step_s);
/* "waits for others 3 % of the step instead of 9 %"; returns buf. */
char *fr_robustness_why(const fr_prediction *best, const fr_prediction *robust,
                        char *buf, size_t n_buf);

#endif
