/*
 * goal.h: what a plan is chosen for: a table of objectives, each a number
 * that is smaller for a better plan, and constraints that any of them obeys.
 *
 * A run is as many steps as its tokens take; where the critical batch is
 * known, larger batches take more tokens (McCandlish, Kaplan, Amodei et al.,
 * "An Empirical Model of Large-Batch Training", arXiv 1812.06162, sec. 2.3:
 * (S/S_min - 1)(E/E_min - 1) = 1, B_crit = E_min / S_min):
 *
 *     S(B) = S_min (1 + B_crit / B),   E(B) = B S(B) = E_min (1 + B / B_crit)
 *
 * Failures, checkpoints and restarts stretch the time of a run by a factor
 * that does not depend on the step (checkpoint_interval.h).  A limit on time,
 * dollars or energy is kept if 95 of 100 runs keep it, where both the step and
 * what interrupts the run are uncertain.
 *
 * For a fixed plan every objective grows with the step time, so that a lower
 * bound of the step is one of the goal: what a search prunes by.
 */
#ifndef FR_TUNER_GOAL_GOAL_H
#define FR_TUNER_GOAL_GOAL_H

#include "core/base/err.h"
#include "plan/decide/plan.h"
#include "spec/cluster/cluster.h"
#include "spec/result/prediction.h"
#include "spec/result/run_outlook.h"
#include "tuner/goal/goal_list.h"
#include "tuner/goal/run_ways.h"

typedef struct fr_goal {
    fr_goal_kind kind;
    double tokens;         /* of the run, in small batches (E_min); 0: those of
                              the job, or of its steps */
    double critical_batch; /* B_crit in tokens, 0: tokens do not depend on the
                              batch */
    bool is_spot;          /* pay the spot price where there is one */
    /* Constraints, 0: none. */
    double deadline_s, most_usd, most_kwh;
    int64_t most_devices;
    double least_headroom_frac; /* of the memory left free */
    bool is_disturbed;          /* runs count what interrupts them: */
    fr_run_hazards hazards;     /* as a user says it; is_spot as above */
    fr_run_choices choices;     /* choices beside the plan */
    bool is_nearest; /* in place of the objective: by how much the constraint
                        that is broken most is exceeded, is / limit */
} fr_goal;

/* The model, job and cluster of a plan; all are borrowed. */
typedef struct fr_goal_subject {
    const fr_model *model;
    const fr_job *job; /* as fr_goal_job() counts it */
    const fr_cluster *cluster;
} fr_goal_subject;

/* A mask of the values that a row of the table needs in addition to the
 * plan. */
enum {
    FR_GOAL_NEEDS_DEADLINE = 1 << 0,
    FR_GOAL_NEEDS_TOKENS = 1 << 1,
    FR_GOAL_NEEDS_CRITICAL_BATCH = 1 << 2,
    FR_GOAL_NEEDS_PRICE = 1 << 3,
    FR_GOAL_NEEDS_POWER = 1 << 4
};

/* A step as a goal weighs it. */
typedef struct fr_weighed_step {
    double seconds;     /* expected */
    double busy_s;      /* of that, the mean over the devices in which they
                           compute */
    double p95_factor;  /* 95 of 100 take no more than so many times that; 1: it
                           is exact */
    double useful_frac; /* no wait for stragglers or samples */
} fr_weighed_step;

fr_weighed_step fr_weighed_step_of(const fr_prediction *prediction);

/* A whole run of such steps. */
typedef struct fr_goal_run {
    double n_steps, tokens;
    fr_run_outlook outlook;
    int64_t n_nodes, n_devices;
} fr_goal_run;

/* The values that all plans with the same ranks and threads share. */
typedef struct fr_goal_scale {
    double n_steps, tokens;
    int64_t n_nodes, n_devices;
    int32_t n_threads;
    fr_run_way_list ways; /* to choose from, one at least */
} fr_goal_scale;

/* The values that the goal of a plan is computed from. */
typedef struct fr_goal_point {
    const fr_goal *goal;
    const fr_goal_scale *scale;
    double usd_per_h, training_kw; /* of the way that it goes */
    fr_goal_run run;
    fr_weighed_step step;
    double taken_frac;
} fr_goal_point;

/* The thing whose amount an objective is. */
typedef enum fr_goal_of {
    FR_GOAL_OF_STEP,  /* seconds of a step, or what follows from them alone */
    FR_GOAL_OF_RUN,   /* a run, whose interruptions count */
    FR_GOAL_OF_MEMORY /* does not depend on seconds */
} fr_goal_of;

typedef struct fr_goal_row {
    const char *name;
    const char *unit;
    const char *summary; /* "seconds of a step" */
    fr_goal_of of;
    unsigned needs;
    bool weighs_devices; /* the value depends on how many a plan has, whatever
                            its step */
    bool is_step;        /* the value is the step's seconds */
    bool is_whole;       /* shown without its fraction, which breaks ties */
    bool chooses_batch;  /* the global batch is free where none is given */
    double (*value)(const fr_goal_point *at);
} fr_goal_row;

/* The table of goal_table.c, in the order of fr_goal_kind. */
extern const fr_goal_row *const fr_goal_rows[];
extern const int fr_n_goals;

/* Row of a kind; NULL past the last. */
const fr_goal_row *fr_goal_row_of(fr_goal_kind kind);

/* Step time, nothing else asked. */
void fr_goal_init(fr_goal *goal);

/* FR_USAGE: something that the goal needs was not given, or is negative. */
FR_CHECKED fr_status fr_goal_check(const fr_goal *goal, fr_err *err);
/* FR_INPUT: the cluster has no price, or no power, that the goal needs. */
FR_CHECKED fr_status fr_goal_check_cluster(const fr_goal *goal,
                                           const fr_cluster *cluster,
                                           fr_err *err);

/* Does the goal or the job say how many tokens the run takes? */
bool fr_goal_has_tokens(const fr_goal *goal, const fr_job *job);

/* Is a constraint given? */
bool fr_goal_has_limits(const fr_goal *goal);
/* Does it matter how many devices a plan has, whatever its step?  And how long
 * they compute? */
bool fr_goal_weighs_devices(const fr_goal *goal);
bool fr_goal_weighs_energy(const fr_goal *goal);

/* The job as a goal counts it: a list of layers has samples for tokens. */
fr_job fr_goal_job(const fr_model *model, const fr_job *job);

/* Returns the share of the memory in use on the rank with the least
 * headroom. */
double fr_goal_taken_frac(const fr_prediction *prediction);

/* For many steps; fr_goal_scale_release() frees, and makes it all 0. */
FR_CHECKED fr_status fr_goal_scale_make(const fr_goal *goal,
                                        const fr_plan *plan,
                                        const fr_goal_subject *subject,
                                        fr_goal_scale *out, fr_err *err);
void fr_goal_scale_release(fr_goal_scale *scale);

/*
 * The value of such a step and such a share of the memory taken; HUGE_VAL: a
 * constraint is broken.  It grows with the seconds, those of computing and the
 * share, also in the last bit, and with the uncertainty of the step: at lower
 * bounds of all it is one of the value.
 */
double fr_goal_at(const fr_goal *goal, const fr_goal_scale *scale,
                  const fr_weighed_step *step, double taken_frac);

/* The same whatever the constraints. */
double fr_goal_objective(const fr_goal *goal, const fr_goal_scale *scale,
                         const fr_weighed_step *step, double taken_frac);

/* About the longest step whose value is no more than `value` if devices compute
 * for busy_s of it: HUGE_VAL where the value does not follow the step. */
double fr_goal_step_for(const fr_goal *goal, const fr_goal_scale *scale,
                        double busy_s, double value);

/*
 * `plan` occupies the first nodes of the cluster, as fr_cluster_place() puts
 * it (all of them where it has no room); whole nodes are paid for.  It goes the
 * way that is best for the goal; where each breaks a limit, the one that
 * exceeds it least.
 */
fr_goal_run fr_goal_run_of(const fr_goal *goal, const fr_weighed_step *step,
                           const fr_plan *plan, const fr_goal_subject *subject);

/*
 * Smaller is better; HUGE_VAL where the plan does not fit into memory, a
 * constraint is broken or a price or power that the goal needs is not known.
 */
double fr_goal_value(const fr_goal *goal, const fr_prediction *prediction,
                     const fr_plan *plan, const fr_goal_subject *subject);

/*
 * Writes the constraint that a prediction violates ("takes 41.2 days, the
 * deadline is 30.0 days"), or "" if it violates none.  Returns buf.
 */
char *fr_goal_why_not(const fr_goal *goal, const fr_prediction *prediction,
                      const fr_plan *plan, const fr_goal_subject *subject,
                      char *buf, size_t n_buf);

/*
 * The rule by which the learning rate has to follow the batch for S(B) to
 * hold: the job's where it names one, else what is published for its
 * optimizer.  A sentence without a full stop; returns buf.
 */
char *fr_goal_lr_rule(const fr_job *job, char *buf, size_t n_buf);

#endif
