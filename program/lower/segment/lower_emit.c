/*
 * lower_emit.c: segments and instructions under construction, and which
 * algorithm a collective gets.
 */
#include "program/lower/segment/lower_emit.h"

#include "plan/collective/collective.h"
#include "plan/decide/grid.h"
#include "program/lower/segment/lower_pass.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const fr_ref lower_absent = {0};

uint32_t lower_segment_begin(lower_context *context, fr_lane lane,
                             const char *format, ...)
{
    fr_segment segment = {.lane = (uint8_t)lane,
                          .first_instr = (uint32_t)context->instrs.n};
    va_list args;
    va_start(args, format);
    vsnprintf(segment.name, sizeof segment.name, format, args);
    va_end(args);
    context->temp_used = 0;
    if (fr_vec_push(&context->segments, segment) != FR_OK) {
        context->is_out_of_memory = true;
        return 0;
    }
    return (uint32_t)(context->segments.n - 1);
}

void lower_segments_mark(lower_context *context, size_t first,
                         fr_segment_role role)
{
    for (size_t i = first; i < context->segments.n; i++)
        context->segments.items[i].role = (uint8_t)role;
}

fr_instr *lower_emit(lower_context *context, fr_op op)
{
    fr_instr instr;
    memset(&instr, 0, sizeof instr);
    instr.op = (uint8_t)op;
    instr.dtype = (uint8_t)fr_plan_storage_dtype(context->plan);
    instr.grad_dtype = (uint8_t)context->plan->grad_dtype;
    if (context->segments.n == 0 ||
        fr_vec_push(&context->instrs, instr) != FR_OK) {
        context->is_out_of_memory = true;
        context->spill = instr;
        return &context->spill;
    }
    context->segments.items[context->segments.n - 1].n_instrs++;
    return &context->instrs.items[context->instrs.n - 1];
}

fr_ref lower_ref(fr_space space, uint64_t offset_bytes)
{
    return (fr_ref){.space = (uint8_t)space, .offset_bytes = offset_bytes};
}

uint64_t lower_element_bytes(const lower_context *context, fr_space space)
{
    const fr_plan *plan = context->plan;
    return fr_dtype_bytes(space == FR_SPACE_GRAD ? plan->grad_dtype
                                                 : fr_plan_storage_dtype(plan));
}

fr_ref lower_parameter(const lower_context *context, fr_space space,
                       uint64_t first)
{
    return first == LOWER_ABSENT
               ? lower_ref(FR_SPACE_NONE, 0)
               : lower_ref(space, first * lower_element_bytes(context, space));
}

fr_ref lower_moved(fr_ref ref, uint64_t n_bytes)
{
    ref.offset_bytes += n_bytes;
    return ref;
}

fr_ref lower_weight(const lower_context *context, uint64_t first)
{
    return lower_parameter(context, FR_SPACE_WEIGHT, first);
}

fr_ref lower_grad(const lower_context *context, uint64_t first)
{
    return lower_parameter(context, FR_SPACE_GRAD, first);
}

fr_ref lower_saved_at(uint64_t offset_bytes)
{
    return offset_bytes == LOWER_ABSENT
               ? lower_absent
               : lower_ref(FR_SPACE_SAVED, offset_bytes);
}

fr_ref lower_temp(lower_context *context, uint64_t n_bytes)
{
    uint64_t at = context->temp_used;
    context->temp_used += (n_bytes + 63) / 64 * 64;
    if (context->pass != NULL) {
        if (context->temp_used > context->pass->carry_bytes)
            context->pass->carry_bytes = context->temp_used;
        return lower_ref(FR_SPACE_CARRY, at);
    }
    lower_temp_range range = {at, context->temp_used - at};
    if (context->is_temp_kept && range.n > 0 &&
        fr_vec_push(&context->temps, range) != FR_OK)
        context->is_out_of_memory = true;
    if (context->segments.n > 0) {
        fr_segment *segment = &context->segments.items[context->segments.n - 1];
        if (context->temp_used > segment->temp_bytes)
            segment->temp_bytes = context->temp_used;
    }
    return lower_ref(FR_SPACE_TEMP, at);
}

uint64_t lower_temp_mark(const lower_context *context)
{
    return context->temp_used;
}

void lower_temp_reset(lower_context *context, uint64_t mark)
{
    if (!context->is_temp_kept)
        context->temp_used = mark;
}

fr_ref lower_place_kept(lower_context *context, uint64_t offset_bytes,
                        uint64_t n_bytes)
{
    return offset_bytes == LOWER_ABSENT ? lower_temp(context, n_bytes)
                                        : lower_saved_at(offset_bytes);
}

fr_instr *lower_move(lower_context *context, const fr_move *move)
{
    fr_instr *instr = lower_emit(context, move->op);
    fr_move_tell(move, context->plan,
                 fr_plan_group_size(context->plan, move->axis),
                 context->is_local[move->axis], instr);
    if (fr_collective_is_by_servers((fr_collective_kind)instr->algorithm)) {
        /* So many of those that share what is no expert. */
        if (move->axis == FR_AXIS_DP)
            instr->comm.n_servers = context->plan->n_servers;
        instr->comm.server_place = context->plan->server_place;
    }
    return instr;
}

fr_instr *lower_collective(lower_context *context, fr_op op, fr_axis axis,
                           fr_dtype dtype, uint64_t n, fr_ref src, fr_ref dst)
{
    const fr_move move = {FR_LANE_COMPUTE, op, axis, dtype, n};
    fr_instr *instr = lower_move(context, &move);
    instr->ref[FR_COMM_SRC] = src;
    instr->ref[FR_COMM_DST] = dst;
    return instr;
}

void lower_mark_recompute(lower_context *context, size_t first)
{
    for (size_t i = first; i < context->instrs.n; i++)
        context->instrs.items[i].flags |= FR_INSTR_RECOMPUTED;
}
