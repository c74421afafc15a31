/*
 * case_internal.h: the parts of fr_case_read(), one file each.
 */
#ifndef FR_INTEROP_CASE_CASE_INTERNAL_H
#define FR_INTEROP_CASE_CASE_INTERNAL_H

#include "frameworks/framework.h"
#include "interop/case/case.h"

/* By the framework column, else by source and source_ref. */
const fr_framework *fr_case_framework_of(const fr_case *row);

/* Notes a column that had to be guessed. */
void fr_case_guess(fr_case_setup *setup, fr_case_column column);

/* "path:line: " before what went wrong. */
fr_status fr_case_fail_at(const fr_case *row, fr_status status, fr_err *err);

FR_CHECKED fr_status fr_case_read_model(const char *configs, const fr_case *row,
                                        fr_case_setup *setup, fr_err *err);
/* Needs the model and the plan's sizes. */
FR_CHECKED fr_status fr_case_read_plan(const fr_case *row, fr_case_setup *setup,
                                       fr_err *err);
FR_CHECKED fr_status fr_case_read_cluster(const fr_case *row,
                                          fr_case_setup *setup, fr_err *err);

#endif
