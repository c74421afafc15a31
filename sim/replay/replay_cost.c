/* replay_cost.c: costs by kind of rank, runs as sums. */
#include "sim/replay/replay_cost.h"

#include "core/base/hash.h"
#include "cost_models/compute/host_time.h"
#include "cost_models/gpu/gpu_price.h"
#include "program/ir/step_breakdown.h"
#include "sim/engine/virtual_time.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- set-up -------------------------------------------------------------- */

/* A key of where the groups of a rank sit and of what it runs on. */
static uint64_t kind_key(const fr_rank_layout *layout, int32_t rank)
{
    int32_t node = fr_rank_layout_node(layout, rank);
    double frac = fr_rank_layout_compute_frac(layout, rank);
    uint64_t bits, h;
    memcpy(&bits, &frac, sizeof bits);
    h = fr_hash_mix(
        bits +
        (uint64_t)fr_cluster_group_of(layout->cluster, node)->i_node_type);
    for (int axis = 0; axis < FR_AXIS_N; axis++) {
        const fr_rank_groups *p = &layout->axes[axis];
        if (p->n_groups == 0)
            continue;
        const fr_comm_scope *s = &p->scopes[p->group_of_rank[rank]];
        h = fr_hash_mix(h + (uint64_t)s->n_group);
        h = fr_hash_mix(h + ((uint64_t)s->n_nodes << 20) +
                        (uint64_t)s->ranks_on_node);
        h = fr_hash_mix(h + s->node_types);
    }
    return h;
}

static fr_status number_kinds(fr_replay_costs *c, fr_err *err)
{
    const fr_fold *fold = c->fold;
    uint64_t *keys = malloc(((size_t)fold->n_colors + 1) * sizeof *keys);
    c->kind_of_color =
        malloc(((size_t)fold->n_colors + 1) * sizeof *c->kind_of_color);
    if (keys == NULL || c->kind_of_color == NULL) {
        free(keys);
        return fr_fail_no_memory(err);
    }
    for (int32_t i = 0; i < fold->n_colors; i++)
        keys[i] = kind_key(c->layout, fold->rank_of_color[i]);
    c->n_kinds = fr_number_keys(keys, fold->n_colors, c->kind_of_color);
    free(keys);
    return c->n_kinds < 0 ? fr_fail_no_memory(err) : FR_OK;
}

static fr_status alloc_costs(fr_replay_costs *c, fr_err *err)
{
    FR_TRY_CALLOC(c->instrs, (size_t)c->n_kinds + 1, err);
    FR_TRY_CALLOC(c->runs, (size_t)c->fold->n_colors + 1, err);
    FR_TRY_CALLOC(c->hosts, (size_t)c->fold->n_colors + 1, err);
    return FR_OK;
}

fr_status fr_replay_costs_init(const fr_rank_layout *layout,
                               const fr_cost_model *model, const fr_fold *fold,
                               const fr_fabric_uses *fabric,
                               fr_replay_costs *out, fr_err *err)
{
    const fr_program *program = layout->program;
    int n_threads = program->plan.n_threads;
    *out = (fr_replay_costs){.program = program,
                             .model = model,
                             .layout = layout,
                             .fold = fold,
                             .fabric = fabric,
                             .n_threads = n_threads > 0 ? n_threads : 1};
    fr_status status;
    FR_TRY_GOTO(status, number_kinds(out, err), out_release);
    FR_TRY_GOTO(status, alloc_costs(out, err), out_release);
    FR_TRY_GOTO(status, fr_actors_init(layout, fold, true, &out->colors, err),
                out_release);
    FR_TRY_GOTO(status,
                fr_replay_links_init(&out->colors, fabric, n_threads, false,
                                     &out->links, err),
                out_release);
    return FR_OK;
out_release:
    fr_replay_costs_release(out);
    return status;
}

static void release_runs(fr_replay_costs *c)
{
    for (int32_t i = 0; c->runs != NULL && i < c->fold->n_colors; i++) {
        int32_t i_stage = c->layout->program_of_rank[c->fold->rank_of_color[i]];
        for (uint32_t k = 0;
             c->runs[i] != NULL && k < c->orders[i_stage].n_runs; k++) {
            if (c->runs[i][k] != NULL)
                fr_vec_release(&c->runs[i][k]->errors);
            free(c->runs[i][k]);
        }
        free(c->runs[i]);
    }
    free(c->runs);
    for (int32_t i = 0; c->hosts != NULL && i < c->fold->n_colors; i++)
        free(c->hosts[i].steps);
    free(c->hosts);
}

void fr_replay_costs_release(fr_replay_costs *c)
{
    release_runs(c);
    for (int32_t i = 0; c->instrs != NULL && i < c->n_kinds; i++)
        free(c->instrs[i]);
    free(c->instrs);
    for (size_t i = 0; i < c->transfers.n; i++)
        free(c->transfers.items[i].instrs);
    fr_vec_release(&c->transfers);
    free(c->kind_of_color);
    fr_replay_links_release(&c->links);
    fr_actors_release(&c->colors);
    *c = (fr_replay_costs){0};
}

/* ---- instructions -------------------------------------------------------- */

static fr_error_key compute_key(const fr_replay_costs *c, const fr_instr *instr,
                                int32_t rank)
{
    int32_t node = fr_rank_layout_node(c->layout, rank);
    int i_device = fr_cluster_node_type(c->layout->cluster, node)->i_device;
    return (fr_error_key)(2 + i_device * FR_OP_N + instr->op);
}

static void set_cost(fr_instr_cost *out, const fr_cost *cost)
{
    out->latency_ps = fr_ps_of(cost->latency_s);
    out->has_work = fr_ps_of(cost->work_s) > 0;
    out->source = (uint8_t)cost->source;
    out->rel_err = (float)cost->rel_err;
    out->is_known = true;
}

/* CPUs run what they issue, so only GPUs have hosts that issue. */
static int64_t host_ps(const fr_replay_costs *c, const fr_instr *instr,
                       int32_t rank, int n_kernels)
{
    if (!fr_rank_layout_is_gpu(c->layout, rank))
        return 0;
    return fr_ps_of(fr_gpu_prices_issue_s(
        fr_cost_gpu_prices(c->model), &c->program->plan, instr, n_kernels,
        fr_rank_layout_node(c->layout, rank)));
}

/* Costs of a kernel; on asynchronous lanes it has one thread. */
static fr_status ask_compute(fr_replay_costs *c, const fr_instr *instr,
                             int32_t rank, int lane, fr_instr_cost *out,
                             fr_err *err)
{
    bool is_gpu = fr_rank_layout_is_gpu(c->layout, rank);
    int n_threads = lane == FR_LANE_COMPUTE && !is_gpu ? c->n_threads : 1;
    fr_cost cost = {0};
    FR_TRY(fr_cost_compute(c->model, instr, n_threads,
                           fr_rank_layout_node(c->layout, rank), &cost, err));
    cost.work_s /= fr_rank_layout_compute_frac(c->layout, rank);
    /* Copy engines of a GPU need no multiprocessors. */
    if (is_gpu && fr_op_class_of((fr_op)instr->op) == FR_OP_CLASS_IO)
        cost.cores = 0;
    set_cost(out, &cost);
    out->host_ps = host_ps(c, instr, rank, cost.n_kernels);
    out->error_key = compute_key(c, instr, rank);
    out->demand = fr_demand_of(&cost, lane != FR_LANE_COMPUTE, false, NULL);
    if (instr->op == FR_OP_HOST_COPY && out->has_work)
        fr_demand_add_local(&out->demand,
                            (double)instr->copy.n_bytes / cost.work_s,
                            fr_fabric_uses_local(c->fabric, instr));
    out->solo_ps = out->latency_ps;
    if (out->has_work)
        out->solo_ps = fr_ps_add(
            out->solo_ps, fr_ps_of_work(out->demand.work, out->demand.cap));
    return FR_OK;
}

static fr_status ask_communicate(fr_replay_costs *c, const fr_instr *instr,
                                 const fr_comm_scope *scope, int lane,
                                 fr_instr_cost *out, fr_err *err)
{
    fr_cost cost = {0};
    bool is_transfer = fr_op_class_of((fr_op)instr->op) == FR_OP_CLASS_P2P;
    FR_TRY(fr_cost_communicate(c->model, instr, scope, lane != FR_LANE_COMPUTE,
                               &cost, err));
    set_cost(out, &cost);
    out->error_key = scope->n_nodes > 1;
    out->demand = fr_demand_of(
        &cost, true, is_transfer,
        scope->n_nodes > 1 ? fr_fabric_uses_find(c->fabric, instr) : NULL);
    fr_demand_add_local(&out->demand, out->demand.port_Bps,
                        fr_fabric_uses_local(c->fabric, instr));
    out->solo_ps = out->latency_ps; /* it runs alone, not beside its like */
    if (out->has_work)
        out->solo_ps = fr_ps_add(
            out->solo_ps, fr_ps_of_work(out->demand.work, out->demand.cap));
    return FR_OK;
}

/* Lists the colours that meet those of `color` on an axis. */
static fr_status find_members(fr_replay_costs *c, int32_t color, int axis,
                              const int32_t **members, int64_t *n, fr_err *err)
{
    int32_t i_table;
    FR_TRY(fr_actors_parties(&c->colors, 1u << axis, &i_table, err));
    const fr_parties *table = &c->colors.tables[i_table];
    int32_t party = table->party_of_actor[color];
    *members = &table->members[table->first[party]];
    *n = table->first[party + 1] - table->first[party];
    return FR_OK;
}

fr_status fr_replay_cost_instr(fr_replay_costs *c, int32_t color,
                               uint32_t i_instr, int lane,
                               const fr_instr_cost **out, fr_err *err)
{
    const fr_instr *instr = &c->program->instrs[i_instr];
    int32_t kind = c->kind_of_color[color],
            rank = c->fold->rank_of_color[color];
    if (c->instrs[kind] == NULL) {
        c->instrs[kind] =
            calloc((size_t)c->program->n_instrs + 1, sizeof(fr_instr_cost));
        if (c->instrs[kind] == NULL)
            return fr_fail_no_memory(err);
    }
    fr_instr_cost *cost = &c->instrs[kind][i_instr];
    *out = cost;
    if (cost->is_known)
        return FR_OK;
    if (!fr_instr_communicates(instr))
        return ask_compute(c, instr, rank, lane, cost, err);
    const fr_rank_groups *p = &c->layout->axes[instr->axis];
    return ask_communicate(c, instr, &p->scopes[p->group_of_rank[rank]], lane,
                           cost, err);
}

/* Finds, or makes, the costs of transfers between nodes of these types. */
static fr_status find_transfers(fr_replay_costs *c, uint32_t node_types,
                                bool is_same_node, fr_transfer_costs **out,
                                fr_err *err)
{
    for (size_t i = 0; i < c->transfers.n; i++) {
        *out = &c->transfers.items[i];
        if ((*out)->node_types == node_types &&
            (*out)->is_same_node == is_same_node)
            return FR_OK;
    }
    fr_transfer_costs costs = {
        .node_types = node_types,
        .is_same_node = is_same_node,
        .instrs =
            calloc((size_t)c->program->n_instrs + 1, sizeof *costs.instrs)};
    if (costs.instrs == NULL || fr_vec_push(&c->transfers, costs) != FR_OK) {
        free(costs.instrs);
        return fr_fail_no_memory(err);
    }
    *out = &c->transfers.items[c->transfers.n - 1];
    return FR_OK;
}

fr_status fr_replay_cost_transfer(fr_replay_costs *c, uint32_t i_instr,
                                  int lane, int32_t rank, int32_t peer,
                                  const fr_instr_cost **out, fr_err *err)
{
    const fr_rank_layout *layout = c->layout;
    bool is_same_node =
        layout->node.group_of_rank[rank] == layout->node.group_of_rank[peer];
    fr_comm_scope scope = {.n_group = 2,
                           .n_nodes = is_same_node ? 1 : 2,
                           .ranks_on_node = is_same_node ? 2 : 1,
                           .node_types = fr_rank_layout_type_bit(layout, rank) |
                                         fr_rank_layout_type_bit(layout, peer)};
    fr_transfer_costs *costs;
    FR_TRY(find_transfers(c, scope.node_types, is_same_node, &costs, err));
    fr_instr_cost *cost = &costs->instrs[i_instr];
    *out = cost;
    if (cost->is_known)
        return FR_OK;
    return ask_communicate(c, &c->program->instrs[i_instr], &scope, lane, cost,
                           err);
}

fr_status fr_replay_cost_host(fr_replay_costs *c, int32_t color,
                              uint32_t i_instr, int lane, int64_t *out_ps,
                              bool *is_held, fr_err *err)
{
    const fr_instr *instr = &c->program->instrs[i_instr];
    const fr_instr_cost *cost;
    int32_t rank = c->fold->rank_of_color[color];
    *is_held = fr_rank_layout_is_gpu(c->layout, rank) &&
               fr_host_is_held(&c->program->plan, instr);
    if (fr_instr_communicates(instr)) {
        *out_ps = host_ps(c, instr, rank, 1);
        return FR_OK;
    }
    FR_TRY(fr_replay_cost_instr(c, color, i_instr, lane, &cost, err));
    *out_ps = cost->host_ps;
    return FR_OK;
}

/* ---- runs ---------------------------------------------------------------- */

/* Sums over the instructions of a run: amount times picoseconds. */
typedef struct run_sum {
    fr_run_cost *cost;
    double cores_ps, memory_ps, port_ps;
    double net_ps[FR_DEMAND_NETS];
    double since_meeting_ps; /* compute since the last collective */
} run_sum;

static bool add_error(run_sum *sum, fr_error_key key, double ps)
{
    fr_run_cost *cost = sum->cost;
    for (size_t i = 0; i < cost->errors.n; i++)
        if (cost->errors.items[i].key == key) {
            cost->errors.items[i].ps += ps;
            return true;
        }
    return fr_vec_push(&cost->errors, ((fr_run_error){key, ps})) == FR_OK;
}

/* Finds the place of an instruction's traffic among those of the run. */
static int find_net(fr_demand *demand, const fr_demand *one, int i_net)
{
    const fr_fabric_flow *fabric = one->nets[i_net].fabric;
    int i = 0;
    while (i < demand->n_nets && demand->nets[i].fabric != fabric)
        i++;
    if (i == FR_DEMAND_NETS)
        return i - 1; /* the last one stands for more */
    if (i == demand->n_nets) {
        demand->nets[i].fabric = fabric;
        demand->nets[i].is_local = one->nets[i_net].is_local;
        demand->n_nets++;
    }
    return i;
}

static void add_demand(run_sum *sum, const fr_instr_cost *one)
{
    const fr_demand *d = &one->demand;
    /* An instruction that instructions of the same kind slow down takes longer,
     * but does no more work. */
    double alone_ps = (double)fr_ps_of_work(d->work, d->cap);
    sum->cores_ps += d->cores * d->unit_cores * alone_ps;
    sum->memory_ps += d->memory * d->unit_cores * alone_ps;
    sum->port_ps += d->port_Bps * alone_ps;
    for (int i = 0; i < d->n_nets; i++)
        sum->net_ps[find_net(&sum->cost->demand, d, i)] +=
            d->nets[i].Bps * alone_ps;
}

static void note_jitter(run_sum *sum, bool is_meeting, int64_t ps)
{
    if (!is_meeting) {
        sum->since_meeting_ps += (double)ps;
        return;
    }
    sum->cost->compute_squares += sum->since_meeting_ps * sum->since_meeting_ps;
    sum->since_meeting_ps = 0;
}

fr_status fr_replay_cost_solo(fr_replay_costs *c, int32_t color,
                              uint32_t i_instr, int64_t *out_ps, fr_err *err)
{
    const fr_instr *instr = &c->program->instrs[i_instr];
    const fr_instr_cost *one;
    const int32_t *members;
    int64_t n;
    FR_TRY(fr_replay_cost_instr(c, color, i_instr, FR_LANE_COMPUTE, &one, err));
    *out_ps = one->solo_ps;
    if (!fr_instr_communicates(instr))
        return FR_OK;
    *out_ps = one->latency_ps;
    if (!one->has_work)
        return FR_OK;
    FR_TRY(find_members(c, color, instr->axis, &members, &n, err));
    *out_ps = fr_ps_add(
        *out_ps, fr_replay_links_solo_ps(&c->links, &one->demand, members, n));
    return FR_OK;
}

static fr_status add_instr(fr_replay_costs *c, int32_t color, uint32_t i_instr,
                           run_sum *sum, fr_err *err)
{
    const fr_instr *instr = &c->program->instrs[i_instr];
    fr_run_cost *cost = sum->cost;
    const fr_instr_cost *one;
    FR_TRY(fr_replay_cost_instr(c, color, i_instr, FR_LANE_COMPUTE, &one, err));
    int64_t ps, issue_ps;
    bool is_comm = fr_instr_communicates(instr), is_held;
    FR_TRY(fr_replay_cost_solo(c, color, i_instr, &ps, err));
    FR_TRY(fr_replay_cost_host(c, color, i_instr, FR_LANE_COMPUTE, &issue_ps,
                               &is_held, err));
    fr_host_chain_add(&cost->chain, issue_ps, ps, is_held);
    if (cost->i_collective == UINT32_MAX && is_comm)
        cost->i_collective = i_instr;
    if (!is_comm)
        cost->compute_ps = fr_ps_add(cost->compute_ps, ps);
    note_jitter(sum, is_comm, ps);
    fr_part part = fr_step_part_of(instr);
    if (cost->part_ps[part] == 0)
        cost->part_instr[part] = i_instr;
    cost->part_ps[part] = fr_ps_add(cost->part_ps[part], ps);
    cost->solo_ps = fr_ps_add(cost->solo_ps, ps);
    cost->source = one->source > cost->source ? one->source : cost->source;
    if (one->has_work)
        add_demand(sum, one);
    if (!add_error(sum, one->error_key, (double)ps * (double)one->rel_err))
        return fr_fail_no_memory(err);
    return FR_OK;
}

/* A run takes of everything the average over its time; its work is that time at
 * the highest rate. */
static void finish_run(run_sum *sum)
{
    fr_run_cost *cost = sum->cost;
    fr_demand *d = &cost->demand;
    double ps = fmax((double)cost->solo_ps, 1.0), nets[FR_DEMAND_NETS];
    note_jitter(sum, true, 0);
    memcpy(nets, sum->net_ps, sizeof nets);
    const fr_cost mean = {.work_s = 1,
                          .cores = fmin(sum->cores_ps / ps, 1e6),
                          .memory_frac = sum->memory_ps / ps};
    fr_demand demand = fr_demand_of(&mean, false, false, NULL);
    demand.port_Bps = sum->port_ps / ps;
    demand.n_nets = d->n_nets;
    for (int i = 0; i < d->n_nets; i++) {
        demand.nets[i] = d->nets[i];
        demand.nets[i].Bps = nets[i] / ps;
    }
    demand.work = (fr_work)cost->solo_ps * (fr_work)demand.cap;
    *d = demand;
}

static fr_status sum_run(fr_replay_costs *c, int32_t color,
                         const fr_replay_step *step, run_sum *sum, fr_err *err)
{
    int32_t rank = c->fold->rank_of_color[color];
    const fr_rank_program *rank_program =
        &c->program->rank_programs[c->layout->program_of_rank[rank]];
    for (uint32_t i = 0; i < step->n_calls; i++) {
        uint32_t s = rank_program->calls[step->first_call + i].i_segment;
        const fr_segment *segment = &c->program->segments[s];
        for (uint32_t k = 0; k < segment->n_instrs; k++)
            FR_TRY(add_instr(c, color, segment->first_instr + k, sum, err));
    }
    finish_run(sum);
    return FR_OK;
}

fr_status fr_replay_cost_run(fr_replay_costs *c, int32_t color,
                             const fr_replay_step *step,
                             const fr_run_cost **out, fr_err *err)
{
    int32_t rank = c->fold->rank_of_color[color];
    const fr_replay_order *order = &c->orders[c->layout->program_of_rank[rank]];
    if (c->runs[color] == NULL) {
        FR_TRY_CALLOC(c->runs[color], (size_t)order->n_runs + 1, err);
    }
    fr_run_cost **slot = &c->runs[color][step->i_run];
    if (*slot == NULL) {
        run_sum sum = {.cost = calloc(1, sizeof *sum.cost)};
        if (sum.cost == NULL)
            return fr_fail_no_memory(err);
        sum.cost->i_collective = UINT32_MAX;
        sum.cost->chain = fr_host_chain_empty();
        fr_status status = sum_run(c, color, step, &sum, err);
        if (status != FR_OK) {
            fr_vec_release(&sum.cost->errors);
            free(sum.cost);
            return status;
        }
        *slot = sum.cost;
    }
    *out = *slot;
    return FR_OK;
}
