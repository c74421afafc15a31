/*
 * what_if.h: a cluster of which one resource is faster or slower, and its
 * costs: what explain and the break-even of compression simulate on.
 */
#ifndef FR_TUNER_STUDY_WHAT_IF_H
#define FR_TUNER_STUDY_WHAT_IF_H

#include "cost_models/base/cost.h"
#include "spec/profile/profile.h"
#include "spec/result/explanation.h"

typedef struct fr_what_if {
    fr_cluster cluster;
    fr_cost_model *costs; /* borrows the cluster above */
} fr_what_if;

/*
 * Multiplies a rate, or a latency, by `factor` > 0.  GPUs: rates where they
 * stand, in the cluster, so that algorithms and shared links follow;
 * latencies are constants of NCCL, and links that the profile (NULL: none)
 * has measured do not hear the cluster: of them the times are scaled.  CPUs:
 * the same of the network, else times, whole.  Of INPUT this is storage alone:
 * decoding is the job's.  *is_there: the cluster has such
 * a thing; else *out is empty. `profile` is borrowed for the life of *out,
 * which must not move: in place.
 */
FR_CHECKED fr_status fr_what_if_create(const fr_cluster *cluster,
                                       const fr_profile *profile,
                                       fr_resource resource, double factor,
                                       fr_what_if *out, bool *is_there,
                                       fr_err *err);
void fr_what_if_release(fr_what_if *what_if); /* takes an empty one */

/* The cluster with memory for any plan: times that do not ask whether it fits.
 * fr_cluster_release() frees *out, after an error too. */
FR_CHECKED fr_status fr_what_if_unlimited(const fr_cluster *cluster,
                                          fr_cluster *out, fr_err *err);

/* Oversubscription up to which a switch is as wide as the NICs below it. */
#define FR_WHAT_IF_NARROW 1.02

#endif
