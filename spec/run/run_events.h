/*
 * run_events.h: what a run of weeks meets beside the failures of single parts:
 * the words of --meets.
 *
 *     maintenance:4h@30d,evaluation:5min@1000,slow:2hx1.3@5000h,rack:8@50000h
 *
 * KIND:AMOUNT[xFACTOR]@EVERY, separated by commas, each kind once: all nodes
 * stand still for 4 hours every 30 days, announced before; five minutes of
 * evaluation after every 1000 steps; a node that makes all steps take 1.3 times
 * as long until that is noticed, 2 hours later, once every 5000 hours of a
 * node; 8 nodes that fail together, once every 50000 hours of such a group.
 */
#ifndef FR_SPEC_RUN_RUN_EVENTS_H
#define FR_SPEC_RUN_RUN_EVENTS_H

#include "core/base/err.h"

/* An event whose members are 0 does not happen. */
typedef struct fr_run_events {
    double maintenance_s, maintenance_every_s;
    double evaluation_s, evaluation_every_steps;
    double slow_s, slow_factor, slow_every_s;
    double rack_nodes, rack_every_s;
} fr_run_events;

/* FR_USAGE names the word and the mend. */
FR_CHECKED fr_status fr_run_events_parse(const char *text, fr_run_events *out,
                                         fr_err *err);

#endif
