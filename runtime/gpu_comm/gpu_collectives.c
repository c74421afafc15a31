/* gpu_collectives.c: see gpu_collectives.h. */
#include "runtime/gpu_comm/gpu_collectives.h"

#include "plan/collective/collective.h"

#include <stdlib.h>

static bool is_collective(const fr_instr *instr)
{
    return fr_op_class_of((fr_op)instr->op) == FR_OP_CLASS_COLLECTIVE &&
           instr->op != FR_OP_BARRIER;
}

/* Returns the plan's choice for the operation. */
static fr_gpu_choice choice_of(const fr_plan *plan, const fr_instr *instr)
{
    fr_gpu_choice choice = {.op = (fr_op)instr->op,
                            .protocol = (fr_protocol)instr->protocol,
                            .n_channels = instr->n_channels,
                            .max_bytes = UINT64_MAX};

    /* Lowering named another one where it does not fit. */
    if (fr_collective_is_of_data((fr_axis)instr->axis) &&
        instr->algorithm == plan->collective)
        choice.algorithm = plan->collective;
    return choice;
}

static bool is_given(const fr_gpu_choice *choice)
{
    return choice->algorithm != FR_COLLECTIVE_AUTO ||
           choice->protocol != FR_PROTOCOL_AUTO || choice->n_channels > 0;
}

static void add_choice(fr_gpu_choices *out, const fr_gpu_choice *choice)
{
    for (int i = 0; i < out->n; i++)
        if (out->at[i].op == choice->op)
            return;
    if (out->n < FR_GPU_MAX_CHOICES)
        out->at[out->n++] = *choice;
}

void fr_gpu_choices_fill(const fr_program *program,
                         const fr_rank_program *rank_program,
                         const fr_gpu_groups *groups, uint32_t i_split,
                         fr_gpu_choices *out)
{
    fr_instr_walk at = {.program = program, .rank_program = rank_program};

    out->n = 0;
    while (fr_instr_walk_next(&at)) {
        fr_gpu_choice choice = choice_of(&program->plan, at.instr);
        if (groups->routes[at.i_instr].i_split == (int32_t)i_split &&
            is_collective(at.instr) && is_given(&choice))
            add_choice(out, &choice);
    }
}

static bool is_listed(const fr_program *program, const fr_gpu_collective *all,
                      size_t n, const fr_instr *instr, int32_t i_split)
{
    for (size_t i = 0; i < n; i++) {
        const fr_instr *other = &program->instrs[all[i].i_instr];
        if ((int32_t)all[i].i_split == i_split && other->op == instr->op &&
            other->dtype == instr->dtype && other->comm.n == instr->comm.n)
            return true;
    }
    return false;
}

static fr_gpu_collective describe(const fr_program *program, uint32_t i_instr,
                                  const fr_gpu_route *route)
{
    const fr_instr *instr = &program->instrs[i_instr];
    fr_gpu_choice choice = choice_of(&program->plan, instr);
    fr_collective_note run = {
        .op = (fr_op)instr->op,
        .axis = (fr_axis)instr->axis,
        .algorithm = choice.algorithm,
        .protocol = choice.protocol,
        .n_channels = choice.n_channels,
        .n_group = route->n_group,
        .n_bytes = fr_instr_payload_bytes(instr),
    };

    return (fr_gpu_collective){run, i_instr, (uint32_t)route->i_split};
}

fr_status fr_gpu_collectives_list(const fr_program *program,
                                  const fr_rank_program *rank_program,
                                  const fr_gpu_groups *groups,
                                  fr_gpu_collective **out, size_t *n,
                                  fr_err *err)
{
    fr_instr_walk at = {.program = program, .rank_program = rank_program};
    size_t n_found = 0;
    fr_gpu_collective *all;

    FR_TRY_CALLOC(all, program->n_instrs + 1, err);
    while (fr_instr_walk_next(&at)) {
        const fr_gpu_route *route = &groups->routes[at.i_instr];
        if (is_collective(at.instr) && route->i_split >= 0 &&
            !is_listed(program, all, n_found, at.instr, route->i_split))
            all[n_found++] = describe(program, at.i_instr, route);
    }
    *out = all;
    *n = n_found;
    return FR_OK;
}
