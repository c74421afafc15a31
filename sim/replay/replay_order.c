/* replay_order.c: steps of lanes, and which calls may run as one. */
#include "sim/replay/replay_order.h"

#include "core/base/hash.h"

#include <stdlib.h>
#include <string.h>

/* Groups on these axes lie within one pipeline stage: of one replica ... */
static const unsigned replica_axes =
    1u << FR_AXIS_TP | 1u << FR_AXIS_CP | 1u << FR_AXIS_ETP;
/* ... of several. */
static const unsigned data_axes = 1u << FR_AXIS_EP | 1u << FR_AXIS_DP |
                                  1u << FR_AXIS_SHARD | 1u << FR_AXIS_REPLICA |
                                  1u << FR_AXIS_EDP;

/* Do all members of a group on the axis run the same calls? */
static bool is_of_one_program(const fr_plan *plan, uint8_t axis)
{
    const unsigned axes =
        plan->n_shares > 0 ? replica_axes : replica_axes | data_axes;
    return (axes >> axis & 1u) != 0;
}

typedef struct segment_kind {
    bool is_known, is_run; /* may be part of a run */
    uint16_t axes;         /* with groups of more than one */
} segment_kind;

void fr_replay_order_release(fr_replay_order *order)
{
    free(order->steps);
    free(order->slot_of_call);
    free(order->run_key);
    free(order->step_of_run);
    *order = (fr_replay_order){0};
}

static segment_kind kind_of(const fr_rank_layout *layout,
                            const fr_segment *segment)
{
    segment_kind kind = {.is_known = true,
                         .is_run = segment->lane == FR_LANE_COMPUTE &&
                                   segment->n_instrs > 0};
    for (uint32_t i = 0; i < segment->n_instrs; i++) {
        const fr_instr *instr =
            &layout->program->instrs[segment->first_instr + i];
        fr_op_class op_class = fr_op_class_of((fr_op)instr->op);
        if (op_class == FR_OP_CLASS_COMPUTE)
            continue;
        if (op_class != FR_OP_CLASS_COLLECTIVE ||
            !is_of_one_program(&layout->program->plan, instr->axis))
            kind.is_run = false;
        else if (fr_rank_layout_meets(layout, instr->axis))
            kind.axes |= (uint16_t)(1u << instr->axis);
    }
    return kind;
}

/* Gives a slot to each call that another waits for: only its end is kept. */
static void number_slots(const fr_rank_program *rank_program,
                         fr_replay_order *order)
{
    for (uint32_t i = 0; i < rank_program->n_calls; i++)
        order->slot_of_call[i] = FR_REPLAY_NO_SLOT;
    for (uint32_t i = 0; i < rank_program->n_calls; i++)
        for (uint32_t d = 0; d < rank_program->calls[i].n_deps; d++) {
            uint32_t dep =
                rank_program->deps[rank_program->calls[i].first_dep + d];
            if (order->slot_of_call[dep] == FR_REPLAY_NO_SLOT)
                order->slot_of_call[dep] = order->n_slots++;
        }
}

/* Finds the number of the run with this content, or gives it one. */
static void number_run(fr_replay_order *order, uint32_t i_step, uint64_t key)
{
    uint32_t i = 0;
    while (i < order->n_runs && order->run_key[i] != key)
        i++;
    if (i == order->n_runs) {
        order->run_key[i] = key;
        order->step_of_run[i] = i_step;
        order->n_runs++;
    }
    order->steps[i_step].i_run = i;
}

/* Measures the run that begins with call `at` of the compute lane, whose n
 * calls are calls[]. */
static uint32_t make_run(const fr_rank_program *rank_program,
                         const segment_kind *kinds, const uint32_t *calls,
                         uint32_t n, fr_replay_order *order, uint32_t i_step)
{
    const fr_call *first = &rank_program->calls[calls[0]];
    uint16_t axes = kinds[first->i_segment].axes;
    uint64_t key = fr_hash_mix(first->i_segment + 1);
    uint32_t length = 1;
    while (length < n) {
        const fr_call *next = &rank_program->calls[calls[length]];
        if (calls[length] != calls[length - 1] + 1 || next->n_deps > 0 ||
            order->slot_of_call[calls[length - 1]] != FR_REPLAY_NO_SLOT ||
            !kinds[next->i_segment].is_run ||
            kinds[next->i_segment].axes != axes)
            break;
        key = fr_hash_mix(key + next->i_segment + 1);
        length++;
    }
    order->steps[i_step] = (fr_replay_step){
        .first_call = calls[0], .n_calls = length, .axes = axes, .i_table = -1};
    number_run(order, i_step, key);
    return length;
}

/* Finds the kinds of the segments that the rank program calls. */
static void find_kinds(const fr_rank_layout *layout,
                       const fr_rank_program *rank_program, segment_kind *kinds)
{
    for (uint32_t i = 0; i < rank_program->n_calls; i++) {
        uint32_t s = rank_program->calls[i].i_segment;
        if (!kinds[s].is_known)
            kinds[s] = kind_of(layout, &layout->program->segments[s]);
    }
}

/* Sorts calls[] by lanes, each in program order; lane l ends at end[l]. */
static void sort_by_lane(const fr_program *program,
                         const fr_rank_program *rank_program, uint32_t *calls,
                         uint32_t end[FR_LANE_N])
{
    uint32_t n[FR_LANE_N] = {0}, first = 0;
    for (uint32_t i = 0; i < rank_program->n_calls; i++)
        n[program->segments[rank_program->calls[i].i_segment].lane]++;
    for (int lane = 0; lane < FR_LANE_N; lane++) {
        end[lane] = first;
        first += n[lane];
    }
    for (uint32_t i = 0; i < rank_program->n_calls; i++)
        calls[end[program->segments[rank_program->calls[i].i_segment].lane]++] =
            i;
}

static void make_steps(const fr_program *program,
                       const fr_rank_program *rank_program,
                       const segment_kind *kinds, uint32_t *calls,
                       fr_replay_order *order)
{
    uint32_t n_steps = 0, end[FR_LANE_N], i = 0;
    sort_by_lane(program, rank_program, calls, end);
    for (int lane = 0; lane < FR_LANE_N; lane++) {
        order->first[lane] = n_steps;
        while (i < end[lane]) {
            if (kinds[rank_program->calls[calls[i]].i_segment].is_run)
                i += make_run(rank_program, kinds, calls + i, end[lane] - i,
                              order, n_steps++);
            else
                order->steps[n_steps++] =
                    (fr_replay_step){.first_call = calls[i++], .i_table = -1};
        }
    }
    order->first[FR_LANE_N] = n_steps;
}

static fr_status find_tables(fr_actors *actors, fr_replay_order *order,
                             fr_err *err)
{
    uint32_t n_steps = order->first[FR_LANE_N];
    for (uint32_t i = 0; i < n_steps; i++) {
        int32_t i_table;
        if (order->steps[i].axes == 0)
            continue;
        FR_TRY(fr_actors_parties(actors, order->steps[i].axes, &i_table, err));
        order->steps[i].i_table = (int8_t)i_table;
    }
    return FR_OK;
}

fr_status fr_replay_order_init(fr_actors *actors, uint32_t i_stage,
                               bool has_runs, fr_replay_order *out, fr_err *err)
{
    const fr_program *program = actors->layout->program;
    const fr_rank_program *rank_program = &program->rank_programs[i_stage];
    size_t n = (size_t)rank_program->n_calls + 1;
    fr_replay_order order = {0};
    segment_kind *kinds = calloc(program->n_segments + 1, sizeof *kinds);
    uint32_t *calls = malloc(n * sizeof *calls);
    order.steps = malloc(n * sizeof *order.steps);
    order.slot_of_call = malloc(n * sizeof *order.slot_of_call);
    order.run_key = malloc(n * sizeof *order.run_key);
    order.step_of_run = malloc(n * sizeof *order.step_of_run);
    fr_status status = FR_OK;
    if (kinds == NULL || calls == NULL || order.steps == NULL ||
        order.slot_of_call == NULL || order.run_key == NULL ||
        order.step_of_run == NULL) {
        status = fr_fail_no_memory(err);
        goto out_free;
    }
    number_slots(rank_program, &order);
    if (has_runs) /* else every call is replayed by instructions */
        find_kinds(actors->layout, rank_program, kinds);
    make_steps(program, rank_program, kinds, calls, &order);
    status = find_tables(actors, &order, err);
out_free:
    free(kinds);
    free(calls);
    if (status != FR_OK)
        fr_replay_order_release(&order);
    else
        *out = order;
    return status;
}
