/*
 * elastic.h: a run that a rank which dies or hangs does not end.
 *
 * The supervisor ends what is left of a generation of ranks, plans for the
 * places that are left, and starts the next one from the newest complete
 * checkpoint.  How many places there are the hostfile says, which is read
 * again, else MAX; --inject may take and give some.  Where there are more than
 * the plan was made for, the ranks are asked to stop after a checkpoint, and go
 * on as more.
 */
#ifndef FR_CLI_TRAIN_ELASTIC_H
#define FR_CLI_TRAIN_ELASTIC_H

#include "cli/cli.h"
#include "plan/decide/plan_json.h"
#include "spec/model/faults.h"

typedef struct fr_elastic_range {
    int64_t least, most;
} fr_elastic_range;

/* FR_USAGE: "MIN:MAX" cannot be read, or what it needs was not given. */
FR_CHECKED fr_status fr_elastic_parse(const fr_request *request,
                                      fr_elastic_range *out, fr_err *err);

/* Borrows all; `file` is the plan that the run begins with. */
FR_CHECKED fr_status fr_elastic_run(const fr_cli *cli, const fr_plan_file *file,
                                    const fr_faults *faults, fr_err *err);

/* The wait before a start after n_in_vain failures in a row without a step: 0,
 * 1 s, 2 s, 4 s ..., at most 30 s. */
double fr_elastic_delay_s(int64_t n_in_vain);

#endif
