/*
 * lower_reduce.c: gradients are summed over the data-parallel ranks, bucket
 * by bucket, compressed or not; and the two copies of a tied matrix over the
 * first and the last stage.
 *
 * With overlap the sums run on lane DP beside backward, else on COMPUTE after
 * it.
 */
#include "plan/lower/step/lower_internal.h"

fr_lane lower_reduce_lane(const lower_context *context)
{
    return context->plan->is_overlap ? FR_LANE_DP : FR_LANE_COMPUTE;
}

static fr_lane reduce_lane(const lower_class *lc)
{
    return lower_reduce_lane(lc->context);
}

static fr_axis axis_of(const lower_class *lc, const lower_bucket *bucket)
{
    return lower_reduce_axis(lc->context, bucket->is_expert);
}

static int64_t group_size(const lower_class *lc, const lower_bucket *bucket)
{
    return lower_axis_size(lc->context->plan, axis_of(lc, bucket));
}

static fr_ref flat(const lower_class *lc, fr_space space, uint64_t first)
{
    return lower_parameter(lc->context, space, first);
}

static void add_call(lower_class *lc, uint32_t i_segment,
                     const lower_bucket *bucket, char grad_access)
{
    lower_add_call(lc, i_segment, -1, -1, -1);
    lower_bind_flat(lc, FR_SPACE_GRAD, bucket, grad_access);
}

void lower_reduce_tied(lower_class *lc)
{
    lower_context *context = lc->context;
    for (size_t b = 0; b < lc->buckets.n; b++) {
        const lower_bucket *bucket = &lc->buckets.items[b];
        if (!bucket->is_tied)
            continue;
        const lower_unit *unit = &lc->units.items[bucket->first_unit];
        uint32_t i_segment =
            lower_segment_begin(context, reduce_lane(lc), "tied_grad_reduce");
        fr_instr *instr =
            lower_collective(context, FR_OP_ALL_REDUCE, FR_AXIS_EMBED,
                             context->plan->grad_dtype, bucket->n);
        if (!lower_is_by_unit(context)) {
            instr->ref[0] = instr->ref[1] =
                flat(lc, FR_SPACE_GRAD, bucket->first);
            add_call(lc, i_segment, bucket, 'm');
            continue;
        }
        const lower_set *set = &lc->sets.items[unit->i_set];
        uint64_t first = lc->units.items[set->first_unit].first;
        instr->ref[0] = instr->ref[1] =
            flat(lc, FR_SPACE_GRAD, bucket->first - first);
        lower_add_call(lc, i_segment, -1, -1, -1);
        lower_bind_set(lc, FR_SPACE_GRAD, unit->i_set, 'm');
    }
}

/* ZeRO 1 over a part of the ranks: the shards of all parts are summed. */
static void reduce_replicas(lower_class *lc, const lower_bucket *bucket)
{
    lower_context *context = lc->context;
    uint64_t shard = bucket->n / lower_n_shards(context, bucket->is_expert);
    if (bucket->is_expert ||
        lower_axis_size(context->plan, FR_AXIS_REPLICA) == 1)
        return;
    fr_instr *instr =
        lower_collective(context, FR_OP_ALL_REDUCE, FR_AXIS_REPLICA,
                         context->plan->grad_dtype, shard);
    instr->tag = FR_AXIS_SHARD;
    instr->shard_bytes = shard * lower_element_bytes(context, FR_SPACE_GRAD);
    instr->ref[0] = flat(lc, FR_SPACE_GRAD, bucket->first);
    instr->ref[0].is_sharded = 1;
    instr->ref[1] = instr->ref[0];
}

static void reduce_plain(lower_class *lc, uint32_t i_bucket)
{
    lower_context *context = lc->context;
    const lower_bucket *bucket = &lc->buckets.items[i_bucket];
    bool is_scattered = context->plan->zero_stage > 0;
    fr_axis axis = is_scattered ? lower_shard_axis(context, bucket->is_expert)
                                : axis_of(lc, bucket);
    uint32_t i_segment =
        lower_segment_begin(context, reduce_lane(lc), "dp_reduce_%u_%u",
                            (unsigned)lc->stage, (unsigned)i_bucket);
    fr_instr *instr = lower_collective(
        context, is_scattered ? FR_OP_REDUCE_SCATTER : FR_OP_ALL_REDUCE, axis,
        context->plan->grad_dtype, bucket->n);
    instr->shard_bytes = bucket->n /
                         (uint64_t)lower_axis_size(context->plan, axis) *
                         lower_element_bytes(context, FR_SPACE_GRAD);
    instr->ref[0] = flat(lc, FR_SPACE_GRAD, bucket->first);
    instr->ref[1] = instr->ref[0];
    instr->ref[1].is_sharded = is_scattered;
    if (is_scattered)
        reduce_replicas(lc, bucket);
    add_call(lc, i_segment, bucket, 'm');
}

static fr_bucket describe(const lower_class *lc, const lower_bucket *bucket)
{
    return (fr_bucket){.first = bucket->first,
                       .n = bucket->n,
                       .tensors = lc->tensors.items,
                       .n_tensors = (uint32_t)lc->tensors.n};
}

/* COMPRESS or DECOMPRESS with the dims of compressor.h. */
static fr_instr *coder(lower_class *lc, fr_op op, const lower_bucket *bucket,
                       int stage)
{
    lower_context *context = lc->context;
    const fr_plan *plan = context->plan;
    const fr_compressor *compressor = fr_compressor_of(plan);
    fr_bucket b = describe(lc, bucket);
    uint64_t payload = fr_compressor_payload_bytes(plan, &b);
    uint64_t state = compressor->state_bytes(plan, &b);
    bool is_gather = compressor->wire == FR_WIRE_GATHER;
    fr_instr *instr = lower_emit(context, op);
    instr->algorithm = (uint8_t)plan->compressor;
    instr->axis = (uint8_t)axis_of(lc, bucket);
    instr->dim[FR_COMPRESS_DIM_N] = (int64_t)bucket->n;
    instr->dim[FR_COMPRESS_DIM_PAYLOAD_BYTES] = (int64_t)payload;
    instr->dim[FR_COMPRESS_DIM_STAGE] = stage;
    instr->dim[FR_COMPRESS_DIM_FIRST] = (int64_t)bucket->first;
    instr->dim[FR_COMPRESS_DIM_STATE_BYTES] = (int64_t)state;
    instr->dim[FR_COMPRESS_DIM_N_PAYLOADS] =
        is_gather ? group_size(lc, bucket) : 1;
    if (state > 0)
        instr->ref[1] = lower_ref(FR_SPACE_ERROR, 0);
    return instr;
}

static void compress(lower_class *lc, uint32_t i_bucket, int stage)
{
    lower_context *context = lc->context;
    const lower_bucket *bucket = &lc->buckets.items[i_bucket];
    bool is_gather = fr_compressor_of(context->plan)->wire == FR_WIRE_GATHER;
    uint32_t i_segment =
        lower_segment_begin(context, FR_LANE_COMPUTE, "compress%d_%u_%u", stage,
                            (unsigned)lc->stage, (unsigned)i_bucket);
    fr_instr *instr = coder(lc, FR_OP_COMPRESS, bucket, stage);
    instr->ref[0] = flat(lc, FR_SPACE_GRAD, bucket->first);
    instr->ref[2] = lower_ref(FR_SPACE_WIRE, 0);
    instr->ref[2].is_sharded = is_gather;
    instr->shard_bytes = (uint64_t)instr->dim[FR_COMPRESS_DIM_PAYLOAD_BYTES];
    add_call(lc, i_segment, bucket, 'r');
    fr_builder_bind(lc->builder, FR_SPACE_WIRE, bucket->wire,
                    stage == 0 ? 'w' : 'm');
    fr_builder_bind(lc->builder, FR_SPACE_ERROR, bucket->error, 'm');
}

/* The payloads of a stage go round. */
static void exchange(lower_class *lc, uint32_t i_bucket, int stage)
{
    lower_context *context = lc->context;
    const fr_plan *plan = context->plan;
    const fr_compressor *compressor = fr_compressor_of(plan);
    const lower_bucket *bucket = &lc->buckets.items[i_bucket];
    fr_bucket b = describe(lc, bucket);
    uint64_t bytes = compressor->stage_bytes(plan, &b, stage), before = 0;
    fr_instr *instr;
    for (int s = 0; s < stage; s++)
        before += compressor->stage_bytes(plan, &b, s);
    if (bytes == 0)
        return;
    uint32_t i_segment =
        lower_segment_begin(context, reduce_lane(lc), "dp_wire%d_%u_%u", stage,
                            (unsigned)lc->stage, (unsigned)i_bucket);
    if (compressor->wire == FR_WIRE_GATHER) {
        instr = lower_collective(context, FR_OP_ALL_GATHER, axis_of(lc, bucket),
                                 FR_DTYPE_U8,
                                 bytes * (uint64_t)group_size(lc, bucket));
        instr->ref[0] = instr->ref[1] = lower_ref(FR_SPACE_WIRE, 0);
        instr->ref[0].is_sharded = 1;
        instr->shard_bytes = bytes;
    } else {
        instr = lower_collective(context, FR_OP_ALL_REDUCE, axis_of(lc, bucket),
                                 FR_DTYPE_F32, bytes / sizeof(float));
        instr->ref[0] = instr->ref[1] = lower_ref(FR_SPACE_WIRE, before);
    }
    lower_add_call(lc, i_segment, -1, -1, -1);
    fr_builder_bind(lc->builder, FR_SPACE_WIRE, bucket->wire, 'm');
}

static void decompress(lower_class *lc, uint32_t i_bucket)
{
    const lower_bucket *bucket = &lc->buckets.items[i_bucket];
    uint32_t i_segment =
        lower_segment_begin(lc->context, FR_LANE_COMPUTE, "decompress_%u_%u",
                            (unsigned)lc->stage, (unsigned)i_bucket);
    fr_instr *instr = coder(lc, FR_OP_DECOMPRESS, bucket, 0);
    instr->ref[0] = lower_ref(FR_SPACE_WIRE, 0);
    instr->ref[2] = flat(lc, FR_SPACE_GRAD, bucket->first);
    add_call(lc, i_segment, bucket, 'w');
    fr_builder_bind(lc->builder, FR_SPACE_WIRE, bucket->wire, 'r');
    fr_builder_bind(lc->builder, FR_SPACE_ERROR, bucket->error, 'm');
}

/*
 * A bucket (LOWER_NO_BUCKET: none) starts, and while its first payload travels
 * those before it move on by one stage each: the last one is decompressed, so
 * only as many buckets as there are stages, and one, have a wire at a time.
 */
static void move_on(lower_class *lc, uint32_t i_bucket)
{
    const fr_compressor *compressor = fr_compressor_of(lc->context->plan);
    for (int stage = 0; stage < compressor->n_stages; stage++) {
        uint32_t i_next = lc->travelling[stage];
        lc->travelling[stage] = i_bucket;
        if (i_bucket != LOWER_NO_BUCKET) {
            compress(lc, i_bucket, stage);
            exchange(lc, i_bucket, stage);
        }
        i_bucket = i_next;
    }
    if (i_bucket != LOWER_NO_BUCKET)
        decompress(lc, i_bucket);
}

void lower_reduce_finish(lower_class *lc)
{
    const fr_compressor *compressor = fr_compressor_of(lc->context->plan);
    for (int stage = 0; stage < compressor->n_stages; stage++)
        move_on(lc, LOWER_NO_BUCKET);
}

void lower_reduce_bucket(lower_class *lc, uint32_t i_bucket)
{
    lower_context *context = lc->context;
    const fr_plan *plan = context->plan;
    const fr_compressor *compressor = fr_compressor_of(plan);
    lower_bucket *bucket = &lc->buckets.items[i_bucket];
    if (group_size(lc, bucket) == 1)
        return;
    if (compressor->wire == FR_WIRE_PLAIN) {
        reduce_plain(lc, i_bucket);
        return;
    }
    fr_bucket b = describe(lc, bucket);
    uint64_t payload = fr_compressor_payload_bytes(plan, &b);
    if (compressor->wire == FR_WIRE_GATHER)
        payload *= (uint64_t)group_size(lc, bucket);
    bucket->wire =
        fr_builder_add_block(lc->builder, FR_MEMORY_BUFFERS, false, payload);
    move_on(lc, i_bucket);
    if (!plan->is_overlap)
        lower_reduce_finish(lc);
}
