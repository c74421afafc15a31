/*
 * input_cost.h: how long a step's samples take until they can be computed with.
 *
 * All nodes read at the rate of their storage; the loaders of each device wait
 * for its latency and decode, one sample after the other, each its own.  What
 * of the data set the host's memory holds is read in the first epoch only:
 * every node reads all over the data set, and keeps as much as it can.
 */
#ifndef FR_COST_MODELS_STORAGE_INPUT_COST_H
#define FR_COST_MODELS_STORAGE_INPUT_COST_H

#include "plan/decide/plan.h"
#include "spec/cluster/cluster.h"
#include "spec/model/job.h"
#include "spec/model/model.h"

typedef struct fr_input_cost {
    double node_s;   /* of a sample, if one node reads all of them */
    double loader_s; /* of a sample, by all loaders of a device */
} fr_input_cost;

/* taken_bytes: of a node's host memory, by what the plan offloads to it. */
fr_input_cost fr_input_cost_of(const fr_model *model, const fr_job *job,
                               const fr_cluster *cluster, uint64_t taken_bytes);

/* Returns the time to read and decode the samples of a step on n_nodes.  No
 * step is shorter.  Reading and decoding overlap, one step ahead, so the slower
 * one counts. */
double fr_input_s(const fr_input_cost *cost, const fr_job *job,
                  const fr_plan *plan, int64_t n_nodes);

#endif
