/*
 * fitting_plan.h: the decisions of a plan that nobody gave, where a cost model
 * can say what fits: a first answer that can be launched.
 */
#ifndef FR_API_RESOLVE_FITTING_PLAN_H
#define FR_API_RESOLVE_FITTING_PLAN_H

#include "api/inputs.h"

/*
 * GPU clusters and models of at most 1,024 layers; other plans stay as they
 * are.
 *
 * If no option has decided anything (pins is 0), the plan becomes that of a
 * quick search for the fastest one that fits, or, if none fits, for the one
 * that lacks least, and a note says so.  Otherwise a model that is not a
 * decoder gets its micro-batch, unless it was given: the largest that fits
 * without a pipeline, at most the whole share of a rank.
 *
 * Errors: FR_NO_MEMORY and FR_INTERRUPTED alone.  A plan for which nothing
 * legal is found stays as it is, and whoever checks it says why.
 */
FR_CHECKED fr_status fr_fitting_plan(const fr_request *request,
                                     const fr_inputs *inputs, uint64_t pins,
                                     bool is_quiet, fr_plan_file *file,
                                     fr_err *err);

#endif
