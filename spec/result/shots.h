/*
 * shots.h: how well the rest of a source is predicted once k of its rows were
 * learned from, and what of the rows that takes.
 */
#ifndef FR_SPEC_RESULT_SHOTS_H
#define FR_SPEC_RESULT_SHOTS_H

#include "core/base/err.h"

enum { FR_SHOTS_MOST = 8 }; /* numbers of rows learned from, of one answer */

/* Means over draws and the rows that were predicted; errors as in
 * validation.h. */
typedef struct fr_shots_score {
    double mape, bias, coverage_90;
    double half_width_median; /* of the intervals, relative */
} fr_shots_score;

typedef struct fr_shots_source {
    char name[96];
    size_t n_rows;
    fr_shots_score score[FR_SHOTS_MOST]; /* NaN: it has not more than k rows */
} fr_shots_source;

/* Means over sources, in which each counts alike. */
typedef struct fr_shots_macro {
    size_t n_sources; /* that have more than k rows */
    double macro_mape, macro_bias, macro_coverage_90, macro_half_width;
} fr_shots_macro;

typedef struct fr_shots {
    int n;                    /* numbers of rows */
    int64_t k[FR_SHOTS_MOST]; /* ascending or not: as asked */
    int64_t n_draws, seed;
    fr_shots_score all[FR_SHOTS_MOST]; /* over rows; each counts alike */
    fr_shots_macro macro[FR_SHOTS_MOST];
    fr_shots_source *sources; /* owned */
    size_t n_sources;
} fr_shots;

void fr_shots_release(fr_shots *shots);

#endif
