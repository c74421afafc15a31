/*
 * plan_balance.h: --layer-split auto and --batch-shares auto: layers and
 * samples of a whole plan by how fast its stages and replicas are.
 */
#ifndef FR_API_RESOLVE_PLAN_BALANCE_H
#define FR_API_RESOLVE_PLAN_BALANCE_H

#include "api/inputs.h"

/* Changes the plan where one of the two options is "auto", else leaves it. */
FR_CHECKED fr_status fr_plan_balance(const fr_request *request,
                                     const fr_inputs *inputs,
                                     const fr_model *model, const fr_job *job,
                                     fr_plan *plan, fr_err *err);

#endif
