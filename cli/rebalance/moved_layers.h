/* moved_layers.h: a pipeline some of whose ranks are slow, with fewer layers on
 * their stages. */
#ifndef FR_CLI_REBALANCE_MOVED_LAYERS_H
#define FR_CLI_REBALANCE_MOVED_LAYERS_H

#include "cli/rebalance/slow_ranks.h"

typedef struct fr_moved_layers {
    fr_plan plan;
    double before_s, after_s; /* predicted steps, slow ranks and all */
} fr_moved_layers;

/*
 * `slow`: beside those that the cluster knows, which it is about where it is
 * empty.  The split of layers with the shortest predicted step, moving one
 * layer after the other from the stage that takes longest.  FR_INFEASIBLE: none
 * is shorter, or there is no pipeline.
 */
FR_CHECKED fr_status fr_move_layers(const fr_inputs *inputs,
                                    const fr_plan_file *file,
                                    const fr_slow_ranks *slow,
                                    fr_moved_layers *out, fr_err *err);

/* "5,3": layers of its stages; returns `text`. */
enum { FR_SPLIT_TEXT = 200 };
char *fr_layer_split_text(const fr_plan *plan, const fr_model *model,
                          char text[FR_SPLIT_TEXT]);

#endif
