/* estimate_kept.c: what a layer keeps from forward to backward, and needs
 * besides, from the blocks of a program of one micro-batch. */
#include "sim/bound/estimate_state.h"

#include <stdlib.h>

/*
 * The most that is live at once while a layer is backward, beyond what
 * forward left of it and of those before; kept_bytes are no sums yet.
 */
static fr_status add_scratch(const fr_program *program,
                             const fr_rank_program *rank_program,
                             est_layers *out, fr_err *err)
{
    /* Live after each call, less what was before it. */
    int64_t *change = calloc((size_t)rank_program->n_calls + 2, sizeof *change);
    if (change == NULL)
        return fr_fail_no_memory(err);
    for (uint32_t i = 0; i < rank_program->n_blocks; i++) {
        const fr_block *block = &rank_program->blocks[i];
        if (block->is_persistent || (block->kind != FR_MEMORY_ACTIVATIONS &&
                                     block->kind != FR_MEMORY_BUFFERS))
            continue;
        change[block->first_call] += (int64_t)block->n_bytes;
        change[block->last_call + 1] -= (int64_t)block->n_bytes;
    }
    int64_t live = 0;
    for (uint32_t i = 0; i < rank_program->n_calls; i++) {
        const fr_call *call = &rank_program->calls[i];
        const fr_segment *segment = &program->segments[call->i_segment];
        live += change[i];
        if (segment->lane != FR_LANE_COMPUTE || call->micro_batch != 0 ||
            call->layer < 0 || est_pass_of(segment) != EST_BACKWARD)
            continue;
        int64_t scratch = live;
        uint64_t *most = &out->layer_scratch_bytes[call->layer + 1];
        for (int32_t k = 0; k <= call->layer + 1; k++)
            scratch -= (int64_t)out->kept_bytes[k];
        if (scratch > (int64_t)*most)
            *most = (uint64_t)scratch;
    }
    free(change);
    return FR_OK;
}

/* Sets the bytes that forward keeps until backward, and the rest of the
 * peak. */
fr_status est_layers_keep(const fr_program *program, est_layers *out,
                          fr_err *err)
{
    const fr_rank_program *rank_program = &program->rank_programs[0];
    uint64_t parts[FR_MEMORY_N], peak, kept = 0;
    uint32_t i_head = 0;
    for (uint32_t i = 0; i < rank_program->n_calls; i++) {
        const fr_call *call = &rank_program->calls[i];
        const fr_segment *segment = &program->segments[call->i_segment];
        if (segment->lane != FR_LANE_COMPUTE || call->micro_batch != 0 ||
            est_pass_of(segment) != EST_FORWARD)
            continue;
        i_head = i;
        const fr_instr *instr = &program->instrs[segment->first_instr];
        if (segment->n_instrs > 0 && instr->op == FR_OP_LAYER_FWD)
            out->handed_bytes[call->layer + 1] =
                (uint64_t)instr->layer.out_bytes;
    }
    for (uint32_t i = 0; i < rank_program->n_blocks; i++) {
        const fr_block *block = &rank_program->blocks[i];
        if (block->is_persistent || block->kind != FR_MEMORY_ACTIVATIONS)
            continue;
        const fr_call *call = &rank_program->calls[block->first_call];
        if (call->layer < 0 && block->first_call <= i_head)
            out->stream_bytes = block->n_bytes;
        if (block->first_call > i_head)
            continue;
        out->plain_bytes[call->layer + 1] += block->n_bytes;
        if (block->last_call <= i_head)
            continue;
        out->kept_bytes[call->layer + 1] += block->n_bytes;
        kept += block->n_bytes;
    }
    out->kept_bytes[1] += out->kept_bytes[0]; /* the embedding's */
    out->plain_bytes[1] += out->plain_bytes[0];
    out->kept_bytes[0] = out->plain_bytes[0] = 0;
    FR_TRY(add_scratch(program, rank_program, out, err));
    FR_TRY(fr_rank_program_peak(rank_program, parts, &peak, err));
    uint64_t live = parts[FR_MEMORY_ACTIVATIONS] + parts[FR_MEMORY_BUFFERS];
    out->scratch_bytes = live > kept ? live - kept : 0;
    return FR_OK;
}
