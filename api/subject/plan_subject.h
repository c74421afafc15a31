/*
 * plan_subject.h: what a command is about that takes a plan file, a model and
 * the options of a plan, or what a framework runs today (--from).
 */
#ifndef FR_API_SUBJECT_PLAN_SUBJECT_H
#define FR_API_SUBJECT_PLAN_SUBJECT_H

#include "api/inputs.h"

/* The cluster: the second word, or with --from the only one; NULL: none. */
const char *fr_plan_subject_cluster(const fr_request *request);

/* Options that go with others: FR_USAGE says with which. */
FR_CHECKED fr_status fr_plan_subject_check(const fr_request *request,
                                           fr_err *err);

/*
 * Model, job and plan, and what the file says of them; options over that where
 * there is a cluster, which `inputs` has then.  fr_plan_file_release() frees,
 * also after a failure: *out was set up by fr_plan_file_init().
 */
FR_CHECKED fr_status fr_plan_subject_load(const fr_request *request,
                                          const fr_inputs *inputs,
                                          fr_plan_file *out, fr_err *err);

#endif
