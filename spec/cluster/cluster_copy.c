/* cluster_copy.c: copies of a cluster, whole or without its slow nodes. */
#include "spec/cluster/cluster_knobs.h"

#include <stdlib.h>
#include <string.h>

/* ---- whole --------------------------------------------------------------- */

static bool copy_array(const void *from, size_t n, size_t item_bytes, void *out)
{
    void *copy = calloc(n + 1, item_bytes);
    if (copy == NULL)
        return false;
    if (n > 0)
        memcpy(copy, from, n * item_bytes);
    memcpy(out, &copy, sizeof copy);
    return true;
}

fr_status fr_cluster_copy(const fr_cluster *cluster, fr_cluster *out,
                          fr_err *err)
{
    fr_cluster copy = *cluster;
    const fr_fabric *net = &cluster->fabric;
    copy.devices = NULL;
    copy.node_types = NULL;
    copy.groups = NULL;
    copy.slow = NULL;
    copy.fabric.switches = NULL;
    copy.fabric.links = NULL;
#define COPY(from, n, to) copy_array((from), (n), sizeof *(to), &(to))
    bool is_whole =
        COPY(cluster->devices, cluster->n_devices, copy.devices) &&
        COPY(cluster->node_types, cluster->n_node_types, copy.node_types) &&
        COPY(cluster->groups, cluster->n_groups, copy.groups) &&
        COPY(cluster->slow, cluster->n_slow, copy.slow) &&
        COPY(net->switches, net->n_switches, copy.fabric.switches) &&
        COPY(net->links, net->n_links, copy.fabric.links);
#undef COPY
    if (!is_whole) {
        fr_cluster_release(&copy);
        return fr_fail_no_memory(err);
    }
    *out = copy;
    return FR_OK;
}

/* ---- without slow nodes -------------------------------------------------- */

/* Places on these are drawn one by one: none can be left out. */
static bool is_drawn(const fr_fabric *net)
{
    return net->kind == FR_FABRIC_TORUS || net->kind == FR_FABRIC_DRAGONFLY ||
           net->kind == FR_FABRIC_LINKS;
}

/* Is there one before `i` of the same node, or is it of a link? */
static bool is_counted(const fr_cluster *cluster, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (cluster->slow[k].node == cluster->slow[i].node)
            return true;
    return cluster->slow[i].node < 0;
}

static void drop_groups(fr_cluster *cluster)
{
    size_t n = 0;
    for (size_t i = 0; i < cluster->n_groups; i++)
        if (cluster->groups[i].n_nodes > 0)
            cluster->groups[n++] = cluster->groups[i];
    cluster->n_groups = n;
}

fr_status fr_cluster_drop_slow(const fr_cluster *cluster, fr_cluster *out,
                               int64_t *n_dropped, fr_err *err)
{
    fr_cluster left;
    size_t n_links = 0;
    *n_dropped = 0;
    FR_TRY(fr_cluster_copy(cluster, &left, err));
    for (size_t i = 0; i < cluster->n_slow && !is_drawn(&cluster->fabric); i++)
        if (!is_counted(cluster, i)) {
            const fr_node_group *group =
                fr_cluster_group_of(cluster, cluster->slow[i].node);
            left.groups[group - cluster->groups].n_nodes--;
            ++*n_dropped;
        }
    for (size_t i = 0; i < left.n_slow; i++)
        if (left.slow[i].node < 0)
            left.slow[n_links++] = left.slow[i];
    left.n_slow = n_links;
    drop_groups(&left);
    if (*n_dropped == 0 || left.n_groups == 0) {
        *n_dropped = 0;
        fr_cluster_release(&left);
        return FR_OK;
    }
    fr_cluster_count_nodes(&left);
    *out = left;
    return FR_OK;
}

/* ---- one node ------------------------------------------------------------ */

fr_status fr_cluster_one_node(const fr_cluster *cluster, size_t i_group,
                              fr_cluster *out, fr_err *err)
{
    fr_cluster one;
    if (is_drawn(&cluster->fabric))
        return fr_fail(err, FR_INFEASIBLE,
                       "the fabric is drawn node by node: none can be left "
                       "out");
    FR_TRY(fr_cluster_copy(cluster, &one, err));
    one.n_slow = 0;
    for (size_t i = 0; i < one.n_groups; i++)
        one.groups[i].n_nodes = i == i_group;
    drop_groups(&one);
    fr_cluster_count_nodes(&one);
    *out = one;
    return FR_OK;
}
