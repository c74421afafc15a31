/*
 * plan_choice.h: model, job and plan as a request asks for them.
 */
#ifndef FR_API_RESOLVE_PLAN_CHOICE_H
#define FR_API_RESOLVE_PLAN_CHOICE_H

#include "api/inputs.h"

typedef struct fr_plan_choice {
    /* Model, job and plan; of a plan file what else it says, such as the
     * cluster that it was made for. */
    fr_plan_file file;
    bool is_model_borrowed;
    bool is_given; /* by a plan file, or by a framework's configuration */
    uint64_t pins; /* FR_PIN() of the options that were given */
} fr_plan_choice;

/* Also after a failure, and of one that is zero. */
void fr_plan_choice_release(fr_plan_choice *choice);

/* Writes a plan file that can be run: placed on the cluster of `inputs`, with
 * that prediction. */
FR_CHECKED fr_status fr_plan_choice_save(const fr_plan_choice *choice,
                                         const fr_inputs *inputs,
                                         const fr_prediction *prediction,
                                         const char *path, fr_err *err);

#endif
