/*
 * baselines.h: what the best plan is held against: one device, one node, and,
 * where every plan breaks a limit of the goal, the one that comes nearest.
 */
#ifndef FR_TUNER_ANSWER_BASELINES_H
#define FR_TUNER_ANSWER_BASELINES_H

#include "tuner/search/search_run.h"

/*
 * Plans were found that fit, and all break limits: fills tuning->nearest and
 * ->broken with the plan that exceeds them least, by a search for that.
 * `run` is the search that found none.
 */
FR_CHECKED fr_status fr_tune_nearest(const fr_tune_options *options,
                                     const fr_plan_space_request *space,
                                     const fr_goal *goal,
                                     const fr_search_run *run,
                                     const fr_cost_model *costs,
                                     fr_tuning *tuning, fr_err *err);

/*
 * Fills tuning->baselines, is_distributed and advice.  Each baseline is looked
 * for on its own, because pins may keep it out of the space: with all pins
 * (one node), with those that one process can obey, without any, the first of
 * them that leaves a plan.
 */
FR_CHECKED fr_status fr_tune_baselines(const fr_tune_options *options,
                                       const fr_plan_space_request *space,
                                       const fr_goal *goal,
                                       const fr_cost_model *costs,
                                       fr_tuning *tuning, fr_err *err);

#endif
