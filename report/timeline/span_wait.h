/*
 * span_wait.h: how long a span of communication waited for others: a receive
 * until its peer begins to send, a collective until the last rank of its group
 * has come.  What is left of the span is the transfer itself.
 */
#ifndef FR_REPORT_TIMELINE_SPAN_WAIT_H
#define FR_REPORT_TIMELINE_SPAN_WAIT_H

#include "program/ir/program.h"
#include "spec/result/timeline.h"

/* The communication of one step, by rank, lane and time; owned. */
typedef struct fr_span_waits {
    const fr_program *program;
    const fr_timeline *timeline;
    struct fr_comm_span *at;
    size_t n;
    int64_t *group; /* room for the ranks of a group */
} fr_span_waits;

/* Finds the waits of step `step`; the program and the timeline are borrowed.
 * Every span must be of the program. */
FR_CHECKED fr_status fr_span_waits_create(const fr_program *program,
                                          const fr_timeline *timeline,
                                          int32_t step, fr_span_waits *out,
                                          fr_err *err);
void fr_span_waits_release(fr_span_waits *waits);

/* When span i of the timeline had waited, in [begin_ps, end_ps]. */
int64_t fr_span_wait_end_ps(const fr_span_waits *waits, size_t i);

#endif
