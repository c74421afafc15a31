/* micro_program.c: see micro_program.h. */
#include "program/ir/micro_program.h"

#include "core/base/vec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct micro_rank_program {
    fr_vec(fr_call) calls;
    fr_vec(uint32_t) deps;
} micro_rank_program;

struct fr_micro {
    fr_plan plan;
    fr_vec(fr_instr) instrs;
    fr_vec(fr_segment) segments;
    micro_rank_program *rank_programs; /* [pp] */
    bool has_failed;
};

fr_status fr_micro_create(const fr_plan *plan, fr_micro **out, fr_err *err)
{
    fr_micro *micro = calloc(1, sizeof *micro);

    if (micro != NULL)
        micro->rank_programs =
            calloc((size_t)plan->pp, sizeof *micro->rank_programs);
    if (micro == NULL || micro->rank_programs == NULL) {
        free(micro);
        return fr_fail_no_memory(err);
    }
    micro->plan = *plan;
    *out = micro;
    return FR_OK;
}

static void micro_destroy(fr_micro *micro)
{
    for (int i = 0; i < micro->plan.pp; i++) {
        fr_vec_release(&micro->rank_programs[i].calls);
        fr_vec_release(&micro->rank_programs[i].deps);
    }
    free(micro->rank_programs);
    fr_vec_release(&micro->instrs);
    fr_vec_release(&micro->segments);
    free(micro);
}

uint32_t fr_micro_segment(fr_micro *micro, fr_lane lane, const char *name,
                          const fr_instr *instrs, uint32_t n)
{
    fr_segment segment = {.first_instr = (uint32_t)micro->instrs.n,
                          .n_instrs = n,
                          .lane = (uint8_t)lane};

    snprintf(segment.name, sizeof segment.name, "%s", name);
    for (uint32_t i = 0; i < n; i++)
        if (fr_vec_push(&micro->instrs, instrs[i]) != FR_OK)
            micro->has_failed = true;
    if (fr_vec_push(&micro->segments, segment) != FR_OK)
        micro->has_failed = true;
    return (uint32_t)micro->segments.n - 1;
}

uint32_t fr_micro_call(fr_micro *micro, uint32_t i_stage, uint32_t i_segment,
                       uint32_t dep)
{
    micro_rank_program *rank_program = &micro->rank_programs[i_stage];
    fr_call call = {.i_segment = i_segment,
                    .layer = -1,
                    .micro_batch = -1,
                    .chunk = -1,
                    .first_dep = (uint32_t)rank_program->deps.n};

    if (dep != UINT32_MAX) {
        call.n_deps = 1;
        if (fr_vec_push(&rank_program->deps, dep) != FR_OK)
            micro->has_failed = true;
    }
    if (fr_vec_push(&rank_program->calls, call) != FR_OK)
        micro->has_failed = true;
    return (uint32_t)rank_program->calls.n - 1;
}

static void hand_over(micro_rank_program *from, int32_t pp, fr_rank_program *to,
                      uint64_t slab_bytes)
{
    to->pp = pp;
    to->n_calls = (uint32_t)from->calls.n;
    to->calls = from->calls.items;
    to->n_deps = (uint32_t)from->deps.n;
    to->deps = from->deps.items;
    to->slab_bytes = slab_bytes;
    memset(from, 0, sizeof *from);
}

fr_status fr_micro_finish(fr_micro *micro, uint64_t slab_bytes,
                          fr_program **out, fr_err *err)
{
    fr_program *program = calloc(1, sizeof *program);

    if (program != NULL)
        program->rank_programs =
            calloc((size_t)micro->plan.pp, sizeof *program->rank_programs);
    if (program == NULL || program->rank_programs == NULL ||
        micro->has_failed) {
        fr_program_destroy(program);
        micro_destroy(micro);
        return fr_fail_no_memory(err);
    }
    program->plan = micro->plan;
    program->n_micro_batches = 1;
    fr_job_init(&program->job);
    program->n_rank_programs = (uint32_t)micro->plan.pp;
    for (int32_t i = 0; i < micro->plan.pp; i++)
        hand_over(&micro->rank_programs[i], i, &program->rank_programs[i],
                  slab_bytes);
    program->n_instrs = (uint32_t)micro->instrs.n;
    program->instrs = micro->instrs.items;
    program->n_segments = (uint32_t)micro->segments.n;
    program->segments = micro->segments.items;
    memset(&micro->instrs, 0, sizeof micro->instrs);
    memset(&micro->segments, 0, sizeof micro->segments);
    micro_destroy(micro);
    *out = program;
    return FR_OK;
}

static fr_ref slab_ref(uint64_t offset_bytes)
{
    return (fr_ref){.space = FR_SPACE_IN, .offset_bytes = offset_bytes};
}

fr_instr fr_micro_zero(uint64_t offset_bytes, uint64_t n_bytes)
{
    fr_instr instr = {.op = FR_OP_ZERO, .dtype = FR_DTYPE_F32};

    instr.copy.n_bytes = (int64_t)n_bytes;
    instr.ref[FR_ZERO_DST] = slab_ref(offset_bytes);
    return instr;
}

fr_instr fr_micro_communicate(fr_op op, fr_axis axis,
                              fr_collective_kind algorithm, uint64_t n,
                              uint64_t src_bytes, uint64_t dst_bytes)
{
    fr_instr instr = {.op = (uint8_t)op,
                      .dtype = FR_DTYPE_F32,
                      .axis = (uint8_t)axis,
                      .algorithm = (uint8_t)algorithm};

    if (op == FR_OP_BARRIER)
        return instr;
    instr.comm.n = (int64_t)n;
    instr.ref[FR_COMM_SRC] = slab_ref(op == FR_OP_RECV ? dst_bytes : src_bytes);
    if (op != FR_OP_SEND && op != FR_OP_RECV)
        instr.ref[FR_COMM_DST] =
            slab_ref(op == FR_OP_ALL_REDUCE ? src_bytes : dst_bytes);
    return instr;
}
