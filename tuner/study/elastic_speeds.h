/*
 * elastic_speeds.h: how fast a run is with fewer nodes: the best plan for each
 * number of them, found as sweep finds it.
 */
#ifndef FR_TUNER_STUDY_ELASTIC_SPEEDS_H
#define FR_TUNER_STUDY_ELASTIC_SPEEDS_H

#include "cost_models/base/cost.h"
#include "tuner/goal/goal_run.h"
#include "tuner/space/plan_space.h"

/* The subject that is planned for each number of nodes; borrowed. */
typedef struct fr_elastic_subject {
    const fr_model *model;
    const fr_job *job;
    const fr_cluster *cluster;
    const fr_cost_model *costs;
    const fr_plan *base; /* it has the values that no search decides */
    const fr_log *log;   /* cancellation; NULL: none */
} fr_elastic_subject;

/* A run, and down to how many nodes it goes on. */
typedef struct fr_elastic_request {
    int64_t n_ranks, n_nodes, least_nodes;
    double step_s; /* with all nodes; HUGE_VAL: that of the best plan */
} fr_elastic_request;

/* Seconds of a step with so many nodes, as far as they are known. */
typedef struct fr_node_step {
    int64_t n_ranks;
    double step_s; /* HUGE_VAL: there is no plan */
} fr_node_step;
typedef fr_vec(fr_node_step) fr_node_steps;

typedef fr_vec(double) fr_speeds;

/*
 * out->items[k - 1]: the rate of steps with k nodes missing, of that with all,
 * under the best plan for each; where there is none, that of the next smaller
 * number; 0: of none.  Of many numbers not every one is tuned.  `known` may
 * hold some already and gets the others.  fr_vec_release() frees both.
 * FR_INFEASIBLE: the nodes are no GPUs, or not whole.
 */
FR_CHECKED fr_status fr_elastic_speeds(const fr_elastic_subject *subject,
                                       const fr_elastic_request *request,
                                       fr_node_steps *known, fr_speeds *out,
                                       fr_err *err);

/* FR_INFEASIBLE: with one node missing there is no plan, nor with more. */
FR_CHECKED fr_status fr_elastic_check(const fr_speeds *speeds,
                                      int64_t least_nodes, fr_err *err);

/* A run at such speeds, which are borrowed. */
fr_run_elastic fr_elastic_of(const fr_speeds *speeds);

/* The speeds for each number of nodes that plans of a space may have. */
typedef struct fr_elastic_table {
    fr_node_steps known;
    fr_vec(fr_speeds) speeds;
    fr_vec(fr_node_elastic) rows; /* choices borrow them */
} fr_elastic_table;

/*
 * Down to the fewest of goal->choices, which then borrow the table: what tune
 * chooses the least number of nodes by.  fr_elastic_table_release() frees, also
 * after a failure.  FR_INFEASIBLE: as above, for every number.
 */
FR_CHECKED fr_status fr_elastic_table_make(const fr_plan_space_request *space,
                                           const fr_cost_model *costs,
                                           fr_elastic_table *out, fr_goal *goal,
                                           fr_err *err);
void fr_elastic_table_release(fr_elastic_table *table);

#endif
