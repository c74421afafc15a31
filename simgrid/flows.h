/*
 * flows.h: when do transfers over a network end?  Each has links, a size and
 * transfers that it waits for.  Links are shared max-min fairly; the latency of
 * a route is a delay before the transfer and never a weight.
 *
 *     start = max(start_s, ends of its deps) + delay_s + route's latency
 *
 * fr_flows_run reads a SimGrid platform and a CSV file with the columns
 * id,src,dst,bytes,start_s,delay_s,deps (any order; the last three may be
 * absent or empty; deps: ids joined by ';').
 */
#ifndef FR_SIMGRID_FLOWS_H
#define FR_SIMGRID_FLOWS_H

#include "core/base/err.h"
#include "sim/engine/maxmin.h"
#include "simgrid/platform.h"

/* ---- the engine ---------------------------------------------------------- */

/* A route through the network that any number of flows may take. */
typedef struct fr_flow_route {
    uint32_t first_use, n_uses; /* in uses */
    int64_t cap;                /* quanta per picosecond */
    int64_t latency_ps;
} fr_flow_route;

typedef struct fr_flow_item {
    fr_work work; /* quanta */
    int64_t start_ps, delay_ps;
    uint32_t route;
    uint32_t n_deps;                  /* how many items must end before */
    uint32_t first_child, n_children; /* in children: who waits for it */
} fr_flow_item;

typedef struct fr_flow_set {
    size_t n_links, n_items;
    const int64_t *capacity; /* [n_links] quanta per picosecond */
    const fr_maxmin_use *uses;
    const fr_flow_route *routes;
    const fr_flow_item *items; /* at most FR_EVENT_MAX_PAYLOAD */
    const uint32_t *children;
} fr_flow_set;

/*
 * Writes end_ps[n_items] and the number of events.  FR_FAILURE when flows
 * wait for each other in a circle (their ends stay -1) or time runs out at
 * 2^63 picoseconds.
 */
FR_CHECKED fr_status fr_flow_set_run(const fr_flow_set *set, int64_t *end_ps,
                                     uint64_t *n_events, fr_err *err);

/* ---- files --------------------------------------------------------------- */

typedef struct fr_flows_row {
    char *id; /* owned */
    double finish_s;
} fr_flows_row;

typedef struct fr_flows_result {
    fr_flows_row *rows; /* in file order */
    size_t n;
    double makespan_s; /* the last end; 0 without flows */
    uint64_t n_events;
} fr_flows_result;

/* FR_INPUT "path:line: what; the mend". */
FR_CHECKED fr_status fr_flows_run(const char *platform_path,
                                  const char *csv_path, fr_flows_result *out,
                                  fr_err *err);
/* The same with the files' text. */
FR_CHECKED fr_status fr_flows_run_text(fr_platform *platform,
                                       const char *csv_name, const char *csv,
                                       size_t n_csv, fr_flows_result *out,
                                       fr_err *err);
void fr_flows_result_release(fr_flows_result *result);

#endif
