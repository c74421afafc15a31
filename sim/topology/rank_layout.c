/* rank_layout.c: groups are listed once each, nodes and rails are counted. */
#include "sim/topology/rank_layout.h"

#include "plan/decide/grid.h"
#include "sim/topology/rank_copies.h"

#include <stdlib.h>
#include <string.h>

static void partition_release(fr_rank_groups *p)
{
    free(p->group_of_rank);
    free(p->first);
    free(p->members);
    free(p->scopes);
    *p = (fr_rank_groups){0};
}

void fr_rank_layout_release(fr_rank_layout *layout)
{
    free(layout->program_of_rank);
    free(layout->local);
    free(layout->node_of_group);
    partition_release(&layout->node);
    partition_release(&layout->rail);
    for (int axis = 0; axis < FR_AXIS_N; axis++)
        partition_release(&layout->axes[axis]);
    free(layout->axes_of_stage);
    fr_vec_release(&layout->peers);
    free(layout->first_peer);
    *layout = (fr_rank_layout){0};
}

static fr_status partition_alloc(fr_rank_groups *p, int64_t n_ranks,
                                 int64_t n_groups, bool has_scopes, fr_err *err)
{
    p->group_of_rank = malloc((size_t)n_ranks * sizeof *p->group_of_rank);
    p->members = malloc((size_t)n_ranks * sizeof *p->members);
    p->first = calloc((size_t)n_groups + 1, sizeof *p->first);
    if (has_scopes)
        p->scopes = calloc((size_t)n_groups, sizeof *p->scopes);
    if (p->group_of_rank == NULL || p->members == NULL || p->first == NULL ||
        (has_scopes && p->scopes == NULL))
        return fr_fail_no_memory(err);
    return FR_OK;
}

/* Members by group, ascending, where group_of_rank is set. */
static void partition_fill(fr_rank_groups *p, int64_t n_ranks)
{
    for (int64_t r = 0; r < n_ranks; r++)
        p->first[p->group_of_rank[r] + 1]++;
    for (int32_t g = 0; g < p->n_groups; g++)
        p->first[g + 1] += p->first[g];
    for (int64_t r = 0; r < n_ranks; r++)
        p->members[p->first[p->group_of_rank[r]]++] = (int32_t)r;
    for (int32_t g = p->n_groups; g > 0; g--)
        p->first[g] = p->first[g - 1];
    p->first[0] = 0;
}

/* ---- nodes and rails ----------------------------------------------------- */

/* Nodes that hold ranks are numbered in the order of their first ranks. */
static fr_status number_nodes(fr_rank_layout *layout,
                              const int32_t *node_of_rank, fr_err *err)
{
    int64_t n_nodes = 0, n_ranks = layout->n_ranks;
    for (int64_t r = 0; r < n_ranks; r++)
        n_nodes = node_of_rank[r] >= n_nodes ? node_of_rank[r] + 1 : n_nodes;
    layout->n_nodes = n_nodes;
    int32_t *number = malloc((size_t)n_nodes * sizeof *number);
    int32_t *seen = calloc((size_t)n_nodes, sizeof *seen);
    layout->node_of_group = malloc((size_t)n_nodes * sizeof *number);
    layout->local = malloc((size_t)n_ranks * sizeof *layout->local);
    fr_status status =
        partition_alloc(&layout->node, n_ranks, n_nodes, false, err);
    if (number == NULL || seen == NULL || layout->node_of_group == NULL ||
        layout->local == NULL)
        status = fr_fail_no_memory(err);
    if (status != FR_OK)
        goto out_free;
    for (int64_t r = 0; r < n_ranks; r++) {
        int32_t node = node_of_rank[r];
        if (seen[node] == 0) {
            number[node] = layout->node.n_groups;
            layout->node_of_group[layout->node.n_groups++] = node;
        }
        layout->local[r] = seen[node]++;
        layout->node.group_of_rank[r] = number[node];
    }
    partition_fill(&layout->node, n_ranks);
out_free:
    free(number);
    free(seen);
    return status;
}

/* Rails of a node that its devices are spread over; 0: the node shares its
 * NICs as a whole. */
static int32_t count_rails(const fr_rank_layout *layout, int32_t node)
{
    const fr_node_type *type = fr_cluster_node_type(layout->cluster, node);
    if (fr_cluster_device(layout->cluster, node)->kind != FR_DEVICE_GPU)
        return 0;
    return type->n_nics < type->n_devices ? type->n_nics : type->n_devices;
}

/* The ranks of a node are on its rails, which are numbered from `first`. */
static void take_rails(fr_rank_layout *layout, int32_t group, int32_t first)
{
    int32_t node = layout->node_of_group[group];
    int64_t n = count_rails(layout, node);
    int64_t n_devices = fr_cluster_node_type(layout->cluster, node)->n_devices;
    for (int32_t i = layout->node.first[group];
         i < layout->node.first[group + 1]; i++) {
        int32_t r = layout->node.members[i];
        int64_t at = layout->local[r];
        if (n > 0 && at >= n_devices)
            at = n_devices - 1;
        layout->rail.group_of_rank[r] =
            first + (n > 0 ? (int32_t)(at * n / n_devices) : 0);
    }
}

static fr_status number_rails(fr_rank_layout *layout, fr_err *err)
{
    int64_t n_rails = 0;
    int32_t *first;
    FR_TRY_CALLOC(first, (size_t)layout->node.n_groups + 1, err);
    for (int32_t g = 0; g < layout->node.n_groups; g++) {
        int32_t n = count_rails(layout, layout->node_of_group[g]);
        first[g] = (int32_t)n_rails;
        n_rails += n > 0 ? n : 1;
    }
    fr_status status =
        partition_alloc(&layout->rail, layout->n_ranks, n_rails, false, err);
    if (status != FR_OK) {
        free(first);
        return status;
    }
    for (int32_t g = 0; g < layout->node.n_groups; g++)
        take_rails(layout, g, first[g]);
    layout->rail.n_groups = (int32_t)n_rails;
    partition_fill(&layout->rail, layout->n_ranks);
    free(first);
    return FR_OK;
}

bool fr_rank_layout_is_gpu(const fr_rank_layout *layout, int32_t rank)
{
    int32_t node = fr_rank_layout_node(layout, rank);
    return fr_cluster_device(layout->cluster, node)->kind == FR_DEVICE_GPU;
}

double fr_rank_layout_compute_frac(const fr_rank_layout *layout, int32_t rank)
{
    return fr_cluster_compute_frac(layout->cluster,
                                   fr_rank_layout_node(layout, rank),
                                   layout->local[rank]);
}

double fr_rank_layout_rail_Bps(const fr_rank_layout *layout, int32_t rank)
{
    int32_t node = fr_rank_layout_node(layout, rank);
    int32_t n = count_rails(layout, node);
    return n > 0 ? fr_cluster_nic_Bps(layout->cluster, node) / n : 0.0;
}

/* ---- axes ---------------------------------------------------------------- */

uint32_t fr_rank_layout_type_bit(const fr_rank_layout *layout, int32_t rank)
{
    int32_t node = fr_rank_layout_node(layout, rank);
    int32_t type = fr_cluster_group_of(layout->cluster, node)->i_node_type;
    return type < 32 ? UINT32_C(1) << type : 0;
}

/* Groups list their ranks node by node. */
static fr_comm_scope scope_of(const fr_rank_layout *layout,
                              const int32_t *ranks, int64_t n)
{
    const int32_t *node = layout->node.group_of_rank;
    bool is_mixed = layout->cluster->n_node_types > 1;
    fr_comm_scope scope = {.n_group = n,
                           .n_nodes = 1,
                           .node_types =
                               fr_rank_layout_type_bit(layout, ranks[0])};
    for (int64_t i = 1; is_mixed && i < n; i++)
        if (node[ranks[i]] != node[ranks[i - 1]])
            scope.node_types |= fr_rank_layout_type_bit(layout, ranks[i]);
    for (int64_t i = 0; i < n; i++) {
        scope.ranks_on_node += node[ranks[i]] == node[ranks[0]];
        scope.n_nodes += i > 0 && node[ranks[i]] != node[ranks[i - 1]];
    }
    return scope;
}

static fr_status list_axis(fr_rank_layout *layout, int axis, fr_err *err)
{
    const fr_plan *grid = &layout->grid;
    fr_rank_groups *p = &layout->axes[axis];
    int64_t n_ranks = layout->n_ranks, n_listed = 0;
    int64_t n_times =
        fr_plan_group_size(&layout->program->plan, (fr_axis)axis) /
        fr_plan_group_size(grid, (fr_axis)axis);
    int64_t *ranks = malloc((size_t)n_ranks * sizeof *ranks);
    fr_status status = partition_alloc(p, n_ranks, n_ranks, true, err);
    if (ranks == NULL)
        status = fr_fail_no_memory(err);
    if (status != FR_OK)
        goto out_free;
    memset(p->group_of_rank, 0xff, (size_t)n_ranks * sizeof *p->group_of_rank);
    for (int64_t r = 0; r < n_ranks; r++) {
        if (p->group_of_rank[r] >= 0)
            continue;
        int64_t n = fr_plan_group(grid, r, (fr_axis)axis, ranks, NULL);
        int32_t *members = &p->members[n_listed];
        if (n < 1 || n_listed + n > n_ranks) {
            status = fr_fail(err, FR_FAILURE, "axis %s has no groups",
                             fr_axis_name((fr_axis)axis));
            goto out_free;
        }
        for (int64_t i = 0; i < n; i++) {
            members[i] = (int32_t)ranks[i];
            p->group_of_rank[ranks[i]] = p->n_groups;
        }
        p->scopes[p->n_groups] = scope_of(layout, members, n);
        p->scopes[p->n_groups].n_group *= n_times;
        p->scopes[p->n_groups].n_nodes *= n_times;
        n_listed += n;
        p->first[++p->n_groups] = (int32_t)n_listed;
    }
out_free:
    free(ranks);
    return status;
}

/* ---- what the program uses ----------------------------------------------- */

static fr_status note_instr(fr_rank_layout *layout, uint32_t i_stage,
                            const fr_instr *instr, fr_err *err)
{
    fr_op_class op_class = fr_op_class_of((fr_op)instr->op);
    if (op_class == FR_OP_CLASS_COLLECTIVE)
        layout->axes_of_stage[i_stage] |= (uint16_t)(1u << instr->axis);
    if (op_class != FR_OP_CLASS_P2P)
        return FR_OK;
    fr_peer peer = {instr->axis, instr->peer};
    for (size_t i = layout->first_peer[i_stage]; i < layout->peers.n; i++)
        if (layout->peers.items[i].axis == peer.axis &&
            layout->peers.items[i].coordinate == peer.coordinate)
            return FR_OK;
    FR_TRY_PUSH(&layout->peers, peer, err);
    return FR_OK;
}

/* Axes and peers of each rank program: from the segments that it calls. */
static fr_status note_rank_program(fr_rank_layout *layout, uint32_t i_stage,
                                   uint32_t *seen, fr_err *err)
{
    const fr_program *program = layout->program;
    const fr_rank_program *rank_program = &program->rank_programs[i_stage];
    layout->first_peer[i_stage] = (uint32_t)layout->peers.n;
    for (uint32_t i = 0; i < rank_program->n_calls; i++) {
        uint32_t s = rank_program->calls[i].i_segment;
        const fr_segment *segment = &program->segments[s];
        if (seen[s] == i_stage + 1)
            continue;
        seen[s] = i_stage + 1;
        for (uint32_t k = 0; k < segment->n_instrs; k++)
            FR_TRY(note_instr(layout, i_stage,
                              &program->instrs[segment->first_instr + k], err));
    }
    layout->first_peer[i_stage + 1] = (uint32_t)layout->peers.n;
    return FR_OK;
}

static fr_status note_uses(fr_rank_layout *layout, fr_err *err)
{
    const fr_program *program = layout->program;
    fr_status status = FR_OK;
    uint32_t *seen = calloc(program->n_segments + 1, sizeof *seen);
    layout->axes_of_stage =
        calloc(program->n_rank_programs + 1, sizeof *layout->axes_of_stage);
    layout->first_peer =
        calloc(program->n_rank_programs + 1, sizeof *layout->first_peer);
    if (seen == NULL || layout->axes_of_stage == NULL ||
        layout->first_peer == NULL)
        status = fr_fail_no_memory(err);
    for (uint32_t c = 0; status == FR_OK && c < program->n_rank_programs; c++)
        status = note_rank_program(layout, c, seen, err);
    free(seen);
    return status;
}

/* Masks of the axes of collectives, and of those of peers. */
static unsigned meeting_axes(const fr_rank_layout *layout)
{
    unsigned mask = 0;
    for (uint32_t c = 0; c < layout->program->n_rank_programs; c++)
        mask |= layout->axes_of_stage[c];
    return mask;
}

static unsigned peer_axes(const fr_rank_layout *layout)
{
    unsigned mask = 0;
    for (size_t i = 0; i < layout->peers.n; i++)
        mask |= 1u << layout->peers.items[i].axis;
    return mask;
}

static fr_status list_axes(fr_rank_layout *layout, fr_err *err)
{
    unsigned mask = meeting_axes(layout) | peer_axes(layout);
    for (int axis = 0; axis < FR_AXIS_N; axis++)
        if (mask >> axis & 1u)
            FR_TRY(list_axis(layout, axis, err));
    return FR_OK;
}

int64_t fr_rank_layout_number(const fr_rank_layout *layout, int32_t rank)
{
    return fr_plan_rank(&layout->program->plan,
                        fr_plan_coord(&layout->grid, rank));
}

bool fr_rank_layout_meets(const fr_rank_layout *layout, int axis)
{
    const fr_rank_groups *p = &layout->axes[axis];
    return p->n_groups > 0 &&
           (p->n_groups < layout->n_ranks || p->scopes[0].n_group > 1);
}

/* A rank's program is that of its stage, its coordinate on PP, which changes
 * every `step` ranks, and of its share of the batch. */
static void find_programs(fr_rank_layout *layout)
{
    const fr_plan *plan = &layout->grid;
    int64_t step = fr_plan_rank(plan, (fr_coord){.pp = plan->pp > 1 ? 1 : 0});
    int32_t pp = 0;
    for (int64_t r = 0, i = 0; r < layout->n_ranks; r++) {
        layout->program_of_rank[r] = pp;
        if (++i == step) {
            i = 0;
            pp = pp + 1 < plan->pp ? pp + 1 : 0;
        }
    }
    for (int64_t r = 0; plan->n_shares > 0 && r < layout->n_ranks; r++)
        layout->program_of_rank[r] = (int32_t)fr_program_number(
            plan, layout->program_of_rank[r], fr_plan_coord(plan, r).dp);
}

fr_status fr_rank_layout_init(const fr_program *program,
                              const fr_cluster *cluster,
                              const int32_t *node_of_rank, bool is_whole,
                              fr_rank_layout *out, fr_err *err)
{
    fr_rank_layout layout = {.program = program,
                             .cluster = cluster,
                             .grid = program->plan,
                             .n_copies = 1};
    fr_status status;
    FR_TRY_GOTO(status, note_uses(&layout, err), out_release);
    if (!is_whole && fr_cluster_is_even(cluster))
        layout.n_copies = fr_rank_copies(
            &program->plan,
            fr_ranks_per_node(node_of_rank, fr_plan_world(&program->plan)),
            meeting_axes(&layout), peer_axes(&layout));
    layout.grid.dp = (int32_t)(program->plan.dp / layout.n_copies);
    layout.n_ranks = fr_plan_world(&layout.grid);
    layout.program_of_rank =
        calloc((size_t)layout.n_ranks, sizeof *layout.program_of_rank);
    if (layout.program_of_rank == NULL) {
        status = fr_fail_no_memory(err);
        goto out_release;
    }
    find_programs(&layout);
    FR_TRY_GOTO(status, number_nodes(&layout, node_of_rank, err), out_release);
    FR_TRY_GOTO(status, number_rails(&layout, err), out_release);
    FR_TRY_GOTO(status, list_axes(&layout, err), out_release);
    *out = layout;
    return FR_OK;
out_release:
    fr_rank_layout_release(&layout);
    return status;
}
