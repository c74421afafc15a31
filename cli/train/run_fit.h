/*
 * run_fit.h: does a plan fit the memory of the machines that `run` uses?  The
 * cluster that it was made for may have another one.
 */
#ifndef FR_CLI_TRAIN_RUN_FIT_H
#define FR_CLI_TRAIN_RUN_FIT_H

#include "api/fit/fit_answer.h"
#include "api/request/request.h"

/* Was the plan made for GPUs and this is a run on CPUs, or the other way? */
bool fr_run_is_for_other_devices(const fr_request *request,
                                 const fr_plan_file *file);

/*
 * As fr_fit_answer_check_file(), on CPUs of this machine alone with all ranks
 * on it, else on the cluster that the plan names.  A GPU of this machine that
 * has more memory than those of the cluster counts.
 */
FR_CHECKED fr_status fr_run_fit_check(const fr_request *request,
                                      const fr_plan_file *file,
                                      fr_fit_advice *out, fr_err *err);

/*
 * The same once for a run, by each process that no supervisor of ours started:
 * all are refused, the first one says why, and says of --force that it was.  A
 * plan that fits here but not on its own cluster is warned of.
 */
FR_CHECKED fr_status fr_run_fit_begin(const fr_request *request,
                                      const fr_plan_file *file, fr_err *err);

#endif
