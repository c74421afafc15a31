/*
 * program.c: a program as data: who belongs to which rank program, its peak,
 * its end.
 */
#include "program/ir/program.h"

#include "plan/decide/grid.h"
#include "plan/decide/plan_shares.h"

#include <stdlib.h>
#include <string.h>

void fr_program_destroy(fr_program *program)
{
    if (program == NULL)
        return;
    for (uint32_t i = 0; i < program->n_rank_programs; i++) {
        fr_rank_program *rank_program = &program->rank_programs[i];
        free(rank_program->calls);
        free(rank_program->deps);
        free(rank_program->bases);
        free(rank_program->blocks);
        free(rank_program->host_blocks);
        free(rank_program->tensors);
    }
    free(program->rank_programs);
    free(program->segments);
    free(program->instrs);
    fr_model_release(&program->model);
    free(program);
}

uint64_t fr_call_base_bytes(const fr_rank_program *rank_program,
                            const fr_call *call, int space)
{
    uint32_t bit = 1u << space;
    if (!(call->spaces & bit))
        return 0;
    return rank_program
        ->bases[call->first_base +
                (uint32_t)__builtin_popcount(call->spaces & (bit - 1))];
}

/* The axis whose coordinate places sharded operands. */
static uint8_t owner_axis(const fr_instr *instr)
{
    return instr->shard_axis != FR_AXIS_NONE ? instr->shard_axis : instr->axis;
}

/* Returns the shard that an operand means for the rank at a coordinate. */
static uint64_t shard_of(const fr_ref *ref, int coordinate)
{
    return (uint64_t)(ref->n_turns > 0
                          ? (coordinate + ref->n_turns - ref->turn) %
                                ref->n_turns
                          : coordinate);
}

uint64_t fr_call_operand_bytes(const fr_rank_program *rank_program,
                               const fr_call *call, const fr_instr *instr,
                               const int *coordinate, int i_ref)
{
    const fr_ref *ref = &instr->ref[i_ref];
    uint64_t at =
        fr_call_base_bytes(rank_program, call, ref->space) + ref->offset_bytes;

    if (ref->is_sharded)
        at += shard_of(ref, coordinate[owner_axis(instr)]) *
              (instr->shard_bytes >> (ref->is_sharded - 1));
    return at;
}

void fr_call_operands(const fr_rank_program *rank_program, const fr_call *call,
                      const fr_instr *instr, const int *coordinate, void *slab,
                      void *ptr[FR_INSTR_REFS])
{
    for (int i = 0; i < FR_INSTR_REFS; i++)
        ptr[i] =
            instr->ref[i].space == FR_SPACE_NONE
                ? NULL
                : (char *)slab + fr_call_operand_bytes(rank_program, call,
                                                       instr, coordinate, i);
}

fr_tensor_place fr_tensor_place_of(const fr_plan *plan, int64_t rank)
{
    const fr_coord at = fr_plan_coord(plan, rank);
    const int64_t n_etp = fr_plan_group_size(plan, FR_AXIS_ETP);
    /* Experts lie on a grid of their own: see fr_axis. */
    const int64_t i = at.tp + (int64_t)plan->tp * (at.cp + plan->cp * at.dp);
    return (fr_tensor_place){at.tp, plan->tp, i / n_etp % plan->ep, i % n_etp,
                             n_etp};
}

/* Along a dimension that is sharded over n ranks, of which this is the i-th. */
static int64_t global_index(const fr_tensor *tensor, int64_t local,
                            int64_t n_local, int64_t i, int64_t n)
{
    int64_t first = 0, n_parts_sum = 0;

    for (int part = 0; part < tensor->n_parts; part++)
        n_parts_sum += tensor->part_rows[part];
    if (tensor->n_parts <= 1 || n_parts_sum != n_local)
        return i * n_local + local;
    for (int part = 0; part < tensor->n_parts; part++) {
        int64_t n_part = tensor->part_rows[part];
        if (local < n_part)
            return first + i * n_part + local;
        local -= n_part;
        first += n_part * n;
    }
    return first;
}

int64_t fr_tensor_global_row(const fr_tensor *tensor, int64_t row,
                             const fr_tensor_place *place)
{
    if (tensor->n_experts == 0)
        return tensor->sharded_dim == 1
                   ? global_index(tensor, row, tensor->rows, place->tp,
                                  place->n_tp)
                   : row;
    const int64_t n_local = tensor->rows / tensor->n_experts;
    const int64_t expert = place->ep * tensor->n_experts + row / n_local;
    const int64_t n =
        tensor->sharded_dim == 1 ? n_local * place->n_etp : n_local;
    row %= n_local;
    if (tensor->sharded_dim == 1)
        row = global_index(tensor, row, n_local, place->etp, place->n_etp);
    return expert * n + row;
}

int64_t fr_tensor_global_col(const fr_tensor *tensor, int64_t col,
                             const fr_tensor_place *place)
{
    if (tensor->sharded_dim != 2)
        return col;
    return tensor->n_experts > 0 ? place->etp * tensor->cols + col
                                 : global_index(tensor, col, tensor->cols,
                                                place->tp, place->n_tp);
}

uint32_t fr_program_number(const fr_plan *plan, int32_t pp, int32_t dp)
{
    const int32_t class =
        plan->n_shares > 0 ? fr_plan_share_class(plan, dp) : 0;
    return (uint32_t)(class * plan->pp + pp);
}

const fr_rank_program *fr_program_of_rank(const fr_program *program,
                                          int64_t rank)
{
    const fr_plan *plan = &program->plan;
    const fr_coord at = fr_plan_coord(plan, rank);
    return &program->rank_programs[fr_program_number(plan, at.pp, at.dp)];
}

/* The first call at which most bytes live; *peak_bytes of them. */
static uint32_t peak_call(const fr_rank_program *rank_program, uint64_t *change,
                          uint32_t n_calls, uint64_t *peak_bytes)
{
    uint64_t live = 0;
    uint32_t at = 0;
    for (uint32_t i = 0; i < rank_program->n_blocks; i++) { /* modulo 2^64 */
        const fr_block *block = &rank_program->blocks[i];
        change[block->first_call] += block->n_bytes;
        change[block->last_call + 1] -= block->n_bytes;
    }
    *peak_bytes = 0;
    for (uint32_t call = 0; call < n_calls; call++) {
        live += change[call];
        if (live > *peak_bytes) {
            *peak_bytes = live;
            at = call;
        }
    }
    return at;
}

fr_status fr_rank_program_peak(const fr_rank_program *rank_program,
                               uint64_t bytes[FR_MEMORY_N],
                               uint64_t *peak_bytes, fr_err *err)
{
    uint32_t n_calls = 1;
    for (uint32_t i = 0; i < rank_program->n_blocks; i++)
        if (rank_program->blocks[i].last_call >= n_calls)
            n_calls = rank_program->blocks[i].last_call + 1;
    uint64_t *change = calloc((size_t)n_calls + 1, sizeof *change);
    if (change == NULL)
        return fr_fail_no_memory(err);
    uint32_t call = peak_call(rank_program, change, n_calls, peak_bytes);
    free(change);
    memset(bytes, 0, FR_MEMORY_N * sizeof *bytes);
    for (uint32_t i = 0; i < rank_program->n_blocks; i++) {
        const fr_block *block = &rank_program->blocks[i];
        if (block->first_call <= call && block->last_call >= call)
            bytes[block->kind] += block->n_bytes;
    }
    return FR_OK;
}

bool fr_instr_walk_next(fr_instr_walk *walk)
{
    for (; walk->i_call < walk->rank_program->n_calls; walk->i_call++) {
        walk->call = &walk->rank_program->calls[walk->i_call];
        walk->segment = &walk->program->segments[walk->call->i_segment];
        if (walk->n_visited < walk->segment->n_instrs) {
            walk->i_instr = walk->segment->first_instr + walk->n_visited++;
            walk->instr = &walk->program->instrs[walk->i_instr];
            return true;
        }
        walk->n_visited = 0;
    }
    return false;
}

bool fr_segment_is_evaluated(const fr_program *program,
                             const fr_segment *segment)
{
    bool has_targets = false, is_of_gradients = false;

    switch ((fr_segment_role)segment->role) {
    case FR_SEGMENT_CLIP:
    case FR_SEGMENT_EMBED_BACKWARD:
    case FR_SEGMENT_BACKWARD:
    case FR_SEGMENT_WEIGHTS:
    case FR_SEGMENT_RECOMPUTE:
        return false;
    case FR_SEGMENT_OTHER:
        break;
    default:
        return true;
    }
    for (uint32_t i = 0; i < segment->n_instrs; i++) {
        const fr_instr *instr = &program->instrs[segment->first_instr + i];
        has_targets = has_targets || instr->op == FR_OP_LABELS;
        for (int k = 0; k < FR_INSTR_REFS; k++) {
            const uint8_t space = instr->ref[k].space;
            has_targets = has_targets || space == FR_SPACE_TOKENS;
            is_of_gradients = is_of_gradients || space == FR_SPACE_GRAD ||
                              space == FR_SPACE_WIRE ||
                              space == FR_SPACE_ERROR ||
                              space == FR_SPACE_OPT || space == FR_SPACE_HOST;
        }
    }
    return has_targets || !is_of_gradients;
}
