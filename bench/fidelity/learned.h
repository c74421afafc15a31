/*
 * learned.h: how well plans are predicted once the measured steps of a few of
 * them are known, as `calibrate --runs` and `run --update-profile` learn.
 */
#ifndef FR_BENCH_FIDELITY_LEARNED_H
#define FR_BENCH_FIDELITY_LEARNED_H

#include "bench/rounds.h"

enum { FR_LEARNED_KNOWN = 3, FR_LEARNED_DRAWS = 200 };

typedef struct fr_learned_scores {
    double mape;  /* of the plans that were not learned from, over all draws */
    double worst; /* in the middle of the draws, the worst of the others */
    double coverage_90;       /* share of steps within their interval */
    double half_width_median; /* relative, of these intervals */
} fr_learned_scores;

/*
 * Draws FR_LEARNED_KNOWN plans FR_LEARNED_DRAWS times, always the same ones,
 * from those that are scored (more than FR_LEARNED_KNOWN), and predicts the
 * others.  The contenders have been predicted and measured.
 */
FR_CHECKED fr_status fr_learned_score(const fr_contender *contenders, size_t n,
                                      fr_learned_scores *out, fr_err *err);

#endif
