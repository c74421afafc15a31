/* cluster_copy.c: a cluster without its slow nodes. */
#include "spec/cluster/cluster_knobs.h"

#include <stdlib.h>

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
