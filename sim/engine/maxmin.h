/*
 * maxmin.h: max-min fair sharing of links by flows, in virtual time.
 *
 * Flow i moves at rate x_i <= cap_i and takes coefficient a_il * x_i of link l,
 * sum_i a_il x_i <= capacity_l.  All flows rise together until a link is full
 * or a cap is met, those stop, the others go on (progressive filling,
 * Bertsekas and Gallager, Data Networks, 6.5.2).  A flow that deserves w times
 * the share of others is the same flow with its work and cap divided by w and
 * its coefficients multiplied by w.
 *
 * Everything is an integer: rates in quanta per picosecond of the caller's
 * choice, work in quanta.  Links that fill up at the same level do so
 * together, sums are exact, so rates are a function of the set of flows alone
 * and remaining work one of the rates: neither depends on the order in which
 * flows came, and solving a change equals solving everything anew.
 *
 * A change costs work in the part of the network that it reaches: links whose
 * level is not below the change and that are tied to it through flows.  Flows
 * that wait for the same full link share one clock, so that a new rate of the
 * link does not touch its flows.
 *
 * Use: add and remove at one instant, then solve, then ask for next_ps; go
 * there, take_finished, and again.
 */
#ifndef FR_SIM_ENGINE_MAXMIN_H
#define FR_SIM_ENGINE_MAXMIN_H

#include "core/base/err.h"

/* Coefficients are fixed point: FR_MAXMIN_ONE is 1. */
#define FR_MAXMIN_ONE (UINT32_C(1) << 24)
/* Capacities and caps lie in [0, FR_MAXMIN_MAX_RATE]. */
#define FR_MAXMIN_MAX_RATE (INT64_C(1) << 53)
#define FR_MAXMIN_NO_CAP FR_MAXMIN_MAX_RATE
/* The largest coefficient: 2^20, so that those of a link add up. */
#define FR_MAXMIN_MAX_COEFFICIENT ((uint64_t)FR_MAXMIN_ONE << 20)

__extension__ typedef unsigned __int128 fr_work;

typedef struct fr_maxmin fr_maxmin;

typedef struct fr_maxmin_use {
    uint32_t link;
    uint64_t coefficient; /* > 0; a link stands at most once in a flow */
} fr_maxmin_use;

/* capacity[n_links] is copied.  Destroy takes NULL. */
FR_CHECKED fr_status fr_maxmin_create(size_t n_links, const int64_t *capacity,
                                      fr_maxmin **out, fr_err *err);
void fr_maxmin_destroy(fr_maxmin *maxmin);

/*
 * Starts a flow at the time of the next solve; `tag` comes back when it is
 * finished.  A flow without uses moves at its cap.  *flow (may be NULL) is its
 * handle until it is removed or taken as finished.  No allocation once the
 * largest number of flows has been seen.  FR_NO_MEMORY changes nothing.
 */
FR_CHECKED fr_status fr_maxmin_add(fr_maxmin *maxmin, fr_work work, int64_t cap,
                                   const fr_maxmin_use *uses, size_t n_uses,
                                   uint32_t tag, uint32_t *flow, fr_err *err);

/* Takes a flow away before its end, at the time of the last call. */
void fr_maxmin_remove(fr_maxmin *maxmin, uint32_t flow);

/* New rates after any number of adds and removes, valid from now_ps on. */
void fr_maxmin_solve(fr_maxmin *maxmin, int64_t now_ps);

/* Returns the time at which the next flow ends; INT64_MAX: none ever does. */
int64_t fr_maxmin_next_ps(const fr_maxmin *maxmin);

/*
 * Removes the flows that have ended by now_ps, at most n_max of them, writes
 * their tags and returns their number; call again while it returns n_max.
 * The order is reproducible but means nothing.
 */
size_t fr_maxmin_take_finished(fr_maxmin *maxmin, int64_t now_ps,
                               uint32_t *tags, size_t n_max);

/* Returns the work that a flow still has to do, after a solve. */
fr_work fr_maxmin_remaining(const fr_maxmin *maxmin, uint32_t flow,
                            int64_t now_ps);
size_t fr_maxmin_n_flows(const fr_maxmin *maxmin);

/* work / rate rounded up; INT64_MAX when it does not fit or rate is 0. */
int64_t fr_maxmin_duration_ps(fr_work work, int64_t rate);

#endif
