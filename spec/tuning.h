/*
 * tuning.h: the answer of tune: the best plan, why the others lose, what was
 * looked at and how sure it is.  Plans are opaque here (plan/plan.h).
 */
#ifndef FR_SPEC_TUNING_H
#define FR_SPEC_TUNING_H

#include "core/err.h"
#include "spec/prediction.h"

typedef struct fr_plan fr_plan; /* plan/plan.h */

#define FR_TUNED_NAME 256

/* One plan of the answer. */
typedef struct fr_tuned {
    char name[FR_TUNED_NAME]; /* fr_plan_describe */
    fr_plan *plan;            /* malloc'ed, owned; NULL: there is none */
    fr_prediction prediction;
    bool is_tie;   /* no slower than the model's error can tell */
    char why[160]; /* it loses: "+12 % exposed dp, +3 % bubble" */
} fr_tuned;

typedef struct fr_tuned_list {
    fr_tuned *at;
    size_t n, cap;
} fr_tuned_list;

/* Why candidates were left out, and how many. */
typedef struct fr_tuning_reason {
    char text[160]; /* of the first of its kind */
    uint64_t n;
} fr_tuning_reason;

#define FR_TUNING_REASONS 12

typedef struct fr_tuning {
    fr_tuned best;     /* plan NULL: nothing fits, see nearest */
    fr_tuned baseline; /* fastest one-process plan; NULL: it does not fit */
    fr_tuned nearest;  /* only when nothing fits: least memory missing */
    uint64_t short_by_bytes;
    fr_tuned_list alternatives; /* the next best, by time */
    fr_tuned_list layouts;      /* the best of every (dp, tp, pp), by time */
    fr_tuned_list pareto; /* by time, each with less memory than the last */
    struct {
        uint64_t plans; /* legal, neutral choices counted once */
        uint64_t infeasible_memory, pruned_by_bound, simulated;
        uint64_t illegal; /* dropped while enumerating, not in `plans` */
    } space;
    fr_tuning_reason reasons[FR_TUNING_REASONS];
    size_t n_reasons;
    struct {
        bool optimal_in_space;
        double bound_s; /* no plan of the space is predicted to be faster */
        double gap;     /* 1 - bound_s / best */
    } certificate;
    double wall_s;
} fr_tuning;

void fr_tuning_init(fr_tuning *tuning);
void fr_tuning_release(fr_tuning *tuning);

/* Takes over `entry` (its plan), also on failure. */
FR_CHECKED fr_status fr_tuned_list_add(fr_tuned_list *list, fr_tuned entry,
                                       fr_err *err);

/* Counts a reason; kinds are told apart by their text up to a digit. */
void fr_tuning_count_reason(fr_tuning *tuning, const char *text);
void fr_tuning_add_reason(fr_tuning *tuning, const char *text, uint64_t n);

#endif
