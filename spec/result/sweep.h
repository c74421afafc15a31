/*
 * sweep.h: the answer of sweep: what was varied, and a row for every point of
 * the product of the values, in their order, the last key fastest.
 *
 * A scaling curve is the points that differ in one key alone, the one that
 * adds devices; on each curve the row with the fewest devices is the base.
 */
#ifndef FR_SPEC_RESULT_SWEEP_H
#define FR_SPEC_RESULT_SWEEP_H

#include "core/base/err.h"
#include "spec/result/tuning.h"

#define FR_SWEEP_KEYS 8
#define FR_SWEEP_NAME 32
#define FR_SWEEP_VALUE 64

typedef struct fr_sweep_key {
    char name[FR_SWEEP_NAME];
    char (*values)[FR_SWEEP_VALUE]; /* as they were written; owned */
    size_t n_values;
} fr_sweep_key;

/* One row.  Amounts that are not known are 0, ratios NAN. */
typedef struct fr_sweep_point {
    bool is_feasible;
    bool is_too_large;        /* it is not, since it does not fit the memory */
    char why[320];            /* it is not */
    char plan[FR_TUNED_NAME]; /* fr_plan_describe */
    const char *source;       /* worst source of a cost */
    int64_t n_nodes, n_ranks, global_batch, seq;
    double step_s, step_s_p5, step_s_p95;
    double busy_frac; /* of the step, in which devices compute */
    double tokens_per_s, tokens_per_s_per_rank; /* lists of layers: samples */
    double mfu;
    uint64_t peak_bytes, capacity_bytes;
    double p_fits; /* how likely they do; 0: not known */
    double usd_per_h, usd_per_1e9_tokens, kwh_per_1e9_tokens;
    fr_run_outlook run; /* of the goal's tokens */
    double goal;      /* smaller is better; HUGE_VAL: a constraint is broken */
    char broken[200]; /* which */
    /* The search of a tuned point: the number of plans that were walked over
     * and simulated.  None of them is faster by more than the share `gap`, 0:
     * proven.  NAN: the plan was kept. */
    double gap;
    uint64_t n_plans, n_simulated;
    bool is_best;
    bool is_pareto; /* with a price: none is faster and no dearer per token, or
                       cheaper and no slower */
    /* The scaling of the point: throughput per device relative to the base, and
     * the gain of the devices beyond those of the row before relative to the
     * base's. */
    double efficiency, marginal;
    bool is_knee;
    /* The trials of the sweep: how many run at a time, in how many rounds, and
     * the time, cost and energy of all; n_at_once 0: there are no trials. */
    int64_t n_at_once, n_rounds;
    double all_s, all_usd, all_kwh;
} fr_sweep_point;

typedef struct fr_sweep {
    fr_sweep_key keys[FR_SWEEP_KEYS];
    int n_keys;
    int i_scale_key;        /* that adds devices; -1: there is no curve */
    fr_sweep_point *points; /* owned */
    size_t n_points, n_feasible, n_too_large;
    size_t n_priced, n_pareto; /* feasible with a price; of these */
    bool is_fixed;             /* the plan was kept, else each point is tuned */
    bool is_exact;             /* each in the whole space of tune */
    bool is_weak;              /* the batch grows with the devices */
    bool has_tokens;           /* lists of layers have samples */
    const char *counted;       /* "tokens", or what all models count */
    fr_run_counts counts;
    int64_t n_trials; /* equal ones, side by side; 0: the points are no such */
    double knee_frac;
    char goal[24], goal_unit[24]; /* "": none was asked for */
    char goal_summary[96];
    char lr_rule[64]; /* by which larger batches keep S(B); "": none asked */
    double wall_s;
} fr_sweep;

void fr_sweep_init(fr_sweep *sweep);
void fr_sweep_release(fr_sweep *sweep);

/* A key without values; FR_USAGE: one of that name is there, or too many. */
FR_CHECKED fr_status fr_sweep_add_key(fr_sweep *sweep, const char *name,
                                      fr_err *err);
/* A value of the last key; FR_USAGE: it is there, or too long. */
FR_CHECKED fr_status fr_sweep_add_value(fr_sweep *sweep, const char *value,
                                        fr_err *err);
/* Room for all points, every one infeasible; FR_USAGE: more than n_max. */
FR_CHECKED fr_status fr_sweep_make_points(fr_sweep *sweep, size_t n_max,
                                          fr_err *err);

int fr_sweep_find_key(const fr_sweep *sweep, const char *name); /* or -1 */
/* Returns the number of points between two values of a key. */
size_t fr_sweep_stride(const fr_sweep *sweep, int i_key);
/* Returns the value of key i_key at a point. */
size_t fr_sweep_value_of(const fr_sweep *sweep, size_t point, int i_key);
const char *fr_sweep_text_of(const fr_sweep *sweep, size_t point, int i_key);

/* Does the answer depend on the value of key i_key anywhere?  False only where
 * its values were compared on feasible points, and each time gave the same. */
bool fr_sweep_key_acts(const fr_sweep *sweep, int i_key);

/*
 * The feasible points of the curve through `point`, by devices (equally many:
 * by number); returns how many, `out` has room for the values of the scale
 * key.  0 without such a key.
 */
size_t fr_sweep_curve(const fr_sweep *sweep, size_t point, size_t *out);

/* The same of the next curve that has feasible points; *point, 0 at first, is
 * where the search goes on.  0: there is no more. */
size_t fr_sweep_next_curve(const fr_sweep *sweep, size_t *point, size_t *out);

/*
 * Once all points are known: counts the feasible ones, fills efficiency,
 * marginal, is_knee, is_pareto and, where a goal was asked for, is_best.  The
 * knee is the last row before the first whose devices add less than knee_frac
 * of what those of the base do; a curve that keeps above has none.
 */
FR_CHECKED fr_status fr_sweep_finish(fr_sweep *sweep, fr_err *err);

#endif
