/*
 * tuning.h: the answer of tune: the best plan for a goal, why the others lose,
 * what was looked at, how sure it is, and what one device and one node do
 * alone.  Plans are opaque here (plan.h).
 */
#ifndef FR_SPEC_RESULT_TUNING_H
#define FR_SPEC_RESULT_TUNING_H

#include "core/base/err.h"
#include "spec/result/prediction.h"
#include "spec/result/run_outlook.h"

typedef struct fr_plan fr_plan; /* plan.h */

#define FR_TUNED_NAME 256

/* One plan of the answer. */
typedef struct fr_tuned {
    char name[FR_TUNED_NAME]; /* fr_plan_describe */
    fr_plan *plan;            /* owned; NULL where there is no such plan */
    fr_prediction prediction;
    int64_t global_batch;     /* sequences per step */
    int64_t n_ranks, n_nodes; /* that it occupies */
    double value;             /* of the goal; HUGE_VAL where a limit breaks */
    fr_run_outlook run;       /* the goal's */
    bool is_tie;              /* the model's error hides the difference */
    char why[160];            /* why it loses: "+12 % exposed dp" */
    uint32_t run_by;          /* runtimes and frameworks that can execute it:
                                 bits of target.h */
} fr_tuned;

/* Laid out as an fr_vec. */
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

/* The best plan without a network: of one device, of one node; and, where the
 * best of all is for others, the best that forerun itself can run. */
typedef enum fr_baseline {
    FR_BASELINE_DEVICE, /* one rank; CPUs: one process */
    FR_BASELINE_NODE,
    FR_BASELINE_RUNTIME,
    FR_BASELINE_HEALTHY, /* without the slow nodes, if there are any */
    FR_BASELINE_N
} fr_baseline;

typedef struct fr_tuning_baseline {
    fr_tuned tuned;
    char why_not[256]; /* why there is none, or which limit breaks; else "",
                          also where none was looked for */
} fr_tuning_baseline;

/* "one device", "one node", "forerun runs" */
const char *fr_baseline_name(fr_baseline baseline);

/* The goal; value and bound are those of the best plan. */
typedef struct fr_tuning_goal {
    char name[16], unit[16], summary[96];
    char lr_rule[64]; /* the rule for a free batch; "" if the batch is given */
    bool is_step;     /* the value is that of step_s */
    bool is_whole;    /* the value is a count, and what it adds orders equals */
} fr_tuning_goal;

/* A plan that was run for some steps. */
typedef struct fr_tuning_measured {
    char name[FR_TUNED_NAME];
    double predicted_s;
    double median_s, p5_s, p95_s; /* after warm-up */
    int32_t n_steps;              /* that these rest on */
    double value;                 /* of the goal, at the median; HUGE_VAL */
    bool is_chosen;
    char why_not[200]; /* why it was not run; "" where it was */
} fr_tuning_measured;

enum { FR_TUNING_MEASURED = 16 };

typedef struct fr_tuning {
    fr_tuning_goal goal;
    fr_run_counts counts;
    bool is_for_any; /* whoever can execute it, or nobody */
    fr_tuned best;   /* plan NULL: nothing fits, see nearest */
    fr_tuned robust; /* a tie that is more robust than the best, the most so of
                        those looked at; NULL: there is none */
    struct {         /* the tie of the fewest ranks, where those are fewer */
        char name[FR_TUNED_NAME];
        int64_t n_ranks; /* 0: there is none */
        double value;
    } fewest;
    fr_tuned nearest; /* only when nothing is good: least memory missing, or,
                         where plans fit, the limits exceeded least */
    uint64_t short_by_bytes;    /* of `nearest`, which was simulated */
    uint64_t least_short_bytes; /* lower bound of any plan; 0: none is known */
    double fit_confidence; /* with which a plan fits; 0: none was asked for */
    char broken[160];      /* which limit `nearest` breaks; "": memory */
    fr_tuning_baseline baselines[FR_BASELINE_N];
    int64_t n_slots;       /* ranks that the cluster has places for */
    int64_t advised_ranks; /* the fewest that the model cannot tell from the
                              best; 0: there is no best */
    char advice[256];      /* to distribute or not, in a line */
    fr_tuning_measured measured[FR_TUNING_MEASURED];
    size_t n_measured; /* 0: none was asked for */
    struct {           /* measured / predicted step, of this model's steps in
                          the profile */
        size_t n;
        double median, least, most;
    } correction;
    fr_tuned_list alternatives; /* the next best; ties first, by robustness */
    fr_tuned_list layouts;      /* the best of every (dp, tp, pp), in order */
    fr_tuned_list pareto; /* in order, each with less memory than the last */
    struct {
        uint64_t plans; /* legal, neutral choices counted once */
        uint64_t infeasible_memory, pruned_by_bound, simulated;
        uint64_t illegal; /* dropped while enumerating, not in `plans` */
    } space;
    fr_tuning_reason reasons[FR_TUNING_REASONS];
    size_t n_reasons;
    struct {
        bool optimal_in_space;
        double bound; /* no plan of the space has a better value */
        double gap;   /* 1 - bound / best */
    } certificate;
    double wall_s;
} fr_tuning;

void fr_tuning_init(fr_tuning *tuning);
void fr_tuning_release(fr_tuning *tuning);

/* Entry i of best, alternatives[0], [1] ... becomes the best, because it was
 * measured to be; the certificate is then about its prediction. */
void fr_tuning_choose(fr_tuning *tuning, size_t i);

/* Takes over `entry` (its plan), also on failure. */
FR_CHECKED fr_status fr_tuned_list_add(fr_tuned_list *list, fr_tuned entry,
                                       fr_err *err);

/* Counts a reason; kinds are told apart by their text up to a digit. */
void fr_tuning_count_reason(fr_tuning *tuning, const char *text);
void fr_tuning_add_reason(fr_tuning *tuning, const char *text, uint64_t n);

#endif
