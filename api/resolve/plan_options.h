/*
 * plan_options.h: the plan and job options of a request, laid over a plan file
 * or the defaults.
 */
#ifndef FR_API_RESOLVE_PLAN_OPTIONS_H
#define FR_API_RESOLVE_PLAN_OPTIONS_H

#include "api/request/request.h"
#include "plan/decide/plan.h"
#include "tuner/space/plan_space.h"

/* --layer-split auto and --batch-shares auto: a caller that has costs calls
 * fr_plan_balance() then. */
bool fr_request_is_split_auto(const fr_request *request);
bool fr_request_are_shares_auto(const fr_request *request);

/*
 * FR_USAGE on a value that cannot be read; whether the plan is legal is for
 * fr_plan_check().  *pins (may be NULL) gets the FR_PIN() of what was given.
 */
FR_CHECKED fr_status fr_request_apply_plan(const fr_request *request,
                                           fr_plan *plan, uint64_t *pins,
                                           fr_err *err);
/* Lists of values, as ranges of axes; FR_USAGE where the option is no axis. */
FR_CHECKED fr_status fr_request_apply_ranges(const fr_request *request,
                                             fr_axis_range out[FR_SPACE_AXIS_N],
                                             fr_err *err);
/* The job's steps follow from its tokens, and --steps takes the place of the
 * tokens of a plan file; FR_USAGE where both options are given. */
FR_CHECKED fr_status fr_request_apply_job(const fr_request *request,
                                          const fr_model *model, fr_job *job,
                                          fr_err *err);

/* Warns of a sequence that is longer than the model's positions. */
void fr_note_long_seq(const fr_request *request, const fr_model *model,
                      const fr_job *job);

/*
 * Compute threads per rank when nobody chose them: the cores of a node over
 * the ranks that it must take; 1 on GPUs.
 */
int32_t fr_default_threads(const fr_cluster *cluster, int64_t n_ranks);

/* bf16, else f16, else f32: the first that all devices of the first n_ranks
 * ranks have. */
fr_dtype fr_default_precision(const fr_cluster *cluster, int64_t n_ranks);

#endif
