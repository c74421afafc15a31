/*
 * lower_rank.c: what every step of a rank's program uses: its calls, its units
 * and the places of its blocks.
 */
#include "program/lower/step/lower_rank.h"

#include "core/base/minmax.h"

#include <string.h>

uint32_t lower_shared_segment_of(lower_rank *rank, int purpose,
                                 const uint64_t key[3], fr_lane lane,
                                 const char *name, bool *is_new)
{
    lower_context *context = rank->context;
    lower_program *program = rank->program;
    for (size_t i = 0; i < program->shared.n; i++) {
        const lower_shared_segment *known = &program->shared.items[i];
        *is_new = known->purpose != purpose ||
                  memcmp(known->key, key, sizeof known->key) != 0;
        if (!*is_new)
            return known->i_segment;
    }
    lower_shared_segment fresh = {
        .purpose = purpose,
        .key = {key[0], key[1], key[2]},
        .i_segment = lower_segment_begin(context, lane, "%s", name)};
    *is_new = true;
    if (fr_vec_push(&program->shared, fresh) != FR_OK)
        context->is_out_of_memory = true;
    return fresh.i_segment;
}

/*
 * Frameworks: NCCL's kernels begin after all that the calling stream was given
 * before them (PyTorch, ProcessGroupNCCL.cpp, syncStream), so nothing that is
 * issued between compute calls runs ahead of them.  Gathers of parameters are
 * issued on streams of their own, gradients are not there any sooner.
 */
static bool follows_compute(const lower_rank *rank, fr_lane lane)
{
    return rank->context->target.is_framework_step &&
           (lane == FR_LANE_TP || lane == FR_LANE_PP_RECV);
}

void lower_add_call(lower_rank *rank, uint32_t i_segment, int32_t layer,
                    int64_t micro_batch, int32_t chunk)
{
    lower_context *context = rank->context;
    if (context->is_out_of_memory)
        return;
    const fr_segment *segment = &context->segments.items[i_segment];
    fr_builder_add_call(rank->builder, i_segment, (fr_lane)segment->lane, layer,
                        micro_batch, chunk);
    if (segment->temp_bytes > 0)
        fr_builder_bind(rank->builder, FR_SPACE_TEMP,
                        fr_builder_add_block(rank->builder, FR_MEMORY_BUFFERS,
                                             false, segment->temp_bytes),
                        'w');
    if (follows_compute(rank, (fr_lane)segment->lane))
        fr_builder_follow(rank->builder, FR_LANE_COMPUTE);
    if (segment->lane != FR_LANE_COMPUTE || rank->awaited == FR_BLOCK_NONE)
        return;
    fr_builder_use(rank->builder, rank->awaited, 'm');
    rank->awaited = FR_BLOCK_NONE;
}

/* Base at the begin of the flat list; uses the units of `only`, or all. */
void lower_bind_flat(lower_rank *rank, fr_space space, const lower_bucket *only,
                     char access)
{
    uint32_t first = only != NULL ? only->first_unit : 0;
    uint32_t end =
        only != NULL ? first + only->n_units : (uint32_t)rank->units.n;
    if (rank->units.n == 0)
        return;
    /* A base alone is no access. */
    const lower_unit *origin = &rank->units.items[0];
    fr_builder_set_base(rank->builder, space,
                        space == FR_SPACE_GRAD ? origin->grad : origin->weight);
    for (uint32_t i = first; i < end; i++) {
        const lower_unit *unit = &rank->units.items[i];
        fr_builder_use(rank->builder,
                       space == FR_SPACE_GRAD ? unit->grad : unit->weight,
                       access);
    }
}

uint32_t lower_add_activation(lower_rank *rank, uint64_t n_bytes)
{
    return fr_builder_add_block(rank->builder, FR_MEMORY_ACTIVATIONS, false,
                                n_bytes);
}

/* ---- tasks and layers ---- */

size_t lower_slot(const lower_rank *rank, const fr_task *task, int32_t layer)
{
    return (size_t)task->micro_batch * rank->n_slots +
           rank->chunks[task->chunk].first_slot + (size_t)layer;
}

uint32_t *lower_gradient_of(const lower_rank *rank, const fr_task *task)
{
    return &rank->gradients[task->micro_batch * rank->context->plan->vpp +
                            task->chunk];
}

uint64_t lower_gradient_bytes(const lower_rank *rank, int32_t chunk)
{
    uint64_t most = 0;
    for (int32_t i = 0; i <= rank->chunks[chunk].n_layers; i++)
        most = fr_max_u64(
            most, lower_input_bytes(rank->context,
                                    rank->chunks[chunk].span.first + i));
    return most;
}

/* The (first) unit of layer i of the task's chunk. */
const lower_unit *lower_layer_unit(const lower_rank *rank, const fr_task *task,
                                   int32_t i)
{
    return &rank->units.items[rank->slots[rank->chunks[task->chunk].first_slot +
                                          (uint32_t)i]
                                  .unit];
}

/* The unit of the layer's experts; NULL: none. */
const lower_unit *lower_expert_unit(const lower_rank *rank,
                                    const lower_unit *unit)
{
    bool is_there =
        unit + 1 < rank->units.items + rank->units.n && unit[1].is_expert;
    return is_there ? unit + 1 : NULL;
}

fr_bucket lower_coded_bucket(const lower_rank *rank, const lower_bucket *bucket)
{
    const lower_context *context = rank->context;
    fr_bucket coded = lower_describe_bucket(rank, bucket);
    coded.n =
        fr_sharding_coded(&context->sharding, fr_compressor_of(context->plan),
                          bucket->is_expert, bucket->n);
    return coded;
}

fr_bucket lower_describe_bucket(const lower_rank *rank,
                                const lower_bucket *bucket)
{
    return (fr_bucket){.first = bucket->first,
                       .n = bucket->n,
                       .tensors = rank->tensors.items,
                       .n_tensors = (uint32_t)rank->tensors.n};
}
