/*
 * cluster_knobs.h: what-if on a cluster: the knobs that sweep turns, one row
 * each: how many nodes, which GPU, how fast the NICs, at what price.
 */
#ifndef FR_SPEC_CLUSTER_CLUSTER_KNOBS_H
#define FR_SPEC_CLUSTER_CLUSTER_KNOBS_H

#include "core/base/units.h"
#include "core/document/fields.h"
#include "spec/cluster/cluster.h"

/* A deep copy; fr_cluster_release() frees it. */
FR_CHECKED fr_status fr_cluster_copy(const fr_cluster *cluster, fr_cluster *out,
                                     fr_err *err);

/* A copy without the nodes that are slow as a whole or in a device; slow links
 * stay.  *n_dropped 0: there are none, nothing else is left, or the fabric is
 * drawn node by node; then *out is untouched. */
FR_CHECKED fr_status fr_cluster_drop_slow(const fr_cluster *cluster,
                                          fr_cluster *out, int64_t *n_dropped,
                                          fr_err *err);

/* A copy with one healthy node of a group and no other node.  FR_INFEASIBLE:
 * the fabric is drawn node by node. */
FR_CHECKED fr_status fr_cluster_one_node(const fr_cluster *cluster,
                                         size_t i_group, fr_cluster *out,
                                         fr_err *err);

/* A new value, or (is_factor) a multiple of what there is. */
typedef struct fr_knob_value {
    double value;
    bool is_factor;
} fr_knob_value;

/* One of `turn`, `swap` and a member of all devices or node types. */
typedef struct fr_cluster_knob {
    const char *name;
    const char *meaning; /* "one NIC, one direction: 400Gb/s" */
    fr_quantity quantity;
    fr_status (*turn)(fr_cluster *cluster, fr_knob_value to, fr_err *err);
    fr_status (*swap)(const char *configs, fr_cluster *cluster,
                      const char *name, fr_err *err);
    fr_field device_member, node_member;
} fr_cluster_knob;

/* Row i in the order in which they are to be turned, NULL past the last. */
const fr_cluster_knob *fr_cluster_knob_at(int i);
/* Its index, -1: there is none of that name. */
int fr_cluster_knob_find(const char *name);

/*
 * Turns one knob: "400Gb/s" (a quantity with its unit), "x2" (a multiple of
 * what the cluster has) or a name, which is looked up in `configs`
 * (spec/catalog/config_path.h) if it is a cluster's.  FR_USAGE: the text cannot
 * be read; FR_INPUT: this cluster cannot be changed so.  After a failure the
 * cluster can be released, and no more.
 */
FR_CHECKED fr_status fr_cluster_knob_turn(const char *configs,
                                          const fr_cluster_knob *knob,
                                          fr_cluster *cluster, const char *text,
                                          fr_err *err);

#endif
