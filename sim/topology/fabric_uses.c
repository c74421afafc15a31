/* fabric_uses.c: where the traffic of groups and peers goes, rank by rank. */
#include "sim/topology/fabric_uses.h"

#include "sim/topology/fabric_routes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The state while flows are built, one after the other. */
typedef struct builder {
    const fr_rank_layout *layout;
    fr_fabric_routes routes;
    bool has_port;          /* GPUs talk over PCIe switches */
    fr_fabric_path route;   /* scratch */
    double *weight;         /* [n_links] of the rank at hand, 0: not crossed */
    fr_fabric_path crossed; /* links with a weight */
    fr_vec(fr_fabric_use) uses; /* of the flow at hand */
} builder;

void fr_fabric_uses_release(fr_fabric_uses *uses)
{
    for (size_t i = 0; i < uses->flows.n; i++) {
        free(uses->flows.items[i].first);
        free(uses->flows.items[i].uses);
    }
    fr_vec_release(&uses->flows);
    free(uses->link_Bps);
    *uses = (fr_fabric_uses){0};
}

static int32_t rail_of(const builder *b, int32_t rank)
{
    int32_t node = fr_rank_layout_node(b->layout, rank);
    const fr_node_type *type = fr_cluster_node_type(b->layout->cluster, node);
    int32_t n_devices = type->n_devices > 0 ? type->n_devices : 1;
    int32_t local = b->layout->local[rank] % n_devices;
    return local * b->routes.n_rails / n_devices;
}

static const fr_node_type *type_of(const builder *b, int32_t rank)
{
    return fr_cluster_node_type(b->layout->cluster,
                                fr_rank_layout_node(b->layout, rank));
}

static int32_t least(int32_t x, int32_t y)
{
    return x < y ? x : y;
}

/* The PCIe switch of the rank's device, and that of its NIC. */
static int32_t switch_of(const builder *b, int32_t rank)
{
    const fr_node_type *type = type_of(b, rank);
    int32_t local = least(b->layout->local[rank], type->n_devices - 1);
    return local * type->n_pcie_switches / type->n_devices;
}

static int32_t nic_switch_of(const builder *b, int32_t rank)
{
    const fr_node_type *type = type_of(b, rank);
    int32_t local = least(b->layout->local[rank], type->n_devices - 1);
    if (type->n_nics < 1)
        return switch_of(b, rank);
    int32_t nic = local * type->n_nics / type->n_devices;
    return nic * type->n_pcie_switches / type->n_nics;
}

static bool has_switches(const builder *b, int32_t rank)
{
    const fr_node_type *type = type_of(b, rank);
    return b->routes.n_pcie > 0 && type->n_pcie_switches > 1 &&
           type->pcie_uplink_Bps > 0 && type->n_devices > 0;
}

/* The links in `route` get a share of what the rank sends. */
static fr_status add_route(builder *b, double weight, fr_err *err)
{
    for (size_t i = 0; i < b->route.n; i++) {
        int32_t link = b->route.items[i];
        if (b->weight[link] == 0 && fr_vec_push(&b->crossed, link) != FR_OK)
            return fr_fail_no_memory(err);
        b->weight[link] += weight;
    }
    return FR_OK;
}

/* The way to the rank's NIC joins the route. */
static fr_status add_nic(builder *b, int32_t rank, fr_err *err)
{
    if (!has_switches(b, rank))
        return FR_OK;
    return fr_fabric_routes_pcie(
        &b->routes, fr_rank_layout_node(b->layout, rank), switch_of(b, rank),
        nic_switch_of(b, rank), &b->route, err);
}

/* A share of what `rank` sends goes to another node. */
static fr_status add_way(builder *b, int32_t rank, int32_t to_group,
                         double weight, fr_err *err)
{
    int32_t node = fr_rank_layout_node(b->layout, rank);
    int32_t to = b->layout->node_of_group[to_group];
    b->route.n = 0;
    FR_TRY(fr_fabric_routes_list(&b->routes, node, to, rail_of(b, rank),
                                 &b->route, err));
    if (node != to)
        FR_TRY(add_nic(b, rank, err));
    return add_route(b, weight, err);
}

/* All that `rank` sends goes to nodes that are not listed, over no links of
 * the fabric (rank_copies.h). */
static fr_status add_way_out(builder *b, int32_t rank, fr_err *err)
{
    b->route.n = 0;
    FR_TRY(add_nic(b, rank, err));
    return add_route(b, 1.0, err);
}

/* To the next member on the same node, if it hangs on another switch. */
static fr_status add_port(builder *b, int32_t rank, const int32_t *members,
                          int32_t n, int32_t position, fr_err *err)
{
    const int32_t *node = b->layout->node.group_of_rank;
    if (!has_switches(b, rank) || type_of(b, rank)->intra_kind != FR_INTRA_PCIE)
        return FR_OK;
    for (int32_t i = 1; i < n; i++) {
        int32_t next = members[(position + i) % n];
        if (node[next] != node[rank])
            continue;
        b->route.n = 0;
        FR_TRY(fr_fabric_routes_pcie(
            &b->routes, fr_rank_layout_node(b->layout, rank),
            switch_of(b, rank), switch_of(b, next), &b->route, err));
        return add_route(b, 1.0, err);
    }
    return FR_OK;
}

static fr_status add_host(builder *b, int32_t rank, fr_err *err)
{
    if (!has_switches(b, rank))
        return FR_OK;
    b->route.n = 0;
    FR_TRY(fr_fabric_routes_pcie(&b->routes,
                                 fr_rank_layout_node(b->layout, rank),
                                 switch_of(b, rank), -1, &b->route, err));
    return add_route(b, 1.0, err);
}

/* Turns the links that the rank crosses into its uses. */
static fr_status finish_rank(builder *b, fr_err *err)
{
    for (size_t i = 0; i < b->crossed.n; i++) {
        int32_t link = b->crossed.items[i];
        double weight = fmax(1.0, floor(b->weight[link] * FR_FABRIC_ONE + 0.5));
        fr_fabric_use use = {link, (uint32_t)fmin(weight, 4e9)};
        b->weight[link] = 0;
        FR_TRY_PUSH(&b->uses, use, err);
    }
    b->crossed.n = 0;
    return FR_OK;
}

/* To the next member that is on another node. */
static fr_status add_ring(builder *b, int32_t rank, const int32_t *members,
                          int32_t n, int32_t position, fr_err *err)
{
    const int32_t *node = b->layout->node.group_of_rank;
    for (int32_t i = 1; i < n; i++) {
        int32_t next = members[(position + i) % n];
        if (node[next] != node[rank])
            return add_way(b, rank, node[next], 1.0, err);
    }
    return add_way_out(b, rank, err);
}

static fr_status add_spread(builder *b, int32_t rank, const int32_t *members,
                            int32_t n, fr_err *err)
{
    const int32_t *node = b->layout->node.group_of_rank;
    int32_t n_away = 0;
    for (int32_t i = 0; i < n; i++)
        n_away += node[members[i]] != node[rank];
    if (n_away == 0)
        return add_way_out(b, rank, err);
    for (int32_t i = 0; i < n; i++)
        if (node[members[i]] != node[rank])
            FR_TRY(add_way(b, rank, node[members[i]], 1.0 / n_away, err));
    return FR_OK;
}

static bool has_peer(const fr_rank_layout *layout, int32_t rank,
                     const fr_fabric_flow *flow)
{
    int32_t c = layout->program_of_rank[rank];
    for (uint32_t i = layout->first_peer[c]; i < layout->first_peer[c + 1]; i++)
        if (layout->peers.items[i].axis == flow->axis &&
            layout->peers.items[i].coordinate == flow->coordinate)
            return true;
    return false;
}

static fr_status add_rank(builder *b, const fr_fabric_flow *flow, int32_t rank,
                          int32_t position, fr_err *err)
{
    const fr_rank_groups *p = &b->layout->axes[flow->axis];
    if (flow->traffic == FR_TRAFFIC_HOST)
        return add_host(b, rank, err);
    int32_t group = p->group_of_rank[rank];
    const int32_t *members = &p->members[p->first[group]];
    int32_t n = fr_rank_groups_size(p, group);
    if (flow->coordinate >= 0) {
        if (!has_peer(b->layout, rank, flow))
            return FR_OK;
        int32_t peer = members[flow->coordinate];
        const int32_t pair[] = {rank, peer};
        if (flow->traffic == FR_TRAFFIC_PORT)
            return add_port(b, rank, pair, 2, 0, err);
        return add_way(b, rank, b->layout->node.group_of_rank[peer], 1.0, err);
    }
    if (flow->traffic == FR_TRAFFIC_PORT)
        return add_port(b, rank, members, n, position, err);
    if (p->scopes[group].n_nodes < 2)
        return FR_OK;
    return flow->traffic == FR_TRAFFIC_RING
               ? add_ring(b, rank, members, n, position, err)
               : add_spread(b, rank, members, n, err);
}

static fr_status fill_flow(builder *b, fr_fabric_flow *flow, fr_err *err)
{
    const fr_rank_groups *p = &b->layout->axes[flow->axis];
    int64_t n_ranks = b->layout->n_ranks;
    fr_status status = FR_OK;
    int32_t *position = calloc((size_t)n_ranks, sizeof *position);
    flow->first = malloc(((size_t)n_ranks + 1) * sizeof *flow->first);
    if (position == NULL || flow->first == NULL) {
        free(position);
        return fr_fail_no_memory(err);
    }
    for (int32_t g = 0; g < p->n_groups; g++)
        for (int32_t i = p->first[g]; i < p->first[g + 1]; i++)
            position[p->members[i]] = i - p->first[g];
    b->uses.n = 0;
    for (int64_t r = 0; r < n_ranks && status == FR_OK; r++) {
        flow->first[r] = (uint32_t)b->uses.n;
        status = add_rank(b, flow, (int32_t)r, position[r], err);
        if (status == FR_OK)
            status = finish_rank(b, err);
    }
    flow->first[n_ranks] = (uint32_t)b->uses.n;
    free(position);
    if (status != FR_OK)
        return status;
    FR_TRY_CALLOC(flow->uses, b->uses.n + 1, err);
    if (b->uses.n > 0)
        memcpy(flow->uses, b->uses.items, b->uses.n * sizeof *flow->uses);
    return FR_OK;
}

static fr_traffic traffic_of(const fr_instr *instr)
{
    return instr->op == FR_OP_ALL_TO_ALL ? FR_TRAFFIC_SPREAD : FR_TRAFFIC_RING;
}

static const fr_fabric_flow *find_flow(const fr_fabric_uses *uses, int axis,
                                       int coordinate, fr_traffic traffic)
{
    for (size_t i = 0; i < uses->flows.n; i++)
        if (uses->flows.items[i].axis == axis &&
            uses->flows.items[i].coordinate == coordinate &&
            uses->flows.items[i].traffic == traffic)
            return &uses->flows.items[i];
    return NULL;
}

const fr_fabric_flow *fr_fabric_uses_find(const fr_fabric_uses *uses,
                                          const fr_instr *instr)
{
    if (fr_op_class_of((fr_op)instr->op) == FR_OP_CLASS_P2P)
        return find_flow(uses, instr->axis, instr->peer, FR_TRAFFIC_RING);
    return find_flow(uses, instr->axis, -1, traffic_of(instr));
}

const fr_fabric_flow *fr_fabric_uses_local(const fr_fabric_uses *uses,
                                           const fr_instr *instr)
{
    fr_op_class op_class = fr_op_class_of((fr_op)instr->op);
    if (instr->op == FR_OP_HOST_COPY)
        return find_flow(uses, FR_AXIS_NONE, -1, FR_TRAFFIC_HOST);
    if (op_class == FR_OP_CLASS_P2P)
        return find_flow(uses, instr->axis, instr->peer, FR_TRAFFIC_PORT);
    return find_flow(uses, instr->axis, -1, FR_TRAFFIC_PORT);
}

static fr_status add_flow(builder *b, fr_fabric_uses *uses, int axis,
                          int coordinate, fr_traffic traffic, fr_err *err)
{
    if ((b->layout->axes[axis].n_groups == 0 && traffic != FR_TRAFFIC_HOST) ||
        find_flow(uses, axis, coordinate, traffic) != NULL)
        return FR_OK;
    fr_fabric_flow flow = {.axis = (uint8_t)axis,
                           .coordinate = (int16_t)coordinate,
                           .traffic = (uint8_t)traffic};
    FR_TRY_PUSH(&uses->flows, flow, err);
    return fill_flow(b, &uses->flows.items[uses->flows.n - 1], err);
}

static fr_status add_flows(builder *b, fr_fabric_uses *uses, fr_err *err)
{
    const fr_program *program = b->layout->program;
    for (uint32_t i = 0; i < program->n_instrs; i++) {
        const fr_instr *instr = &program->instrs[i];
        bool is_there =
            fr_op_class_of((fr_op)instr->op) == FR_OP_CLASS_COLLECTIVE;
        if (is_there)
            FR_TRY(add_flow(b, uses, instr->axis, -1, traffic_of(instr), err));
        if (is_there && b->has_port)
            FR_TRY(add_flow(b, uses, instr->axis, -1, FR_TRAFFIC_PORT, err));
        if (instr->op == FR_OP_HOST_COPY && b->routes.n_pcie > 0)
            FR_TRY(add_flow(b, uses, FR_AXIS_NONE, -1, FR_TRAFFIC_HOST, err));
    }
    for (size_t i = 0; i < b->layout->peers.n; i++) {
        fr_peer peer = b->layout->peers.items[i];
        FR_TRY(add_flow(b, uses, peer.axis, peer.coordinate, FR_TRAFFIC_RING,
                        err));
        if (b->has_port)
            FR_TRY(add_flow(b, uses, peer.axis, peer.coordinate,
                            FR_TRAFFIC_PORT, err));
    }
    return FR_OK;
}

/* Are there uplinks of PCIe switches that something crosses? */
static bool has_pcie(builder *b)
{
    const fr_rank_layout *layout = b->layout;
    bool has_uplink = false, is_crossed = false;
    for (int32_t g = 0; g < layout->node.n_groups; g++) {
        const fr_node_type *type =
            fr_cluster_node_type(layout->cluster, layout->node_of_group[g]);
        if (type->n_pcie_switches < 2 || type->pcie_uplink_Bps <= 0)
            continue;
        has_uplink = true;
        b->has_port = b->has_port || type->intra_kind == FR_INTRA_PCIE;
        is_crossed = is_crossed || b->has_port ||
                     (type->n_nics > 0 && layout->node.n_groups > 1 &&
                      type->n_nics < type->n_pcie_switches);
    }
    for (uint32_t i = 0; i < layout->program->n_instrs; i++)
        is_crossed =
            is_crossed || layout->program->instrs[i].op == FR_OP_HOST_COPY;
    return has_uplink && is_crossed;
}

fr_status fr_fabric_uses_init(const fr_rank_layout *layout, fr_fabric_uses *out,
                              fr_err *err)
{
    fr_fabric_uses uses = {0};
    builder b = {.layout = layout};
    fr_status status = FR_OK;
    bool is_wanted = has_pcie(&b);
    if (layout->node.n_groups > 1 || is_wanted)
        status = fr_fabric_routes_init(
            layout->cluster, is_wanted ? layout->n_nodes : 0, &b.routes, err);
    if (status != FR_OK || b.routes.n_links == 0)
        goto out_release;
    uses.n_links = b.routes.n_links;
    uses.link_Bps = b.routes.link_Bps;
    b.routes.link_Bps = NULL;
    b.weight = calloc((size_t)uses.n_links, sizeof *b.weight);
    status =
        b.weight != NULL ? add_flows(&b, &uses, err) : fr_fail_no_memory(err);
out_release:
    fr_fabric_routes_release(&b.routes);
    free(b.weight);
    fr_vec_release(&b.route);
    fr_vec_release(&b.crossed);
    fr_vec_release(&b.uses);
    if (status != FR_OK) {
        fr_fabric_uses_release(&uses);
        return status;
    }
    *out = uses;
    return FR_OK;
}
