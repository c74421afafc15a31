/*
 * fit_answer.h: why a plan does not fit, by how much, and the fewest changes
 * with which it would: the same words from every command.
 */
#ifndef FR_CLI_FIT_ANSWER_H
#define FR_CLI_FIT_ANSWER_H

#include "cli/inputs.h"
#include "spec/result/fit_advice.h"

/* Of a plan whose prediction on the cluster does not fit. */
FR_CHECKED fr_status fr_fit_answer_find(const fr_inputs *inputs,
                                        const fr_model *model,
                                        const fr_job *job, const fr_plan *plan,
                                        const fr_prediction *prediction,
                                        fr_fit_advice *out, fr_err *err);

/*
 * Of the prediction that a plan file carries, as lines on stderr; nothing where
 * there is none, or it fits.  Changes are told where the file's cluster can be
 * loaded and is what it was.
 */
FR_CHECKED fr_status fr_fit_answer_warn(const fr_cli *cli,
                                        const fr_plan_file *file, fr_err *err);

#endif
