/*
 * lower_stage.c: the calls of one pipeline rank, in program order.
 *
 * The schedule gives the order of forwards and backwards.  Receives stand
 * where their data are needed first and sends where they are made, each on a
 * lane of its own; every other order follows from who touches which block.
 */
#include "plan/lower/step/lower_internal.h"

#include "plan/codec/optimizer.h"

#include <string.h>

bool lower_is_by_framework(const lower_context *context)
{
    return context->placement && context->placement->by_framework;
}

/*
 * Frameworks: NCCL's kernels begin after all that the calling stream was given
 * before them (PyTorch, ProcessGroupNCCL.cpp, syncStream), so nothing that is
 * issued between compute calls runs ahead of them.  Gathers of parameters are
 * issued on streams of their own, gradients are not there any sooner.
 */
static bool follows_compute(const lower_context *context, fr_lane lane)
{
    return lower_is_by_framework(context) &&
           (lane == FR_LANE_TP || lane == FR_LANE_PP_RECV);
}

void lower_add_call(lower_class *lc, uint32_t i_segment, int32_t layer,
                    int64_t micro_batch, int32_t chunk)
{
    lower_context *context = lc->context;
    if (context->is_out_of_memory)
        return;
    const fr_segment *segment = &context->segments.items[i_segment];
    fr_builder_add_call(lc->builder, i_segment, (fr_lane)segment->lane, layer,
                        micro_batch, chunk);
    if (segment->temp_bytes > 0)
        fr_builder_bind(lc->builder, FR_SPACE_TEMP,
                        fr_builder_add_block(lc->builder, FR_MEMORY_BUFFERS,
                                             false, segment->temp_bytes),
                        'w');
    if (follows_compute(context, (fr_lane)segment->lane))
        fr_builder_follow(lc->builder, FR_LANE_COMPUTE);
    if (segment->lane != FR_LANE_COMPUTE || lc->awaited == FR_BLOCK_NONE)
        return;
    fr_builder_use(lc->builder, lc->awaited, 'm');
    lc->awaited = FR_BLOCK_NONE;
}

/* Base at the begin of the flat list; uses the units of `only`, or all. */
void lower_bind_flat(lower_class *lc, fr_space space, const lower_bucket *only,
                     char access)
{
    uint32_t first = only ? only->first_unit : 0;
    uint32_t end = only ? first + only->n_units : (uint32_t)lc->units.n;
    if (lc->units.n == 0)
        return;
    /* A base alone is no access. */
    const lower_unit *origin = &lc->units.items[0];
    fr_builder_set_base(lc->builder, space,
                        space == FR_SPACE_GRAD ? origin->grad : origin->weight);
    for (uint32_t i = first; i < end; i++) {
        const lower_unit *unit = &lc->units.items[i];
        fr_builder_use(lc->builder,
                       space == FR_SPACE_GRAD ? unit->grad : unit->weight,
                       access);
    }
}

uint32_t lower_add_activation(lower_class *lc, uint64_t n_bytes)
{
    return fr_builder_add_block(lc->builder, FR_MEMORY_ACTIVATIONS, false,
                                n_bytes);
}

/* Weights (ZeRO 3: the own shards), or gradients. */
static void add_flat_blocks(lower_class *lc, fr_space space)
{
    const lower_context *context = lc->context;
    bool is_weight = space == FR_SPACE_WEIGHT;
    bool is_sharded = is_weight && lower_is_gathered(context);
    fr_builder_align_page(lc->builder);
    for (size_t i = 0; i < lc->units.n; i++) {
        lower_unit *unit = &lc->units.items[i];
        uint64_t n =
            unit->n /
            (is_sharded ? lower_n_shards(context, unit->is_expert) : 1);
        *(is_weight ? &unit->weight : &unit->grad) = fr_builder_add_block(
            lc->builder, is_weight ? FR_MEMORY_PARAMETERS : FR_MEMORY_GRADIENTS,
            true, n * lower_element_bytes(context, space));
    }
}

static void add_persistent_blocks(lower_class *lc)
{
    const lower_context *context = lc->context;
    const fr_plan *plan = context->plan;
    const fr_compressor *compressor = fr_compressor_of(plan);
    add_flat_blocks(lc, FR_SPACE_WEIGHT);
    if (!lower_is_by_unit(context))
        add_flat_blocks(lc, FR_SPACE_GRAD);
    fr_builder_align_page(lc->builder);
    for (size_t b = 0; b < lc->buckets.n; b++) {
        lower_bucket *bucket = &lc->buckets.items[b];
        uint64_t state = fr_optimizer_resident_bytes(
            context->job->optimizer,
            bucket->n / lower_n_shards(context, bucket->is_expert),
            fr_plan_has_master(plan));
        if (state > 0 && !plan->is_optimizer_offloaded)
            bucket->opt = fr_builder_add_block(lc->builder, FR_MEMORY_OPTIMIZER,
                                               true, state);
    }
    for (size_t b = 0; b < lc->buckets.n; b++) {
        lower_bucket *bucket = &lc->buckets.items[b];
        fr_bucket described = {.first = bucket->first,
                               .n = bucket->n,
                               .tensors = lc->tensors.items,
                               .n_tensors = (uint32_t)lc->tensors.n};
        fr_axis axis = lower_reduce_axis(context, bucket->is_expert);
        uint64_t state = compressor->state_bytes(plan, &described);
        if (compressor->wire != FR_WIRE_PLAIN && state > 0 &&
            lower_axis_size(plan, axis) > 1)
            bucket->error = fr_builder_add_block(
                lc->builder, FR_MEMORY_OPTIMIZER, true, state);
    }
    fr_builder_align_page(lc->builder);
}

static int32_t stage_of(const lower_class *lc, int32_t chunk)
{
    return fr_schedule_stage(lc->context->schedule, lc->stage, chunk,
                             lc->context->plan->pp);
}

static bool is_first_stage(const lower_class *lc, int32_t chunk)
{
    return stage_of(lc, chunk) == 0;
}

static bool is_last_stage(const lower_class *lc, int32_t chunk)
{
    const fr_plan *plan = lc->context->plan;
    return stage_of(lc, chunk) == plan->pp * plan->vpp - 1;
}

size_t lower_slot(const lower_class *lc, const fr_task *task, int32_t layer)
{
    return (size_t)task->micro_batch * lc->n_slots +
           lc->chunk_slot[task->chunk] + (size_t)layer;
}

uint32_t *lower_gradient_of(const lower_class *lc, const fr_task *task)
{
    return &lc->gradients[task->micro_batch * lc->context->plan->vpp +
                          task->chunk];
}

bool lower_is_remade(const lower_context *context, int32_t i)
{
    const fr_plan *plan = context->plan;
    return plan->recompute == FR_RECOMPUTE_FULL &&
           (plan->recompute_layers == 0 || i < plan->recompute_layers);
}

/* Tokens of this micro-batch, and already those of the next. */
static uint32_t load_tokens(lower_class *lc, int64_t micro_batch)
{
    const lower_context *context = lc->context;
    while (lc->n_loaded < context->n_micro && lc->n_loaded <= micro_batch + 1) {
        uint32_t block = fr_builder_add_block(
            lc->builder, FR_MEMORY_BUFFERS, false,
            2 * sizeof(int32_t) * (uint64_t)context->shape.rows);
        lc->tokens[lc->n_loaded] = block;
        lower_add_call(lc, context->i_load, -1, lc->n_loaded, -1);
        fr_builder_bind(lc->builder, FR_SPACE_TOKENS, block, 'w');
        lc->n_loaded++;
    }
    return lc->tokens[micro_batch];
}

/*
 * The units that the head or the embedding touches, and the flat base.  Exact,
 * lest the embedding's backward waits for a sum of the head's gradients.
 */
static void bind_ends(lower_class *lc, bool is_head, fr_space space,
                      char access)
{
    const lower_context *context = lc->context;
    bool is_shared = context->model->is_tied && !lower_is_tied_apart(context);
    bool is_grad = space == FR_SPACE_GRAD;
    const lower_unit *units = lc->units.items;
    if (lower_is_by_unit(context)) {
        lower_bind_set(lc, space, is_head ? lc->i_head_set : lc->i_embed_set,
                       access);
        return;
    }
    fr_builder_set_base(lc->builder, space,
                        is_grad ? units[0].grad : units[0].weight);
    for (size_t i = 0; i < lc->units.n; i++) {
        bool is_used = false;
        if (units[i].kind == LOWER_UNIT_FINAL)
            is_used = is_head;
        else if (units[i].kind == LOWER_UNIT_EMBED)
            is_used = !is_head || is_shared;
        else if (units[i].kind == LOWER_UNIT_TIED)
            is_used = is_head == !lc->is_first;
        if (is_used)
            fr_builder_use(lc->builder,
                           is_grad ? units[i].grad : units[i].weight, access);
    }
}

uint64_t lower_gradient_bytes(const lower_class *lc, int32_t chunk)
{
    uint64_t most = 0;
    for (int32_t i = 0; i <= lc->chunk_layers[chunk]; i++) {
        uint64_t bytes =
            lower_stream_bytes(lc->context, lc->chunk_first[chunk] + i);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static void embed(lower_class *lc, const fr_task *task)
{
    uint32_t tokens = load_tokens(lc, task->micro_batch);
    uint32_t block =
        lower_add_activation(lc, lower_stream_bytes(lc->context, 0));
    lower_before_use(lc);
    lower_add_call(lc, lc->i_embed_fwd, -1, task->micro_batch, task->chunk);
    bind_ends(lc, false, FR_SPACE_WEIGHT, 'r');
    fr_builder_bind(lc->builder, FR_SPACE_TOKENS, tokens, 'r');
    fr_builder_bind(lc->builder, FR_SPACE_OUT, block, 'w');
    lower_after_use(lc, block);
    lc->inputs[lower_slot(lc, task, 0)] = block;
}

/* To the next stage, or the one before: by a send, unless it is here too. */
static void hand_on(lower_class *lc, const fr_task *task, uint32_t block)
{
    const fr_plan *plan = lc->context->plan;
    bool is_gradient = task->kind == FR_TASK_BACKWARD;
    int32_t stage = stage_of(lc, task->chunk);
    int32_t to = is_gradient ? stage - 1 : stage + 1;
    fr_task next = *task;
    if (fr_schedule_rank(lc->context->schedule, to, plan->pp) != lc->stage) {
        lower_send(lc, is_gradient ? stage : to, is_gradient, task, block);
        return;
    }
    next.chunk = to / plan->pp;
    if (is_gradient)
        *lower_gradient_of(lc, &next) = block;
    else
        lc->inputs[lower_slot(lc, &next, 0)] = block;
}

/* What is to be handed on, or FR_BLOCK_NONE; backward() likewise. */
static uint32_t forward(lower_class *lc, const fr_task *task)
{
    const int32_t n_layers = lc->chunk_layers[task->chunk];
    if (is_first_stage(lc, task->chunk))
        embed(lc, task);
    for (int32_t i = 0; i < n_layers; i++)
        lower_layer_forward(lc, task, i);
    return is_last_stage(lc, task->chunk)
               ? FR_BLOCK_NONE
               : lc->inputs[lower_slot(lc, task, n_layers)];
}

/* The head on what comes before layer i of the chunk; `is_added`: onto the
 * gradient of a later token's layer. */
static void head(lower_class *lc, const fr_task *task, int32_t i,
                 uint32_t gradient, bool is_added)
{
    uint32_t tokens = load_tokens(lc, task->micro_batch);
    lower_before_use(lc);
    if (lower_is_by_unit(lc->context))
        lower_open_grads(lc, lc->i_head_set);
    lower_add_call(lc, is_added ? lc->i_head_again : lc->i_head, -1,
                   task->micro_batch, task->chunk);
    bind_ends(lc, true, FR_SPACE_WEIGHT, 'r');
    bind_ends(lc, true, FR_SPACE_GRAD, 'm');
    fr_builder_bind(lc->builder, FR_SPACE_IN,
                    lc->inputs[lower_slot(lc, task, i)], 'r');
    fr_builder_bind(lc->builder, FR_SPACE_OUT, gradient, is_added ? 'm' : 'w');
    fr_builder_bind(lc->builder, FR_SPACE_TOKENS, tokens, 'r');
    fr_builder_bind(lc->builder, FR_SPACE_STEP, lc->step, 'm');
    lower_after_use(lc, lower_is_by_unit(lc->context)
                            ? lc->sets.items[lc->i_head_set].grad
                            : FR_BLOCK_NONE);
}

static uint32_t backward(lower_class *lc, const fr_task *task)
{
    const lower_context *context = lc->context;
    const int32_t n_layers = lc->chunk_layers[task->chunk];
    uint32_t gradient = *lower_gradient_of(lc, task);
    lower_fetch_layer(lc, task, n_layers - 1);
    bool is_last = is_last_stage(lc, task->chunk);
    const int32_t n_later = is_last ? (int32_t)context->model->n_mtp_layers : 0;
    if (is_last)
        gradient =
            lower_add_activation(lc, lower_gradient_bytes(lc, task->chunk));
    for (int32_t i = n_layers; i >= 0; i--) {
        /* Each token ahead has its loss, the next one's too. */
        if (is_last && i >= n_layers - n_later)
            head(lc, task, i, gradient, i < n_layers);
        if (is_last && i == n_layers - n_later)
            lower_finish_ends(lc, task, true);
        if (i == 0)
            break;
        lower_layer_backward(lc, task, i - 1, gradient);
        if (!context->schedule->is_split)
            lower_finish_layer(lc, task, i - 1);
    }
    if (!is_first_stage(lc, task->chunk))
        return gradient;
    if (lower_is_by_unit(context))
        lower_open_grads(lc, lc->i_embed_set);
    bool is_normed = context->model->has_embed_norm;
    if (is_normed)
        lower_before_use(lc);
    lower_add_call(lc, lc->i_embed_bwd, -1, task->micro_batch, task->chunk);
    if (is_normed)
        bind_ends(lc, false, FR_SPACE_WEIGHT, 'r');
    bind_ends(lc, false, FR_SPACE_GRAD, 'm');
    fr_builder_bind(lc->builder, FR_SPACE_TOKENS, lc->tokens[task->micro_batch],
                    'r');
    fr_builder_bind(lc->builder, FR_SPACE_IN, gradient, 'r');
    if (is_normed)
        lower_after_use(lc, gradient);
    lower_finish_ends(lc, task, false);
    return FR_BLOCK_NONE;
}

/* The second part of backward: nobody waits for it but the reductions. */
static void weights(lower_class *lc, const fr_task *task)
{
    for (int32_t i = lc->chunk_layers[task->chunk]; i-- > 0;) {
        lower_layer_weights(lc, task, i);
        lower_finish_layer(lc, task, i);
    }
}

static uint32_t run_task(lower_class *lc, const fr_task *task)
{
    if (task->kind == FR_TASK_FORWARD)
        return forward(lc, task);
    if (task->kind == FR_TASK_BACKWARD)
        return backward(lc, task);
    weights(lc, task);
    return FR_BLOCK_NONE;
}

/*
 * One task, or two in turn: each goes on while the tokens of the other are on
 * their way to experts or back.  That is the order of Megatron-LM's combined
 * 1F1B (core/models/common/model_chunk_schedule_plan.py, run(): combine of
 * backward beside attention of forward, dispatch of forward beside experts of
 * backward, dispatch of backward beside experts of forward, combine of forward
 * beside attention of backward).  What is handed on leaves after both.
 */
static void run_together(lower_class *lc, const fr_task *tasks, size_t n)
{
    uint32_t made[2], first = fr_builder_n_calls(lc->builder), middle = first;
    for (size_t i = 0; i < n; i++) {
        middle = i > 0 ? fr_builder_n_calls(lc->builder) : first;
        made[i] = run_task(lc, &tasks[i]);
    }
    if (n > 1)
        fr_builder_interleave(lc->builder, first, middle, FR_LANE_EP);
    for (size_t i = 0; i < n; i++)
        if (made[i] != FR_BLOCK_NONE)
            hand_on(lc, &tasks[i], made[i]);
}

/* All forwards and backwards, with what comes and goes. */
static void run_tasks(lower_class *lc)
{
    const lower_context *context = lc->context;
    const fr_task *tasks =
        &context->tasks[(size_t)lc->stage * context->n_tasks];
    size_t i_arrival = 0;
    for (size_t i = 0, n; i < context->n_tasks; i += n) {
        n = i + 1 < context->n_tasks &&
                    lower_is_paired(context, &tasks[i], &tasks[i + 1])
                ? 2
                : 1;
        lower_receive(lc, i + n - 1, &i_arrival);
        run_together(lc, &tasks[i], n);
        /* A send has the time of the next task before its memory is taken. */
        for (int k = 0; k < 2; k++) {
            fr_builder_keep(lc->builder, lc->sent[1][k]);
            lc->sent[1][k] = lc->sent[0][k];
            lc->sent[0][k] = FR_BLOCK_NONE;
        }
    }
}

fr_status lower_stage(lower_class *lc, fr_err *err)
{
    lower_context *context = lc->context;
    lc->left_kept[0] = lc->left_kept[1] = FR_BLOCK_NONE;
    for (int k = 0; k < 2; k++)
        lc->sent[0][k] = lc->sent[1][k] = FR_BLOCK_NONE;
    lc->in_flight[0] = lc->in_flight[1] = lc->awaited = FR_BLOCK_NONE;
    for (int stage = 0; stage < FR_COMPRESS_STAGES; stage++)
        lc->travelling[stage] = LOWER_NO_BUCKET;
    add_persistent_blocks(lc);
    lower_ends_segments(lc);
    lower_zero(lc);
    FR_TRY(lower_uses_init(lc, err));
    lower_gather_early(lc);
    run_tasks(lc);
    lower_finish_reductions(lc);
    lower_update(lc);
    if (context->is_out_of_memory)
        return fr_fail_no_memory(err);
    FR_TRY(fr_builder_finish(lc->builder, lc->rank_program, err));
    if (lc->units.n > 0) {
        lc->rank_program->weight_offset_bytes =
            fr_builder_offset(lc->builder, lc->units.items[0].weight);
        lc->rank_program->grad_offset_bytes =
            fr_builder_offset(lc->builder, lc->units.items[0].grad);
    }
    lc->rank_program->step_offset_bytes =
        fr_builder_offset(lc->builder, lc->step);
    return FR_OK;
}
