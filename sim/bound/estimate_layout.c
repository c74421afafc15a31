/* estimate_layout.c: where the ranks of a plan and their groups sit. */
#include "cost_models/gpu/gpu_precision.h"
#include "plan/decide/grid.h"
#include "sim/bound/estimate_state.h"
#include "sim/topology/rank_copies.h"

#include <string.h>

/*
 * If the cluster is even, the first ranks stand for all that repeat
 * (rank_copies.h): *out is then a grid with fewer dp.
 */
static void grid_of(const fr_estimator *e, const fr_plan *plan, fr_plan *out)
{
    const fr_cluster *cluster = e->cluster;
    const unsigned all = (1u << FR_AXIS_N) - 1;
    int64_t n = 1;
    if (fr_cluster_is_even(cluster))
        n = fr_rank_copies(
            plan, fr_cluster_node_slots(cluster, 0, plan->n_threads), all, 0);
    *out = *plan;
    out->dp = (int32_t)(plan->dp / n);
}

/* Ranks of other numbers are placed anew. */
static fr_status place_ranks(fr_estimator *e, const fr_plan *plan, fr_err *err)
{
    int64_t n = fr_plan_world(plan);
    if (e->n_ranks == n)
        return FR_OK;
    e->n_ranks = 0;
    int32_t *nodes = realloc(e->node_of_rank, (size_t)n * sizeof *nodes);
    if (nodes == NULL)
        return fr_fail_no_memory(err);
    e->node_of_rank = nodes;
    int64_t *ranks = realloc(e->ranks, (size_t)n * sizeof *ranks);
    if (ranks == NULL)
        return fr_fail_no_memory(err);
    e->ranks = ranks;
    FR_TRY(fr_cluster_place(e->cluster, n, plan->n_threads, 0, nodes, err));
    e->n_ranks = n;
    return FR_OK;
}

static uint32_t type_bit(const fr_estimator *e, int64_t node)
{
    int type = fr_cluster_group_of(e->cluster, node)->i_node_type;
    return type < 32 ? UINT32_C(1) << type : 0;
}

/* The same as that of a replay (rank_layout.c), but that ranks_on_node counts
 * the members on the node `own`, whose NICs they share: nodes may be unlike. */
static fr_comm_scope scope_of(const fr_estimator *e, const int64_t *ranks,
                              int64_t n, int64_t own)
{
    const int32_t *node = e->node_of_rank;
    bool is_mixed = e->cluster->n_node_types > 1;
    fr_comm_scope scope = {
        .n_group = n, .n_nodes = 1, .node_types = type_bit(e, node[ranks[0]])};
    for (int64_t i = 0; i < n; i++) {
        bool is_new = i > 0 && node[ranks[i]] != node[ranks[i - 1]];
        scope.ranks_on_node += node[ranks[i]] == own;
        scope.n_nodes += is_new;
        if (is_mixed && is_new)
            scope.node_types |= type_bit(e, node[ranks[i]]);
    }
    return scope;
}

static void set_scope(const est_place *place, fr_axis axis, est_place_key *key)
{
    const fr_comm_scope *scope = &place->scopes[axis];
    const int64_t members[4] = {scope->n_group, scope->n_nodes,
                                scope->ranks_on_node, scope->node_types};
    memcpy(key->scopes[axis], members, sizeof members);
}

/* Returns the part of a key that depends on the device alone. */
static est_place_key device_key(const est_place *place)
{
    return (est_place_key){.compute_frac = place->compute_frac,
                           .port_Bps = place->port_Bps,
                           .nic_Bps = place->nic_Bps,
                           .type_bit = place->type_bit,
                           .n_beside = place->n_beside};
}

est_place_key est_place_layers_key(const est_place *place)
{
    static const fr_axis of_layers[] = {FR_AXIS_TP, FR_AXIS_CP, FR_AXIS_EP,
                                        FR_AXIS_ETP};
    est_place_key key = device_key(place);
    for (size_t i = 0; i < sizeof of_layers / sizeof of_layers[0]; i++)
        set_scope(place, of_layers[i], &key);
    return key;
}

static fr_status number_place(fr_estimator *e, est_place *place, fr_err *err)
{
    const double net[2] = {place->port_Bps, place->nic_Bps};
    const est_place_key layers = est_place_layers_key(place);
    est_place_key key = device_key(place);
    for (int axis = 1; axis < FR_AXIS_N; axis++)
        set_scope(place, (fr_axis)axis, &key);
    FR_TRY(fr_memo_number(&e->nets, net, sizeof net, &place->net_id, err));
    FR_TRY(fr_memo_number(&e->layer_places, &layers, sizeof layers,
                          &place->layers_id, err));
    return fr_memo_number(&e->places, &key, sizeof key, &place->id, err);
}

/* Ranks of the same stage on its node, with itself. */
static int64_t ranks_beside(const fr_estimator *e, const fr_plan *plan,
                            int64_t rank)
{
    const int32_t node = e->node_of_rank[rank];
    const int32_t pp = fr_plan_coord(plan, rank).pp;
    int64_t n = 0, first = rank;
    while (first > 0 && e->node_of_rank[first - 1] == node)
        first--;
    for (int64_t r = first; r < e->n_ranks && e->node_of_rank[r] == node; r++)
        n += fr_plan_coord(plan, r).pp == pp;
    return n;
}

/* Ranks before this one on its node. */
static int32_t local_of(const fr_estimator *e, int64_t rank)
{
    int32_t local = 0;
    while (local < rank &&
           e->node_of_rank[rank - local - 1] == e->node_of_rank[rank])
        local++;
    return local;
}

/* Returns the highest peak rate of the device of a rank, over three dtypes. */
static double flops_of(const fr_estimator *e, int64_t rank)
{
    static const char *const dtypes[] = {"fp32", "fp16", "bf16"};
    const int64_t node = e->node_of_rank[rank];
    const fr_device_type *device = fr_cluster_device(e->cluster, node);
    double flops = 0;
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        double peak = fr_device_peak_flops(device, dtypes[i]);
        flops = peak > flops ? peak : flops;
    }
    return flops * fr_cluster_compute_frac(e->cluster, node, local_of(e, rank));
}

/*
 * All replicas have the same layers, if not as many micro-batches, and so do
 * all ranks of a tensor-parallel group: a step waits for the slowest, so a
 * bound of any is one of the step.
 */
static fr_coord slowest_ranks(const fr_estimator *e, const fr_plan *plan)
{
    fr_coord slowest = {0};
    double most_s = 0;
    if (e->cluster->n_node_types == 1 && e->cluster->n_slow == 0 &&
        plan->n_shares == 0)
        return slowest;
    for (int32_t i = 0; i < plan->dp * plan->tp; i++) {
        fr_coord at = {.dp = i / plan->tp, .tp = i % plan->tp};
        double s = 0; /* of a flop on every stage */
        for (at.pp = 0; at.pp < plan->pp; at.pp++)
            s += 1 / flops_of(e, fr_plan_rank(plan, at));
        at.pp = 0;
        if (plan->n_shares > 0)
            s *= plan->batch_shares[at.dp];
        /* Not for a rounding: those alike are the first. */
        if (s > most_s * (1 + 1e-9)) {
            slowest = at;
            most_s = s;
        }
    }
    return slowest;
}

/* All ranks on a node: they are placed node by node. */
static int64_t ranks_on(const fr_estimator *e, int64_t node)
{
    int64_t n = 0;
    for (int64_t i = 0; i < e->n_ranks && e->node_of_rank[i] <= node; i++)
        n += e->node_of_rank[i] == node;
    return n;
}

/* `rank` of the grid, in whose place the plan's ranks are laid. */
static fr_status find_place(fr_estimator *e, const fr_plan *plan,
                            const fr_plan *grid, int64_t rank,
                            const est_place *first, est_place *out, fr_err *err)
{
    out->node = e->node_of_rank[rank];
    out->type_bit = type_bit(e, out->node);
    out->compute_frac =
        fr_cluster_compute_frac(e->cluster, out->node, local_of(e, rank));
    out->port_Bps = fr_cluster_node_type(e->cluster, out->node)->intra_Bps;
    out->nic_Bps = fr_cluster_nic_Bps(e->cluster, out->node);
    out->n_beside = ranks_beside(e, grid, rank);
    for (int axis = 1; axis < FR_AXIS_N; axis++) {
        if (axis == FR_AXIS_PP)
            continue;
        if (axis == FR_AXIS_WORLD && first != NULL) {
            out->scopes[axis] = first->scopes[axis];
            out->scopes[axis].ranks_on_node = ranks_on(e, out->node);
            continue;
        }
        int64_t n = fr_plan_group(grid, rank, (fr_axis)axis, e->ranks, NULL);
        int64_t n_times = fr_plan_group_size(plan, (fr_axis)axis) /
                          fr_plan_group_size(grid, (fr_axis)axis);
        out->scopes[axis] = scope_of(e, e->ranks, n, out->node);
        out->scopes[axis].n_group *= n_times;
        out->scopes[axis].n_nodes *= n_times;
    }
    return number_place(e, out, err);
}

void est_layout_destroy(est_layout *layout)
{
    if (layout == NULL)
        return;
    free(layout->places);
    free(layout->hop);
    free(layout);
}

static fr_status make_layout(fr_estimator *e, const fr_plan *plan,
                             est_layout **out, fr_err *err)
{
    fr_plan grid;
    grid_of(e, plan, &grid);
    FR_TRY(place_ranks(e, &grid, err));
    size_t pp = (size_t)plan->pp;
    est_layout *layout = calloc(1, sizeof *layout);
    if (layout == NULL)
        return fr_fail_no_memory(err);
    layout->places = calloc(pp, sizeof *layout->places);
    layout->hop = calloc(pp, sizeof *layout->hop);
    if (layout->places == NULL || layout->hop == NULL) {
        est_layout_destroy(layout);
        return fr_fail_no_memory(err);
    }
    fr_coord at = slowest_ranks(e, &grid);
    layout->dp = at.dp;
    for (int32_t s = 0; s < plan->pp; s++, at.pp++) {
        fr_status status =
            find_place(e, plan, &grid, fr_plan_rank(&grid, at),
                       s > 0 ? layout->places : NULL, &layout->places[s], err);
        if (status != FR_OK) {
            est_layout_destroy(layout);
            return status;
        }
    }
    for (size_t s = 0; s < pp; s++) {
        const est_place *a = &layout->places[s];
        const est_place *b = &layout->places[(s + 1) % pp];
        bool is_same = a->node == b->node;
        layout->hop[s] =
            (fr_comm_scope){.n_group = 2,
                            .n_nodes = is_same ? 1 : 2,
                            .ranks_on_node = is_same ? 2 : 1,
                            .node_types = a->type_bit | b->type_bit};
    }
    *out = layout;
    return FR_OK;
}

/* With several types of nodes, the ranks that are priced may not include one on
 * a node that cannot compute in the plan's precision.  So all nodes in use are
 * checked. */
static fr_status check_precision(const fr_estimator *e, const fr_plan *plan,
                                 fr_err *err)
{
    const fr_cluster *cluster = e->cluster;
    if (cluster->n_node_types == 1)
        return FR_OK;
    const int64_t n_nodes = fr_nodes_with_precision(cluster, plan->precision);
    return n_nodes >= fr_cluster_nodes_of_ranks(cluster, fr_plan_world(plan),
                                                plan->n_threads)
               ? FR_OK
               : fr_fail_precision(fr_cluster_device(cluster, n_nodes)->id,
                                   plan->precision, err);
}

fr_status est_layout_find(fr_estimator *e, const fr_plan *plan,
                          const est_layout **out, fr_err *err)
{
    est_layout_key key = {.tp = plan->tp,
                          .pp = plan->pp,
                          .dp = plan->dp,
                          .cp = plan->cp,
                          .ep = plan->ep,
                          .etp = plan->etp,
                          .zero_group = plan->zero_group,
                          .n_threads = plan->n_threads,
                          .rank_order = (int32_t)plan->rank_order};
    FR_TRY(check_precision(e, plan, err));
    FR_TRY(est_shares_find(e, plan, &key.shares, err));
    if (e->at_layout != NULL &&
        memcmp(&key, &e->last_layout, sizeof key) == 0) {
        *out = e->at_layout;
        return FR_OK;
    }
    est_layout *const *known = fr_memo_find(&e->layouts, &key, sizeof key);
    est_layout *layout = known != NULL ? *known : NULL;
    if (known == NULL) {
        FR_TRY(make_layout(e, plan, &layout, err));
        if (fr_memo_add(&e->layouts, &key, sizeof key, &layout) == NULL) {
            est_layout_destroy(layout);
            return fr_fail_no_memory(err);
        }
    }
    e->last_layout = key;
    *out = e->at_layout = layout;
    return FR_OK;
}

fr_status est_split_find(fr_estimator *e, const fr_plan *plan, uint32_t *out,
                         fr_err *err)
{
    const size_t n = (size_t)plan->n_split;
    const size_t n_bytes = n * sizeof plan->layer_split[0];
    *out = 0;
    if (n == 0)
        return FR_OK;
    if (n != e->last_split.n ||
        memcmp(plan->layer_split, e->last_split.items, n_bytes) != 0) {
        e->last_split.n = 0;
        FR_TRY(fr_memo_number(&e->splits, plan->layer_split, n_bytes,
                              &e->i_split, err));
        if (fr_vec_reserve(&e->last_split, n) != FR_OK)
            return fr_fail_no_memory(err);
        memcpy(e->last_split.items, plan->layer_split, n_bytes);
        e->last_split.n = n;
    }
    *out = e->i_split + 1;
    return FR_OK;
}

fr_status est_shares_find(fr_estimator *e, const fr_plan *plan, uint32_t *out,
                          fr_err *err)
{
    const size_t n = (size_t)plan->n_shares;
    *out = 0;
    if (n == 0)
        return FR_OK;
    /* Lists of whole numbers, too. */
    FR_TRY(fr_memo_number(&e->splits, plan->batch_shares,
                          n * sizeof plan->batch_shares[0], out, err));
    ++*out;
    return FR_OK;
}

fr_status est_share_find(est_plan *x, fr_err *err)
{
    if (x->plan->n_shares == 0)
        return FR_OK;
    FR_TRY(est_layout_find(x->e, x->plan, &x->layout, err));
    x->n_micro = x->plan->batch_shares[x->layout->dp];
    return FR_OK;
}

/* ---- single ranks -------------------------------------------------------- */

fr_status est_ranks_place(fr_estimator *e, const fr_plan *plan, fr_err *err)
{
    return place_ranks(e, plan, err);
}

double est_compute_frac(const fr_estimator *e, int64_t rank)
{
    return fr_cluster_compute_frac(e->cluster, e->node_of_rank[rank],
                                   local_of(e, rank));
}

fr_status est_place_find(fr_estimator *e, const fr_plan *plan, int64_t rank,
                         est_place *out, fr_err *err)
{
    return find_place(e, plan, plan, rank, NULL, out, err);
}
