/*
 * gantt.h: a step as a picture for the terminal: one line per rank and lane,
 * each cell what the lane did longest in its slice of time.
 */
#ifndef FR_REPORT_TIMELINE_GANTT_H
#define FR_REPORT_TIMELINE_GANTT_H

#include "core/base/buffer.h"
#include "program/ir/program.h"
#include "spec/result/timeline.h"

typedef struct fr_gantt_options {
    int n_columns;   /* of the terminal, >= 40 */
    int n_ranks_max; /* more are cut off with a note */
    bool is_unicode; /* else plain ASCII */
    int32_t step;    /* of the timeline */
} fr_gantt_options;

FR_CHECKED fr_status fr_gantt_text(const fr_program *program,
                                   const fr_timeline *timeline,
                                   const fr_gantt_options *options,
                                   fr_buffer *out, fr_err *err);

#endif
