/*
 * scaling_rows.h: rows of tests/validate/scaling.csv (throughput by number of
 * GPUs) as model, cluster, job and plan.  Rules by words, none by source.
 */
#ifndef FR_TESTS_SCALING_ROWS_H
#define FR_TESTS_SCALING_ROWS_H

#include "plan/decide/plan.h"
#include "spec/result/cases.h"

typedef struct scaling_setup {
    char model[32];
    char cluster[64]; /* "dgx-a100:2" */
    fr_plan plan;
    fr_job job;
} scaling_setup;

typedef struct scaling_ask {
    const char *model; /* as a row writes it */
    int64_t n_gpus;
    int i_phase;
} scaling_ask;

/* False: `why` says what it is that cannot be run. */
bool scaling_setup_of(const fr_case *row, const scaling_ask *ask,
                      scaling_setup *out, char *why, size_t n_why);

/* A training may have phases with batches and sequences of their own; samples
 * of each (1 where there are none). */
int scaling_n_phases(const fr_case *row);
double scaling_phase_samples(const fr_case *row, int i_phase);

/* Rows whose throughputs may be compared; n_key is enough. */
char *scaling_key(const fr_case *row, char *key, size_t n_key);

#endif
