/*
 * lower_calls.c: the calls of one layer: forward, what is made again, and
 * backward, with the blocks that they use.
 */
#include "plan/lower/step/lower_internal.h"

/* The (first) unit of layer i of the task's chunk. */
const lower_unit *lower_layer_unit(const lower_class *lc, const fr_task *task,
                                   int32_t i)
{
    return &lc->units.items[lc->layer_unit[lc->chunk_slot[task->chunk] +
                                           (uint32_t)i]];
}

/* The unit of the layer's experts; NULL: none. */
const lower_unit *lower_expert_unit(const lower_class *lc,
                                    const lower_unit *unit)
{
    bool is_there =
        unit + 1 < lc->units.items + lc->units.n && unit[1].is_expert;
    return is_there ? unit + 1 : NULL;
}

static void bind_layer(lower_class *lc, fr_space space, const lower_unit *unit,
                       char access)
{
    const lower_unit *experts = lower_expert_unit(lc, unit);
    bool is_grad = space == FR_SPACE_GRAD;
    if (lower_is_by_unit(lc->context)) {
        lower_bind_set(lc, space, unit->i_set, access);
        return;
    }
    fr_builder_bind(lc->builder, space, is_grad ? unit->grad : unit->weight,
                    access);
    if (experts)
        fr_builder_use(lc->builder, is_grad ? experts->grad : experts->weight,
                       access);
}

static lower_layer_at layer_at(const lower_class *lc, const fr_task *task,
                               int32_t i)
{
    return (lower_layer_at){.task = task,
                            .i = i,
                            .layer = lc->chunk_first[task->chunk] + i,
                            .input = lc->inputs[lower_slot(lc, task, i)]};
}

/* The block of the layer's weights in the dtype of its products. */
static uint32_t *low_block(const lower_class *lc, const lower_layer_at *at)
{
    return &lc->low[lc->chunk_slot[at->task->chunk] + (uint32_t)at->i];
}

void lower_add_layer_call(lower_class *lc, const lower_layer_at *at,
                          uint32_t i_segment)
{
    lower_add_call(lc, i_segment, at->layer, at->task->micro_batch,
                   at->task->chunk);
    bind_layer(lc, FR_SPACE_WEIGHT, lower_layer_unit(lc, at->task, at->i), 'r');
    fr_builder_bind(lc->builder, FR_SPACE_LOW, *low_block(lc, at), 'r');
}

void lower_bind_layer_grads(lower_class *lc, const lower_layer_at *at)
{
    bind_layer(lc, FR_SPACE_GRAD, lower_layer_unit(lc, at->task, at->i), 'm');
}

/* Once per step, before the first micro-batch. */
static void cast_weights(lower_class *lc, const lower_layer_at *at)
{
    const lower_context *context = lc->context;
    const uint64_t n_bytes = lower_kind_of(context, at->layer)->low_bytes;
    uint32_t *block = low_block(lc, at);
    if (at->task->micro_batch > 0)
        return;
    *block = FR_BLOCK_NONE;
    if (n_bytes == 0)
        return;
    *block =
        fr_builder_add_block(lc->builder, FR_MEMORY_BUFFERS, true, n_bytes);
    lower_add_call(lc, lower_calls_of(context, at->layer).i_cast, at->layer, -1,
                   -1);
    bind_layer(lc, FR_SPACE_WEIGHT, lower_layer_unit(lc, at->task, at->i), 'r');
    fr_builder_bind(lc->builder, FR_SPACE_LOW, *block, 'w');
}

/* What forward keeps for the second part of a backward in two. */
static void bind_late(lower_class *lc, const lower_layer_at *at, bool is_new)
{
    const uint64_t n_bytes = lower_kind_of(lc->context, at->layer)->late_bytes;
    uint32_t *block = &lc->late[lower_slot(lc, at->task, at->i)];
    if (n_bytes == 0)
        return;
    if (is_new)
        *block = lower_add_activation(lc, n_bytes);
    fr_builder_bind(lc->builder, FR_SPACE_CARRY, *block, is_new ? 'w' : 'r');
}

void lower_layer_forward(lower_class *lc, const fr_task *task, int32_t i)
{
    const lower_context *context = lc->context;
    const lower_layer_at at = layer_at(lc, task, i);
    const lower_kind *kind = lower_kind_of(context, at.layer);
    const lower_layer_calls calls = kind->calls;
    const size_t slot = lower_slot(lc, task, i);
    uint32_t saved =
        lower_add_activation(lc, lower_saved_bytes(context, at.layer));
    uint32_t out =
        lower_add_activation(lc, lower_stream_bytes(context, at.layer + 1));
    lower_before_use(lc);
    cast_weights(lc, &at);
    if (lower_is_ring(context)) {
        lower_ring_forward(lc, &at, &calls.ring_fwd, saved, out);
    } else if (kind->forward.n_steps > 0) {
        lower_pass_calls(lc, &at, &kind->forward,
                         (lower_pass_blocks){saved, FR_BLOCK_NONE, out,
                                             FR_BLOCK_NONE, false});
    } else {
        lower_add_layer_call(lc, &at, calls.i_fwd);
        fr_builder_bind(lc->builder, FR_SPACE_IN, at.input, 'r');
        fr_builder_bind(lc->builder, FR_SPACE_SAVED, saved, 'w');
        fr_builder_bind(lc->builder, FR_SPACE_OUT, out, 'w');
        bind_late(lc, &at, true);
    }
    lower_after_use(lc, out);
    lc->saved[slot] = lower_is_remade(context, i) ? FR_BLOCK_NONE : saved;
    lc->inputs[slot + 1] = out;
    lower_offload_layer(lc, task, i);
}

/* Makes again what the layer's forward has not kept. */
static uint32_t remake_layer(lower_class *lc, const lower_layer_at *at)
{
    const lower_context *context = lc->context;
    const lower_layer_calls calls = lower_calls_of(context, at->layer);
    uint32_t saved =
        lower_add_activation(lc, lower_saved_bytes(context, at->layer));
    if (lower_is_ring(context)) {
        lower_ring_forward(lc, at, &calls.ring_remake, saved, FR_BLOCK_NONE);
        return saved;
    }
    const lower_kind *kind = lower_kind_of(context, at->layer);
    if (kind->remake.n_steps > 0) {
        lower_pass_calls(lc, at, &kind->remake,
                         (lower_pass_blocks){saved, FR_BLOCK_NONE,
                                             FR_BLOCK_NONE, FR_BLOCK_NONE,
                                             false});
        return saved;
    }
    lower_add_layer_call(lc, at, calls.i_remake);
    fr_builder_bind(lc->builder, FR_SPACE_IN, at->input, 'r');
    fr_builder_bind(lc->builder, FR_SPACE_SAVED, saved, 'w');
    bind_late(lc, at, true);
    return saved;
}

/* What the second part of backward needs of the first. */
static void keep_for_weights(lower_class *lc, const lower_layer_at *at,
                             uint32_t saved)
{
    const size_t slot = lower_slot(lc, at->task, at->i);
    lc->saved[slot] = saved;
    lc->split[slot] = lower_add_activation(
        lc, lower_kind_of(lc->context, at->layer)->split_bytes);
    fr_builder_bind(lc->builder, FR_SPACE_WIRE, lc->split[slot], 'w');
    bind_late(lc, at, false);
}

void lower_layer_backward(lower_class *lc, const fr_task *task, int32_t i,
                          uint32_t gradient)
{
    const lower_context *context = lc->context;
    const lower_unit *unit = lower_layer_unit(lc, task, i);
    const size_t slot = lower_slot(lc, task, i);
    bool is_by_unit = lower_is_by_unit(context);
    uint32_t saved = lc->saved[slot];
    lower_before_use(lc);
    lower_fetch_layer(lc, task, i - 1);
    const lower_layer_at at = layer_at(lc, task, i);
    const lower_kind *kind = lower_kind_of(context, at.layer);
    const lower_layer_calls calls = kind->calls;
    if (lower_is_remade(context, i))
        saved = remake_layer(lc, &at);
    if (is_by_unit)
        lower_open_grads(lc, unit->i_set);
    if (lower_is_ring(context)) {
        lower_ring_backward(lc, &at, saved, gradient);
    } else if (kind->backward.n_steps > 0) {
        lower_pass_calls(lc, &at, &kind->backward,
                         (lower_pass_blocks){saved, gradient, FR_BLOCK_NONE,
                                             FR_BLOCK_NONE, false});
    } else {
        bool is_split = calls.i_weights > 0;
        lower_add_layer_call(lc, &at, is_split ? calls.i_input : calls.i_bwd);
        if (is_split)
            keep_for_weights(lc, &at, saved);
        lower_bind_layer_grads(lc, &at);
        fr_builder_bind(lc->builder, FR_SPACE_IN, gradient, 'm');
        fr_builder_bind(lc->builder, FR_SPACE_INPUT, at.input, 'r');
        fr_builder_bind(lc->builder, FR_SPACE_SAVED, saved, 'r');
    }
    lower_after_use(lc,
                    is_by_unit ? lc->sets.items[unit->i_set].grad : unit->grad);
    /* The reduction before had the time of this layer. */
    fr_builder_keep(lc->builder, lc->left_grad);
    lc->left_grad = FR_BLOCK_NONE;
}

void lower_layer_weights(lower_class *lc, const fr_task *task, int32_t i)
{
    const lower_layer_at at = layer_at(lc, task, i);
    const lower_kind *kind = lower_kind_of(lc->context, at.layer);
    const lower_layer_calls calls = kind->calls;
    const size_t slot = lower_slot(lc, task, i);
    if (calls.i_weights == 0)
        return;
    if (lower_is_by_unit(lc->context))
        lower_open_grads(lc, lower_layer_unit(lc, task, i)->i_set);
    lower_add_call(lc, calls.i_weights, at.layer, task->micro_batch,
                   task->chunk);
    lower_bind_layer_grads(lc, &at);
    if (kind->is_input_late)
        fr_builder_bind(lc->builder, FR_SPACE_INPUT, at.input, 'r');
    if (kind->is_saved_late)
        fr_builder_bind(lc->builder, FR_SPACE_SAVED, lc->saved[slot], 'r');
    fr_builder_bind(lc->builder, FR_SPACE_WIRE, lc->split[slot], 'r');
    bind_late(lc, &at, false);
    fr_builder_keep(lc->builder, lc->left_grad);
    lc->left_grad = FR_BLOCK_NONE;
}
