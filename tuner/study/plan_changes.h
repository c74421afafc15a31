/*
 * plan_changes.h: plans that differ from one in a single decision; degrees of
 * parallelism are exchanged, so that the number of ranks stays.
 */
#ifndef FR_TUNER_STUDY_PLAN_CHANGES_H
#define FR_TUNER_STUDY_PLAN_CHANGES_H

#include "plan/decide/plan.h"
#include "spec/cluster/cluster.h"

typedef struct fr_changed_plan {
    char what[48]; /* "tp 4 -> 8, dp 8 -> 4" */
    fr_plan plan;
} fr_changed_plan;

/*
 * Writes up to n_max of them, legal or not, none twice and none equal to
 * `plan`; returns how many there are.  What changes the result (compression)
 * only with allow_lossy.
 */
size_t fr_plan_changes(const fr_plan *plan, const fr_model *model,
                       const fr_cluster *cluster, bool allow_lossy,
                       fr_changed_plan *out, size_t n_max);

#endif
