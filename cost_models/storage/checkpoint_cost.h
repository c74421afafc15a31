/*
 * checkpoint_cost.h: what a checkpoint of a run takes.
 *
 * Every rank writes an equal share of weights, master copies and moments, each
 * once in the whole job.  Storage is shared by all nodes; in-memory
 * checkpoints go to the host and from there to another node.
 */
#ifndef FR_COST_MODELS_STORAGE_CHECKPOINT_COST_H
#define FR_COST_MODELS_STORAGE_CHECKPOINT_COST_H

#include "plan/decide/plan.h"
#include "spec/cluster/cluster.h"
#include "spec/model/job.h"
#include "spec/model/model.h"

typedef enum fr_checkpoint_kind {
    FR_CHECKPOINT_SYNC,   /* training waits until all is on storage */
    FR_CHECKPOINT_ASYNC,  /* ... until it is copied to the host's memory */
    FR_CHECKPOINT_MEMORY, /* the same, and another node has a copy */
    FR_CHECKPOINT_KIND_N
} fr_checkpoint_kind;

extern const fr_names fr_checkpoint_kind_names;

typedef struct fr_checkpoint_cost {
    uint64_t bytes;             /* of the whole job */
    double blocked_s;           /* training waits */
    double drain_s;             /* then, until it can be loaded */
    double load_s;              /* by all nodes at once */
    double write_Bps, read_Bps; /* of the storage, all nodes together */
    bool is_write_assumed, is_read_assumed; /* nobody said them */
} fr_checkpoint_cost;

/* Rates of the storage as a user gave them, for the whole job; 0: what the
 * nodes have by themselves. */
typedef struct fr_storage_rates {
    double write_Bps, read_Bps;
} fr_storage_rates;

/* Returns the cost of a checkpoint of so many bytes from the first n_nodes of a
 * cluster. */
fr_checkpoint_cost fr_checkpoint_price(uint64_t bytes,
                                       const fr_cluster *cluster,
                                       int64_t n_nodes, fr_checkpoint_kind kind,
                                       const fr_storage_rates *rates);

#endif
