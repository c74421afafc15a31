/* slow_ranks.h: the step of a plan some of whose ranks are slow. */
#ifndef FR_API_REBALANCE_SLOW_RANKS_H
#define FR_API_REBALANCE_SLOW_RANKS_H

#include "api/inputs.h"

enum { FR_MOST_SLOW_RANKS = 1024 };

typedef struct fr_slow_ranks {
    int n;
    struct {
        int64_t rank;
        double factor; /* computes so many times as long */
    } items[FR_MOST_SLOW_RANKS];
} fr_slow_ranks;

/* More than there is room for are left out. */
void fr_slow_ranks_add(fr_slow_ranks *slow, int64_t rank, double factor);

/* Ranks stand on nodes in their order, as many on each as there are places:
 * those that the cluster knows to be slow. */
fr_slow_ranks fr_slow_ranks_of(const fr_inputs *inputs, const fr_plan *plan);

/* Beside the slow parts that the cluster has. */
FR_CHECKED fr_status fr_slow_ranks_predict(const fr_inputs *inputs,
                                           const fr_plan_file *file,
                                           const fr_slow_ranks *slow,
                                           double *step_s, fr_err *err);

#endif
