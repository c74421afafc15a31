/*
 * cluster_power.h: what a device draws, and a cap on that.  What it draws while
 * it waits does not change with a cap.
 */
#ifndef FR_SPEC_CLUSTER_CLUSTER_POWER_H
#define FR_SPEC_CLUSTER_CLUSTER_POWER_H

#include "spec/cluster/cluster.h"

/* While it waits. */
double fr_device_idle_w(const fr_device_type *device);
/* While it computes, no more than its cap. */
double fr_device_power_w(const fr_device_type *device);

/*
 * Returns the power of the first n_nodes nodes while n_ranks ranks of n_threads
 * threads train on them and compute for `load_frac` of the time, in watts, with
 * hosts, switches and the power usage effectiveness; 0: not known.  Devices
 * that no rank uses draw the idle power that a file states, else as much as the
 * others.
 */
double fr_cluster_training_w(const fr_cluster *cluster, int64_t n_nodes,
                             int64_t n_ranks, int n_threads, double load_frac);

/* Keeps all devices that draw more from it (nvidia-smi -pl); 0: none.
 * FR_INPUT: a device draws as much while it waits, or its power is unknown. */
FR_CHECKED fr_status fr_cluster_cap_power(fr_cluster *cluster, double cap_w,
                                          fr_err *err);

#endif
