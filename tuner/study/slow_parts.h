/*
 * slow_parts.h: what each part of the cluster that is known to be slow costs a
 * plan: the step once more without it.
 */
#ifndef FR_TUNER_STUDY_SLOW_PARTS_H
#define FR_TUNER_STUDY_SLOW_PARTS_H

#include "tuner/study/explain_plan.h"

/* Fills n_slow, slow and normal_s of *out, whose prediction is there; with no
 * slow part nothing is simulated. */
FR_CHECKED fr_status fr_slow_parts_find(const fr_explain_request *request,
                                        fr_explanation *out, fr_err *err);

#endif
