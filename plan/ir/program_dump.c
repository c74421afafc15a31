/*
 * program_dump.c: a rank program as text.
 */
#include "plan/ir/program_dump.h"

#include <stdlib.h>

static void dump_instr(const fr_instr *instr, fr_buffer *out)
{
    fr_op_class op_class = fr_op_class_of((fr_op)instr->op);
    fr_buffer_printf(out, "        %-14s", fr_op_name((fr_op)instr->op));
    if (instr->dtype != FR_DTYPE_F32)
        fr_buffer_printf(out, " %s", fr_dtype_name((fr_dtype)instr->dtype));
    if (instr->axis != FR_AXIS_NONE)
        fr_buffer_printf(out, " axis %s", fr_axis_name((fr_axis)instr->axis));
    if (op_class == FR_OP_CLASS_COLLECTIVE)
        fr_buffer_printf(
            out, " %s",
            fr_collective_kind_name((fr_collective_kind)instr->algorithm));
    if (instr->protocol != FR_PROTOCOL_AUTO)
        fr_buffer_printf(out, " %s",
                         fr_protocol_name((fr_protocol)instr->protocol));
    if (instr->n_channels > 0)
        fr_buffer_printf(out, " channels %d", (int)instr->n_channels);
    if (op_class == FR_OP_CLASS_P2P)
        fr_buffer_printf(out, " peer %d tag %u+mb", (int)instr->peer,
                         (unsigned)instr->tag);
    fr_buffer_puts(out, " [");
    int n_dims = FR_INSTR_DIMS;
    while (n_dims > 1 && instr->dim[n_dims - 1] == 0)
        n_dims--;
    for (int i = 0; i < n_dims; i++)
        fr_buffer_printf(out, "%s%lld", i ? "," : "", (long long)instr->dim[i]);
    fr_buffer_puts(out, "]");
    if (instr->flags)
        fr_buffer_printf(out, " flags 0x%x", (unsigned)instr->flags);
    for (int i = 0; i < FR_INSTR_REFS; i++) {
        char access = fr_op_access((fr_op)instr->op, i);
        const fr_ref *ref = &instr->ref[i];
        if (access == 0)
            break;
        if (ref->space != FR_SPACE_NONE)
            fr_buffer_printf(out, " %c:%s+%llu%s", access,
                             fr_space_name((fr_space)ref->space),
                             (unsigned long long)ref->offset_bytes,
                             ref->is_sharded ? "(shard)" : "");
    }
    fr_buffer_putc(out, '\n');
}

static void dump_call(const fr_program *program,
                      const fr_rank_program *rank_program, uint32_t i_call,
                      fr_buffer *out)
{
    const fr_call *call = &rank_program->calls[i_call];
    const fr_segment *segment = &program->segments[call->i_segment];
    fr_buffer_printf(out, "%5u %-8s %-24s", (unsigned)i_call,
                     fr_lane_name((fr_lane)segment->lane), segment->name);
    if (call->layer >= 0)
        fr_buffer_printf(out, " layer %d", (int)call->layer);
    if (call->micro_batch >= 0)
        fr_buffer_printf(out, " mb %d", (int)call->micro_batch);
    if (call->chunk > 0)
        fr_buffer_printf(out, " chunk %d", (int)call->chunk);
    if (call->n_deps > 0)
        fr_buffer_puts(out, " after");
    for (uint32_t i = 0; i < call->n_deps; i++)
        fr_buffer_printf(out, " %u",
                         (unsigned)rank_program->deps[call->first_dep + i]);
    fr_buffer_puts(out, " |");
    for (int space = 0; space < FR_SPACE_N; space++) {
        uint64_t base = fr_call_base_bytes(rank_program, call, space);
        if (base > 0)
            fr_buffer_printf(out, " %s=%llu", fr_space_name((fr_space)space),
                             (unsigned long long)base);
    }
    fr_buffer_putc(out, '\n');
}

fr_status fr_program_dump(const fr_program *program, uint32_t i_stage,
                          fr_buffer *out, fr_err *err)
{
    const fr_rank_program *rank_program = &program->rank_programs[i_stage];
    uint8_t *is_shown = calloc((size_t)program->n_segments + 1, 1);
    if (!is_shown)
        return fr_fail_no_memory(err);
    fr_buffer_printf(out, "stage %u: %u calls, %llu parameters, slab %llu\n",
                     (unsigned)i_stage, (unsigned)rank_program->n_calls,
                     (unsigned long long)rank_program->n_parameters,
                     (unsigned long long)rank_program->slab_bytes);
    for (uint32_t i = 0; i < rank_program->n_calls; i++) {
        uint32_t i_segment = rank_program->calls[i].i_segment;
        const fr_segment *segment = &program->segments[i_segment];
        dump_call(program, rank_program, i, out);
        for (uint32_t k = 0; k < segment->n_instrs && !is_shown[i_segment]; k++)
            dump_instr(&program->instrs[segment->first_instr + k], out);
        is_shown[i_segment] = 1;
    }
    for (uint32_t i = 0; i < rank_program->n_blocks; i++) {
        const fr_block *block = &rank_program->blocks[i];
        fr_buffer_printf(
            out, "block %u %s%s [%llu, %llu) calls %u..%u\n", (unsigned)i,
            fr_memory_kind_name((fr_memory_kind)block->kind),
            block->is_persistent ? " persistent" : "",
            (unsigned long long)block->offset_bytes,
            (unsigned long long)block->offset_bytes + block->n_bytes,
            (unsigned)block->first_call, (unsigned)block->last_call);
    }
    free(is_shown);
    return fr_buffer_check(out, err);
}
