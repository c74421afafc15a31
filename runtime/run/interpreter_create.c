/* interpreter_create.c: makes everything that stepping needs, beforehand. */
#include "kernels/cpu/kernels_cpu.h"
#include "plan/decide/grid.h"
#include "program/ir/step_breakdown.h"
#include "runtime/run/interpreter_state.h"

#include <stdlib.h>
#include <string.h>

/* Calls of each lane in program order, and room for their spans. */
static fr_status list_lanes(fr_interpreter *it, fr_err *err)
{
    const fr_rank_program *rank_program = it->rank.rank_program;
    uint32_t *at;

    FR_TRY_CALLOC(at, rank_program->n_calls + 1, err);
    it->lane_calls = at;
    for (int lane = 0; lane < FR_LANE_N; lane++) {
        fr_lane_state *state = &it->lanes[lane];
        size_t n_instrs = 0;
        state->calls = at;
        for (uint32_t i = 0; i < rank_program->n_calls; i++) {
            const fr_segment *segment = fr_rank_segment(&it->rank, i);
            if (segment->lane != lane)
                continue;
            *at++ = i;
            n_instrs += segment->n_instrs;
        }
        state->n_calls = (uint32_t)(at - state->calls);
        state->i_call = state->n_calls; /* no step is open */
        state->cap_spans = n_instrs * (size_t)it->options.trace_steps;
        if (state->cap_spans == 0)
            continue;
        FR_TRY_CALLOC(state->spans, state->cap_spans, err);
        /* Touched now, else a page fault would be in the trace; not with
         * zeros, which a compiler may leave to the kernel. */
        memset(state->spans, 0xff, state->cap_spans * sizeof *state->spans);
    }
    return FR_OK;
}

/* Allocates the memory that kernels of each thread need beyond their operands,
 * and touches it. */
static fr_status take_scratch(fr_interpreter *it, fr_err *err)
{
    uint64_t n_bytes[2] = {0, 0};
    fr_instr_walk at = {.program = it->rank.program,
                        .rank_program = it->rank.rank_program};

    while (fr_instr_walk_next(&at)) {
        uint64_t n = fr_kernels_cpu_scratch_bytes(at.instr);
        uint64_t *most = &n_bytes[at.segment->lane != FR_LANE_COMPUTE];
        *most = n > *most ? n : *most;
    }
    for (int i = 0; i < 2; i++) {
        if (n_bytes[i] == 0)
            continue;
        it->scratch[i] = malloc(n_bytes[i]);
        if (it->scratch[i] == NULL)
            return fr_fail_no_memory(err);
        memset(it->scratch[i], 0xff, n_bytes[i]);
    }
    return FR_OK;
}

static fr_status make_convs(fr_interpreter *it, fr_err *err)
{
    fr_instr_walk at = {.program = it->rank.program,
                        .rank_program = it->rank.rank_program};

    while (fr_instr_walk_next(&at)) {
        if (at.instr->op != FR_OP_CONV_FWD &&
            at.instr->op != FR_OP_CONV_DGRAD &&
            at.instr->op != FR_OP_CONV_WGRAD)
            continue;
        if (it->convs == NULL)
            FR_TRY(fr_convs_create(&it->convs, err));
        FR_TRY(fr_convs_add(it->convs, at.instr, err));
    }
    return FR_OK;
}

static fr_status prepare(fr_interpreter *it, fr_err *err)
{
    const fr_program *program = it->rank.program;

    FR_TRY_CALLOC(it->part_of_instr, program->n_instrs + 1, err);
    for (uint32_t i = 0; i < program->n_instrs; i++)
        it->part_of_instr[i] = (uint8_t)fr_step_part_of(&program->instrs[i]);
    FR_TRY_CALLOC(it->is_evaluated, program->n_segments + 1, err);
    for (uint32_t i = 0; i < program->n_segments; i++)
        it->is_evaluated[i] =
            fr_segment_is_evaluated(program, &program->segments[i]);
    FR_TRY_CALLOC(it->done, it->rank.rank_program->n_calls + 1, err);
    FR_TRY(list_lanes(it, err));
    FR_TRY(take_scratch(it, err));
    FR_TRY(make_convs(it, err));
    FR_TRY(fr_engine_create(it->rank.program, it->transport, &it->engine, err));
    return fr_comm_start(it, err);
}

fr_status fr_interpreter_create(const fr_program *program,
                                fr_transport *transport, fr_data *data,
                                const fr_interpreter_options *options,
                                fr_interpreter **out, fr_err *err)
{
    fr_interpreter *it;

    FR_TRY_CALLOC(it, 1, err);
    it->transport = transport;
    it->options = *options;
    it->inject = (fr_inject){.faults = options->faults,
                             .rank = transport->rank,
                             .factor = 1,
                             .shake_seed = options->shake_seed};
    it->slab = transport->slab[transport->rank];
    it->control = transport->control[transport->rank];
    fr_status status =
        fr_rank_context_init(program, transport->rank, data, &it->rank, err);
    if (status == FR_OK)
        status = prepare(it, err);
    if (status != FR_OK) {
        fr_interpreter_destroy(it);
        return status;
    }
    *out = it;
    return FR_OK;
}

void fr_interpreter_destroy(fr_interpreter *it)
{
    if (it == NULL)
        return;
    fr_comm_stop(it);
    fr_engine_destroy(it->engine);
    for (int lane = 0; lane < FR_LANE_N; lane++)
        free(it->lanes[lane].spans);
    for (int i = 0; i < 2; i++)
        free(it->scratch[i]);
    fr_convs_destroy(it->convs);
    free(it->lane_calls);
    free(it->part_of_instr);
    free(it->is_evaluated);
    free((void *)it->done);
    free(it);
}
