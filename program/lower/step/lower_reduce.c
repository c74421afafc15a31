/*
 * lower_reduce.c: gradients are summed over the data-parallel ranks, bucket
 * by bucket, compressed or not; and the two copies of a tied matrix over the
 * first and the last stage.
 *
 * With overlap the sums run on lane DP beside backward, else on COMPUTE after
 * it.
 */
#include "plan/decide/grid.h"
#include "program/lower/step/lower_step.h"

static int64_t group_size(const lower_rank *rank, const lower_bucket *bucket)
{
    return fr_plan_group_size(
        rank->context->plan,
        rank->context->sharding.reduce_axis[bucket->is_expert]);
}

/* Ranks whose payloads of a bucket come together, by what of it is encoded. */
static fr_axis coded_axis(const lower_rank *rank, const lower_bucket *bucket)
{
    return fr_sharding_coded_axis(&rank->context->sharding,
                                  fr_compressor_of(rank->context->plan),
                                  bucket->is_expert);
}

static int64_t n_coders(const lower_rank *rank, const lower_bucket *bucket)
{
    return fr_plan_group_size(rank->context->plan, coded_axis(rank, bucket));
}

static bool codes_shards(const lower_rank *rank, const lower_bucket *bucket)
{
    return fr_sharding_codes_shards(&rank->context->sharding,
                                    fr_compressor_of(rank->context->plan),
                                    bucket->is_expert);
}

static void add_call(lower_rank *rank, uint32_t i_segment,
                     const lower_bucket *bucket, char grad_access)
{
    lower_add_call(rank, i_segment, -1, -1, -1);
    lower_bind_flat(rank, FR_SPACE_GRAD, bucket, grad_access);
}

void lower_reduce_tied(lower_rank *rank)
{
    lower_context *context = rank->context;
    for (size_t b = 0; b < rank->buckets.n; b++) {
        const lower_bucket *bucket = &rank->buckets.items[b];
        if (!bucket->is_tied)
            continue;
        const lower_unit *unit = &rank->units.items[bucket->first_unit];
        uint32_t i_segment = lower_segment_begin(
            context, context->sharding.reduce_lane, "tied_grad_reduce");
        const lower_set *set = context->sharding.is_by_unit
                                   ? &rank->sets.items[unit->i_set]
                                   : NULL;
        const uint64_t first =
            set != NULL ? rank->units.items[set->first_unit].first : 0;
        const fr_ref tied = lower_grad(context, bucket->first - first);
        lower_collective(context, FR_OP_ALL_REDUCE, FR_AXIS_EMBED,
                         context->plan->grad_dtype, bucket->n, tied, tied);
        lower_add_call(rank, i_segment, -1, -1, -1);
        if (set != NULL)
            lower_bind_set(rank, FR_SPACE_GRAD, unit->i_set, 'm');
        else
            lower_bind_flat(rank, FR_SPACE_GRAD, bucket, 'm');
    }
}

/*
 * DeepSpeed's ZeRO 1 of 2021 copies all gradients to flat partitions, of which
 * PyTorch's reduce_scatter of a list puts reduce_bucket_size side by side once
 * more: stage1.py, reduce_gradients; ProcessGroupNCCL.cpp, newLikeFlat.  The
 * block with both, LOWER_NO_BLOCK: it does not.
 */
static uint32_t list_partitions(lower_rank *rank, uint32_t i_bucket)
{
    lower_context *context = rank->context;
    const lower_bucket *bucket = &rank->buckets.items[i_bucket];
    const uint64_t width = lower_element_bytes(context, FR_SPACE_GRAD);
    const uint64_t usual_piece = 500000000; /* elements */
    const uint64_t piece = bucket->n < usual_piece ? bucket->n : usual_piece;
    if (!context->plan->execution.is_grad_listed ||
        context->plan->zero_stage != 1 || !context->target.is_framework_step ||
        !context->sharding.is_scattered)
        return LOWER_NO_BLOCK;
    const uint64_t n_bytes = (bucket->n + piece) * width;
    uint32_t block =
        fr_builder_add_block(rank->builder, FR_MEMORY_BUFFERS, false, n_bytes);
    uint32_t i_segment =
        lower_segment_begin(context, FR_LANE_COMPUTE, "dp_list_%u_%u",
                            (unsigned)rank->stage, (unsigned)i_bucket);
    fr_instr *instr = lower_emit(context, FR_OP_ELEMENTWISE);
    instr->elementwise.moved_bytes = (int64_t)(4 * bucket->n * width);
    instr->elementwise.n_kernels = 2;
    instr->elementwise.x_bytes = (int64_t)(bucket->n * width);
    instr->elementwise.scratch_bytes = (int64_t)n_bytes;
    instr->ref[FR_ELEMENTWISE_X] = lower_grad(context, bucket->first);
    instr->ref[FR_ELEMENTWISE_SCRATCH] = lower_ref(FR_SPACE_WIRE, 0);
    add_call(rank, i_segment, bucket, 'r');
    fr_builder_bind(rank->builder, FR_SPACE_WIRE, block, 'w');
    return block;
}

static void reduce_plain(lower_rank *rank, uint32_t i_bucket)
{
    lower_context *context = rank->context;
    const lower_bucket *bucket = &rank->buckets.items[i_bucket];
    const uint32_t list = list_partitions(rank, i_bucket);
    const fr_ref whole = list != LOWER_NO_BLOCK
                             ? lower_ref(FR_SPACE_WIRE, 0)
                             : lower_grad(context, bucket->first);
    fr_ref own = lower_grad(context, bucket->first);
    fr_move moves[2];
    const int n = fr_sharding_reduce(&context->sharding, bucket->is_expert,
                                     bucket->n, moves);
    uint32_t i_segment =
        lower_segment_begin(context, moves[0].lane, "dp_reduce_%u_%u",
                            (unsigned)rank->stage, (unsigned)i_bucket);
    own.is_sharded = context->sharding.is_scattered;
    for (int i = 0; i < n; i++) {
        bool is_of_shards = i > 0; /* of all copies */
        fr_instr *instr = lower_move(context, &moves[i]);
        const int64_t n_parts =
            is_of_shards ? 1 : fr_plan_group_size(context->plan, moves[i].axis);
        instr->shard_axis = is_of_shards ? FR_AXIS_SHARD : FR_AXIS_NONE;
        instr->shard_bytes = moves[i].n / (uint64_t)n_parts *
                             lower_element_bytes(context, FR_SPACE_GRAD);
        instr->ref[FR_COMM_SRC] = is_of_shards ? own : whole;
        instr->ref[FR_COMM_DST] = own;
    }
    add_call(rank, i_segment, bucket, 'm');
    if (list != LOWER_NO_BLOCK)
        fr_builder_bind(rank->builder, FR_SPACE_WIRE, list, 'r');
}

/* Parameters that lie in the bucket, whole or in part. */
static int64_t n_parameters(const lower_rank *rank, const lower_bucket *bucket)
{
    const lower_context *context = rank->context;
    const uint64_t last = bucket->first + bucket->n;
    int64_t n = 0;
    if (context->model->kind == FR_MODEL_LAYERS) {
        for (size_t i = 0; i < rank->units.n; i++) {
            const lower_unit *unit = &rank->units.items[i];
            if (unit->first < last && unit->first + unit->n > bucket->first)
                n += lower_kind_of(context, unit->layer)->entry->n_tensors;
        }
        return n;
    }
    for (size_t i = 0; i < rank->tensors.n; i++) {
        const fr_tensor *tensor = &rank->tensors.items[i];
        n += tensor->first < last && tensor->first + tensor->n > bucket->first;
    }
    return n;
}

/* Tells what a framework does instead of one kernel. */
static void tell_calls(const lower_rank *rank, const lower_bucket *bucket,
                       fr_instr *instr)
{
    const lower_context *context = rank->context;
    if (!context->target.is_framework_step)
        return;
    instr->scalar = 1.0;
    if (context->plan->execution.compress_by == FR_COMPRESS_TENSOR) {
        instr->scalar = (double)n_parameters(rank, bucket);
        instr->flags |= FR_INSTR_APART;
    }
}

/* Emits COMPRESS or DECOMPRESS with the dimensions of compressor.h. */
static fr_instr *coder(lower_rank *rank, fr_op op, const lower_bucket *bucket,
                       int stage)
{
    lower_context *context = rank->context;
    const fr_plan *plan = context->plan;
    const fr_compressor *compressor = fr_compressor_of(plan);
    fr_bucket b = lower_coded_bucket(rank, bucket);
    uint64_t payload = fr_compressor_payload_bytes(plan, &b);
    uint64_t state = compressor->state_bytes(plan, &b);
    bool is_gather = compressor->wire == FR_WIRE_GATHER;
    fr_instr *instr = lower_emit(context, op);
    instr->compressor = (uint8_t)plan->compressor;
    instr->axis = (uint8_t)coded_axis(rank, bucket);
    instr->compress.n = (int64_t)b.n;
    instr->compress.payload_bytes = (int64_t)payload;
    instr->compress.stage = stage;
    instr->compress.first = (int64_t)bucket->first;
    instr->compress.state_bytes = (int64_t)state;
    instr->compress.n_payloads = is_gather ? n_coders(rank, bucket) : 1;
    if (state > 0)
        instr->ref[FR_COMPRESS_STATE] = lower_ref(FR_SPACE_ERROR, 0);
    tell_calls(rank, bucket, instr);
    return instr;
}

/* The own shard of a bucket's gradients as an operand. */
static void tell_own_shard(const lower_rank *rank, const lower_bucket *bucket,
                           fr_ref *ref, fr_instr *instr)
{
    const lower_context *context = rank->context;
    *ref = lower_grad(context, bucket->first);
    ref->is_sharded = 1;
    instr->shard_axis =
        (uint8_t)context->sharding.shard_axis[bucket->is_expert];
    instr->shard_bytes = (uint64_t)instr->compress.n *
                         lower_element_bytes(context, FR_SPACE_GRAD);
}

/* Returns the place at which the payload of the own shard is made: gathered
 * payloads of all shards come before it. */
static fr_ref own_payload(const lower_rank *rank, const lower_bucket *bucket,
                          uint64_t payload)
{
    const bool is_gather =
        fr_compressor_of(rank->context->plan)->wire == FR_WIRE_GATHER;
    return lower_ref(FR_SPACE_WIRE,
                     is_gather ? payload * (uint64_t)n_coders(rank, bucket)
                               : 0);
}

/* Sums the gradients within the part of the ranks that shares the bucket. */
static void scatter_gradients(lower_rank *rank, uint32_t i_bucket)
{
    lower_context *context = rank->context;
    const lower_bucket *bucket = &rank->buckets.items[i_bucket];
    fr_move moves[2];
    fr_sharding_exchange(&context->sharding, fr_compressor_of(context->plan),
                         bucket->is_expert, bucket->n, 0, 1, moves);
    uint32_t i_segment =
        lower_segment_begin(context, moves[0].lane, "dp_scatter_%u_%u",
                            (unsigned)rank->stage, (unsigned)i_bucket);
    fr_instr *instr = lower_move(context, &moves[0]);
    instr->shard_bytes =
        fr_sharding_part(&context->sharding, bucket->is_expert, bucket->n) *
        lower_element_bytes(context, FR_SPACE_GRAD);
    instr->ref[FR_COMM_SRC] = instr->ref[FR_COMM_DST] =
        lower_grad(context, bucket->first);
    instr->ref[FR_COMM_DST].is_sharded = 1;
    add_call(rank, i_segment, bucket, 'm');
}

static void compress(lower_rank *rank, uint32_t i_bucket, int stage)
{
    lower_context *context = rank->context;
    const lower_bucket *bucket = &rank->buckets.items[i_bucket];
    bool is_gather = fr_compressor_of(context->plan)->wire == FR_WIRE_GATHER;
    uint32_t i_segment =
        lower_segment_begin(context, FR_LANE_COMPUTE, "compress%d_%u_%u", stage,
                            (unsigned)rank->stage, (unsigned)i_bucket);
    fr_instr *instr = coder(rank, FR_OP_COMPRESS, bucket, stage);
    instr->ref[FR_COMPRESS_G] = lower_grad(context, bucket->first);
    instr->ref[FR_COMPRESS_PAYLOAD] = lower_ref(FR_SPACE_WIRE, 0);
    instr->ref[FR_COMPRESS_PAYLOAD].is_sharded = is_gather;
    instr->shard_bytes = (uint64_t)instr->compress.payload_bytes;
    if (codes_shards(rank, bucket)) {
        tell_own_shard(rank, bucket, &instr->ref[FR_COMPRESS_G], instr);
        instr->ref[FR_COMPRESS_PAYLOAD] =
            own_payload(rank, bucket, (uint64_t)instr->compress.payload_bytes);
    }
    add_call(rank, i_segment, bucket, 'r');
    fr_builder_bind(rank->builder, FR_SPACE_WIRE, bucket->wire,
                    stage == 0 ? 'w' : 'm');
    fr_builder_bind(rank->builder, FR_SPACE_ERROR, bucket->error, 'm');
}

/* Returns the place at which the own shard of a payload arrives: behind the
 * whole payload. */
static fr_ref own_wire(const lower_rank *rank, const lower_bucket *bucket)
{
    const fr_bucket b = lower_describe_bucket(rank, bucket);
    return lower_ref(FR_SPACE_WIRE,
                     fr_compressor_payload_bytes(rank->context->plan, &b));
}

/* Returns the bytes of n gradients in a message, one element each. */
static uint64_t own_wire_bytes(const lower_rank *rank, uint64_t n)
{
    return n *
           fr_dtype_bytes(fr_compressor_of(rank->context->plan)->wire_dtype);
}

/* Sums the payloads of a bucket that ZeRO scatters into the own shard. */
static void scatter_wire(lower_rank *rank, const lower_bucket *bucket,
                         const fr_move *moves, int n)
{
    const fr_ref own = own_wire(rank, bucket);
    for (int i = 0; i < n; i++) {
        fr_instr *instr = lower_move(rank->context, &moves[i]);
        instr->ref[FR_COMM_SRC] = i == 0 ? lower_ref(FR_SPACE_WIRE, 0) : own;
        instr->ref[FR_COMM_DST] = own;
    }
}

/* Exchanges the payloads of a stage. */
static void exchange(lower_rank *rank, uint32_t i_bucket, int stage)
{
    lower_context *context = rank->context;
    const fr_plan *plan = context->plan;
    const fr_compressor *compressor = fr_compressor_of(plan);
    const lower_bucket *bucket = &rank->buckets.items[i_bucket];
    fr_bucket b = lower_coded_bucket(rank, bucket);
    uint64_t bytes = compressor->stage_bytes(plan, &b, stage), before = 0;
    fr_move moves[2];
    for (int s = 0; s < stage; s++)
        before += compressor->stage_bytes(plan, &b, s);
    if (bytes == 0)
        return;
    uint32_t i_segment = lower_segment_begin(
        context, context->sharding.reduce_lane, "dp_wire%d_%u_%u", stage,
        (unsigned)rank->stage, (unsigned)i_bucket);
    const int n =
        fr_sharding_exchange(&context->sharding, compressor, bucket->is_expert,
                             bucket->n, bytes, n_coders(rank, bucket), moves);
    if (fr_sharding_scatters_wire(&context->sharding, compressor)) {
        scatter_wire(rank, bucket, moves, n);
    } else {
        const bool is_gather = moves[n - 1].op == FR_OP_ALL_GATHER;
        fr_instr *instr = lower_move(context, &moves[n - 1]);
        instr->ref[FR_COMM_SRC] = instr->ref[FR_COMM_DST] =
            lower_ref(FR_SPACE_WIRE, is_gather ? 0 : before);
        instr->ref[FR_COMM_SRC].is_sharded = is_gather;
        instr->shard_bytes = is_gather ? bytes : 0;
        if (codes_shards(rank, bucket) && is_gather)
            instr->ref[FR_COMM_SRC] = own_payload(rank, bucket, bytes);
    }
    lower_add_call(rank, i_segment, -1, -1, -1);
    fr_builder_bind(rank->builder, FR_SPACE_WIRE, bucket->wire, 'm');
}

static void decompress(lower_rank *rank, uint32_t i_bucket)
{
    lower_context *context = rank->context;
    const fr_sharding *sharding = &context->sharding;
    const lower_bucket *bucket = &rank->buckets.items[i_bucket];
    const bool is_own =
        fr_sharding_scatters_wire(sharding, fr_compressor_of(context->plan));
    const bool is_shard = codes_shards(rank, bucket);
    uint32_t i_segment =
        lower_segment_begin(context, FR_LANE_COMPUTE, "decompress_%u_%u",
                            (unsigned)rank->stage, (unsigned)i_bucket);
    fr_instr *instr = coder(rank, FR_OP_DECOMPRESS, bucket, 0);
    instr->ref[FR_DECOMPRESS_PAYLOADS] = lower_ref(FR_SPACE_WIRE, 0);
    instr->ref[FR_DECOMPRESS_G] = lower_grad(context, bucket->first);
    if (is_own) {
        const uint64_t n =
            fr_sharding_part(sharding, bucket->is_expert, bucket->n);
        instr->compress.n = (int64_t)n;
        instr->compress.payload_bytes = (int64_t)own_wire_bytes(rank, n);
        instr->axis = (uint8_t)sharding->shard_axis[bucket->is_expert];
        instr->shard_bytes = n * lower_element_bytes(context, FR_SPACE_GRAD);
        instr->ref[FR_DECOMPRESS_PAYLOADS] = own_wire(rank, bucket);
        instr->ref[FR_DECOMPRESS_G].is_sharded = 1;
    } else if (is_shard) {
        tell_own_shard(rank, bucket, &instr->ref[FR_DECOMPRESS_G], instr);
    }
    add_call(rank, i_segment, bucket, is_own || is_shard ? 'm' : 'w');
    fr_builder_bind(rank->builder, FR_SPACE_WIRE, bucket->wire, 'r');
    fr_builder_bind(rank->builder, FR_SPACE_ERROR, bucket->error, 'm');
}

/*
 * A bucket (LOWER_NO_BUCKET: none) starts, and while its first payload travels
 * those before it move on by one stage each: the last one is decompressed, so
 * only as many buckets as there are stages, and one, have a wire at a time.
 */
static void move_on(lower_rank *rank, uint32_t i_bucket)
{
    const fr_compressor *compressor = fr_compressor_of(rank->context->plan);
    for (int stage = 0; stage < compressor->n_stages; stage++) {
        uint32_t i_next = rank->compressing[stage];
        rank->compressing[stage] = i_bucket;
        if (i_bucket != LOWER_NO_BUCKET) {
            if (stage == 0 &&
                codes_shards(rank, &rank->buckets.items[i_bucket]))
                scatter_gradients(rank, i_bucket);
            compress(rank, i_bucket, stage);
            exchange(rank, i_bucket, stage);
        }
        i_bucket = i_next;
    }
    if (i_bucket != LOWER_NO_BUCKET)
        decompress(rank, i_bucket);
}

void lower_reduce_finish(lower_rank *rank)
{
    const fr_compressor *compressor = fr_compressor_of(rank->context->plan);
    for (int stage = 0; stage < compressor->n_stages; stage++)
        move_on(rank, LOWER_NO_BUCKET);
}

void lower_reduce_bucket(lower_rank *rank, uint32_t i_bucket)
{
    lower_context *context = rank->context;
    const fr_plan *plan = context->plan;
    const fr_compressor *compressor = fr_compressor_of(plan);
    lower_bucket *bucket = &rank->buckets.items[i_bucket];
    if (group_size(rank, bucket) == 1)
        return;
    if (compressor->wire == FR_WIRE_PLAIN) {
        reduce_plain(rank, i_bucket);
        return;
    }
    fr_bucket b = lower_coded_bucket(rank, bucket);
    uint64_t payload = fr_compressor_payload_bytes(plan, &b);
    if (compressor->wire == FR_WIRE_GATHER)
        payload *= (uint64_t)n_coders(rank, bucket) +
                   (codes_shards(rank, bucket) ? 1 : 0);
    else if (fr_sharding_scatters_wire(&context->sharding, compressor))
        payload += own_wire_bytes(
            rank,
            fr_sharding_part(&context->sharding, bucket->is_expert, bucket->n));
    bucket->wire =
        fr_builder_add_block(rank->builder, FR_MEMORY_BUFFERS, false, payload);
    move_on(rank, i_bucket);
    if (!plan->is_overlap)
        lower_reduce_finish(rank);
}
