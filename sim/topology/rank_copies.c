/* rank_copies.c: the shortest way along dp that maps the ranks on themselves.
 */
#include "sim/topology/rank_copies.h"

#include "sim/topology/fabric_routes.h"

static const unsigned shard_axes = 1u << FR_AXIS_SHARD | 1u << FR_AXIS_REPLICA;
static const unsigned expert_axes =
    1u << FR_AXIS_EP | 1u << FR_AXIS_EDP | 1u << FR_AXIS_ETP;
/* Axes whose groups have one rank of each coordinate on dp at most: peers keep
 * their coordinates. */
static const unsigned model_axes = 1u << FR_AXIS_TP | 1u << FR_AXIS_CP |
                                   1u << FR_AXIS_PP | 1u << FR_AXIS_EMBED |
                                   1u << FR_AXIS_MODEL;

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The least multiple of `period` whose `step` fold is one of `block`. */
static int64_t fit_block(int64_t period, int64_t step, int64_t block)
{
    return period * (block / common_divisor(block, period * step));
}

bool fr_cluster_is_even(const fr_cluster *cluster)
{
    return cluster->n_node_types == 1 && cluster->n_slow == 0 &&
           !fr_fabric_has_links(cluster);
}

int64_t fr_ranks_per_node(const int32_t *node_of_rank, int64_t n_ranks)
{
    int64_t n = 0;
    while (n < n_ranks && node_of_rank[n] == 0)
        n++;
    if (n == 0 || n_ranks % n != 0)
        return 0;
    for (int64_t first = 0, node = 0; first < n_ranks; first += n, node++)
        for (int64_t i = 0; i < n; i++)
            if (node_of_rank[first + i] != node)
                return 0;
    return n;
}

int64_t fr_rank_copies(const fr_plan *plan, int64_t ranks_per_node,
                       unsigned axes, unsigned peer_axes)
{
    const int64_t per_stage = (int64_t)plan->tp * plan->cp;
    if (plan->dp == 1 || plan->n_shares > 0 || ranks_per_node == 0 ||
        fr_plan_world(plan) % ranks_per_node != 0 ||
        (peer_axes & ~model_axes) != 0)
        return 1;
    int64_t period =
        fit_block(1, fr_plan_rank(plan, (fr_coord){.dp = 1}), ranks_per_node);
    if ((axes & shard_axes) != 0 && plan->zero_group > 0)
        period = fit_block(period, plan->cp, plan->zero_group);
    if ((axes & expert_axes) != 0)
        period = fit_block(period, per_stage,
                           plan->ep * fr_plan_group_size(plan, FR_AXIS_ETP));
    return plan->dp % period == 0 ? plan->dp / period : 1;
}
