/*
 * run_answer.h: what rank 0 prints after training: the measurement beside the
 * prediction, and both timelines in one trace.
 */
#ifndef FR_CLI_TRAIN_RUN_ANSWER_H
#define FR_CLI_TRAIN_RUN_ANSWER_H

#include "cli/cli.h"
#include "plan/decide/plan_json.h"
#include "runtime/run/run.h"
#include "spec/result/timeline.h"

/* The file of the trace: --trace, or -o; NULL: none is wanted. */
const char *fr_run_trace_path(const fr_request *request);

/*
 * The answer is printed, then the trace written: FR_IO may be of that alone.
 * The prediction is simulated anew when --profile is given (and the cluster
 * of the plan can be loaded), else it is the one that the plan carries; only
 * the former has a timeline for the trace.
 */
FR_CHECKED fr_status fr_run_answer(const fr_cli *cli, const fr_plan_file *file,
                                   const fr_program *program,
                                   const fr_timeline *timeline,
                                   const fr_run_result *result, fr_err *err);

#endif
