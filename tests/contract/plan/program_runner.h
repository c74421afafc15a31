/*
 * program_runner.h: runs a program for all its ranks inside one process, with
 * the CPU kernels, its own collectives on plain arrays, and the lanes in an
 * adversarial (seeded random) order.  Memory that nobody may read is NaN.
 */
#ifndef FR_TESTS_PROGRAM_RUNNER_H
#define FR_TESTS_PROGRAM_RUNNER_H

#include "kernels/cpu/kernels_cpu.h"
#include "plan/decide/grid.h"
#include "plan/decide/plan_shares.h"
#include "program/lower/step/lower.h"
#include "tests/check.h"

#include <stdlib.h>

typedef struct pr_lane {
    uint32_t i_call, i_instr; /* of the rank program; n_calls: ended */
} pr_lane;

typedef struct pr_rank {
    const fr_rank_program *rank_program;
    char *slab;
    pr_lane lanes[FR_LANE_N];
    uint8_t *is_done;
} pr_rank;

typedef struct program_runner {
    const fr_program *program;
    int64_t world;
    pr_rank *ranks;
    int64_t *group; /* room for the world */
    uint64_t random;
    int64_t i_step;
} program_runner;

static uint64_t pr_random(program_runner *run)
{
    run->random ^= run->random << 13;
    run->random ^= run->random >> 7;
    run->random ^= run->random << 17;
    return run->random * 0x2545f4914f6cdd1dU >> 11;
}

static void pr_open(program_runner *run, const fr_program *program,
                    uint64_t seed)
{
    *run = (program_runner){.program = program,
                            .world = fr_plan_world(&program->plan),
                            .random = seed * 2 + 1};
    run->ranks = calloc((size_t)run->world, sizeof *run->ranks);
    run->group = calloc((size_t)run->world, sizeof *run->group);
    for (int64_t r = 0; r < run->world; r++) {
        pr_rank *rank = &run->ranks[r];
        rank->rank_program = fr_program_of_rank(program, r);
        rank->slab = aligned_alloc(
            4096, (rank->rank_program->slab_bytes + 4095) / 4096 * 4096);
        memset(rank->slab, 0, rank->rank_program->slab_bytes);
        rank->is_done = calloc((size_t)rank->rank_program->n_calls + 1, 1);
        const fr_tensor_place place = fr_tensor_place_of(&program->plan, r);
        fr_kernels_cpu_init_weights(
            (float *)(void *)(rank->slab +
                              rank->rank_program->weight_offset_bytes),
            0, (int64_t)rank->rank_program->n_parameters,
            rank->rank_program->tensors, rank->rank_program->n_tensors, &place,
            program->job.seed, 1);
    }
}

static void pr_close(program_runner *run)
{
    for (int64_t r = 0; r < run->world; r++) {
        free(run->ranks[r].slab);
        free(run->ranks[r].is_done);
    }
    free(run->ranks);
    free(run->group);
}

static uint32_t pr_next_call(const program_runner *run, const pr_rank *rank,
                             uint32_t from, int lane)
{
    while (from < rank->rank_program->n_calls &&
           run->program->segments[rank->rank_program->calls[from].i_segment]
                   .lane != lane)
        from++;
    return from;
}

static const fr_instr *pr_head(program_runner *run, int64_t r, int lane)
{
    pr_rank *rank = &run->ranks[r];
    pr_lane *at = &rank->lanes[lane];
    if (at->i_call == rank->rank_program->n_calls)
        return NULL;
    const fr_call *call = &rank->rank_program->calls[at->i_call];
    const fr_segment *segment = &run->program->segments[call->i_segment];
    for (uint32_t d = 0; at->i_instr == 0 && d < call->n_deps; d++)
        if (!rank->is_done[rank->rank_program->deps[call->first_dep + d]])
            return NULL;
    return &run->program->instrs[segment->first_instr + at->i_instr];
}

static void pr_advance(program_runner *run, int64_t r, int lane)
{
    pr_rank *rank = &run->ranks[r];
    pr_lane *at = &rank->lanes[lane];
    const fr_call *call = &rank->rank_program->calls[at->i_call];
    if (++at->i_instr < run->program->segments[call->i_segment].n_instrs)
        return;
    rank->is_done[at->i_call] = 1;
    at->i_instr = 0;
    at->i_call = pr_next_call(run, rank, at->i_call + 1, lane);
}

static int64_t pr_group(program_runner *run, int64_t r, const fr_instr *instr,
                        int64_t *position)
{
    *position = 0;
    return instr->axis == FR_AXIS_NONE
               ? 1
               : fr_plan_group(&run->program->plan, r, (fr_axis)instr->axis,
                               run->group, position);
}

static void *pr_operand(program_runner *run, int64_t r, int lane,
                        const fr_instr *instr, int i_ref)
{
    const fr_ref *ref = &instr->ref[i_ref];
    pr_rank *rank = &run->ranks[r];
    int64_t position;
    if (ref->space == FR_SPACE_NONE)
        return NULL;
    uint64_t at =
        ref->offset_bytes +
        fr_call_base_bytes(rank->rank_program,
                           &rank->rank_program->calls[rank->lanes[lane].i_call],
                           ref->space);
    pr_group(run, r, instr, &position);
    if (ref->is_sharded)
        at += (uint64_t)position * instr->shard_bytes;
    return rank->slab + at;
}

/* Token p of sequence s of the step: any fixed function will do. */
static int32_t pr_token(const program_runner *run, int64_t s, int64_t p)
{
    uint64_t x =
        (uint64_t)((run->i_step * 131 + s) * 257 + p) * 0x9e3779b97f4a7c15U;
    return (int32_t)((x >> 33) % (uint64_t)run->program->model.vocab);
}

static void pr_load(program_runner *run, int64_t r, int lane,
                    const fr_instr *instr)
{
    pr_rank *rank = &run->ranks[r];
    int32_t *tokens = pr_operand(run, r, lane, instr, 0);
    int64_t b = instr->dim[0], t = instr->dim[1];
    int64_t micro =
        rank->rank_program->calls[rank->lanes[lane].i_call].micro_batch;
    const fr_program *program = run->program;
    int64_t first = fr_plan_first_micro(&program->plan, &program->job,
                                        fr_plan_coord(&program->plan, r).dp);
    for (int64_t i = 0; i < b * t; i++) {
        int64_t s = (first + micro) * b + i / t;
        tokens[i] = pr_token(run, s, i % t);
        tokens[b * t + i] = pr_token(run, s, i % t + 1);
    }
}

static void pr_compute(program_runner *run, int64_t r, int lane,
                       const fr_instr *instr)
{
    const fr_program *program = run->program;
    int64_t position, n = pr_group(run, r, instr, &position);
    fr_kernel_call call = {
        .instr = instr,
        .coordinate = (int)position,
        .n_group = (int)n,
        .tp_coordinate = fr_plan_coord(&program->plan, r).tp,
        .n_threads = 1,
        .i_step = run->i_step,
        .job = &program->job,
        .plan = &program->plan,
        .tensors = run->ranks[r].rank_program->tensors,
        .n_tensors = run->ranks[r].rank_program->n_tensors,
    };
    if (instr->op == FR_OP_LOAD_TOKENS) {
        pr_load(run, r, lane, instr);
        return;
    }
    for (int i = 0; i < FR_INSTR_REFS; i++)
        if (fr_op_access((fr_op)instr->op, i))
            call.ptr[i] = pr_operand(run, r, lane, instr, i);
        else
            break;
    fr_kernels_cpu[instr->op](&call);
}

/* A bf16 is the upper half of a float. */
static double pr_get_bf16(const void *array, int64_t i)
{
    uint32_t bits = (uint32_t)((const uint16_t *)array)[i] << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

/* The nearer of the two that enclose the value; of a tie the even one. */
static void pr_put_bf16(void *array, int64_t i, double value)
{
    float single = (float)value, low, high;
    uint32_t bits, low_bits, high_bits;
    memcpy(&bits, &single, sizeof bits);
    low_bits = bits & 0xffff0000U;
    high_bits = low_bits + 0x10000U;
    memcpy(&low, &low_bits, sizeof low);
    memcpy(&high, &high_bits, sizeof high);
    double to_low = fabs((double)single - (double)low);
    double to_high = fabs((double)high - (double)single);
    bool is_high =
        to_high < to_low || (to_high == to_low && (low_bits >> 16 & 1U) != 0);
    ((uint16_t *)array)[i] = (uint16_t)((is_high ? high_bits : low_bits) >> 16);
}

static double pr_get(const void *array, fr_dtype dtype, int64_t i)
{
    if (dtype == FR_DTYPE_BF16)
        return pr_get_bf16(array, i);
    return dtype == FR_DTYPE_F64   ? ((const double *)array)[i]
           : dtype == FR_DTYPE_F32 ? (double)((const float *)array)[i]
                                   : (double)((const uint8_t *)array)[i];
}

static void pr_put(void *array, fr_dtype dtype, int64_t i, double value)
{
    if (dtype == FR_DTYPE_F64)
        ((double *)array)[i] = value;
    else if (dtype == FR_DTYPE_F32)
        ((float *)array)[i] = (float)value;
    else if (dtype == FR_DTYPE_BF16)
        pr_put_bf16(array, i, value);
    else
        ((uint8_t *)array)[i] = (uint8_t)value;
}

/* By definition: everything is read before anything is written. */
static void pr_collective(program_runner *run, int64_t n_group,
                          const int64_t *members, int lane,
                          const fr_instr *const *instrs)
{
    const fr_instr *first = instrs[0];
    fr_dtype dtype = (fr_dtype)first->dtype;
    int64_t n = first->dim[0], part = n / n_group;
    bool is_gather = first->op == FR_OP_ALL_GATHER;
    double *result = calloc((size_t)n + 1, sizeof *result);
    for (int64_t m = 0; m < n_group; m++) {
        const void *src = pr_operand(run, members[m], lane, instrs[m], 0);
        for (int64_t i = 0; i < (is_gather ? part : n); i++) {
            double value = pr_get(src, dtype, i);
            double *to = &result[is_gather ? m * part + i : i];
            if (is_gather || m == 0)
                *to = value;
            else if (first->flags & FR_INSTR_MAX)
                *to = value > *to ? value : *to;
            else
                *to += value;
        }
    }
    for (int64_t m = 0; m < n_group; m++) {
        bool is_scatter = first->op == FR_OP_REDUCE_SCATTER;
        void *dst = pr_operand(run, members[m], lane, instrs[m], 1);
        void *src = pr_operand(run, members[m], lane, instrs[m], 0);
        if (is_scatter && instrs[m]->ref[1].is_sharded)
            for (int64_t i = 0; i < n; i++) /* partial sums: unusable */
                pr_put(src, dtype, i, (double)NAN);
        for (int64_t i = 0; i < (is_scatter ? part : n); i++)
            pr_put(dst, dtype, i, result[is_scatter ? m * part + i : i]);
    }
    free(result);
}

static bool pr_try_collective(program_runner *run, int64_t r, int lane,
                              const fr_instr *instr)
{
    int64_t position, n = pr_group(run, r, instr, &position);
    int64_t members[64];
    const fr_instr *instrs[64];
    memcpy(members, run->group, (size_t)n * sizeof *members);
    for (int64_t m = 0; m < n; m++) {
        instrs[m] = pr_head(run, members[m], lane);
        if (!instrs[m] || instrs[m]->axis != instr->axis ||
            instrs[m]->op != instr->op || instrs[m]->dim[0] != instr->dim[0])
            return false;
    }
    pr_collective(run, n, members, lane, instrs);
    for (int64_t m = 0; m < n; m++)
        pr_advance(run, members[m], lane);
    return true;
}

static bool pr_try_send(program_runner *run, int64_t r, int lane,
                        const fr_instr *instr)
{
    fr_coord at = fr_plan_coord(&run->program->plan, r);
    int32_t own_pp = at.pp;
    at.pp = instr->peer;
    int64_t peer = fr_plan_rank(&run->program->plan, at);
    const fr_rank_program *rank_program = run->ranks[r].rank_program;
    int32_t mb =
        rank_program->calls[run->ranks[r].lanes[lane].i_call].micro_batch;
    for (int other = 0; other < FR_LANE_N; other++) {
        const fr_instr *head = pr_head(run, peer, other);
        if (!head || head->op != FR_OP_RECV || head->peer != own_pp)
            continue;
        int32_t peer_mb =
            run->ranks[peer]
                .rank_program->calls[run->ranks[peer].lanes[other].i_call]
                .micro_batch;
        if (head->tag + (uint32_t)peer_mb != instr->tag + (uint32_t)mb)
            continue;
        memcpy(pr_operand(run, peer, other, head, 0),
               pr_operand(run, r, lane, instr, 0),
               fr_instr_payload_bytes(instr));
        pr_advance(run, peer, other);
        pr_advance(run, r, lane);
        return true;
    }
    return false;
}

static bool pr_try(program_runner *run, int64_t r, int lane)
{
    const fr_instr *instr = pr_head(run, r, lane);
    if (!instr || instr->op == FR_OP_RECV)
        return false;
    if (instr->op == FR_OP_SEND)
        return pr_try_send(run, r, lane, instr);
    if (fr_op_class_of((fr_op)instr->op) == FR_OP_CLASS_COLLECTIVE)
        return pr_try_collective(run, r, lane, instr);
    pr_compute(run, r, lane, instr);
    pr_advance(run, r, lane);
    return true;
}

/* Transient memory at the begin of a step is garbage. */
static void pr_poison(pr_rank *rank)
{
    uint64_t bottom = 0;
    for (uint32_t i = 0; i < rank->rank_program->n_blocks; i++) {
        const fr_block *block = &rank->rank_program->blocks[i];
        uint64_t end = block->offset_bytes + block->n_bytes;
        if (block->is_persistent && end > bottom)
            bottom = end;
    }
    memset(rank->slab + bottom, 0xff, rank->rank_program->slab_bytes - bottom);
}

/* One step; the loss, or NaN where the ranks got stuck. */
static double pr_step(program_runner *run)
{
    for (int64_t r = 0; r < run->world; r++) {
        pr_rank *rank = &run->ranks[r];
        memset(rank->is_done, 0, rank->rank_program->n_calls);
        pr_poison(rank);
        for (int lane = 0; lane < FR_LANE_N; lane++)
            rank->lanes[lane] = (pr_lane){pr_next_call(run, rank, 0, lane), 0};
    }
    uint64_t n = (uint64_t)run->world * FR_LANE_N, n_idle = 0;
    while (n_idle < n) {
        /* A random one; when that fails too often, all of them in turn. */
        uint64_t i = n_idle < n / 2 ? pr_random(run) % n : n_idle - n / 2;
        bool has_moved = false;
        for (uint64_t k = 0; k < (n_idle < n / 2 ? 1 : n) && !has_moved; k++) {
            uint64_t at = (i + k) % n;
            has_moved =
                pr_try(run, (int64_t)(at / FR_LANE_N), (int)(at % FR_LANE_N));
        }
        if (n_idle >= n / 2 && !has_moved)
            break;
        n_idle = has_moved ? 0 : n_idle + 1;
    }
    bool is_over = true;
    for (int64_t r = 0; r < run->world; r++)
        for (int lane = 0; lane < FR_LANE_N; lane++)
            is_over = is_over && run->ranks[r].lanes[lane].i_call ==
                                     run->ranks[r].rank_program->n_calls;
    run->i_step++;
    const pr_rank *rank = &run->ranks[0];
    fr_step_scalars scalars;
    memcpy(&scalars, rank->slab + rank->rank_program->step_offset_bytes,
           sizeof scalars);
    return is_over ? scalars.loss_sum : (double)NAN;
}

#endif
