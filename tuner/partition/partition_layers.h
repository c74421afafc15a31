/*
 * partition_layers.h: who gets which layers of a pipeline.
 *
 * Layers stand in a row and are cut into n_stages runs.  What a layer takes
 * depends on the device that has it, so each stage brings prefix sums of its
 * own: layers [i, j) take pass_ps[j] - pass_ps[i] there.  A rank holds one
 * stage, or several (chunks of an interleaved schedule); its time and its
 * bytes are their sums.  Sought: the least time of the slowest rank.
 *
 * One stage per rank: exact, by dynamic programming.  Several: by moves of
 * single layers, exact where layers are alike and memory is no matter
 * (docs/tuner.md has the proof); `least_ps` says how near else.
 */
#ifndef FR_TUNER_PARTITION_PARTITION_LAYERS_H
#define FR_TUNER_PARTITION_PARTITION_LAYERS_H

#include "core/base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define FR_PARTITION_MOST 512 /* stages */

/* All borrowed; sums of [n_layers + 1], ascending, the first is 0. */
typedef struct fr_partition_stage {
    const int64_t *pass_ps;      /* all passes of a micro-batch */
    const uint64_t *state_bytes; /* parameters, gradients, optimizer */
    const uint64_t *kept_bytes;  /* from forward on, of one micro-batch */
    uint64_t n_live; /* (chunk, micro-batch) pairs that a rank keeps at once */
    int64_t end_ps;  /* embedding or head, where the stage has them */
    uint64_t end_bytes;
    uint64_t headroom_bytes; /* of the rank, for all of the above */
    int32_t n_least;         /* layers */
    int32_t rank;            /* that holds it */
} fr_partition_stage;

typedef struct fr_partition_problem {
    const fr_partition_stage *stages;    /* [n_stages], in model order */
    int32_t n_layers, n_stages, n_ranks; /* n_stages % n_ranks == 0; stages
                                            are at most FR_PARTITION_MOST */
} fr_partition_problem;

typedef struct fr_partition {
    bool fits;
    int64_t slowest_ps; /* of any rank */
    int32_t n_slowest;  /* ranks that take as long */
    int64_t sum_ps;     /* of all */
    double spread_s2;   /* sum of their squares, seconds */
    int64_t least_ps;   /* fr_partition_layers(): no split has a lower
                           slowest_ps */
} fr_partition;

/* Measures a given split, [n_stages]; least_ps is left 0. */
void fr_partition_measure(const fr_partition_problem *problem,
                          const int32_t *split, fr_partition *out);

/* false: no split that fits has a slowest rank below limit_ps.  A quick look:
 * true is no promise. */
bool fr_partition_may_beat(const fr_partition_problem *problem,
                           int64_t limit_ps);

/*
 * split[n_stages] becomes the one whose slowest rank is fastest among those
 * that fit; of several the one with the least sum, then the least spread, then
 * the one that gives later stages fewer.  Where none fits (of several chunks:
 * none was found), out->fits is false and split is left alone.
 */
FR_CHECKED fr_status fr_partition_layers(const fr_partition_problem *problem,
                                         int32_t *split, fr_partition *out,
                                         fr_err *err);

#endif
