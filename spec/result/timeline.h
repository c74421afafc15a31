/*
 * timeline.h: what both interpreters write: when each instruction of each
 * rank ran.
 */
#ifndef FR_SPEC_RESULT_TIMELINE_H
#define FR_SPEC_RESULT_TIMELINE_H

#include "core/base/err.h"

typedef struct fr_span {
    int32_t rank;
    uint8_t lane;             /* fr_lane */
    uint8_t op;               /* fr_op */
    uint32_t i_call;          /* of the rank's class */
    uint32_t i_instr;         /* of the program */
    int32_t step;             /* measured: training step, simulated: 0 */
    int64_t begin_ps, end_ps; /* since the begin of the step */
    /* The wait of a simulated span, from its begin on: first for ranks that had
     * not arrived yet, then the expected wait for the slowest under jitter.  A
     * measured span has 0 for both. */
    int64_t wait_ps, late_ps;
} fr_span;

/* Times leave out n copies of what lies between begin_ps and end_ps, which
 * follow it; all later times are earlier by that. */
typedef struct fr_skip {
    int64_t begin_ps, end_ps;
    int64_t n; /* 0: nothing is left out */
} fr_skip;

/* All that lies between two of such times, with what is left out of it, in
 * seconds. */
static inline double fr_skip_seconds(const fr_skip *skip, int64_t begin_ps,
                                     int64_t end_ps)
{
    double s = end_ps > begin_ps ? 1e-12 * (double)(end_ps - begin_ps) : 0;
    if (skip->n == 0)
        return s;
    begin_ps = begin_ps > skip->begin_ps ? begin_ps : skip->begin_ps;
    end_ps = end_ps < skip->end_ps ? end_ps : skip->end_ps;
    return end_ps > begin_ps
               ? s + 1e-12 * (double)skip->n * (double)(end_ps - begin_ps)
               : s;
}

typedef struct fr_timeline {
    fr_span *at;
    size_t n, cap;
    int32_t n_ranks;
    fr_skip skip;
    /* [n_ranks], owned: the rank whose spans stand for each rank's, where
     * ranks that do the same were simulated as one; NULL: all have theirs. */
    int32_t *spans_of_rank;
} fr_timeline;

void fr_timeline_init(fr_timeline *timeline);
void fr_timeline_release(fr_timeline *timeline);
FR_CHECKED fr_status fr_timeline_add(fr_timeline *timeline, fr_span span,
                                     fr_err *err);

/* For qsort of pointers to spans: by rank, lane, begin, end, call. */
int fr_span_compare(const void *a, const void *b);

#endif
