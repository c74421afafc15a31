/*
 * lower_update.c: the begin of a step (zero) and its end: gradient norm, clip,
 * optimizer, gathering of what ZeRO has scattered, and the loss.
 *
 * ZeRO 1 and 2 gather the new parameters at the end of the step in programs
 * that the CPU runtime can execute, whose steps end with whole parameters.  In
 * the others, which show the steady state of training, they are gathered at
 * the begin of the next step on lane GATHER, ahead of each layer's first
 * forward (is_gather_overlap), or at the end on COMPUTE.
 */
#include "plan/codec/optimizer.h"
#include "plan/decide/grid.h"
#include "program/lower/step/lower_step.h"

#include <stddef.h>

/* The norms of LARS and LAMB stand behind the step's scalars; those of experts,
 * whose parts lie on other ranks, in an array of their own. */
enum { NORMS_OFFSET = 64 };

static uint64_t norms_bytes(const lower_rank *rank)
{
    bool has = fr_optimizers[rank->context->job->optimizer]->has_norms;
    return has ? 2 * sizeof(double) * rank->tensors.n : 0;
}

static uint64_t norms_offset(const lower_rank *rank, bool is_expert)
{
    return NORMS_OFFSET + (is_expert ? norms_bytes(rank) : 0);
}

static bool has_expert_norms(const lower_rank *rank)
{
    for (size_t b = 0; b < rank->buckets.n; b++)
        if (rank->buckets.items[b].is_expert)
            return norms_bytes(rank) > 0;
    return false;
}

static uint64_t scalars_bytes(const lower_rank *rank)
{
    return norms_offset(rank, has_expert_norms(rank)) + norms_bytes(rank);
}

static uint32_t begin(lower_rank *rank, fr_lane lane, const char *name,
                      size_t i_bucket)
{
    return lower_segment_begin(rank->context, lane, "%s_%u_%u", name,
                               (unsigned)rank->stage, (unsigned)i_bucket);
}

static void add_step_call(lower_rank *rank, uint32_t i_segment, char access)
{
    lower_add_call(rank, i_segment, -1, -1, -1);
    fr_builder_bind(rank->builder, FR_SPACE_STEP, rank->step, access);
}

/* Adds an operand of the size of the scores that is never given back. */
static void add_scores_buffer(lower_rank *rank)
{
    const lower_context *context = rank->context;
    const lower_shape *s = &context->shape;
    if (!context->target.has_scores_buffer)
        return;
    uint64_t n = (uint64_t)(s->rows * s->q_heads) *
                 (uint64_t)(s->seq * context->plan->cp);
    fr_builder_add_block(rank->builder, FR_MEMORY_BUFFERS, true,
                         n * lower_element_bytes(context, FR_SPACE_IN));
}

void lower_zero(lower_rank *rank)
{
    lower_context *context = rank->context;
    uint32_t i_segment = lower_segment_begin(context, FR_LANE_COMPUTE,
                                             "zero_%u", (unsigned)rank->stage);
    lower_segments_mark(context, i_segment, FR_SEGMENT_ZERO);
    fr_instr *instr = lower_emit(context, FR_OP_ZERO);
    instr->copy.n_bytes = (int64_t)scalars_bytes(rank);
    instr->ref[FR_ZERO_DST] = lower_ref(FR_SPACE_STEP, 0);
    if (!context->sharding.is_by_unit) {
        instr = lower_emit(context, FR_OP_ZERO);
        instr->copy.n_bytes =
            (int64_t)(rank->rank_program->n_parameters *
                      lower_element_bytes(context, FR_SPACE_GRAD));
        instr->ref[FR_ZERO_DST] = lower_ref(FR_SPACE_GRAD, 0);
    }
    rank->step = fr_builder_add_block(rank->builder, FR_MEMORY_BUFFERS, true,
                                      scalars_bytes(rank));
    add_scores_buffer(rank);
    add_step_call(rank, i_segment, 'w');
    if (!context->sharding.is_by_unit)
        lower_bind_flat(rank, FR_SPACE_GRAD, NULL, 'w');
}

/* The elements of a bucket that this rank updates; ZeRO gives it a shard. */
static uint64_t own_elements(const lower_rank *rank, const lower_bucket *bucket)
{
    return fr_sharding_part(&rank->context->sharding, bucket->is_expert,
                            bucket->n);
}

/* Sets the range and the shard of an instruction over a bucket. */
static void set_range(const lower_rank *rank, const lower_bucket *bucket,
                      fr_instr *instr)
{
    const lower_context *context = rank->context;
    uint64_t n = own_elements(rank, bucket);
    uint64_t weight = lower_element_bytes(context, FR_SPACE_WEIGHT);
    uint64_t grad = lower_element_bytes(context, FR_SPACE_GRAD);
    instr->range.n = (int64_t)n;
    instr->range.first = (int64_t)bucket->first;
    instr->axis = (uint8_t)context->sharding.shard_axis[bucket->is_expert];
    instr->shard_bytes = n * (weight > grad ? weight : grad);
    if (context->sharding.n_shards[bucket->is_expert] > 1)
        instr->flags |= FR_INSTR_SHARD;
}

/* Sums what lies at a place among the step's scalars. */
static void sum_scalars(lower_rank *rank, const char *name, const fr_move *move,
                        uint64_t offset_bytes)
{
    lower_context *context = rank->context;
    if (fr_plan_group_size(context->plan, move->axis) == 1)
        return;
    uint32_t i_segment = lower_segment_begin(context, FR_LANE_COMPUTE, "%s_%u",
                                             name, (unsigned)rank->stage);
    fr_instr *instr = lower_move(context, move);
    instr->ref[FR_COMM_SRC] = instr->ref[FR_COMM_DST] =
        lower_ref(FR_SPACE_STEP, offset_bytes);
    add_step_call(rank, i_segment, 'm');
}

static void reduce_loss(lower_rank *rank)
{
    const fr_move move = fr_sharding_loss_sum();
    sum_scalars(rank, "loss_reduce", &move,
                offsetof(fr_step_scalars, loss_sum));
}

static void reduce_norms(lower_rank *rank, const char *name, fr_axis axis,
                         bool is_expert)
{
    const fr_move move = {FR_LANE_COMPUTE, FR_OP_ALL_REDUCE, axis, FR_DTYPE_F64,
                          norms_bytes(rank) / sizeof(double)};
    sum_scalars(rank, name, &move, norms_offset(rank, is_expert));
}

/* Over all ranks that hold other parts of the same tensors: of experts, which
 * are one tensor, also those with other experts. */
static void reduce_all_norms(lower_rank *rank)
{
    const fr_sharding *sharding = &rank->context->sharding;
    reduce_norms(rank, "norms_reduce_tp", FR_AXIS_TP, false);
    if (sharding->is_scattered)
        reduce_norms(rank, "norms_reduce_dp", sharding->shard_axis[0], false);
    if (!has_expert_norms(rank))
        return;
    reduce_norms(rank, "norms_reduce_etp", FR_AXIS_ETP, true);
    reduce_norms(rank, "norms_reduce_ep", FR_AXIS_EP, true);
    if (sharding->is_scattered)
        reduce_norms(rank, "norms_reduce_edp", sharding->shard_axis[1], true);
}

/* Ranks of a sum over the world that hold the same gradients of a bucket. */
static uint64_t n_copies(const lower_context *context,
                         const lower_bucket *bucket)
{
    fr_axis axis = context->sharding.reduce_axis[bucket->is_expert];
    return fr_sharding_part(&context->sharding, bucket->is_expert,
                            (uint64_t)fr_plan_group_size(context->plan, axis));
}

/*
 * Optimizers with float32 master weights step on float32 gradients: those of
 * 16 bits are copied first, all of the rank's, and the copies go after the
 * step (Megatron-LM: Float16OptimizerWithFloat16Params and
 * DistributedOptimizer, _copy_model_grads_to_main_grads; DeepSpeed
 * stage_1_and_2.py, step(): single_partition_of_fp32_groups[i].grad).
 */
static void add_main_grads(lower_rank *rank)
{
    const lower_context *context = rank->context;
    uint64_t n = 0;
    rank->main_grads = FR_BLOCK_NONE;
    if (lower_element_bytes(context, FR_SPACE_GRAD) >= sizeof(float) ||
        !fr_plan_has_master(context->plan) ||
        context->plan->is_optimizer_offloaded)
        return;
    for (size_t b = 0; b < rank->buckets.n; b++)
        n += own_elements(rank, &rank->buckets.items[b]);
    rank->main_grads = fr_builder_add_block(rank->builder, FR_MEMORY_GRADIENTS,
                                            false, n * sizeof(float));
}

static void use_main_grads(lower_rank *rank)
{
    if (rank->main_grads != FR_BLOCK_NONE)
        fr_builder_use(rank->builder, rank->main_grads, 'm');
}

static void clip(lower_rank *rank)
{
    lower_context *context = rank->context;
    bool is_clipped = context->job->clip_norm > 0;
    for (size_t b = 0; is_clipped && b < rank->buckets.n; b++) {
        const lower_bucket *bucket = &rank->buckets.items[b];
        uint32_t i_segment = begin(rank, FR_LANE_COMPUTE, "grad_sqsum", b);
        fr_instr *instr = lower_emit(context, FR_OP_GRAD_SQSUM);
        set_range(rank, bucket, instr);
        if (context->sharding.norm_axis == FR_AXIS_WORLD &&
            n_copies(context, bucket) > 1)
            instr->scalar = 1.0 / (double)n_copies(context, bucket);
        instr->ref[FR_GRAD_SQSUM_G] = lower_own(rank, bucket, FR_SPACE_GRAD);
        instr->ref[FR_GRAD_SQSUM_STEP] = lower_ref(FR_SPACE_STEP, 0);
        add_step_call(rank, i_segment, 'm');
        lower_bind_own(rank, bucket, FR_SPACE_GRAD, 'r');
        use_main_grads(rank);
    }
    if (is_clipped) {
        const fr_move move = fr_sharding_norm_sum(&context->sharding);
        sum_scalars(rank, "grad_norm_reduce", &move,
                    offsetof(fr_step_scalars, grad_sq_sum));
        /* Everybody has just met: the loss costs one more latency only. */
        reduce_loss(rank);
    }
    uint32_t i_segment = lower_segment_begin(context, FR_LANE_COMPUTE,
                                             "clip_%u", (unsigned)rank->stage);
    lower_segments_mark(context, i_segment, FR_SEGMENT_CLIP);
    fr_instr *instr = lower_emit(context, FR_OP_CLIP);
    instr->scalar = context->job->clip_norm;
    instr->ref[FR_CLIP_STEP] = lower_ref(FR_SPACE_STEP, 0);
    add_step_call(rank, i_segment, 'm');
}

/* Copies the new parameters back from the host. */
static void fetch_weights(lower_rank *rank, const lower_bucket *bucket)
{
    lower_context *context = rank->context;
    fr_instr *instr = lower_emit(context, FR_OP_HOST_COPY);
    set_range(rank, bucket, instr);
    instr->copy.n_bytes =
        (int64_t)(own_elements(rank, bucket) *
                  lower_element_bytes(context, FR_SPACE_WEIGHT));
    instr->copy.is_to_host = 0;
    instr->ref[FR_HOST_COPY_BUFFER] = lower_own(rank, bucket, FR_SPACE_WEIGHT);
    instr->ref[FR_HOST_COPY_HOST] =
        lower_ref(FR_SPACE_HOST, lower_host_share_of(rank, bucket).copy);
}

/* Sets the operands of the optimizer's step on the host: tensors of which the
 * host's memory has a copy. */
static void step_on_host(const lower_rank *rank, const lower_bucket *bucket,
                         fr_instr *instr)
{
    const lower_host_share share = lower_host_share_of(rank, bucket);
    instr->ref[FR_OPT_STEP_G] = lower_ref(FR_SPACE_HOST, 0);
    instr->ref[FR_OPT_STEP_W] = lower_ref(FR_SPACE_HOST, share.copy);
    if (share.state_bytes > 0)
        instr->ref[FR_OPT_STEP_OPT] = lower_ref(FR_SPACE_HOST, share.state);
}

/* Calls OPT_NORMS or OPT_STEP of one bucket. */
static void optimize(lower_rank *rank, fr_op op, size_t i_bucket)
{
    lower_context *context = rank->context;
    const lower_bucket *bucket = &rank->buckets.items[i_bucket];
    uint64_t n_norms = norms_bytes(rank);
    bool is_step = op == FR_OP_OPT_STEP;
    bool is_on_host = context->plan->is_optimizer_offloaded;
    uint32_t i_segment = begin(rank, is_on_host ? FR_LANE_IO : FR_LANE_COMPUTE,
                               is_step ? "opt_step" : "opt_norms", i_bucket);
    fr_instr *instr = lower_emit(context, op);
    set_range(rank, bucket, instr);
    instr->optimizer = (uint8_t)context->job->optimizer;
    instr->range.opt_bytes = (int64_t)fr_optimizer_resident_bytes(
        context->job->optimizer, own_elements(rank, bucket),
        fr_plan_has_master(context->plan));
    instr->range.norms_bytes = (int64_t)n_norms;
    instr->flags |= is_on_host ? FR_INSTR_HOST : 0;
    instr->ref[FR_OPT_STEP_G] = lower_own(rank, bucket, FR_SPACE_GRAD);
    instr->ref[FR_OPT_STEP_W] = lower_own(rank, bucket, FR_SPACE_WEIGHT);
    if (instr->range.opt_bytes > 0)
        instr->ref[FR_OPT_STEP_OPT] = lower_ref(FR_SPACE_OPT, 0);
    if (is_on_host)
        step_on_host(rank, bucket, instr);
    instr->ref[FR_OPT_STEP_STEP] = lower_ref(FR_SPACE_STEP, 0);
    if (n_norms > 0)
        instr->ref[FR_OPT_STEP_NORMS] =
            lower_ref(FR_SPACE_STEP, norms_offset(rank, bucket->is_expert));
    if (is_on_host)
        fetch_weights(rank, bucket);
    add_step_call(rank, i_segment, is_step ? 'r' : 'm');
    lower_bind_own(rank, bucket, FR_SPACE_WEIGHT, is_step ? 'm' : 'r');
    if (is_on_host) {
        lower_bind_host_step(rank, bucket);
        return;
    }
    lower_bind_own(rank, bucket, FR_SPACE_GRAD, 'r');
    fr_builder_bind(rank->builder, FR_SPACE_OPT, bucket->opt, 'm');
    use_main_grads(rank);
}

static void gather_weights(lower_rank *rank, size_t i_bucket)
{
    lower_context *context = rank->context;
    const lower_bucket *bucket = &rank->buckets.items[i_bucket];
    const uint64_t weight = lower_element_bytes(context, FR_SPACE_WEIGHT);
    const fr_sharding *sharding = &context->sharding;
    if (sharding->n_shards[bucket->is_expert] == 1)
        return;
    const fr_move move =
        fr_sharding_gather(sharding, bucket->is_expert, bucket->n);
    uint32_t i_segment = begin(rank, move.lane, "param_gather", i_bucket);
    fr_instr *instr = lower_move(context, &move);
    instr->shard_bytes = own_elements(rank, bucket) * weight;
    instr->ref[FR_COMM_DST] = lower_own(rank, bucket, FR_SPACE_WEIGHT);
    instr->ref[FR_COMM_DST].is_sharded = 0;
    instr->ref[FR_COMM_SRC] = instr->ref[FR_COMM_DST];
    instr->ref[FR_COMM_SRC].is_sharded = 1;
    lower_add_call(rank, i_segment, -1, -1, -1);
    lower_bind_own(rank, bucket, FR_SPACE_WEIGHT, 'm');
}

void lower_gather_early(lower_rank *rank)
{
    if (!rank->context->sharding.is_gathered_early)
        return;
    for (size_t b = rank->buckets.n; b-- > 0;)
        gather_weights(rank, b);
}

void lower_update(lower_rank *rank)
{
    lower_context *context = rank->context;
    add_main_grads(rank);
    clip(rank);
    if (norms_bytes(rank) > 0) {
        for (size_t b = 0; b < rank->buckets.n; b++)
            optimize(rank, FR_OP_OPT_NORMS, b);
        reduce_all_norms(rank);
    }
    for (size_t b = 0; b < rank->buckets.n; b++) {
        optimize(rank, FR_OP_OPT_STEP, b);
        if (context->sharding.gather_lane != FR_LANE_GATHER)
            gather_weights(rank, b);
    }
    if (!(context->job->clip_norm > 0))
        reduce_loss(rank);
}
