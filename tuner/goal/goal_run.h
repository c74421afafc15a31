/*
 * goal_run.h: the run that a goal weighs: how many steps, on which nodes, and
 * what it takes going one way or the other.
 */
#ifndef FR_TUNER_GOAL_GOAL_RUN_H
#define FR_TUNER_GOAL_GOAL_RUN_H

#include "tuner/goal/goal.h"

/* Without a list of ways. */
fr_goal_scale fr_goal_scale_bare(const fr_goal *goal, const fr_plan *plan,
                                 const fr_goal_subject *subject);

/* Every way that the run of a plan may go, one after the other. */
void fr_goal_ways_visit(const fr_goal *goal, const fr_plan *plan,
                        const fr_goal_subject *subject,
                        const fr_goal_scale *scale, fr_run_way_fn visit,
                        void *context);

fr_goal_run fr_goal_run_by(const fr_goal_scale *scale, const fr_run_way *way,
                           const fr_weighed_step *step);

#endif
