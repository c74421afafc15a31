/*
 * replan.h: another plan of the same model and job, for as many ranks as there
 * are places.
 */
#ifndef FR_CLI_TRAIN_REPLAN_H
#define FR_CLI_TRAIN_REPLAN_H

#include "cli/command.h"
#include "plan/decide/plan_json.h"

/*
 * The best that the tuner finds in a third of a second for the cluster of the
 * plan; where that is not known, the plan with fewer or more data-parallel
 * ranks, else data parallelism alone.  At most n_places ranks, at least
 * `least`, and it fits the memory (run_fit.h) unless --force is given.
 * FR_INFEASIBLE: there is none.  Everything but the plan and its prediction is
 * as in `from`, which owns it.
 */
FR_CHECKED fr_status fr_replan(const fr_cli *cli, const fr_plan_file *from,
                               int64_t n_places, int64_t least,
                               fr_plan_file *out, fr_err *err);

#endif
