/* moved_plan.h: a plan some of whose ranks are slow, with fewer layers on their
 * stages or fewer micro-batches for their replicas. */
#ifndef FR_API_REBALANCE_MOVED_PLAN_H
#define FR_API_REBALANCE_MOVED_PLAN_H

#include "api/rebalance/slow_ranks.h"

typedef struct fr_moved {
    fr_plan plan;
    double before_s, after_s; /* predicted steps, slow ranks and all */
} fr_moved;

/*
 * `slow`: beside those that the cluster knows, which it is about where it is
 * empty.  The split of layers with the shortest predicted step, moving one
 * layer after the other from the stage that takes longest.  FR_INFEASIBLE: none
 * is shorter, or there is no pipeline.
 */
FR_CHECKED fr_status fr_move_layers(const fr_inputs *inputs,
                                    const fr_plan_file *file,
                                    const fr_slow_ranks *slow, fr_moved *out,
                                    fr_err *err);

/*
 * The same of samples: uneven shares of the batch for data-parallel ranks, as
 * many micro-batches as each is fast.  FR_INFEASIBLE: they are not predicted to
 * be faster, or not possible.
 */
FR_CHECKED fr_status fr_move_samples(const fr_inputs *inputs,
                                     const fr_plan_file *file,
                                     const fr_slow_ranks *slow, fr_moved *out,
                                     fr_err *err);

/* "layers 5,3 instead of 4,4", of what differs; returns `text`. */
enum { FR_MOVED_TEXT = 440 };
char *fr_moved_text(const fr_plan_file *file, const fr_plan *before,
                    const fr_plan *after, char text[FR_MOVED_TEXT]);

#endif
