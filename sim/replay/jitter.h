/*
 * jitter.h: ranks that meet wait for the slowest.
 *
 * <jitter compute="2%"/> of a cluster is the relative standard deviation of
 * the time that a rank computes between two meetings, each rank by itself.
 * The members of a group of n that have computed for T since they met last
 * arrive as n draws of a normal distribution with standard deviation s,
 *
 *     s^2 = (sigma T)^2 + what earlier meetings left over
 *     delay = s E_n,  left over for other groups: s^2 V_n
 *
 * where E_n and V_n are mean and variance of the largest of n standard normal
 * draws, whose density is n phi(x) Phi(x)^(n-1) (David and Nagaraja, Order
 * Statistics, 3rd ed., 2003, section 2.1; Blom's approximation of the mean is
 * within 5 % of it).  A group that has met is together: what is left over
 * counts only for the other groups of its members.
 *
 * `network` is that of each transfer and collective; its mean is zero and it
 * counts for the groups met later.
 */
#ifndef FR_SIM_REPLAY_JITTER_H
#define FR_SIM_REPLAY_JITTER_H

#include "core/base/vec.h"

/* Mean and variance of the largest of n standard normal draws. */
typedef struct fr_largest {
    int64_t n;
    double mean, variance;
} fr_largest;

fr_largest fr_largest_of(int64_t n);

enum { FR_JITTER_SIZES = 32 };

/* A variance in whole ps^2 (or a time in ps): sums of them are exact, so that
 * what grows by the same in every micro-batch can be multiplied. */
__extension__ typedef __int128 fr_ps2;

/* The larger of two was taken, or, is_fixed, a delay follows from `a`. */
typedef struct fr_jitter_choice {
    fr_ps2 a, b;
    bool is_fixed;
} fr_jitter_choice;

/*
 * States of instructions: each begins with that of its cause (what ended last
 * before it), so nothing depends on who is looked at first.  A state is the
 * time computed since any meeting, then for every way to meet the variance
 * left over since that.
 */
typedef struct fr_jitter {
    double compute_frac, network_frac;
    bool is_on;
    int32_t n_tables; /* ways to meet */
    fr_vec(fr_ps2) states;
    bool is_noted,
        has_lost; /* choices are noted; there was no memory for one */
    fr_vec(fr_jitter_choice) choices;
    int32_t n_known;
    fr_largest known[FR_JITTER_SIZES];
} fr_jitter;

/* compute_frac and network_frac 0: nothing is kept, nothing is delayed. */
void fr_jitter_init(double compute_frac, double network_frac, int32_t n_tables,
                    fr_jitter *out);
void fr_jitter_release(fr_jitter *jitter);

/* The next state, numbered from 0: that of `cause`, or none (UINT32_MAX). */
FR_CHECKED fr_status fr_jitter_add(fr_jitter *jitter, uint32_t cause,
                                   fr_err *err);

/* The n_tables + 1 parts of a state. */
fr_ps2 *fr_jitter_state(const fr_jitter *jitter, uint32_t state);

/* Notes that a rank has computed for so long by itself. */
void fr_jitter_compute(fr_jitter *jitter, uint32_t state, int64_t ps);

/* The work of the members of a group from one meeting to the next. */
typedef struct fr_jitter_work {
    double compute_ps; /* between meetings of the same members */
    double squares;    /* the sum of squares of these times, ps^2 */
    double network_ps;
} fr_jitter_work;

/* Members of a table meet, n_ranks in all; returns the expected delay. */
int64_t fr_jitter_meet(fr_jitter *jitter, int32_t i_table, int64_t n_ranks,
                       const uint32_t *members, int64_t n_members,
                       const fr_jitter_work *work);

/* Notes a transfer, which makes both ranks as late as the later one. */
void fr_jitter_transfer(fr_jitter *jitter, uint32_t from, uint32_t to,
                        int64_t ps);

#endif
