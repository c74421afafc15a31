/*
 * measure_running.h: what a run takes beside its steps (running_costs.h):
 * small runs with faults on purpose, started as a user starts them.
 */
#ifndef FR_CLI_MEASURED_MEASURE_RUNNING_H
#define FR_CLI_MEASURED_MEASURE_RUNNING_H

#include "api/request/request.h"

/*
 * Adds them to the profile of that path, which was measured by as many ranks;
 * 2 or more.  Checkpoints go to a folder in `storage`.
 */
FR_CHECKED fr_status fr_measure_running(const fr_request *request,
                                        int64_t n_ranks, const char *path,
                                        const char *storage, fr_err *err);

#endif
