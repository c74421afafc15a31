/*
 * gantt.h: a step as a chart of an answer: one row per rank and lane, with what
 * the lane did and when.
 */
#ifndef FR_REPORT_TIMELINE_GANTT_H
#define FR_REPORT_TIMELINE_GANTT_H

#include "program/ir/program.h"
#include "report/document/document.h"
#include "spec/result/timeline.h"

enum { FR_GANTT_RANKS = 16 }; /* more are cut off with a note */

/* A step of the timeline.  FR_INPUT: it has none. */
FR_CHECKED fr_status fr_report_gantt(const fr_program *program,
                                     const fr_timeline *timeline, int32_t step,
                                     fr_document *out, fr_err *err);

#endif
