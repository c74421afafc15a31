/* collective_time.c: see collective_time.h. */
#include "sim/predict/collective_time.h"

#include "core/base/text.h"
#include "cost_models/link/gpu_comm.h"
#include "program/ir/micro_program.h"
#include "sim/predict/simulate.h"
#include "sim/topology/rank_layout.h"

#include <string.h>

/* Traffic of the slowest link over the payload (nccl-tests,
 * doc/PERFORMANCE.md). */
static double bus_factor(fr_op op, int64_t n_group)
{
    double part = (double)(n_group - 1) / (double)n_group;

    switch (op) {
    case FR_OP_ALL_REDUCE:
        return 2.0 * part;
    case FR_OP_BROADCAST:
    case FR_OP_SEND:
        return 1.0;
    default:
        return part;
    }
}

bool fr_collective_time_can(const fr_cost_model *costs, fr_collective_kind kind,
                            fr_op op, int64_t n_group)
{
    const fr_collective *entry = fr_collectives[kind];
    /* NCCL's trees are of any size, those that we emit of 2^k. */
    const bool is_nccl = fr_cost_gpu_comm(costs) != NULL && entry->has_nccl;

    return entry->fits(op, is_nccl ? 4 : n_group);
}

/* Whole elements, as many for each member. */
static uint64_t whole_bytes(uint64_t n_bytes, int64_t n_group)
{
    uint64_t unit = fr_dtype_bytes(FR_DTYPE_F32) * (uint64_t)n_group;

    return n_bytes > unit ? (n_bytes + unit - 1) / unit * unit : unit;
}

/* One call of one collective over the data-parallel axis. */
static fr_status make_program(const fr_collective_ask *ask, int64_t n_group,
                              uint64_t n_bytes, bool is_on_one_node,
                              bool is_gpu, fr_program **out, fr_err *err)
{
    fr_plan plan;
    fr_micro *micro;
    fr_collective_kind kind = ask->algorithm;

    fr_plan_init(&plan);
    plan.dp = (int32_t)n_group;
    plan.collective = ask->algorithm;
    plan.protocol = ask->protocol;
    FR_TRY(fr_micro_create(&plan, &micro, err));
    if (!is_gpu)
        kind = fr_collective_choose(kind, ask->op, n_group, n_bytes,
                                    is_on_one_node);
    fr_instr instr = fr_micro_communicate(
        ask->op, FR_AXIS_DP, kind, n_bytes / fr_dtype_bytes(FR_DTYPE_F32), 0,
        n_bytes);
    if (kind != FR_COLLECTIVE_AUTO)
        instr.flags |= FR_INSTR_GIVEN;
    fr_collective_tell(&plan, &instr);
    fr_micro_call(micro, 0,
                  fr_micro_segment(micro, FR_LANE_DP, "collective", &instr, 1),
                  UINT32_MAX);
    return fr_micro_finish(micro, 2 * n_bytes, out, err);
}

/* One transfer from the first to the second stage of a pipeline. */
static fr_status make_transfer(uint64_t n_bytes, fr_program **out, fr_err *err)
{
    static const fr_op ops[2] = {FR_OP_SEND, FR_OP_RECV};
    static const fr_lane lanes[2] = {FR_LANE_PP_SEND, FR_LANE_PP_RECV};
    fr_plan plan;
    fr_micro *micro;

    fr_plan_init(&plan);
    plan.pp = 2;
    FR_TRY(fr_micro_create(&plan, &micro, err));
    for (uint32_t i = 0; i < 2; i++) {
        fr_instr instr = fr_micro_communicate(
            ops[i], FR_AXIS_PP, FR_COLLECTIVE_AUTO,
            n_bytes / fr_dtype_bytes(FR_DTYPE_F32), 0, n_bytes);
        instr.peer = (int16_t)(1 - i);
        fr_micro_call(micro, i,
                      fr_micro_segment(micro, lanes[i], "transfer", &instr, 1),
                      UINT32_MAX);
    }
    return fr_micro_finish(micro, 2 * n_bytes, out, err);
}

/* The first rank of a group and its last, which are apart where any are. */
static fr_status send_time(const fr_cost_model *costs,
                           const fr_cluster *cluster,
                           const fr_placement *placement,
                           fr_collective_time *out, fr_err *err)
{
    const int32_t nodes[2] = {placement->node_of_rank[0],
                              placement->node_of_rank[placement->n_ranks - 1]};
    const fr_placement pair = {.n_ranks = 2, .node_of_rank = nodes};
    fr_program *program = NULL;
    fr_prediction prediction;

    out->n_group = 2;
    out->n_nodes = nodes[0] == nodes[1] ? 1 : 2;
    fr_text_copy_cut(out->algorithm, sizeof out->algorithm, "send");
    FR_TRY(make_transfer(out->n_bytes, &program, err));
    fr_status status =
        fr_simulate(program, costs, cluster, &pair, NULL, &prediction, err);
    fr_program_destroy(program);
    if (status != FR_OK)
        return status;
    out->seconds = prediction.step_s;
    out->algbw_Bps = out->busbw_Bps = (double)out->n_bytes / out->seconds;
    return FR_OK;
}

/* Names the algorithm and the protocol that carry out the collective. */
static fr_status name_choice(const fr_cost_model *costs,
                             const fr_program *program,
                             const fr_comm_scope *scope,
                             fr_collective_time *out, fr_err *err)
{
    const fr_instr *instr = &program->instrs[0];
    const fr_gpu_comm_model *comm = fr_cost_gpu_comm(costs);
    fr_collective_kind kind = (fr_collective_kind)instr->algorithm;
    bool is_nccl = comm != NULL && !fr_collective_is_by_servers(kind);
    fr_nccl_time time;

    if (is_nccl)
        FR_TRY(fr_gpu_comm_choice(comm, instr, scope, &time, err));
    fr_text_copy_cut(out->algorithm, sizeof out->algorithm,
                     is_nccl ? time.algorithm
                             : fr_name_of(&fr_collective_names, kind));
    fr_text_copy_cut(out->protocol, sizeof out->protocol,
                     is_nccl ? time.protocol : "");
    return FR_OK;
}

fr_status fr_collective_time_of(const fr_cost_model *costs,
                                const fr_cluster *cluster,
                                const fr_placement *placement,
                                const fr_collective_ask *ask,
                                fr_collective_time *out, fr_err *err)
{
    const int32_t *nodes = placement->node_of_rank;
    int64_t n_group = placement->n_ranks;
    fr_program *program = NULL;
    fr_rank_layout layout = {0};
    fr_prediction prediction;
    fr_status status;

    memset(out, 0, sizeof *out);
    if (ask->algorithm != FR_COLLECTIVE_AUTO &&
        !fr_collective_time_can(costs, ask->algorithm, ask->op, n_group))
        return fr_fail(err, FR_INPUT,
                       "%s does no %s over %lld ranks; choose auto",
                       fr_name_of(&fr_collective_names, ask->algorithm),
                       fr_op_name(ask->op), (long long)n_group);
    out->n_group = n_group;
    out->n_bytes = whole_bytes(ask->n_bytes, n_group);
    if (ask->op == FR_OP_SEND) {
        out->n_bytes = whole_bytes(ask->n_bytes, 1);
        return send_time(costs, cluster, placement, out, err);
    }
    FR_TRY(make_program(
        ask, n_group, out->n_bytes, nodes[0] == nodes[n_group - 1],
        fr_cluster_device(cluster, nodes[0])->kind == FR_DEVICE_GPU, &program,
        err));
    FR_TRY_GOTO(
        status,
        fr_rank_layout_init(program, cluster, nodes, false, &layout, err), out);
    out->n_nodes = layout.axes[FR_AXIS_DP].scopes[0].n_nodes;
    FR_TRY_GOTO(status,
                name_choice(costs, program, &layout.axes[FR_AXIS_DP].scopes[0],
                            out, err),
                out);
    FR_TRY_GOTO(
        status,
        fr_simulate(program, costs, cluster, placement, NULL, &prediction, err),
        out);
    out->seconds = prediction.step_s;
    out->algbw_Bps = (double)out->n_bytes / out->seconds;
    out->busbw_Bps = out->algbw_Bps * bus_factor(ask->op, n_group);
out:
    fr_rank_layout_release(&layout);
    fr_program_destroy(program);
    return status;
}
