/*
 * rank_page.h: a page per rank in a small file that the supervisor maps too:
 * who it is, what it does, why it failed.  Best effort: without the directory
 * (FORERUN_STATUS_DIR) everything works but messages say less.
 */
#ifndef FR_RUNTIME_RANK_RANK_PAGE_H
#define FR_RUNTIME_RANK_RANK_PAGE_H

#include "core/base/err.h"

#include <stdatomic.h>

enum {
    FR_RANK_ABSENT,  /* the file is all zero */
    FR_RANK_JOINING, /* on its way to the others */
    FR_RANK_JOINED,  /* prepares its work, which may take long */
    FR_RANK_RUNNING,
    FR_RANK_FINISHED, /* on its way to the end */
    FR_RANK_FAILED    /* `failure` is valid */
};

typedef struct fr_rank_page {
    _Atomic uint32_t state;
    int32_t pid;
    int32_t rank;
    _Atomic int32_t step; /* -1: before the first */
    _Atomic uint32_t op;  /* fr_op, FR_OP_N: none */
    _Atomic uint32_t call;
    _Atomic uint32_t layer;       /* + 1; 0: none */
    _Atomic int64_t since_ns;     /* it is at that, on the same clock as: */
    _Atomic int32_t waits_for;    /* rank; -1: nobody, as far as is known */
    _Atomic int64_t beat_ns;      /* CLOCK_MONOTONIC of the last sign of life */
    _Atomic uint32_t is_in_step;  /* else it saves or evaluates, say */
    _Atomic int64_t longest_ns;   /* its longest step; 0: none has ended */
    _Atomic uint32_t stop_signal; /* the supervisor asks the rank to stop after
                                     a checkpoint, as this signal would; 0:
                                     no */
    int32_t status;               /* fr_status of the failure */
    uint32_t job; /* Open MPI's number of this job, 0: unknown */
    char host[64];
    char failure[512];
} fr_rank_page;

#define FR_STATUS_DIR_ENV "FORERUN_STATUS_DIR"

/* Maps DIR/rank-N, made when `is_owner`; NULL when that cannot be. */
fr_rank_page *fr_rank_page_open(const char *dir, int64_t rank, bool is_owner);
/* Notes that a rank begins to join the others, and that one which did is
 * through with it; as far as somebody watches. */
void fr_rank_page_join(int64_t rank);
void fr_rank_page_joined(int64_t rank);
/* Its owner writes who it is, and that it is at no step yet. */
void fr_rank_page_init(fr_rank_page *page, int64_t rank);
/* Both take NULL.  What happens before its first operation is of the step,
 * too. */
void fr_rank_page_begin_step(fr_rank_page *page, int64_t step);
void fr_rank_page_end_step(fr_rank_page *page, double step_s);
/* ", at step 7 in layer_bwd" for as much as is known; takes NULL. */
void fr_rank_page_describe(const fr_rank_page *page, char *out, size_t n);
/* For how long it has been at the same operation of a step; 0: at none. */
double fr_rank_page_still_s(const fr_rank_page *page);
void fr_rank_page_close(fr_rank_page *page);                   /* takes NULL */
void fr_rank_page_fail(fr_rank_page *page, const fr_err *err); /* likewise */

#endif
