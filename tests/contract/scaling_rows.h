/*
 * scaling_rows.h: rows of tests/validate/scaling.csv (throughput by number of
 * GPUs) as model, cluster, job and plan.  Rules by words, none by source.
 */
#ifndef FR_TESTS_SCALING_ROWS_H
#define FR_TESTS_SCALING_ROWS_H

#include "plan/plan.h"
#include "spec/cases.h"

typedef struct scaling_setup {
    char model[32];
    char cluster[64]; /* "dgx-a100:2" */
    fr_plan plan;
    fr_job job;
} scaling_setup;

/* Of `model`, as written, on n_gpus.  False: `why` says what it is that cannot
 * be run. */
bool scaling_setup_of(const fr_case *row, const char *model, int64_t n_gpus,
                      scaling_setup *out, char *why, size_t n_why);

/* Rows whose throughputs may be compared; n_key is enough. */
char *scaling_key(const fr_case *row, char *key, size_t n_key);

#endif
