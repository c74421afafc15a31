/*
 * replay_host.h: the hosts of GPUs in a replay.
 *
 * The host of a rank issues the calls of its rank program in program order,
 * whatever their lane, each instruction after fr_host_issue_s; nothing begins
 * before it is issued.  The host does not wait for the device but where it
 * needs a result (fr_host_is_held).  So between two such points the time at
 * which a step is issued is that of the point and a constant.
 *
 * What a run does to both is linear in (max, +): with S the time from which
 * its device could begin and H that of its host,
 *
 *     device = max(S + ss, H + sh)        host = max(S + hs, H + hh)
 */
#ifndef FR_SIM_REPLAY_REPLAY_HOST_H
#define FR_SIM_REPLAY_REPLAY_HOST_H

#include "core/base/err.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct fr_host_chain {
    int64_t ss_ps, sh_ps, hs_ps, hh_ps;
    bool is_held; /* at least once */
} fr_host_chain;

/* The chain of nothing. */
fr_host_chain fr_host_chain_empty(void);
/* Appends an instruction that the host issues in host_ps and that takes ps. */
void fr_host_chain_add(fr_host_chain *chain, int64_t host_ps, int64_t ps,
                       bool is_held);
/* Appends another chain. */
void fr_host_chain_append(fr_host_chain *chain, const fr_host_chain *next);
/* The time at which both the device and the host are through. */
int64_t fr_host_chain_device(const fr_host_chain *chain, int64_t device_ps,
                             int64_t host_ps);
int64_t fr_host_chain_host(const fr_host_chain *chain, int64_t device_ps,
                           int64_t host_ps);

/* The time at which the host begins to issue a step (replay_order.h). */
typedef struct fr_host_step {
    int64_t since_ps; /* after it went on from where it was held last */
    uint32_t n_held;  /* steps before it in which it is held */
    bool is_held;     /* in this one */
} fr_host_step;

typedef struct fr_host_steps {
    fr_host_step *steps; /* of a colour's program */
    uint32_t n_held;
    /* For a loop (replay_order.h): the number of steps in which the host is
     * held, before the loop and in one round; if a round has none, round_ps is
     * its time on the host. */
    uint32_t n_held_before, n_held_round;
    int64_t round_ps;
} fr_host_steps;

struct fr_replay_costs;

/* The host's steps of a colour, which are kept with its costs. */
FR_CHECKED fr_status fr_host_steps_find(struct fr_replay_costs *costs,
                                        int32_t color,
                                        const fr_host_steps **out, fr_err *err);

#endif
