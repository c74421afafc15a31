/*
 * straggler.h: who holds a training run up: a rank that computes longer than
 * those that do the same, a pipeline stage, or the links of a group.
 */
#ifndef FR_SPEC_RUN_STRAGGLER_H
#define FR_SPEC_RUN_STRAGGLER_H

#include "core/document/names.h"
#include "spec/result/prediction.h"

typedef enum fr_slow_kind {
    FR_SLOW_RANK,  /* against the ranks of its pipeline stage */
    FR_SLOW_STAGE, /* all its ranks, against the others and the first steps */
    FR_SLOW_LINK,  /* of a group, against others or the first steps */
    FR_SLOW_N
} fr_slow_kind;

extern const fr_names fr_slow_names;

typedef struct fr_straggler {
    fr_slow_kind kind;
    int64_t index; /* rank; stage; first rank of the group */
    int64_t rank;  /* the first of them ... */
    int64_t n_ranks;
    fr_part part;  /* LINK: what is transferred, an exposed_ part */
    double factor; /* so many times as long as it should be */
    double lost_s; /* of a step */
    int64_t first_step, last_step; /* last_step -1: it still is */
} fr_straggler;

/* "rank 1 computes 2.03 times as long as the ranks beside it"; returns buf. */
char *fr_straggler_text(const fr_straggler *straggler, char *buf, int n_buf);

#endif
