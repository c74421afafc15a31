/*
 * lower_finish.c: what follows once gradients are complete: the sums of norms,
 * the reduction over data-parallel ranks, the way to the host.
 */
#include "program/lower/step/lower_step.h"

/* Are a unit's gradients reduced after this task? */
static bool is_reduced_after(const lower_rank *rank, const fr_task *task)
{
    const lower_context *context = rank->context;
    return task->micro_batch == context->n_micro - 1 ||
           (context->sharding.is_by_unit && context->plan->pp == 1);
}

/* With overlap the gradients leave for the host as soon as they are whole. */
static void offload_bucket(lower_rank *rank, uint32_t i_bucket)
{
    if (fr_compressor_of(rank->context->plan)->wire == FR_WIRE_PLAIN)
        lower_offload_grads(rank, i_bucket);
}

static void reduce_set(lower_rank *rank, uint32_t i_set, bool is_last_micro)
{
    const lower_set *set = &rank->sets.items[i_set];
    lower_reduce_set(rank, i_set);
    for (uint32_t i = 0; is_last_micro && i < set->n_units; i++)
        offload_bucket(rank, rank->units.items[set->first_unit + i].i_bucket);
}

/* Called when a unit's gradients are complete, after the last micro-batch. */
static void finish_unit(lower_rank *rank, const lower_unit *unit)
{
    lower_bucket *bucket = &rank->buckets.items[unit->i_bucket];
    if (--bucket->n_pending > 0 || bucket->is_tied ||
        !rank->context->plan->is_overlap)
        return;
    lower_reduce_bucket(rank, unit->i_bucket);
    offload_bucket(rank, unit->i_bucket);
}

/* The gradients of norms that are partial sums (lower_partial_norms). */
static void finish_norms(lower_rank *rank, const lower_unit *unit)
{
    lower_context *context = rank->context;
    bool is_by_unit = context->sharding.is_by_unit;
    if (unit->n_norm == 0)
        return;
    uint32_t i_segment;
    if (unit->kind != LOWER_UNIT_LAYER) {
        if (!context->plan->is_sequence_parallel)
            return;
        uint64_t first =
            is_by_unit
                ? unit->first -
                      rank->units
                          .items[rank->sets.items[unit->i_set].first_unit]
                          .first
                : 0;
        i_segment = lower_segment_begin(context, FR_LANE_COMPUTE,
                                        unit->kind == LOWER_UNIT_FINAL
                                            ? "final_norm_grad_reduce"
                                            : "embed_norm_grad_reduce");
        const fr_ref norms = lower_grad(context, first + unit->norm_first);
        lower_collective(context, FR_OP_ALL_REDUCE, FR_AXIS_TP,
                         context->plan->grad_dtype, unit->n_norm, norms, norms);
    } else {
        const lower_kind *kind = lower_kind_of(context, unit->layer);
        if (lower_partial_norms(context, &kind->layout).n == 0)
            return;
        i_segment = kind->segments.i_norm_reduce;
    }
    lower_add_call(rank, i_segment, unit->layer, -1, -1);
    if (is_by_unit)
        lower_bind_set(rank, FR_SPACE_GRAD, unit->i_set, 'm');
    else
        fr_builder_bind(rank->builder, FR_SPACE_GRAD, unit->grad, 'm');
}

void lower_finish_layer(lower_rank *rank, const fr_task *task, int32_t i)
{
    const lower_unit *unit = lower_layer_unit(rank, task, i);
    const lower_unit *experts = lower_expert_unit(rank, unit);
    bool is_last_micro = task->micro_batch == rank->context->n_micro - 1;
    if (!is_reduced_after(rank, task))
        return;
    finish_norms(rank, unit);
    if (rank->context->sharding.is_by_unit) {
        reduce_set(rank, unit->i_set, is_last_micro);
        return;
    }
    if (experts != NULL)
        finish_unit(rank, experts);
    finish_unit(rank, unit);
}

void lower_finish_ends(lower_rank *rank, const fr_task *task, bool is_head)
{
    bool is_by_unit = rank->context->sharding.is_by_unit;
    bool is_last_micro = task->micro_batch == rank->context->n_micro - 1;
    if (!is_reduced_after(rank, task))
        return;
    for (size_t i = rank->units.n; i-- > 0;) {
        const lower_unit *unit = &rank->units.items[i];
        bool is_of_head = unit->kind == LOWER_UNIT_FINAL ||
                          (unit->kind == LOWER_UNIT_TIED && !rank->is_first);
        if (unit->kind == LOWER_UNIT_LAYER || is_of_head != is_head)
            continue;
        finish_norms(rank, unit);
        if (!is_by_unit)
            finish_unit(rank, unit);
    }
    uint32_t i_set = is_head ? rank->i_head_set : rank->i_embed_set;
    /* A set that both ends share is complete only after the embedding's
     * backward. */
    if (is_by_unit && !rank->sets.items[i_set].is_tied &&
        !(is_head && i_set == rank->i_embed_set))
        reduce_set(rank, i_set, is_last_micro);
}

/* The tied matrix waits for the other end of the pipeline, so it comes last;
 * without overlap all buckets come now. */
void lower_finish_reductions(lower_rank *rank)
{
    bool is_overlap = rank->context->plan->is_overlap;
    bool is_by_unit = rank->context->sharding.is_by_unit;
    bool is_plain =
        fr_compressor_of(rank->context->plan)->wire == FR_WIRE_PLAIN;
    for (uint32_t b = 0; !is_by_unit && b < rank->buckets.n; b++)
        if (!is_overlap && !rank->buckets.items[b].is_tied)
            lower_reduce_bucket(rank, b);
    lower_reduce_tied(rank);
    for (uint32_t b = 0; !is_by_unit && b < rank->buckets.n; b++)
        if (rank->buckets.items[b].is_tied)
            lower_reduce_bucket(rank, b);
    for (uint32_t i = 0; i < rank->sets.n; i++)
        if (rank->sets.items[i].is_tied)
            reduce_set(rank, i, true);
    lower_reduce_finish(rank);
    for (uint32_t b = 0; !is_by_unit && b < rank->buckets.n; b++)
        if (!is_overlap || !is_plain || rank->buckets.items[b].is_tied)
            lower_offload_grads(rank, b);
}
