/*
 * backup_workers.h: a step that goes on with the first gradients: of n replicas
 * the last few are not waited for, and what they have computed is dropped (Chen
 * et al., "Revisiting Distributed Synchronous SGD", arXiv 1604.00981).
 *
 * The nodes that are known to be slow are those that are not waited for, as far
 * as they are backups; and of n replicas that compute as long but for jitter,
 * the (n - b)-th comes E_(n-b) / E_n times as late after the mean as the last,
 * where E_k is the mean of the k-th smallest of n standard normal draws.  With
 * tensor, context or pipeline parallelism jitter makes ranks within a replica
 * wait too, so it stays as it is.
 */
#ifndef FR_RELIABILITY_BACKUP_WORKERS_H
#define FR_RELIABILITY_BACKUP_WORKERS_H

#include "plan/decide/plan.h"
#include "spec/cluster/cluster.h"

/* Mean of the k-th smallest of n standard normal draws, 1 <= k <= n. */
double fr_order_mean(int64_t n, int64_t k);

/*
 * FR_USAGE: not fewer than the replicas, or each of them is needed: it has a
 * part of the optimizer's state (ZeRO) or experts of its own.
 */
FR_CHECKED fr_status fr_backup_check(const fr_plan *plan, int64_t n_backups,
                                     fr_err *err);

/* The cluster as the replicas that are waited for see it; fr_cluster_release()
 * frees. */
FR_CHECKED fr_status fr_backup_cluster(const fr_cluster *cluster,
                                       const fr_plan *plan, int64_t n_backups,
                                       fr_cluster *out, fr_err *err);

#endif
