/*
 * trace_ranks.h: what was under way on each rank of a trace.  Private to
 * interop/trace/trace_*.c.
 */
#ifndef FR_INTEROP_TRACE_TRACE_RANKS_H
#define FR_INTEROP_TRACE_TRACE_RANKS_H

#include "interop/trace/trace_losses.h"

typedef struct fr_rank_span {
    double begin_us, end_us;
    int32_t class; /* fr_loss */
} fr_rank_span;

typedef struct fr_rank_spans {
    int64_t rank;
    char process[48];        /* pid of the trace; "": its only rank */
    double begin_us, end_us; /* of the steps */
    uint64_t n_steps;        /* 0: no marks, all is one step */
    fr_rank_span *at;
    size_t n, cap;
} fr_rank_spans;

/* Time by class of the steps of a rank. */
FR_CHECKED fr_status fr_loss_sweep(const fr_rank_spans *spans,
                                   fr_loss_rank *out, fr_err *err);
/* Orders the ranks and fills in the means. */
void fr_losses_finish(fr_losses *losses);

#endif
