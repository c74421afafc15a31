/* advice.h: to distribute or not to. */
#ifndef FR_TUNER_ANSWER_ADVICE_H
#define FR_TUNER_ANSWER_ADVICE_H

#include "tuner/answer/rank_plans.h"

/*
 * Marks baselines that are ties of the best and says why they lose; fills
 * n_slots, advised_ranks and advice: fewer devices where they are as good as
 * far as the model can tell.
 */
FR_CHECKED fr_status fr_advise(const fr_plan_space_request *space,
                               const fr_goal *goal, fr_tuning *tuning,
                               fr_err *err);

#endif
