/* gpu_collectives.c: see gpu_collectives.h. */
#include "runtime/gpu_collectives.h"

#include <stdlib.h>

/* Those that reduce gradients and gather parameters (lower_emit.c). */
static bool is_data_axis(uint8_t axis)
{
    return axis == FR_AXIS_DP || axis == FR_AXIS_SHARD ||
           axis == FR_AXIS_REPLICA || axis == FR_AXIS_EDP;
}

static bool is_collective(const fr_instr *instr)
{
    return fr_op_class_of((fr_op)instr->op) == FR_OP_CLASS_COLLECTIVE &&
           instr->op != FR_OP_BARRIER;
}

bool fr_gpu_is_given(const fr_plan *plan, const fr_instr *instr)
{
    return is_collective(instr) && is_data_axis(instr->axis) &&
           plan->collective != FR_COLLECTIVE_AUTO &&
           instr->algorithm == plan->collective;
}

static void add_choice(fr_gpu_choices *out, const fr_instr *instr)
{
    for (int i = 0; i < out->n; i++)
        if (out->at[i].op == (fr_op)instr->op)
            return;
    if (out->n < FR_GPU_MAX_CHOICES)
        out->at[out->n++] =
            (fr_gpu_choice){.op = (fr_op)instr->op,
                            .algorithm = (fr_collective_kind)instr->algorithm,
                            .max_bytes = UINT64_MAX};
}

void fr_gpu_choices_fill(const fr_program *program, const fr_class *klass,
                         const fr_gpu_groups *groups, uint32_t i_split,
                         fr_gpu_choices *out)
{
    out->n = 0;
    for (uint32_t i = 0; i < klass->n_calls; i++) {
        const fr_segment *segment =
            &program->segments[klass->calls[i].i_segment];
        for (uint32_t k = 0; k < segment->n_instrs; k++) {
            uint32_t i_instr = segment->first_instr + k;
            const fr_instr *instr = &program->instrs[i_instr];
            if (groups->routes[i_instr].i_split == (int32_t)i_split &&
                fr_gpu_is_given(&program->plan, instr))
                add_choice(out, instr);
        }
    }
}

static bool is_listed(const fr_program *program, const fr_gpu_collective *all,
                      size_t n, const fr_instr *instr, int32_t i_split)
{
    for (size_t i = 0; i < n; i++) {
        const fr_instr *other = &program->instrs[all[i].i_instr];
        if ((int32_t)all[i].i_split == i_split && other->op == instr->op &&
            other->dtype == instr->dtype && other->dim[0] == instr->dim[0])
            return true;
    }
    return false;
}

static fr_gpu_collective describe(const fr_program *program, uint32_t i_instr,
                                  const fr_gpu_route *route)
{
    const fr_instr *instr = &program->instrs[i_instr];
    fr_collective_note run = {
        .op = (fr_op)instr->op,
        .axis = (fr_axis)instr->axis,
        .algorithm = fr_gpu_is_given(&program->plan, instr)
                         ? (fr_collective_kind)instr->algorithm
                         : FR_COLLECTIVE_AUTO,
        .n_group = route->n_group,
        .n_bytes = fr_instr_payload_bytes(instr),
    };

    return (fr_gpu_collective){run, i_instr, (uint32_t)route->i_split};
}

fr_status fr_gpu_collectives_list(const fr_program *program,
                                  const fr_class *klass,
                                  const fr_gpu_groups *groups,
                                  fr_gpu_collective **out, size_t *n,
                                  fr_err *err)
{
    size_t n_found = 0;
    fr_gpu_collective *all = calloc(program->n_instrs + 1, sizeof *all);

    if (!all)
        return fr_fail_no_memory(err);
    for (uint32_t i = 0; i < klass->n_calls; i++) {
        const fr_segment *segment =
            &program->segments[klass->calls[i].i_segment];
        for (uint32_t k = 0; k < segment->n_instrs; k++) {
            uint32_t i_instr = segment->first_instr + k;
            const fr_instr *instr = &program->instrs[i_instr];
            const fr_gpu_route *route = &groups->routes[i_instr];
            if (is_collective(instr) && route->i_split >= 0 &&
                !is_listed(program, all, n_found, instr, route->i_split))
                all[n_found++] = describe(program, i_instr, route);
        }
    }
    *out = all;
    *n = n_found;
    return FR_OK;
}
