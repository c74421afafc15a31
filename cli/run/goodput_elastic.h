/*
 * goodput_elastic.h: how fast a run is with fewer nodes: the best plan for each
 * number of them, found as sweep finds it.
 */
#ifndef FR_CLI_RUN_GOODPUT_ELASTIC_H
#define FR_CLI_RUN_GOODPUT_ELASTIC_H

#include "cli/inputs.h"
#include "core/base/vec.h"

typedef fr_vec(double) fr_speeds;

/* A run, and down to how many nodes it goes on. */
typedef struct fr_elastic_request {
    const fr_plan_file *file;
    double step_s; /* with all nodes */
    int64_t n_nodes, least_nodes;
} fr_elastic_request;

/*
 * out->items[k - 1]: the rate of steps with k nodes missing, of that with all,
 * under the best plan for each; where there is none, that of the next smaller
 * number; 0: of none.  Of many numbers not every one is tuned.
 * fr_vec_release() frees.  FR_INFEASIBLE: there is no plan for any of them, or
 * the nodes are no GPUs.
 */
FR_CHECKED fr_status fr_goodput_speeds(const fr_inputs *inputs,
                                       const fr_elastic_request *request,
                                       fr_speeds *out, fr_err *err);

#endif
