/*
 * lower.c: plan -> program.
 */
#include "plan/lower/step/lower_internal.h"

#include <string.h>

/* Shared segments come first, so that one layer stands once. */
static void shared_segments(lower_context *context)
{
    const lower_shape *s = &context->shape;
    lower_layer_segments(context);
    context->i_load = lower_segment_begin(context, FR_LANE_IO, "load_tokens");
    fr_instr *instr = lower_emit(context, FR_OP_LOAD_TOKENS);
    instr->dtype = FR_DTYPE_I32;
    instr->dim[0] = s->batch;
    instr->dim[1] = s->seq;
    instr->ref[0] = lower_ref(FR_SPACE_TOKENS, 0);
}

static void release_class(lower_class *lc)
{
    fr_vec_release(&lc->tensors);
    fr_vec_release(&lc->units);
    fr_vec_release(&lc->buckets);
    fr_vec_release(&lc->sets);
    fr_vec_release(&lc->uses);
    free(lc->chunk_layers);
    free(lc->chunk_first);
    free(lc->chunk_slot);
    free(lc->inputs);
    free(lc->saved);
    free(lc->low);
    free(lc->tokens);
    free(lc->gradients);
    free(lc->layer_unit);
    free(lc->transfers);
    free(lc->is_offloaded);
    free(lc->split);
    free(lc->late);
}

/* Which layers the rank's chunks hold, and the tables that follow from it. */
static fr_status init_chunks(lower_class *lc, fr_err *err)
{
    const lower_context *context = lc->context;
    const fr_plan *plan = context->plan;
    size_t n_micro = (size_t)context->n_micro, vpp = (size_t)plan->vpp;
    int32_t first = 0;
    lc->chunk_layers = calloc(vpp + 1, sizeof *lc->chunk_layers);
    lc->chunk_first = calloc(vpp + 1, sizeof *lc->chunk_first);
    lc->chunk_slot = calloc(vpp + 1, sizeof *lc->chunk_slot);
    if (!lc->chunk_layers || !lc->chunk_first || !lc->chunk_slot)
        return fr_fail_no_memory(err);
    for (int32_t stage = 0; stage < plan->pp * plan->vpp; stage++) {
        int32_t n = fr_plan_stage_layers(plan, context->model, stage);
        int32_t chunk = stage / plan->pp;
        int32_t rank = fr_schedule_rank(context->schedule, stage, plan->pp);
        if (stage == plan->pp * plan->vpp - 1)
            n += (int32_t)context->model->n_mtp_layers;
        if (rank == lc->stage) {
            lc->chunk_layers[chunk] = n;
            lc->chunk_first[chunk] = first;
            lc->chunk_slot[chunk] = lc->n_slots;
            lc->n_slots += (uint32_t)n + 1;
        }
        first += n;
    }
    lc->inputs = calloc(n_micro * lc->n_slots + 1, sizeof *lc->inputs);
    lc->saved = calloc(n_micro * lc->n_slots + 1, sizeof *lc->saved);
    lc->low = calloc((size_t)lc->n_slots + 1, sizeof *lc->low);
    lc->tokens = calloc(n_micro + 1, sizeof *lc->tokens);
    lc->gradients = calloc(n_micro * vpp + 1, sizeof *lc->gradients);
    lc->layer_unit = calloc(lc->n_slots + 1, sizeof *lc->layer_unit);
    lc->transfers =
        calloc(4 * ((size_t)plan->pp * vpp + 1), sizeof *lc->transfers);
    lc->is_offloaded =
        calloc(n_micro * lc->n_slots + 1, sizeof *lc->is_offloaded);
    lc->split = calloc(n_micro * lc->n_slots + 1, sizeof *lc->split);
    lc->late = calloc(n_micro * lc->n_slots + 1, sizeof *lc->late);
    if (!lc->split || !lc->late || !lc->inputs || !lc->saved || !lc->low ||
        !lc->tokens || !lc->gradients || !lc->layer_unit || !lc->transfers ||
        !lc->is_offloaded)
        return fr_fail_no_memory(err);
    return FR_OK;
}

static fr_status lower_class_of(lower_context *context, int32_t stage,
                                fr_rank_program *rank_program, fr_err *err)
{
    const int32_t n_stages = context->plan->pp * context->plan->vpp;
    lower_class lc = {.context = context,
                      .rank_program = rank_program,
                      .builder = context->builder,
                      .stage = stage,
                      .is_first = stage == 0,
                      .is_last = stage == fr_schedule_rank(context->schedule,
                                                           n_stages - 1,
                                                           context->plan->pp)};
    rank_program->pp = stage;
    fr_status status;
    FR_TRY_GOTO(status, init_chunks(&lc, err), out_release);
    fr_builder_reset(lc.builder);
    FR_TRY_GOTO(status, lower_layout_class(&lc, err), out_release);
    FR_TRY_GOTO(status, lower_stage(&lc, err), out_release);
    rank_program->n_tensors = (uint32_t)lc.tensors.n;
    rank_program->tensors = lc.tensors.items; /* handed over */
    memset(&lc.tensors, 0, sizeof lc.tensors);
out_release:
    release_class(&lc);
    return status;
}

static fr_status fill_program(lower_context *context, fr_err *err)
{
    fr_program *program = context->program;
    const fr_plan *plan = context->plan;
    FR_TRY(fr_model_copy(context->model, &program->model, err));
    FR_TRY(lower_pipeline(context, err));
    program->plan = *plan;
    program->job = *context->job;
    program->n_micro_batches = context->n_micro;
    program->rank_programs =
        calloc((size_t)plan->pp + 1, sizeof *program->rank_programs);
    if (!program->rank_programs)
        return fr_fail_no_memory(err);
    program->n_rank_programs = (uint32_t)plan->pp;
    FR_TRY(fr_builder_create(&context->builder, err));
    if (context->placement && context->placement->by_framework)
        fr_builder_set_apart(context->builder);
    shared_segments(context);
    for (int32_t stage = 0; stage < plan->pp; stage++)
        FR_TRY(lower_class_of(context, stage, &program->rank_programs[stage],
                              err));
    if (context->is_out_of_memory)
        return fr_fail_no_memory(err);
    program->n_instrs = (uint32_t)context->instrs.n;
    program->instrs = context->instrs.items;
    memset(&context->instrs, 0, sizeof context->instrs);
    program->n_segments = (uint32_t)context->segments.n;
    program->segments = context->segments.items;
    memset(&context->segments, 0, sizeof context->segments);
    return FR_OK;
}

fr_status fr_lower(const fr_model *model, const fr_job *job,
                   const fr_plan *plan, const fr_placement *placement,
                   fr_program **out, fr_err *err)
{
    lower_context context = {
        .model = model, .job = job, .plan = plan, .placement = placement};
    FR_TRY(fr_plan_check_lowerable(plan, model, job, err));
    bool is_decoder = model->kind == FR_MODEL_DECODER;
    if (is_decoder && (!model->has_final_norm || model->has_embed_norm))
        return fr_fail(err, FR_INPUT,
                       "model %s: a decoder without a last norm or with a "
                       "normed embedding is not executable",
                       model->name);
    if (placement && placement->node_of_rank &&
        placement->n_ranks < fr_plan_world(plan))
        return fr_fail(
            err, FR_INPUT, "the plan has %lld ranks, the placement %lld",
            (long long)fr_plan_world(plan), (long long)placement->n_ranks);
    FR_TRY(lower_check_collective(&context, err));
    context.n_micro = fr_plan_micro_batches(plan, job);
    if (!fr_schedules[plan->schedule]->fits(plan->pp, context.n_micro,
                                            plan->vpp))
        return fr_fail(err, FR_INPUT,
                       "schedule %s does not fit pp %d, vpp %d and %lld "
                       "micro-batches",
                       fr_schedules[plan->schedule]->name, (int)plan->pp,
                       (int)plan->vpp, (long long)context.n_micro);
    context.program = calloc(1, sizeof *context.program);
    if (!context.program)
        return fr_fail_no_memory(err);
    context.is_executable = fr_plan_is_executable(plan, model, job);
    context.schedule = fr_schedules[plan->schedule];
    lower_find_local_axes(&context);
    fr_status status = lower_shape_init(&context, err);
    if (status == FR_OK)
        status = fill_program(&context, err);
    free(context.kinds);
    fr_builder_destroy(context.builder);
    fr_vec_release(&context.instrs);
    fr_vec_release(&context.segments);
    fr_vec_release(&context.known);
    fr_vec_release(&context.temps);
    free(context.tasks);
    free(context.arrivals);
    free(context.n_arrivals);
    if (status != FR_OK) {
        fr_program_destroy(context.program);
        return status;
    }
    *out = context.program;
    return FR_OK;
}
