/*
 * validation.h: predictions against measurements, row by row, and what they
 * add up to.  Errors are signed and relative to the measurement: predicted /
 * measured - 1.  Statistics of nothing are NaN.
 */
#ifndef FR_SPEC_RESULT_VALIDATION_H
#define FR_SPEC_RESULT_VALIDATION_H

#include "core/base/err.h"
#include "spec/profile/run_point.h"
#include "spec/result/prediction.h"
#include "spec/result/shots.h"

typedef enum fr_fits {
    FR_FITS_UNKNOWN = -1,
    FR_FITS_NO = 0,
    FR_FITS_YES = 1
} fr_fits;

typedef struct fr_validation_row {
    char name[160], source[96];
    char plan[128];
    const char *framework; /* the framework whose defaults it has; NULL: it did
                              not run */
    int64_t n_gpus;
    bool has_run;
    char why[320]; /* it did not run; else why its time is not scored */
    fr_prediction prediction; /* zeros when it did not run */
    fr_run_features features; /* of the prediction */
    bool is_step_scored;
    double measured_s, predicted_s; /* measured 0: not measured */
    double p5_s, p95_s;             /* of the prediction */
    bool is_memory_scored;
    char why_memory[160];
    double measured_bytes, predicted_bytes;
    fr_fits fits, predicted_fits; /* fits: as the row says */
    double p_fits;
} fr_validation_row;

typedef struct fr_validation_score {
    size_t n;
    double mape, median_ape, worst_ape, bias;
    double kendall_tau, concordance;
    size_t n_pairs; /* that the concordance is a share of */
    double coverage_90, half_width_median;
} fr_validation_score;

typedef struct fr_validation_source {
    char name[96];
    size_t n_rows, n_run;
    fr_validation_score step, memory;
    double interval_scale; /* of intervals, from all other sources */
} fr_validation_source;

/* Without a simulator: of steps at a share of the peak. */
typedef struct fr_validation_baseline {
    double mape, macro_mape;
} fr_validation_baseline;

typedef struct fr_validation {
    fr_validation_row *rows; /* owned */
    size_t n_rows;
    fr_validation_source *sources; /* owned; in order of appearance */
    size_t n_sources;
    size_t n_skipped;                     /* rows that could not be run */
    fr_validation_score step, memory;     /* kendall_tau: mean over sources */
    double macro_mape, memory_macro_mape; /* means over sources */
    double macro_bias, macro_coverage_90, macro_half_width; /* of steps */
    fr_validation_score experts, large;  /* steps of mixtures of experts; of
                                            512 GPUs and more */
    fr_validation_baseline flat_mfu;     /* 40 % of the peak */
    fr_validation_baseline others_mfu;   /* at the MFU that the other sources
                                            reach */
    size_t fits_right[2], fits_wrong[2]; /* by what was measured: no, yes */
    double fits_balanced; /* mean of the shares right of both kinds */
    /* The promise of --fit-confidence: the number of rows that were predicted
     * to fit with 0.9 and more, and how many of these ran out of memory. */
    size_t n_confident, n_confident_ran_out;
    /* Half-widths multiplied so that 90 % of the other sources' rows are
     * covered (the centre stays): what they would cover and be. */
    double interval_scale; /* from all rows */
    double coverage_90_scaled, half_width_median_scaled;
} fr_validation;

/* Takes over `rows` (malloc'ed) also on failure. */
FR_CHECKED fr_status fr_validation_make(fr_validation_row *rows, size_t n_rows,
                                        fr_validation *out, fr_err *err);
/* Fills flat_mfu and others_mfu, of rows and sources that are there. */
FR_CHECKED fr_status fr_validation_baselines(fr_validation *validation,
                                             fr_err *err);
void fr_validation_release(fr_validation *validation);

/* predicted / measured - 1 of a row's time (memory). */
double fr_validation_step_err(const fr_validation_row *row);
double fr_validation_memory_err(const fr_validation_row *row);

/*
 * Bounds such as "mape<=10%,bias<=3%,concordance>=0.88,memory.mape<=8%" or
 * "shots.1.macro_mape<=9%": names are those of the JSON; bias is meant by its
 * size.  shots NULL: none were drawn, so that no bound of theirs holds.
 * FR_CHECK names every bound that fails, FR_USAGE what is not understood.
 */
FR_CHECKED fr_status fr_validation_check(const fr_validation *validation,
                                         const fr_shots *shots,
                                         const char *bounds, fr_err *err);

#endif
