/*
 * lower.c: plan -> program.
 */
#include "program/lower/step/lower.h"

#include "plan/collective/collective.h"
#include "plan/decide/grid.h"
#include "plan/decide/plan_fields.h"
#include "plan/decide/plan_shares.h"
#include "program/lower/segment/lower_layer.h"
#include "program/lower/step/lower_step.h"
#include "program/lower/step/repeat.h"

#include <math.h>
#include <string.h>

/* Segments that all ranks share come first, so that a layer stands once. */
static void shared_segments(lower_context *context, lower_program *program)
{
    const lower_shape *s = &context->shape;
    lower_layers_segments(context);
    program->i_load = lower_segment_begin(context, FR_LANE_IO, "load_tokens");
    fr_instr *instr = lower_emit(context, FR_OP_LOAD_TOKENS);
    instr->dtype = FR_DTYPE_I32;
    instr->tokens.batch = s->batch;
    instr->tokens.seq = s->seq;
    instr->ref[FR_LOAD_TOKENS_TOKENS] = lower_ref(FR_SPACE_TOKENS, 0);
    if (lower_is_later_run(context))
        instr->ref[FR_LOAD_TOKENS_LATER] =
            lower_ref(FR_SPACE_TOKENS, 2 * sizeof(int32_t) * (uint64_t)s->rows);
}

static void release_rank(lower_rank *rank)
{
    fr_vec_release(&rank->tensors);
    fr_vec_release(&rank->units);
    fr_vec_release(&rank->buckets);
    fr_vec_release(&rank->sets);
    fr_vec_release(&rank->uses);
    free(rank->chunks);
    free(rank->set_of_use);
    free(rank->slots);
    free(rank->blocks);
    free(rank->tokens);
    free(rank->gradients);
    free(rank->transfers);
}

/* Finds the layers of the rank's chunks, and makes the tables that need
 * them. */
static fr_status init_chunks(lower_rank *rank, fr_err *err)
{
    const lower_context *context = rank->context;
    const fr_plan *plan = context->plan;
    size_t n_micro = (size_t)context->n_micro, vpp = (size_t)plan->vpp;
    rank->chunks = calloc(vpp + 1, sizeof *rank->chunks);
    if (rank->chunks == NULL)
        return fr_fail_no_memory(err);
    for (int32_t chunk = 0; chunk < plan->vpp; chunk++) {
        const fr_stage_span span =
            fr_stage_span_held(plan, context->model, rank->stage, chunk);
        const int32_t n = span.end - span.first;
        rank->chunks[chunk] = (lower_chunk){span, n, rank->n_slots};
        rank->n_slots += (uint32_t)n + 1;
    }
    rank->slots = calloc((size_t)rank->n_slots + 1, sizeof *rank->slots);
    rank->blocks = calloc(n_micro * rank->n_slots + 1, sizeof *rank->blocks);
    rank->tokens = calloc(n_micro + 1, sizeof *rank->tokens);
    rank->gradients = calloc(n_micro * vpp + 1, sizeof *rank->gradients);
    rank->transfers =
        calloc(4 * ((size_t)plan->pp * vpp + 1), sizeof *rank->transfers);
    if (rank->slots == NULL || rank->blocks == NULL || rank->tokens == NULL ||
        rank->gradients == NULL || rank->transfers == NULL)
        return fr_fail_no_memory(err);
    return FR_OK;
}

static fr_status lower_one_rank(lower_context *context, lower_program *program,
                                int32_t stage, fr_rank_program *rank_program,
                                fr_err *err)
{
    const fr_plan *plan = context->plan;
    lower_rank rank = {.context = context,
                       .program = program,
                       .rank_program = rank_program,
                       .builder = program->builder,
                       .stage = stage,
                       .is_first = stage == 0,
                       .is_last = stage == fr_stage_head_holder(plan)};
    rank_program->pp = stage;
    fr_status status;
    FR_TRY_GOTO(status, init_chunks(&rank, err), out_release);
    fr_builder_reset(rank.builder);
    FR_TRY_GOTO(status, lower_layout(&rank, err), out_release);
    if (context->sharding.is_by_unit)
        FR_TRY_GOTO(status, lower_sets_init(&rank, err), out_release);
    FR_TRY_GOTO(status, lower_stage(&rank, err), out_release);
    rank_program->n_tensors = (uint32_t)rank.tensors.n;
    rank_program->tensors = rank.tensors.items; /* handed over */
    memset(&rank.tensors, 0, sizeof rank.tensors);
out_release:
    release_rank(&rank);
    return status;
}

/* The pipeline of data-parallel ranks that have so many micro-batches. */
static fr_status lower_ranks(lower_context *context, lower_program *lowered,
                             int64_t n_micro, fr_rank_program *ranks,
                             fr_err *err)
{
    context->n_micro = n_micro;
    FR_TRY(lower_pipeline(context, lowered, err));
    for (int32_t stage = 0; stage < context->plan->pp; stage++)
        FR_TRY(lower_one_rank(context, lowered, stage, &ranks[stage], err));
    return FR_OK;
}

/* Data-parallel ranks of unlike shares, each class once. */
static fr_status lower_classes(lower_context *context, lower_program *lowered,
                               fr_err *err)
{
    const fr_plan *plan = context->plan;
    fr_rank_program *all = lowered->program->rank_programs;
    if (plan->n_shares == 0)
        return lower_ranks(context, lowered, context->n_micro, all, err);
    for (int32_t dp = 0; dp < plan->n_shares; dp++) {
        fr_rank_program *ranks = &all[fr_program_number(plan, 0, dp)];
        if (ranks->calls == NULL)
            FR_TRY(lower_ranks(context, lowered, plan->batch_shares[dp], ranks,
                               err));
    }
    return FR_OK;
}

static fr_status fill_program(lower_context *context, lower_program *lowered,
                              fr_err *err)
{
    fr_program *program = lowered->program;
    const fr_plan *plan = context->plan;
    lower_shape_init(context);
    FR_TRY(lower_kinds_init(context, err));
    FR_TRY(fr_model_copy(context->model, &program->model, err));
    program->plan = *plan;
    program->job = *context->job;
    program->n_micro_batches = context->n_micro;
    const uint32_t n = (uint32_t)(plan->pp * fr_plan_n_share_classes(plan));
    FR_TRY_CALLOC(program->rank_programs, n + 1, err);
    program->n_rank_programs = n;
    FR_TRY(fr_builder_create(&lowered->builder, err));
    if (context->target.is_framework_step)
        fr_builder_set_apart(lowered->builder);
    shared_segments(context, lowered);
    FR_TRY(lower_classes(context, lowered, err));
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

static void find_local_axes(lower_context *context)
{
    for (int axis = 0; axis < FR_AXIS_N; axis++)
        context->is_local[axis] = fr_plan_axis_is_local(
            context->plan, (fr_axis)axis, context->node_of_rank);
}

static fr_status lower_micro(const fr_model *model, const fr_job *job,
                             const fr_plan *plan, const fr_placement *placement,
                             int64_t n_micro, fr_program **out, fr_err *err)
{
    lower_context context = {
        .model = model, .job = job, .plan = plan, .n_micro = n_micro};
    lower_program program = {.program = calloc(1, sizeof *program.program)};
    if (program.program == NULL)
        return fr_fail_no_memory(err);
    context.target = lower_target_of(
        model, job, plan, placement != NULL && placement->by_framework);
    context.sharding =
        fr_sharding_of(plan, context.target.kernels == LOWER_KERNELS_RUN);
    context.node_of_rank = placement != NULL ? placement->node_of_rank : NULL;
    context.schedule = fr_schedules[plan->schedule];
    find_local_axes(&context);
    fr_status status = fill_program(&context, &program, err);
    free(context.kinds);
    fr_vec_release(&context.instrs);
    fr_vec_release(&context.segments);
    fr_vec_release(&context.temps);
    fr_builder_destroy(program.builder);
    fr_vec_release(&program.shared);
    lower_pipeline_release(&program);
    if (status != FR_OK) {
        fr_program_destroy(program.program);
        return status;
    }
    *out = program.program;
    return FR_OK;
}

/* Calls that are written out: what minutes are given for on CPUs, and seconds
 * on GPUs, where a search has many such plans. */
static const double most_calls = 0x1p24, most_calls_gpu = 0x1p21;

/* ---- many micro-batches -------------------------------------------------- */

/* Micro-batches after which a rank does the same again. */
static int32_t repeat_micro(const fr_plan *plan)
{
    return fr_schedules[plan->schedule]->is_grouped ? plan->pp : 1;
}

/*
 * Returns the least number of micro-batches with which the middle of a program
 * repeats as it does with n: the pipeline must fill and drain, and the cache of
 * an allocator must settle (BERT's stages took 45 micro-batches).
 */
static int64_t few_micro(const fr_plan *plan)
{
    enum { PERIODS = 24, SETTLED = 160 };
    const fr_schedule *schedule = fr_schedules[plan->schedule];
    const int64_t filling = (schedule->is_1f1b ? 2 : 6) * (int64_t)plan->pp;
    const int64_t step = repeat_micro(plan);
    const int64_t least = PERIODS * step > SETTLED ? PERIODS * step : SETTLED;
    return (filling + least + step - 1) / step * step;
}

/* Notes which calls stand for more; false: they do not repeat. */
static bool set_repeats(fr_program *program, int64_t n_micro, int64_t n_written)
{
    program->n_micro_batches = n_micro;
    program->repeat_micro = repeat_micro(&program->plan);
    program->n_repeats = (n_micro - n_written) / program->repeat_micro;
    for (uint32_t i = 0; i < program->n_rank_programs; i++)
        if (!fr_repeat_find(program, &program->rank_programs[i],
                            program->repeat_micro,
                            &program->rank_programs[i].repeat))
            return false;
    return true;
}

fr_status fr_lower(const fr_model *model, const fr_job *job,
                   const fr_plan *plan, const fr_placement *placement,
                   fr_program **out, fr_err *err)
{
    enum { MANY = 512 }; /* more are worth it */
    FR_TRY(fr_plan_check_lowerable(plan, model, job, err));
    bool is_decoder = model->kind == FR_MODEL_DECODER;
    if (is_decoder && !model->has_final_norm)
        return fr_fail(err, FR_INPUT,
                       "model %s: a decoder without a last norm is not "
                       "executable",
                       model->name);
    if (placement != NULL && placement->node_of_rank != NULL &&
        placement->n_ranks < fr_plan_world(plan))
        return fr_fail(
            err, FR_INPUT, "the plan has %lld ranks, the placement %lld",
            (long long)fr_plan_world(plan), (long long)placement->n_ranks);
    const int64_t n_micro = fr_plan_micro_batches(plan, job);
    if (!fr_schedule_fits(fr_schedules[plan->schedule], plan->pp, n_micro,
                          plan->vpp))
        return fr_fail(err, FR_INPUT,
                       "schedule %s does not fit pp %d, vpp %d and %lld "
                       "micro-batches",
                       fr_schedules[plan->schedule]->name, (int)plan->pp,
                       (int)plan->vpp, (long long)n_micro);
    bool is_gpu = placement != NULL && placement->by_framework;
    bool is_short = is_gpu && !placement->is_whole && plan->n_shares == 0 &&
                    !fr_schedules[plan->schedule]->is_forward_first;
    const double asked = placement != NULL && placement->most_calls > 0
                             ? placement->most_calls
                             : HUGE_VAL;
    const int64_t few = few_micro(plan);
    /* A step of no more than `few` micro-batches cannot be shortened. */
    const double most_whole =
        fmin(asked, is_gpu && n_micro > few ? most_calls_gpu : most_calls);
    fr_err why;
    bool is_whole_fine =
        n_micro < 2 * few + MANY &&
        fr_plan_check_calls(plan, model, n_micro, most_whole, &why) == FR_OK;
    if (is_short && few < n_micro && !is_whole_fine &&
        fr_plan_check_calls(plan, model, few, fmin(asked, most_calls), &why) ==
            FR_OK) {
        fr_program *program;
        FR_TRY(lower_micro(model, job, plan, placement, few, &program, err));
        if (set_repeats(program, n_micro, few)) {
            *out = program;
            return FR_OK;
        }
        fr_program_destroy(program);
    }
    FR_TRY(fr_plan_check_calls(
        plan, model, n_micro * fr_plan_n_share_classes(plan), most_whole, err));
    return lower_micro(model, job, plan, placement, n_micro, out, err);
}
