/*
 * lower_stage.c: the calls of one pipeline rank, in program order.
 *
 * The schedule gives the order of forwards and backwards.  Receives stand
 * where their data are needed first and sends where they are made, each on a
 * lane of its own; every other order follows from who touches which block.
 */
#include "plan/codec/optimizer.h"
#include "plan/decide/grid.h"
#include "plan/outline/virtual_order.h"
#include "program/lower/step/lower_step.h"

/* Adds the blocks of weights (ZeRO 3: of the own shards), or of gradients. */
static void add_flat_blocks(lower_rank *rank, fr_space space)
{
    const lower_context *context = rank->context;
    bool is_weight = space == FR_SPACE_WEIGHT;
    bool is_sharded = is_weight && context->sharding.is_gathered;
    fr_builder_align_page(rank->builder);
    for (size_t i = 0; i < rank->units.n; i++) {
        lower_unit *unit = &rank->units.items[i];
        uint64_t n = is_sharded ? fr_sharding_part(&context->sharding,
                                                   unit->is_expert, unit->n)
                                : unit->n;
        *(is_weight ? &unit->weight : &unit->grad) = fr_builder_add_block(
            rank->builder,
            is_weight ? FR_MEMORY_PARAMETERS : FR_MEMORY_GRADIENTS, true,
            n * lower_element_bytes(context, space));
    }
}

static void add_persistent_blocks(lower_rank *rank)
{
    const lower_context *context = rank->context;
    const fr_plan *plan = context->plan;
    const fr_compressor *compressor = fr_compressor_of(plan);
    add_flat_blocks(rank, FR_SPACE_WEIGHT);
    if (!context->sharding.is_by_unit)
        add_flat_blocks(rank, FR_SPACE_GRAD);
    fr_builder_align_page(rank->builder);
    for (size_t b = 0; b < rank->buckets.n; b++) {
        lower_bucket *bucket = &rank->buckets.items[b];
        uint64_t state = fr_optimizer_resident_bytes(
            context->job->optimizer,
            fr_sharding_part(&context->sharding, bucket->is_expert, bucket->n),
            fr_plan_has_master(plan));
        if (plan->is_optimizer_offloaded)
            lower_add_host_blocks(rank, bucket);
        else if (state > 0)
            bucket->opt = fr_builder_add_block(
                rank->builder, FR_MEMORY_OPTIMIZER, true, state);
    }
    for (size_t b = 0; b < rank->buckets.n; b++) {
        lower_bucket *bucket = &rank->buckets.items[b];
        fr_bucket coded = lower_coded_bucket(rank, bucket);
        fr_axis axis = context->sharding.reduce_axis[bucket->is_expert];
        uint64_t state = compressor->state_bytes(plan, &coded);
        if (compressor->wire != FR_WIRE_PLAIN && state > 0 &&
            fr_plan_group_size(plan, axis) > 1)
            bucket->error = fr_builder_add_block(
                rank->builder, FR_MEMORY_OPTIMIZER, true, state);
    }
    fr_builder_align_page(rank->builder);
}

/* Loads the tokens of this micro-batch, and already those of the next. */
static uint32_t load_tokens(lower_rank *rank, int64_t micro_batch)
{
    const lower_context *context = rank->context;
    while (rank->n_loaded < context->n_micro &&
           rank->n_loaded <= micro_batch + 1) {
        const uint64_t n = lower_is_later_run(context) ? 3 : 2;
        uint32_t block = fr_builder_add_block(
            rank->builder, FR_MEMORY_BUFFERS, false,
            n * sizeof(int32_t) * (uint64_t)context->shape.rows);
        rank->tokens[rank->n_loaded] = block;
        lower_add_call(rank, rank->program->i_load, -1, rank->n_loaded, -1);
        fr_builder_bind(rank->builder, FR_SPACE_TOKENS, block, 'w');
        rank->n_loaded++;
    }
    return rank->tokens[micro_batch];
}

/*
 * The units that the head or the embedding touches, and the flat base.  Exact,
 * lest the embedding's backward waits for a sum of the head's gradients.
 */
static void bind_ends(lower_rank *rank, bool is_head, fr_space space,
                      char access)
{
    const lower_context *context = rank->context;
    bool is_shared = (context->model->is_tied || lower_is_later_run(context)) &&
                     !fr_stages_are_tied_apart(context->plan, context->model);
    bool is_grad = space == FR_SPACE_GRAD;
    const lower_unit *units = rank->units.items;
    if (context->sharding.is_by_unit) {
        lower_bind_set(rank, space,
                       is_head ? rank->i_head_set : rank->i_embed_set, access);
        return;
    }
    fr_builder_set_base(rank->builder, space,
                        is_grad ? units[0].grad : units[0].weight);
    for (size_t i = 0; i < rank->units.n; i++) {
        bool is_used = false;
        if (units[i].kind == LOWER_UNIT_FINAL)
            is_used = is_head;
        else if (units[i].kind == LOWER_UNIT_EMBED)
            is_used = !is_head || is_shared;
        else if (units[i].kind == LOWER_UNIT_TIED)
            is_used = is_head == !rank->is_first;
        if (is_used)
            fr_builder_use(rank->builder,
                           is_grad ? units[i].grad : units[i].weight, access);
    }
}

static void embed(lower_rank *rank, const fr_task *task)
{
    uint32_t tokens = load_tokens(rank, task->micro_batch);
    uint32_t block =
        lower_add_activation(rank, lower_stream_bytes(rank->context, 0));
    lower_before_use(rank);
    lower_add_call(rank, rank->segments.i_embed_fwd, -1, task->micro_batch,
                   task->chunk);
    bind_ends(rank, false, FR_SPACE_WEIGHT, 'r');
    fr_builder_bind(rank->builder, FR_SPACE_TOKENS, tokens, 'r');
    fr_builder_bind(rank->builder, FR_SPACE_OUT, block, 'w');
    lower_after_use(rank, block);
    rank->blocks[lower_slot(rank, task, 0)].input = block;
}

/* Hands a block to the next stage, or the one before: by a send, unless
 * this rank holds that stage too. */
static void hand_on(lower_rank *rank, const fr_task *task, uint32_t block)
{
    const fr_plan *plan = rank->context->plan;
    bool is_gradient = task->kind == FR_TASK_BACKWARD;
    int32_t stage = rank->chunks[task->chunk].span.stage;
    int32_t to = is_gradient ? stage - 1 : stage + 1;
    fr_task next = *task;
    if (fr_stage_holder(plan, to) != rank->stage) {
        lower_send(rank, is_gradient ? stage : to, is_gradient, task, block);
        return;
    }
    next.chunk = to / plan->pp;
    if (is_gradient)
        *lower_gradient_of(rank, &next) = block;
    else
        rank->blocks[lower_slot(rank, &next, 0)].input = block;
}

/*
 * The last call waits for the reductions of the micro-batch before: FSDP's
 * compute stream does at the end of each backward (pytorch@00ae0bc,
 * torch/distributed/fsdp/_runtime_utils.py, _post_backward_final_callback),
 * DeepSpeed's at each bucket (@02aa38c, runtime/zero/stage_1_and_2.py,
 * average_tensor).  With ZeRO 3 the next gathers wait for backward already.
 */
static void await_reductions(lower_rank *rank)
{
    const lower_context *context = rank->context;
    if (context->target.is_framework_step && !context->sharding.is_gathered &&
        rank->reduced != FR_BLOCK_NONE)
        fr_builder_use(rank->builder, rank->reduced, 'r');
}

/* Layer i of the chunk predicts later tokens: it reads their embeddings too,
 * and the head beside it what was before. */
static void begin_later(lower_rank *rank, const fr_task *task, int32_t i)
{
    const lower_context *context = rank->context;
    lower_blocks *blocks = &rank->blocks[lower_slot(rank, task, i)];
    const int32_t layer = rank->chunks[task->chunk].span.first + i;
    if (layer < context->model->n_layers || !lower_is_later_run(context))
        return;
    uint32_t tokens = load_tokens(rank, task->micro_batch);
    uint32_t block =
        lower_add_activation(rank, lower_input_bytes(context, layer));
    lower_add_call(rank, rank->segments.i_later, layer, task->micro_batch,
                   task->chunk);
    bind_ends(rank, true, FR_SPACE_WEIGHT, 'r');
    fr_builder_bind(rank->builder, FR_SPACE_TOKENS, tokens, 'r');
    fr_builder_bind(rank->builder, FR_SPACE_IN, blocks->input, 'r');
    fr_builder_bind(rank->builder, FR_SPACE_OUT, block, 'w');
    blocks->stream = blocks->input;
    blocks->input = block;
}

/* Returns what is to be handed on, or FR_BLOCK_NONE; so does backward(). */
static uint32_t forward(lower_rank *rank, const fr_task *task)
{
    const lower_chunk *chunk = &rank->chunks[task->chunk];
    if (chunk->span.has_embed) {
        embed(rank, task);
        await_reductions(rank);
    }
    for (int32_t i = 0; i < chunk->n_layers; i++) {
        begin_later(rank, task, i);
        lower_forward_calls(rank, task, i);
    }
    return chunk->span.has_head
               ? FR_BLOCK_NONE
               : rank->blocks[lower_slot(rank, task, chunk->n_layers)].input;
}

/* Calls the head on what comes before layer i of the chunk; with is_added
 * its gradient goes onto that of a later token's layer. */
static void head(lower_rank *rank, const fr_task *task, int32_t i,
                 uint32_t gradient, bool is_added)
{
    const lower_blocks *blocks = &rank->blocks[lower_slot(rank, task, i)];
    bool is_beside = is_added && lower_is_later_run(rank->context);
    uint32_t tokens = load_tokens(rank, task->micro_batch);
    lower_before_use(rank);
    if (rank->context->sharding.is_by_unit)
        lower_open_grads(rank, rank->i_head_set);
    lower_add_call(
        rank, is_added ? rank->segments.i_head_added : rank->segments.i_head,
        -1, task->micro_batch, task->chunk);
    bind_ends(rank, true, FR_SPACE_WEIGHT, 'r');
    bind_ends(rank, true, FR_SPACE_GRAD, 'm');
    fr_builder_bind(rank->builder, FR_SPACE_IN,
                    is_beside ? blocks->stream : blocks->input, 'r');
    fr_builder_bind(rank->builder, FR_SPACE_OUT, gradient,
                    is_added ? 'm' : 'w');
    fr_builder_bind(rank->builder, FR_SPACE_TOKENS, tokens, 'r');
    fr_builder_bind(rank->builder, FR_SPACE_STEP, rank->step, 'm');
    lower_after_use(rank, rank->context->sharding.is_by_unit
                              ? rank->sets.items[rank->i_head_set].grad
                              : FR_BLOCK_NONE);
}

static uint32_t backward(lower_rank *rank, const fr_task *task)
{
    const lower_context *context = rank->context;
    const fr_stage_span *span = &rank->chunks[task->chunk].span;
    const int32_t n_layers = rank->chunks[task->chunk].n_layers;
    uint32_t gradient = *lower_gradient_of(rank, task);
    lower_fetch_layer(rank, task, n_layers - 1);
    const bool is_last = span->has_head;
    const int32_t n_later = is_last ? (int32_t)context->model->n_mtp_layers : 0;
    if (is_last)
        gradient =
            lower_add_activation(rank, lower_gradient_bytes(rank, task->chunk));
    for (int32_t i = n_layers; i >= 0; i--) {
        /* Each token ahead has its loss, the next one's too. */
        if (is_last && i >= n_layers - n_later)
            head(rank, task, i, gradient, i < n_layers);
        if (is_last && i == n_layers - n_later)
            lower_finish_ends(rank, task, true);
        if (i == 0)
            break;
        lower_backward_calls(rank, task, i - 1, gradient);
        if (!context->schedule->is_split)
            lower_finish_layer(rank, task, i - 1);
    }
    if (!span->has_embed)
        return gradient;
    if (context->sharding.is_by_unit)
        lower_open_grads(rank, rank->i_embed_set);
    bool is_normed = context->model->has_embed_norm;
    if (is_normed)
        lower_before_use(rank);
    lower_add_call(rank, rank->segments.i_embed_bwd, -1, task->micro_batch,
                   task->chunk);
    if (is_normed)
        bind_ends(rank, false, FR_SPACE_WEIGHT, 'r');
    bind_ends(rank, false, FR_SPACE_GRAD, 'm');
    fr_builder_bind(rank->builder, FR_SPACE_TOKENS,
                    rank->tokens[task->micro_batch], 'r');
    fr_builder_bind(rank->builder, FR_SPACE_IN, gradient, 'r');
    if (is_normed)
        lower_after_use(rank, gradient);
    lower_finish_ends(rank, task, false);
    return FR_BLOCK_NONE;
}

/* The second part of backward, for which nobody waits but the reductions. */
static void weights(lower_rank *rank, const fr_task *task)
{
    for (int32_t i = rank->chunks[task->chunk].n_layers; i-- > 0;) {
        lower_weights_calls(rank, task, i);
        lower_finish_layer(rank, task, i);
    }
}

static uint32_t run_task(lower_rank *rank, const fr_task *task)
{
    if (task->kind == FR_TASK_FORWARD)
        return forward(rank, task);
    if (task->kind == FR_TASK_BACKWARD)
        return backward(rank, task);
    weights(rank, task);
    return FR_BLOCK_NONE;
}

/*
 * One task, or two of combined 1F1B: each goes on while the tokens of the other
 * are on their way to experts or back.  That is the order of Megatron-LM
 * (core/models/common/model_chunk_schedule_plan.py, run(): combine of backward
 * beside attention of forward, dispatch of forward beside experts of backward,
 * dispatch of backward beside experts of forward, combine of forward beside
 * attention of backward).  What is handed on leaves after both.
 */
static void run_together(lower_rank *rank, const fr_task *tasks, size_t n)
{
    uint32_t made[2], first = fr_builder_n_calls(rank->builder), middle = first;
    for (size_t i = 0; i < n; i++) {
        middle = i > 0 ? fr_builder_n_calls(rank->builder) : first;
        made[i] = run_task(rank, &tasks[i]);
    }
    if (n > 1)
        fr_builder_interleave(rank->builder, first, middle, FR_LANE_EP);
    for (size_t i = 0; i < n; i++)
        if (made[i] != FR_BLOCK_NONE)
            hand_on(rank, &tasks[i], made[i]);
}

/* Runs all forwards and backwards, with receives before and sends after
 * them. */
static void run_tasks(lower_rank *rank)
{
    const lower_program *program = rank->program;
    const fr_task *tasks =
        &program->tasks[(size_t)rank->stage * program->n_tasks];
    size_t i_arrival = 0;
    for (size_t i = 0, n; i < program->n_tasks; i += n) {
        n = i + 1 < program->n_tasks &&
                    fr_virtual_order_is_paired(rank->context->plan, &tasks[i],
                                               &tasks[i + 1])
                ? 2
                : 1;
        lower_receive(rank, i + n - 1, &i_arrival);
        run_together(rank, &tasks[i], n);
        /* A send has the time of the next task before its memory is taken. */
        for (int k = 0; k < 2; k++) {
            fr_builder_keep(rank->builder, rank->sent[1][k]);
            rank->sent[1][k] = rank->sent[0][k];
            rank->sent[0][k] = FR_BLOCK_NONE;
        }
    }
}

fr_status lower_stage(lower_rank *rank, fr_err *err)
{
    lower_context *context = rank->context;
    rank->left_kept[0] = rank->left_kept[1] = FR_BLOCK_NONE;
    rank->reduced = FR_BLOCK_NONE;
    for (int k = 0; k < 2; k++)
        rank->sent[0][k] = rank->sent[1][k] = FR_BLOCK_NONE;
    rank->in_flight[0] = rank->in_flight[1] = rank->awaited = FR_BLOCK_NONE;
    for (int stage = 0; stage < FR_COMPRESS_STAGES; stage++)
        rank->compressing[stage] = LOWER_NO_BUCKET;
    add_persistent_blocks(rank);
    lower_ends_write(context, &rank->ends, rank->is_first, rank->is_last,
                     &rank->segments);
    lower_zero(rank);
    FR_TRY(lower_uses_init(rank, err));
    lower_gather_early(rank);
    run_tasks(rank);
    lower_finish_reductions(rank);
    lower_update(rank);
    if (context->is_out_of_memory)
        return fr_fail_no_memory(err);
    FR_TRY(fr_builder_finish(rank->builder, rank->rank_program, err));
    if (rank->units.n > 0) {
        rank->rank_program->weight_offset_bytes =
            fr_builder_offset(rank->builder, rank->units.items[0].weight);
        rank->rank_program->grad_offset_bytes =
            fr_builder_offset(rank->builder, rank->units.items[0].grad);
    }
    rank->rank_program->step_offset_bytes =
        fr_builder_offset(rank->builder, rank->step);
    return FR_OK;
}
