/* weight_parts.c: see weight_parts.h. */
#include "runtime/checkpoint/weight_parts.h"

uint64_t fr_updated_bytes(const fr_rank_context *rank, const fr_call *call,
                          const fr_instr *instr)
{
    bool is_on_host = (instr->flags & FR_INSTR_HOST) != 0;
    return fr_call_operand_bytes(
        rank->rank_program, call, is_on_host ? instr + 1 : instr,
        rank->coordinate, is_on_host ? FR_HOST_COPY_BUFFER : FR_OPT_STEP_W);
}

/* Each step of the optimizer updates a part that no other one does. */
static fr_status list_shards(const fr_program *program, int64_t rank,
                             fr_weight_parts *out, fr_err *err)
{
    fr_rank_context context;
    FR_TRY(fr_rank_context_init(program, rank, NULL, &context, err));
    fr_instr_walk at = {.program = program,
                        .rank_program = context.rank_program};
    while (fr_instr_walk_next(&at)) {
        const fr_instr *instr = at.instr;
        if (instr->op != FR_OP_OPT_STEP)
            continue;
        const fr_weight_part part = {
            .offset_bytes = fr_updated_bytes(&context, at.call, instr),
            .first =
                fr_instr_range_first(instr, context.coordinate[instr->axis]),
            .n = instr->range.n};
        FR_TRY_PUSH(out, part, err);
    }
    return FR_OK;
}

fr_status fr_weight_parts_list(const fr_program *program, int64_t rank,
                               fr_weight_parts *out, fr_err *err)
{
    const fr_rank_program *rank_program = fr_program_of_rank(program, rank);
    if (rank_program->n_tensors == 0)
        return FR_OK;
    if (program->plan.zero_stage == 3)
        return list_shards(program, rank, out, err);
    const fr_weight_part whole = {.offset_bytes =
                                      rank_program->weight_offset_bytes,
                                  .n = (int64_t)rank_program->n_parameters};
    FR_TRY_PUSH(out, whole, err);
    return FR_OK;
}
