/*
 * maxmin_state.h: what the parts of the max-min solver share: maxmin.c (who
 * uses what), maxmin_level.c (rates), maxmin_clock.c (when flows end).
 * Beside them only the tests of the solver include it.
 */
#ifndef FR_SIM_ENGINE_MAXMIN_STATE_H
#define FR_SIM_ENGINE_MAXMIN_STATE_H

#include "sim/engine/maxmin.h"
#include "sim/engine/time_heap.h"

#define FR_NO_LEVEL INT64_MAX     /* the link never fills up */
#define FR_UNKNOWN_RATE INT64_MAX /* the flow waits for the solver */
#define FR_NOBODY UINT32_MAX
#define FR_OWN_CAP (UINT32_MAX - 1) /* bound by its own cap */

/* A flow on a link. */
typedef struct fr_member {
    uint32_t flow, i_use;
    uint64_t coefficient;
} fr_member;

/* A link in a flow; position: in the link's members. */
typedef struct fr_use {
    uint32_t link, position;
    uint64_t coefficient;
} fr_use;

enum { FR_NEAR_LINKS = 5 };

/* The part of a flow that the search for levels reads: half a cache line. */
typedef struct fr_flow_path {
    int64_t cap;
    uint32_t n_links;
    uint32_t near[FR_NEAR_LINKS]; /* if n_links <= FR_NEAR_LINKS */
} fr_flow_path;

typedef enum fr_link_state {
    FR_LINK_CLEAN,
    FR_LINK_QUEUED, /* in the queue of levels */
    FR_LINK_DONE    /* decided in this solve */
} fr_link_state;

/* The part of a link that the search for levels reads. */
typedef struct fr_level {
    int64_t capacity;
    int64_t level;     /* at which it is full, FR_NO_LEVEL: it is not */
    int64_t min_level; /* capacity over the sum of all coefficients */
    int64_t fastest;   /* neither full nor queued: no flow that has its rate
                          is above the larger of this and min_level */
    fr_member *members;
    uint32_t n_members, cap_members;
    uint32_t n_odd;  /* members whose coefficient is not 1 */
    uint8_t state;   /* fr_link_state */
    bool is_changed; /* members came or went since the last solve */
    bool is_listed;  /* in `dirty` */
} fr_level;

/* The clock of the flows that a full link holds back. */
typedef struct fr_link_clock {
    fr_work progress; /* of each of its flows since they are there */
    int64_t since_ps; /* when progress was right */
    int64_t rate;     /* since then */
    uint32_t root;    /* heap of its flows by mark */
} fr_link_clock;

typedef struct fr_flow {
    fr_work mark; /* progress of the clock at its end; capped or new: work
                     left at since_ps */
    int64_t since_ps;
    fr_use *uses;
    uint32_t *far; /* links, if more than FR_NEAR_LINKS */
    uint32_t cap_uses;
    uint32_t child, next, previous; /* heap: previous sibling or parent */
    uint32_t tag;
    bool is_alive;
} fr_flow;

typedef struct fr_u32s {
    uint32_t *items; /* room for all links, or all flows */
    size_t n;
} fr_u32s;

struct fr_maxmin {
    size_t n_links;
    fr_level *levels;
    int64_t *safe; /* per link: flows up to this level need not ask it */
    bool *is_full; /* per link: level is not FR_NO_LEVEL */
    uint64_t *coefficient_sum; /* per link */
    fr_link_clock *clocks;
    /* flows: parallel arrays, cap_flows each */
    size_t n_flows, n_used, cap_flows;
    int64_t *rate;   /* FR_UNKNOWN_RATE while released */
    uint32_t *bound; /* link that holds it back, OWN_CAP, NOBODY */
    uint32_t *home;  /* link whose clock it runs on, OWN_CAP, NOBODY: new */
    bool *is_listed; /* in `listed` */
    fr_flow_path *paths;
    fr_flow *flows;
    fr_u32s free_flows;
    fr_u32s changed; /* links whose members came or went since the solve */
    fr_u32s listed;  /* flows that are new, released or held elsewhere */
    fr_u32s dirty;   /* links that the solve has looked at */
    fr_u32s stack;
    uint32_t *held;        /* scratch: room for all flows */
    fr_time_heap queue;    /* of links, by the key of their level */
    int64_t least_removed; /* rate of the slowest flow that went away */
    int64_t now_ps;
    fr_time_heap ends; /* ids: links, then n_links + flow */
    uint64_t n_scans;  /* of the members of a link, by all solves */
};

/* The links that a flow uses, paths[flow].n_links of them. */
static inline const uint32_t *fr_maxmin_links(const fr_maxmin *m, uint32_t i)
{
    return m->paths[i].n_links <= FR_NEAR_LINKS ? m->paths[i].near
                                                : m->flows[i].far;
}

/* maxmin_level.c: `safe` anew, after any change of the link. */
void fr_maxmin_set_safe(fr_maxmin *maxmin, uint32_t link);
/* Rates and bounds of all flows; lists what it looked at. */
void fr_maxmin_find_levels(fr_maxmin *maxmin, bool is_all);

/* maxmin_clock.c */
fr_work fr_link_clock_progress(const fr_link_clock *clock, int64_t now_ps);
/* Takes the flow off its clock; returns the work that it has left. */
fr_work fr_maxmin_detach(fr_maxmin *maxmin, uint32_t flow, int64_t now_ps);
/* Moves flows to the clocks that bind them, clocks to their new rates. */
void fr_maxmin_commit(fr_maxmin *maxmin, int64_t now_ps);

#endif
