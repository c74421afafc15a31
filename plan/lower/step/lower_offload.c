/*
 * lower_offload.c: what waits in the host's memory: activations between
 * forward and backward, gradients for an optimizer that steps there.
 *
 * Activations go by whole layers, as Megatron's and Transformer Engine's
 * offloading does: of the (micro-batch, layer) pairs of a rank, in the order
 * of their forwards, every 1/frac-th, evenly spread.  What is kept of a layer
 * is its input and its saved bytes.  Copies run on lane IO: out while the next
 * layer computes, back while the layer before it in backward order does.
 * ZeRO-Offload (Ren et al., ATC 2021, arXiv 2101.06840) is the model for the
 * optimizer: gradients out, the step on the host, parameters back.
 */
#include "plan/lower/step/lower_internal.h"

static void copy(lower_class *lc, fr_space space, uint64_t n_bytes, bool is_out)
{
    fr_instr *instr = lower_emit(lc->context, FR_OP_HOST_COPY);
    instr->dim[0] = (int64_t)n_bytes;
    instr->dim[1] = is_out;
    instr->ref[0] = lower_ref(space, 0);
}

/* Both directions, in this order: 2 segments per shape of what is kept. */
static uint32_t layer_segment(lower_class *lc, int32_t layer, bool has_saved,
                              bool is_out)
{
    enum { KNOWN_OFFLOAD = 100 };
    lower_context *context = lc->context;
    const uint64_t saved = has_saved ? lower_saved_bytes(context, layer) : 0;
    const uint64_t input = lower_stream_bytes(context, layer);
    lower_known fresh = {.what = KNOWN_OFFLOAD + is_out,
                         .key = {saved, input, 0}};
    for (size_t i = 0; i < context->known.n; i++) {
        const lower_known *known = &context->known.items[i];
        if (known->what == fresh.what && known->key[0] == saved &&
            known->key[1] == input)
            return known->i_segment;
    }
    fresh.i_segment = lower_segment_begin(context, FR_LANE_IO, "%s",
                                          is_out ? "offload" : "fetch");
    copy(lc, FR_SPACE_INPUT, input, is_out);
    if (saved > 0)
        copy(lc, FR_SPACE_SAVED, saved, is_out);
    if (fr_vec_push(&context->known, fresh) != FR_OK)
        context->is_out_of_memory = true;
    return fresh.i_segment;
}

void lower_offload_layer(lower_class *lc, const fr_task *task, int32_t i)
{
    const double frac = lc->context->plan->activation_offload_frac;
    const size_t at = lower_slot(lc, task, i);
    const int32_t layer = lc->chunk_first[task->chunk] + i;
    bool has_saved = lc->saved[at] != FR_BLOCK_NONE;
    if (frac <= 0)
        return;
    /* Those before had the time of this layer's forward to go. */
    for (int k = 0; k < 2; k++) {
        fr_builder_keep(lc->builder, lc->left_kept[k]);
        lc->left_kept[k] = FR_BLOCK_NONE;
    }
    double number = lc->n_offloadable++;
    if ((uint64_t)((number + 1) * frac) == (uint64_t)(number * frac))
        return;
    lower_add_call(lc, layer_segment(lc, layer, has_saved, true), layer,
                   task->micro_batch, task->chunk);
    fr_builder_bind(lc->builder, FR_SPACE_INPUT, lc->inputs[at], 'r');
    if (has_saved)
        fr_builder_bind(lc->builder, FR_SPACE_SAVED, lc->saved[at], 'r');
    lc->is_offloaded[at] = true;
    lc->left_kept[0] = lc->inputs[at];
    lc->left_kept[1] = lc->saved[at];
}

void lower_fetch_layer(lower_class *lc, const fr_task *task, int32_t i)
{
    if (i < 0)
        return;
    const lower_context *context = lc->context;
    const size_t at = lower_slot(lc, task, i);
    const int32_t layer = lc->chunk_first[task->chunk] + i;
    bool has_saved = lc->saved[at] != FR_BLOCK_NONE;
    if (!lc->is_offloaded[at])
        return;
    lc->is_offloaded[at] = false;
    lc->inputs[at] =
        lower_add_activation(lc, lower_stream_bytes(context, layer));
    lower_add_call(lc, layer_segment(lc, layer, has_saved, false), layer,
                   task->micro_batch, task->chunk);
    fr_builder_bind(lc->builder, FR_SPACE_INPUT, lc->inputs[at], 'w');
    if (has_saved) {
        lc->saved[at] =
            lower_add_activation(lc, lower_saved_bytes(context, layer));
        fr_builder_bind(lc->builder, FR_SPACE_SAVED, lc->saved[at], 'w');
    }
    fr_builder_after(lc->builder, lc->gate);
}

void lower_offload_grads(lower_class *lc, uint32_t i_bucket)
{
    lower_context *context = lc->context;
    const lower_bucket *bucket = &lc->buckets.items[i_bucket];
    const uint64_t n = bucket->n / lower_n_shards(context, bucket->is_expert);
    const uint64_t grad = lower_element_bytes(context, FR_SPACE_GRAD);
    const uint64_t weight = lower_element_bytes(context, FR_SPACE_WEIGHT);
    if (!context->plan->is_optimizer_offloaded)
        return;
    uint32_t i_segment =
        lower_segment_begin(context, FR_LANE_IO, "grad_offload_%u_%u",
                            (unsigned)lc->stage, (unsigned)i_bucket);
    fr_instr *instr = lower_emit(context, FR_OP_HOST_COPY);
    instr->dim[0] = (int64_t)(n * grad);
    instr->dim[1] = 1;
    instr->axis = (uint8_t)lower_shard_axis(context, bucket->is_expert);
    instr->shard_bytes = n * (weight > grad ? weight : grad);
    instr->ref[0] = lower_own(lc, bucket, FR_SPACE_GRAD);
    lower_add_call(lc, i_segment, -1, -1, -1);
    lower_bind_own(lc, bucket, FR_SPACE_GRAD, 'r');
}
