/*
 * next_measurement.h: which plan to run once, so that the choice between a
 * plan and its fastest change is known best.
 */
#ifndef FR_TUNER_STUDY_NEXT_MEASUREMENT_H
#define FR_TUNER_STUDY_NEXT_MEASUREMENT_H

#include "tuner/study/explain_plan.h"

/* Fills out->next_measurement; the changes are there. */
FR_CHECKED fr_status fr_next_measurement(const fr_explain_request *request,
                                         fr_explanation *out, fr_err *err);

#endif
