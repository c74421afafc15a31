/* saving_cost.h: how long training stood still for its own safety. */
#ifndef FR_SPEC_RUN_SAVING_COST_H
#define FR_SPEC_RUN_SAVING_COST_H

#include "core/base/err.h"

typedef struct fr_saving_cost {
    int64_t n_checkpoints, n_replicas;
    double checkpoint_s, replica_s; /* of all of them, on rank 0 */
    uint64_t replica_bytes; /* of a rank: its own state and another rank's */
} fr_saving_cost;

#endif
