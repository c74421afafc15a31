/*
 * datasheet.h: costs where nothing was measured: a roofline (Williams,
 * Waterman, Patterson, CACM 52(4), 2009) over the peaks of the cluster file
 * with the efficiencies that are published for good kernels.
 */
#ifndef FR_COST_MODELS_COMPUTE_DATASHEET_H
#define FR_COST_MODELS_COMPUTE_DATASHEET_H

#include "plan/collective/collective.h"
#include "plan/op/op.h"
#include "spec/cluster/cluster.h"

/* The rates that well-written kernels reach on a device. */
typedef struct fr_device_rates {
    double flops[FR_DTYPE_N]; /* matrix products, all cores; 0: unknown */
    double vector_flops;      /* everything else */
    double memory_Bps;        /* of the node's (GPU: device's) channels */
    double launch_s;          /* of a kernel */
    int64_t n_cores;          /* that the rates are for; GPU: 1 */
    bool is_gpu;
} fr_device_rates;

/* Returns the rates of the device of a node; datasheet.c has the efficiencies
 * and their sources. */
fr_device_rates fr_device_rates_of(const fr_cluster *cluster, int64_t node);
fr_device_rates fr_device_rates_of_type(const fr_device_type *device);

/* Seconds of a compute or I/O instruction on n_threads of the n_cores of a CPU
 * (GPUs: gpu_model.h). */
double fr_device_compute_s(const fr_device_rates *rates, const fr_instr *instr,
                           int n_threads);

/* The link between two ranks of a node, or (is_net) of two nodes. */
fr_link_cost fr_cluster_link_cost(const fr_cluster *cluster, bool is_net);

#endif
