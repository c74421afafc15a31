/*
 * lower_calls.c: the calls of one layer: forward, recompute and backward, with
 * the blocks that they use.
 */
#include "program/lower/step/lower_step.h"

static lower_layer_at layer_at(const lower_rank *rank, const fr_task *task,
                               int32_t i)
{
    return (lower_layer_at){.task = task,
                            .i = i,
                            .layer = rank->chunks[task->chunk].span.first + i,
                            .input =
                                rank->blocks[lower_slot(rank, task, i)].input};
}

/* The layer's weights are cast once per step, before the first micro-batch. */
static void cast_weights(lower_rank *rank, const lower_layer_at *at)
{
    const lower_context *context = rank->context;
    const uint64_t n_bytes = lower_kind_of(context, at->layer)->low_bytes;
    uint32_t *block = lower_low_block(rank, at);
    if (at->task->micro_batch > 0)
        return;
    *block = FR_BLOCK_NONE;
    if (n_bytes == 0)
        return;
    *block =
        fr_builder_add_block(rank->builder, FR_MEMORY_BUFFERS, true, n_bytes);
    lower_add_call(rank, lower_kind_of(context, at->layer)->segments.i_cast,
                   at->layer, -1, -1);
    lower_bind_layer(rank, FR_SPACE_WEIGHT, at, 'r');
    fr_builder_bind(rank->builder, FR_SPACE_LOW, *block, 'w');
}

/* Binds what forward keeps for the second part of a split backward. */
static void bind_late(lower_rank *rank, const lower_layer_at *at, bool is_new)
{
    const uint64_t n_bytes =
        lower_kind_of(rank->context, at->layer)->late_bytes;
    uint32_t *block = &rank->blocks[lower_slot(rank, at->task, at->i)].late;
    if (n_bytes == 0)
        return;
    if (is_new)
        *block = lower_add_activation(rank, n_bytes);
    fr_builder_bind(rank->builder, FR_SPACE_CARRY, *block, is_new ? 'w' : 'r');
}

static bool is_layer_recomputed(const lower_rank *rank, const fr_task *task,
                                int32_t i)
{
    return i < fr_stage_n_recomputed(rank->context->plan,
                                     rank->chunks[task->chunk].n_layers);
}

void lower_forward_calls(lower_rank *rank, const fr_task *task, int32_t i)
{
    const lower_context *context = rank->context;
    const lower_layer_at at = layer_at(rank, task, i);
    const lower_kind *kind = lower_kind_of(context, at.layer);
    const lower_layer_segments *calls = &kind->segments;
    const size_t slot = lower_slot(rank, task, i);
    uint32_t saved = lower_add_activation(
        rank, lower_kind_of(context, at.layer)->saved.n_bytes);
    uint32_t out =
        lower_add_activation(rank, lower_stream_bytes(context, at.layer + 1));
    lower_before_use(rank);
    cast_weights(rank, &at);
    if (lower_is_ring(context)) {
        lower_ring_forward_calls(rank, &at, &calls->ring_fwd, saved, out);
    } else if (kind->forward.n_calls > 0) {
        lower_pass_calls(rank, &at, &kind->forward,
                         (lower_pass_blocks){saved, FR_BLOCK_NONE, out,
                                             FR_BLOCK_NONE, false});
    } else {
        lower_add_layer_call(rank, &at, calls->i_fwd);
        fr_builder_bind(rank->builder, FR_SPACE_IN, at.input, 'r');
        fr_builder_bind(rank->builder, FR_SPACE_SAVED, saved, 'w');
        fr_builder_bind(rank->builder, FR_SPACE_OUT, out, 'w');
        bind_late(rank, &at, true);
    }
    lower_after_use(rank, out);
    rank->blocks[slot].saved =
        is_layer_recomputed(rank, task, i) ? FR_BLOCK_NONE : saved;
    rank->blocks[slot + 1].input = out;
    lower_offload_layer(rank, task, i);
}

/* Recomputes what the layer's forward has not kept; the block it is in. */
static uint32_t recompute_layer(lower_rank *rank, const lower_layer_at *at)
{
    const lower_context *context = rank->context;
    const lower_kind *kind = lower_kind_of(context, at->layer);
    const lower_layer_segments *calls = &kind->segments;
    uint32_t saved = lower_add_activation(
        rank, lower_kind_of(context, at->layer)->saved.n_bytes);
    if (lower_is_ring(context)) {
        lower_ring_forward_calls(rank, at, &calls->ring_recompute, saved,
                                 FR_BLOCK_NONE);
        return saved;
    }
    if (kind->recompute.n_calls > 0) {
        lower_pass_calls(rank, at, &kind->recompute,
                         (lower_pass_blocks){saved, FR_BLOCK_NONE,
                                             FR_BLOCK_NONE, FR_BLOCK_NONE,
                                             false});
        return saved;
    }
    lower_add_layer_call(rank, at, calls->i_recompute);
    fr_builder_bind(rank->builder, FR_SPACE_IN, at->input, 'r');
    fr_builder_bind(rank->builder, FR_SPACE_SAVED, saved, 'w');
    bind_late(rank, at, true);
    return saved;
}

/* Keeps what the second part of a split backward needs of the first. */
static void keep_for_weights(lower_rank *rank, const lower_layer_at *at,
                             uint32_t saved)
{
    const size_t slot = lower_slot(rank, at->task, at->i);
    rank->blocks[slot].saved = saved;
    rank->blocks[slot].split = lower_add_activation(
        rank, lower_kind_of(rank->context, at->layer)->split_bytes);
    fr_builder_bind(rank->builder, FR_SPACE_WIRE, rank->blocks[slot].split,
                    'w');
    bind_late(rank, at, false);
}

void lower_backward_calls(lower_rank *rank, const fr_task *task, int32_t i,
                          uint32_t gradient)
{
    const lower_context *context = rank->context;
    const lower_unit *unit = lower_layer_unit(rank, task, i);
    const size_t slot = lower_slot(rank, task, i);
    bool is_by_unit = context->sharding.is_by_unit;
    uint32_t saved = rank->blocks[slot].saved;
    lower_before_use(rank);
    lower_fetch_layer(rank, task, i - 1);
    const lower_layer_at at = layer_at(rank, task, i);
    const lower_kind *kind = lower_kind_of(context, at.layer);
    const lower_layer_segments *calls = &kind->segments;
    if (is_layer_recomputed(rank, task, i))
        saved = recompute_layer(rank, &at);
    if (is_by_unit)
        lower_open_grads(rank, unit->i_set);
    if (lower_is_ring(context)) {
        lower_ring_backward_calls(rank, &at, saved, gradient);
    } else if (kind->backward.n_calls > 0) {
        lower_pass_calls(rank, &at, &kind->backward,
                         (lower_pass_blocks){saved, gradient, FR_BLOCK_NONE,
                                             FR_BLOCK_NONE, false});
    } else {
        bool is_split = calls->i_weights > 0;
        lower_add_layer_call(rank, &at,
                             is_split ? calls->i_input : calls->i_bwd);
        if (is_split)
            keep_for_weights(rank, &at, saved);
        lower_bind_layer(rank, FR_SPACE_GRAD, &at, 'm');
        fr_builder_bind(rank->builder, FR_SPACE_IN, gradient, 'm');
        fr_builder_bind(rank->builder, FR_SPACE_INPUT, at.input, 'r');
        fr_builder_bind(rank->builder, FR_SPACE_SAVED, saved, 'r');
    }
    lower_after_use(rank, is_by_unit ? rank->sets.items[unit->i_set].grad
                                     : unit->grad);
    /* The reduction that was issued before has had the time of this layer. */
    fr_builder_keep(rank->builder, rank->left_grad);
    rank->left_grad = FR_BLOCK_NONE;
}

void lower_weights_calls(lower_rank *rank, const fr_task *task, int32_t i)
{
    const lower_layer_at at = layer_at(rank, task, i);
    const lower_kind *kind = lower_kind_of(rank->context, at.layer);
    const lower_layer_segments *calls = &kind->segments;
    const size_t slot = lower_slot(rank, task, i);
    if (calls->i_weights == 0)
        return;
    if (rank->context->sharding.is_by_unit)
        lower_open_grads(rank, lower_layer_unit(rank, task, i)->i_set);
    lower_add_call(rank, calls->i_weights, at.layer, task->micro_batch,
                   task->chunk);
    lower_bind_layer(rank, FR_SPACE_GRAD, &at, 'm');
    if (kind->is_input_late)
        fr_builder_bind(rank->builder, FR_SPACE_INPUT, at.input, 'r');
    if (kind->is_saved_late)
        fr_builder_bind(rank->builder, FR_SPACE_SAVED, rank->blocks[slot].saved,
                        'r');
    fr_builder_bind(rank->builder, FR_SPACE_WIRE, rank->blocks[slot].split,
                    'r');
    bind_late(rank, &at, false);
    fr_builder_keep(rank->builder, rank->left_grad);
    rank->left_grad = FR_BLOCK_NONE;
}
