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
#include "plan/codec/optimizer.h"
#include "program/lower/step/lower_step.h"

static void copy(lower_rank *rank, fr_space space, uint64_t at,
                 uint64_t n_bytes, bool is_out)
{
    fr_instr *instr = lower_emit(rank->context, FR_OP_HOST_COPY);
    instr->copy.n_bytes = (int64_t)n_bytes;
    instr->copy.is_to_host = is_out;
    instr->ref[FR_HOST_COPY_BUFFER] = lower_ref(space, 0);
    instr->ref[FR_HOST_COPY_HOST] = lower_ref(FR_SPACE_HOST, at);
}

static uint64_t kept_bytes(const lower_rank *rank, int32_t layer,
                           bool has_saved)
{
    const lower_context *context = rank->context;
    return lower_input_bytes(context, layer) +
           (has_saved ? lower_kind_of(context, layer)->saved.n_bytes : 0);
}

/* One segment per direction and shape of what is kept. */
static uint32_t layer_segment(lower_rank *rank, int32_t layer, bool has_saved,
                              bool is_out)
{
    enum { PURPOSE_OFFLOAD = 100 };
    const lower_context *context = rank->context;
    const uint64_t saved =
        has_saved ? lower_kind_of(context, layer)->saved.n_bytes : 0;
    const uint64_t input = lower_input_bytes(context, layer);
    bool is_new;
    uint32_t i_segment = lower_shared_segment_of(
        rank, PURPOSE_OFFLOAD + is_out, (const uint64_t[3]){saved, input, 0},
        FR_LANE_IO, is_out ? "offload" : "fetch", &is_new);
    if (!is_new)
        return i_segment;
    copy(rank, FR_SPACE_INPUT, 0, input, is_out);
    if (saved > 0)
        copy(rank, FR_SPACE_SAVED, input, saved, is_out);
    return i_segment;
}

void lower_offload_layer(lower_rank *rank, const fr_task *task, int32_t i)
{
    const double frac = rank->context->plan->activation_offload_frac;
    const size_t at = lower_slot(rank, task, i);
    const int32_t layer = rank->chunks[task->chunk].span.first + i;
    bool has_saved = rank->blocks[at].saved != FR_BLOCK_NONE;
    if (frac <= 0)
        return;
    /* The blocks before these had the time of this layer's forward to be
     * copied. */
    for (int k = 0; k < 2; k++) {
        fr_builder_keep(rank->builder, rank->left_kept[k]);
        rank->left_kept[k] = FR_BLOCK_NONE;
    }
    double number = rank->n_offloadable++;
    if ((uint64_t)((number + 1) * frac) == (uint64_t)(number * frac))
        return;
    lower_add_call(rank, layer_segment(rank, layer, has_saved, true), layer,
                   task->micro_batch, task->chunk);
    fr_builder_bind(rank->builder, FR_SPACE_INPUT, rank->blocks[at].input, 'r');
    if (has_saved)
        fr_builder_bind(rank->builder, FR_SPACE_SAVED, rank->blocks[at].saved,
                        'r');
    rank->blocks[at].is_offloaded = true;
    rank->blocks[at].away =
        fr_builder_add_host_block(rank->builder, FR_MEMORY_ACTIVATIONS, false,
                                  kept_bytes(rank, layer, has_saved));
    fr_builder_bind(rank->builder, FR_SPACE_HOST, rank->blocks[at].away, 'w');
    rank->left_kept[0] = rank->blocks[at].input;
    rank->left_kept[1] = rank->blocks[at].saved;
}

void lower_fetch_layer(lower_rank *rank, const fr_task *task, int32_t i)
{
    if (i < 0)
        return;
    const lower_context *context = rank->context;
    const size_t at = lower_slot(rank, task, i);
    const int32_t layer = rank->chunks[task->chunk].span.first + i;
    bool has_saved = rank->blocks[at].saved != FR_BLOCK_NONE;
    if (!rank->blocks[at].is_offloaded)
        return;
    rank->blocks[at].is_offloaded = false;
    rank->blocks[at].input =
        lower_add_activation(rank, lower_input_bytes(context, layer));
    lower_add_call(rank, layer_segment(rank, layer, has_saved, false), layer,
                   task->micro_batch, task->chunk);
    fr_builder_bind(rank->builder, FR_SPACE_HOST, rank->blocks[at].away, 'r');
    fr_builder_bind(rank->builder, FR_SPACE_INPUT, rank->blocks[at].input, 'w');
    if (has_saved) {
        rank->blocks[at].saved = lower_add_activation(
            rank, lower_kind_of(context, layer)->saved.n_bytes);
        fr_builder_bind(rank->builder, FR_SPACE_SAVED, rank->blocks[at].saved,
                        'w');
    }
    fr_builder_after(rank->builder, rank->gate);
}

/* ---- the optimizer ------------------------------------------------------- */

/* Bytes of a block for so many. */
static uint64_t rounded(uint64_t n_bytes)
{
    return (n_bytes + FR_BLOCK_ALIGN - 1) / FR_BLOCK_ALIGN * FR_BLOCK_ALIGN;
}

lower_host_share lower_host_share_of(const lower_rank *rank,
                                     const lower_bucket *bucket)
{
    const lower_context *context = rank->context;
    lower_host_share share = {
        .n =
            fr_sharding_part(&context->sharding, bucket->is_expert, bucket->n)};
    share.grad_bytes = share.n * lower_element_bytes(context, FR_SPACE_GRAD);
    share.state = rounded(share.grad_bytes);
    share.state_bytes = fr_optimizer_resident_bytes(
        context->job->optimizer, share.n, fr_plan_has_master(context->plan));
    share.copy = share.state + rounded(share.state_bytes);
    share.copy_bytes = share.n * lower_element_bytes(context, FR_SPACE_WEIGHT);
    return share;
}

void lower_add_host_blocks(lower_rank *rank, lower_bucket *bucket)
{
    const lower_host_share share = lower_host_share_of(rank, bucket);
    fr_builder *builder = rank->builder;
    bucket->host = fr_builder_add_host_block(builder, FR_MEMORY_GRADIENTS, true,
                                             share.grad_bytes);
    (void)fr_builder_add_host_block(builder, FR_MEMORY_OPTIMIZER, true,
                                    share.state_bytes);
    (void)fr_builder_add_host_block(builder, FR_MEMORY_PARAMETERS, true,
                                    share.copy_bytes);
}

void lower_bind_host_step(lower_rank *rank, const lower_bucket *bucket)
{
    fr_builder_bind(rank->builder, FR_SPACE_HOST, bucket->host, 'r');
    /* State and copy follow the gradients. */
    fr_builder_use(rank->builder, bucket->host + 1, 'm');
    fr_builder_use(rank->builder, bucket->host + 2, 'm');
}

void lower_offload_grads(lower_rank *rank, uint32_t i_bucket)
{
    lower_context *context = rank->context;
    const lower_bucket *bucket = &rank->buckets.items[i_bucket];
    const lower_host_share share = lower_host_share_of(rank, bucket);
    const uint64_t n = share.n;
    const uint64_t grad = lower_element_bytes(context, FR_SPACE_GRAD);
    const uint64_t weight = lower_element_bytes(context, FR_SPACE_WEIGHT);
    if (!context->plan->is_optimizer_offloaded)
        return;
    uint32_t i_segment =
        lower_segment_begin(context, FR_LANE_IO, "grad_offload_%u_%u",
                            (unsigned)rank->stage, (unsigned)i_bucket);
    fr_instr *instr = lower_emit(context, FR_OP_HOST_COPY);
    instr->copy.n_bytes = (int64_t)share.grad_bytes;
    instr->copy.is_to_host = 1;
    instr->axis = (uint8_t)context->sharding.shard_axis[bucket->is_expert];
    instr->shard_bytes = n * (weight > grad ? weight : grad);
    instr->ref[FR_HOST_COPY_BUFFER] = lower_own(rank, bucket, FR_SPACE_GRAD);
    instr->ref[FR_HOST_COPY_HOST] = lower_ref(FR_SPACE_HOST, 0);
    lower_add_call(rank, i_segment, -1, -1, -1);
    lower_bind_own(rank, bucket, FR_SPACE_GRAD, 'r');
    fr_builder_bind(rank->builder, FR_SPACE_HOST, bucket->host, 'w');
}
