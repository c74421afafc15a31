/*
 * trace_json.h: timelines as Chrome JSON for ui.perfetto.dev and
 * chrome://tracing.  One process per rank and timeline, one thread per lane;
 * several timelines of one program (predicted, measured) begin at the same
 * zero and stand under each other, rank by rank.  A call encloses its
 * instructions; arrows go from a send to its receive.
 */
#ifndef FR_REPORT_TIMELINE_TRACE_JSON_H
#define FR_REPORT_TIMELINE_TRACE_JSON_H

#include "core/base/buffer.h"
#include "program/ir/program.h"
#include "spec/result/timeline.h"

typedef struct fr_trace_part {
    const fr_timeline *timeline;
    const char *label; /* "predicted", "measured" */
    int32_t step;      /* of the timeline */
} fr_trace_part;

/* Spans that a viewer still handles; ranks beyond are left out, and said so
 * in otherData. */
#define FR_TRACE_SPANS_MAX 1000000

/* FR_CHECK when the spans of a lane overlap without being nested. */
FR_CHECKED fr_status fr_trace_json(const fr_program *program,
                                   const fr_trace_part *parts, int n_parts,
                                   fr_buffer *out, fr_err *err);

/*
 * Reads a trace file: FR_CHECK with the first event of a track (pid, tid)
 * that reaches out of the one around it; n_events may be NULL.
 */
FR_CHECKED fr_status fr_trace_check(const char *path, size_t *n_events,
                                    fr_err *err);

#endif
