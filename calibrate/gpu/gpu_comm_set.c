/* gpu_comm_set.c: see gpu_comm_set.h. */
#include "calibrate/gpu/gpu_comm_set.h"

#include "cost_models/compute/compute_key.h"
#include "plan/collective/collective.h"
#include "plan/decide/grid.h"
#include "program/ir/micro_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const fr_op collectives[] = {FR_OP_ALL_REDUCE, FR_OP_REDUCE_SCATTER,
                                    FR_OP_ALL_GATHER, FR_OP_BROADCAST,
                                    FR_OP_ALL_TO_ALL};
enum { N_COLLECTIVES = sizeof collectives / sizeof collectives[0] };

/* ---- points ------------------------------------------------------------- */

static void scope_of(const fr_gpu_comm_set *set, char *out, size_t n)
{
    if (set->n_nodes <= 1)
        (void)snprintf(out, n, "%s", FR_PROFILE_SCOPE_SHM);
    else
        (void)snprintf(out, n, "%s:%lld", FR_PROFILE_SCOPE_NET,
                       (long long)set->n_nodes);
}

static void add_size(fr_gpu_comm_set *set, fr_op op, uint64_t n_bytes,
                     bool is_held_out)
{
    uint64_t unit = 4 * (uint64_t)set->n_members;
    fr_comm_point *point = &set->points[set->n_points++];

    *point = (fr_comm_point){.n_group = (int32_t)set->n_members,
                             .n_bytes = (n_bytes + unit - 1) / unit * unit,
                             .is_async = true,
                             .is_held_out = is_held_out};
    (void)snprintf(point->op, sizeof point->op, "%s", fr_op_name(op));
    scope_of(set, point->scope, sizeof point->scope);
}

/* 256 bytes to the most, four times as much each (quick: sixteen times); some
 * in between to check the curves. */
static fr_status list_points(fr_gpu_comm_set *set,
                             const fr_gpu_comm_group *group, fr_err *err)
{
    enum { MOST_SIZES = 64 };
    bool is_transfer = set->axis == FR_AXIS_PP;
    const uint64_t step = group->is_quick ? 16 : 4;
    int n_ops = is_transfer ? 1 : N_COLLECTIVES;

    FR_TRY_CALLOC(set->points, (size_t)n_ops * MOST_SIZES, err);
    for (int i = 0; i < n_ops; i++) {
        fr_op op = is_transfer ? FR_OP_SEND : collectives[i];
        int n = 0;
        for (uint64_t size = 256;
             size <= group->most_bytes && n < MOST_SIZES - 1;
             size *= step, n++) {
            add_size(set, op, size, false);
            if (n % 3 == 1 && size * 5 / 2 <= group->most_bytes)
                add_size(set, op, size * 5 / 2, true);
        }
    }
    return FR_OK;
}

/* ---- programs ----------------------------------------------------------- */

static fr_instr communicate(const fr_gpu_comm_set *set, fr_op op,
                            uint64_t n_bytes)
{
    fr_collective_kind kind = fr_collective_choose(
        FR_COLLECTIVE_AUTO, op, set->n_members, n_bytes, set->n_nodes == 1);

    return fr_micro_communicate(op, set->axis, kind, n_bytes / 4, 0,
                                set->dst_bytes);
}

static void build_collectives(fr_gpu_comm_set *set, fr_micro *micro)
{
    uint32_t last = UINT32_MAX, n = 0;
    fr_instr align =
        communicate(set, FR_OP_ALL_REDUCE, 4 * (uint64_t)set->n_members);

    for (size_t i = 0; i <= set->n_points; i++) {
        fr_instr instr =
            i == 0 ? align
                   : communicate(set, (fr_op)fr_op_find(set->points[i - 1].op),
                                 set->points[i - 1].n_bytes);
        uint32_t segment =
            fr_micro_segment(micro, FR_LANE_DP, "measured", &instr, 1);
        last = fr_micro_call(micro, 0, segment, last);
        if (i > 0)
            set->i_instr[0][i - 1] = set->i_instr[1][i - 1] = n;
        n++;
    }
    set->i_align = 0;
}

static void build_transfers(fr_gpu_comm_set *set, fr_micro *micro)
{
    uint32_t last[2] = {UINT32_MAX, UINT32_MAX}, n = 0;

    for (size_t i = 0; i < set->n_points; i++)
        for (int side = 0; side < 2; side++) {
            fr_instr pair[2];
            for (int k = 0; k < 2; k++) {
                /* The first stage sends, the second one sends back. */
                bool is_send = k == side;
                pair[k] = communicate(set, is_send ? FR_OP_SEND : FR_OP_RECV,
                                      set->points[i].n_bytes);
                pair[k].peer = (int16_t)set->stage[1 - side];
                pair[k].tag = (uint32_t)(2 * i + (size_t)k);
            }
            uint32_t segment =
                fr_micro_segment(micro, FR_LANE_PP_SEND, "measured", pair, 2);
            last[side] = fr_micro_call(micro, (uint32_t)set->stage[side],
                                       segment, last[side]);
            set->i_instr[side][i] = n;
            n += 2;
        }
}

static fr_status find_members(fr_gpu_comm_set *set,
                              const fr_transport *transport, fr_err *err)
{
    int64_t position = 0;

    FR_TRY_CALLOC(set->members, (size_t)transport->world, err);
    set->n_members =
        fr_plan_group(&set->plan, 0, set->axis, set->members, &position);
    if (set->axis == FR_AXIS_PP) {
        set->members[0] = set->members[set->stage[0]];
        set->members[1] = set->members[set->stage[1]];
        set->n_members = 2;
    }
    for (int64_t i = 0; i < set->n_members; i++) {
        bool is_new = true;
        for (int64_t k = 0; k < i; k++)
            is_new = is_new && transport->node_of_rank[set->members[k]] !=
                                   transport->node_of_rank[set->members[i]];
        set->n_nodes += is_new;
    }
    return FR_OK;
}

static fr_status build(fr_gpu_comm_set *set, fr_err *err)
{
    fr_micro *micro;

    for (int side = 0; side < 2; side++) {
        FR_TRY_CALLOC(set->i_instr[side], set->n_points + 1, err);
    }
    for (size_t i = 0; i < set->n_points; i++)
        if (set->points[i].n_bytes > set->dst_bytes)
            set->dst_bytes = set->points[i].n_bytes;
    set->dst_bytes = (set->dst_bytes / 4096 + 1) * 4096;
    set->slab_bytes = 2 * set->dst_bytes;
    FR_TRY(fr_micro_create(&set->plan, &micro, err));
    if (set->axis == FR_AXIS_PP)
        build_transfers(set, micro);
    else
        build_collectives(set, micro);
    return fr_micro_finish(micro, set->slab_bytes, &set->program, err);
}

fr_status fr_gpu_comm_set_init(const fr_transport *transport,
                               const fr_gpu_comm_group *group,
                               fr_gpu_comm_set *out, fr_err *err)
{
    fr_gpu_comm_set set = {.axis = group->axis,
                           .stage = {group->stage[0], group->stage[1]}};

    fr_plan_init(&set.plan);
    if (group->axis == FR_AXIS_PP) {
        set.plan.pp = (int32_t)transport->world;
    } else {
        set.plan.tp = group->n_group;
        set.plan.dp = (int32_t)(transport->world / group->n_group);
    }
    fr_status status = find_members(&set, transport, err);
    if (status == FR_OK)
        status = list_points(&set, group, err);
    if (status == FR_OK)
        status = build(&set, err);
    if (status != FR_OK) {
        fr_gpu_comm_set_release(&set);
        return status;
    }
    *out = set;
    return FR_OK;
}

void fr_gpu_comm_set_release(fr_gpu_comm_set *set)
{
    fr_program_destroy(set->program);
    free(set->members);
    free(set->points);
    free(set->i_instr[0]);
    free(set->i_instr[1]);
    memset(set, 0, sizeof *set);
}

bool fr_gpu_comm_set_has(const fr_gpu_comm_set *set, int64_t rank)
{
    for (int64_t i = 0; i < set->n_members; i++)
        if (set->members[i] == rank)
            return true;
    return false;
}

fr_status fr_gpu_comm_set_lanes(const fr_transport *transport, int32_t n_group,
                                int n_lanes, fr_program **out, fr_err *err)
{
    static const fr_lane lanes[] = {FR_LANE_DP, FR_LANE_COMPUTE, FR_LANE_TP};
    const uint64_t slab_bytes = 8192;
    fr_plan plan;
    fr_micro *micro;
    uint32_t last = UINT32_MAX;

    fr_plan_init(&plan);
    plan.tp = n_group;
    plan.dp = (int32_t)(transport->world / n_group);
    FR_TRY(fr_micro_create(&plan, &micro, err));
    for (int i = 0; i < n_lanes; i++) {
        fr_instr instr =
            fr_micro_communicate(FR_OP_ALL_REDUCE, FR_AXIS_TP,
                                 FR_COLLECTIVE_DIRECT, (uint64_t)n_group, 0, 0);
        last = fr_micro_call(
            micro, 0, fr_micro_segment(micro, lanes[i], "one", &instr, 1),
            last);
    }
    return fr_micro_finish(micro, slab_bytes, out, err);
}
