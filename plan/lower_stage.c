/*
 * lower_stage.c: the calls of one pipeline rank, in program order.
 *
 * The schedule gives the order of forwards and backwards.  Receives stand
 * where their data are needed first and sends where they are made, each on a
 * lane of its own; every other order follows from who touches which block.
 */
#include "plan/lower_internal.h"

#include "plan/optimizer.h"

#include <string.h>

void lower_add_call(lower_class *lc, uint32_t i_segment, int32_t layer,
                    int64_t micro_batch, int32_t chunk)
{
    lower_context *context = lc->context;
    if (context->is_out_of_memory)
        return;
    const fr_segment *segment = &context->segments.items[i_segment];
    fr_builder_add_call(lc->builder, i_segment, (fr_lane)segment->lane, layer,
                        micro_batch, chunk);
    if (segment->temp_bytes > 0)
        fr_builder_bind(lc->builder, FR_SPACE_TEMP,
                        fr_builder_add_block(lc->builder, FR_MEMORY_BUFFERS,
                                             false, segment->temp_bytes),
                        'w');
}

/* Base at the begin of the flat list; uses the units of `only`, or all. */
void lower_bind_flat(lower_class *lc, fr_space space, const lower_bucket *only,
                     char access)
{
    uint32_t first = only ? only->first_unit : 0;
    uint32_t end = only ? first + only->n_units : (uint32_t)lc->units.n;
    if (lc->units.n == 0)
        return;
    /* A base alone is no access. */
    const lower_unit *origin = &lc->units.items[0];
    fr_builder_set_base(lc->builder, space,
                        space == FR_SPACE_GRAD ? origin->grad : origin->weight);
    for (uint32_t i = first; i < end; i++) {
        const lower_unit *unit = &lc->units.items[i];
        fr_builder_use(lc->builder,
                       space == FR_SPACE_GRAD ? unit->grad : unit->weight,
                       access);
    }
}

static uint32_t add_activation(lower_class *lc, uint64_t n_bytes)
{
    return fr_builder_add_block(lc->builder, FR_MEMORY_ACTIVATIONS, false,
                                n_bytes);
}

static void add_persistent_blocks(lower_class *lc)
{
    const lower_context *context = lc->context;
    const fr_plan *plan = context->plan;
    const fr_compressor *compressor = fr_compressor_of(plan);
    bool is_sharded = plan->zero_stage > 0;
    for (int pass = 0; pass < 2; pass++) {
        fr_builder_align_page(lc->builder);
        for (size_t i = 0; i < lc->units.n; i++) {
            lower_unit *unit = &lc->units.items[i];
            *(pass == 0 ? &unit->weight : &unit->grad) = fr_builder_add_block(
                lc->builder,
                pass == 0 ? FR_MEMORY_PARAMETERS : FR_MEMORY_GRADIENTS, true,
                unit->n * sizeof(float));
        }
    }
    fr_builder_align_page(lc->builder);
    for (size_t b = 0; b < lc->buckets.n; b++) {
        lower_bucket *bucket = &lc->buckets.items[b];
        uint64_t n = is_sharded ? bucket->n / (uint64_t)plan->dp : bucket->n;
        uint64_t state = fr_optimizer_state_bytes(context->job->optimizer, n);
        if (state > 0)
            bucket->opt = fr_builder_add_block(lc->builder, FR_MEMORY_OPTIMIZER,
                                               true, state);
    }
    for (size_t b = 0; plan->dp > 1 && b < lc->buckets.n; b++) {
        lower_bucket *bucket = &lc->buckets.items[b];
        fr_bucket described = {.first = bucket->first,
                               .n = bucket->n,
                               .tensors = lc->tensors.items,
                               .n_tensors = (uint32_t)lc->tensors.n};
        uint64_t state = compressor->state_bytes(plan, &described);
        if (compressor->wire != FR_WIRE_PLAIN && state > 0)
            bucket->error = fr_builder_add_block(
                lc->builder, FR_MEMORY_OPTIMIZER, true, state);
    }
    fr_builder_align_page(lc->builder);
}

static int32_t stage_of(const lower_class *lc, int32_t chunk)
{
    return chunk * lc->context->plan->pp + lc->stage;
}

static bool is_first_stage(const lower_class *lc, int32_t chunk)
{
    return stage_of(lc, chunk) == 0;
}

static bool is_last_stage(const lower_class *lc, int32_t chunk)
{
    const fr_plan *plan = lc->context->plan;
    return stage_of(lc, chunk) == plan->pp * plan->vpp - 1;
}

/*
 * A transfer over the boundary before global stage `boundary`; the segment is
 * made the first time and found by its tag afterwards.
 */
static uint32_t transfer_segment(lower_class *lc, fr_op op, int32_t boundary,
                                 bool is_gradient)
{
    lower_context *context = lc->context;
    const fr_plan *plan = context->plan;
    const lower_shape *s = &context->shape;
    uint32_t tag =
        (uint32_t)(2 * boundary + is_gradient) * (uint32_t)context->n_micro;
    bool is_send = op == FR_OP_SEND;
    fr_lane lane = is_send ? FR_LANE_PP_SEND : FR_LANE_PP_RECV;
    /* Activations go up over the boundary, gradients down. */
    int32_t peer = is_send == is_gradient ? boundary - 1 : boundary;
    for (uint32_t i = lc->first_transfer; i < context->segments.n; i++) {
        const fr_segment *segment = &context->segments.items[i];
        const fr_instr *instr = &context->instrs.items[segment->first_instr];
        if (instr->op == op && instr->tag == tag)
            return i;
    }
    uint32_t i_segment = lower_segment_begin(
        context, lane, "%s_%s_%d", is_send ? "send" : "recv",
        is_gradient ? "grad" : "act", (int)boundary);
    fr_instr *instr = lower_emit(context, op);
    instr->axis = FR_AXIS_PP;
    instr->peer = (int16_t)(peer % plan->pp);
    instr->tag = tag;
    instr->dim[0] = s->stream_rows * s->hidden;
    instr->ref[0] = lower_ref(is_send ? FR_SPACE_IN : FR_SPACE_OUT, 0);
    return i_segment;
}

static uint32_t *slot(const lower_class *lc, uint32_t *table,
                      const fr_task *task, int32_t layer)
{
    return &table[(size_t)task->micro_batch * lc->n_slots +
                  lc->chunk_slot[task->chunk] + (size_t)layer];
}

static uint32_t *gradient_of(const lower_class *lc, const fr_task *task)
{
    return &lc->gradients[task->micro_batch * lc->context->plan->vpp +
                          task->chunk];
}

static void send(lower_class *lc, int32_t boundary, bool is_gradient,
                 const fr_task *task, uint32_t block)
{
    lower_add_call(lc, transfer_segment(lc, FR_OP_SEND, boundary, is_gradient),
                   -1, task->micro_batch, task->chunk);
    fr_builder_bind(lc->builder, FR_SPACE_IN, block, 'r');
    lc->sent[0] = block;
}

/* What arrives while the rank works on its task i. */
static void receive(lower_class *lc, size_t i_task, size_t *i_arrival)
{
    lower_context *context = lc->context;
    const lower_arrival *all =
        &context->arrivals[(size_t)lc->stage * context->n_tasks];
    while (*i_arrival < context->n_arrivals[lc->stage] &&
           all[*i_arrival].before_task <= i_task) {
        const lower_arrival *a = &all[(*i_arrival)++];
        uint32_t block = add_activation(lc, context->shape.stream_bytes);
        fr_task task = {a->is_gradient, a->chunk, a->micro_batch};
        lower_add_call(
            lc, transfer_segment(lc, FR_OP_RECV, a->boundary, a->is_gradient),
            -1, a->micro_batch, a->chunk);
        fr_builder_bind(lc->builder, FR_SPACE_OUT, block, 'w');
        if (a->is_gradient)
            *gradient_of(lc, &task) = block;
        else
            *slot(lc, lc->inputs, &task, 0) = block;
    }
}

/* Tokens of this micro-batch, and already those of the next. */
static uint32_t load_tokens(lower_class *lc, int64_t micro_batch)
{
    const lower_context *context = lc->context;
    while (lc->n_loaded < context->n_micro && lc->n_loaded <= micro_batch + 1) {
        uint32_t block = fr_builder_add_block(
            lc->builder, FR_MEMORY_BUFFERS, false,
            2 * sizeof(int32_t) * (uint64_t)context->shape.rows);
        lc->tokens[lc->n_loaded] = block;
        lower_add_call(lc, context->i_load, -1, lc->n_loaded, -1);
        fr_builder_bind(lc->builder, FR_SPACE_TOKENS, block, 'w');
        lc->n_loaded++;
    }
    return lc->tokens[micro_batch];
}

static lower_unit *layer_unit(lower_class *lc, int32_t layer)
{
    for (size_t i = 0; i < lc->units.n; i++)
        if (lc->units.items[i].kind == LOWER_UNIT_LAYER &&
            lc->units.items[i].layer == layer)
            return &lc->units.items[i];
    return NULL;
}

/*
 * The units that the head or the embedding touches, and the flat base.  Exact,
 * lest the embedding's backward waits for a sum of the head's gradients.
 */
static void bind_ends(lower_class *lc, bool is_head, fr_space space,
                      char access)
{
    const lower_context *context = lc->context;
    bool is_shared = context->model->is_tied && context->plan->pp == 1;
    bool is_grad = space == FR_SPACE_GRAD;
    const lower_unit *units = lc->units.items;
    fr_builder_set_base(lc->builder, space,
                        is_grad ? units[0].grad : units[0].weight);
    for (size_t i = 0; i < lc->units.n; i++) {
        bool is_used = false;
        if (units[i].kind == LOWER_UNIT_FINAL)
            is_used = is_head;
        else if (units[i].kind == LOWER_UNIT_EMBED)
            is_used = !is_head || is_shared;
        else if (units[i].kind == LOWER_UNIT_TIED)
            is_used = is_head == !lc->is_first;
        if (is_used)
            fr_builder_use(lc->builder,
                           is_grad ? units[i].grad : units[i].weight, access);
    }
}

static void forward(lower_class *lc, const fr_task *task)
{
    const lower_context *context = lc->context;
    const int32_t n_layers = lc->chunk_layers[task->chunk];
    const uint64_t stream_bytes = context->shape.stream_bytes;
    bool is_full = context->plan->recompute == FR_RECOMPUTE_FULL;
    uint32_t block = *slot(lc, lc->inputs, task, 0);
    if (is_first_stage(lc, task->chunk)) {
        uint32_t tokens = load_tokens(lc, task->micro_batch);
        block = add_activation(lc, stream_bytes);
        lower_add_call(lc, lc->i_embed_fwd, -1, task->micro_batch, task->chunk);
        bind_ends(lc, false, FR_SPACE_WEIGHT, 'r');
        fr_builder_bind(lc->builder, FR_SPACE_TOKENS, tokens, 'r');
        fr_builder_bind(lc->builder, FR_SPACE_OUT, block, 'w');
        *slot(lc, lc->inputs, task, 0) = block;
    }
    for (int32_t i = 0; i < n_layers; i++) {
        int32_t layer = lc->chunk_first[task->chunk] + i;
        uint32_t saved = add_activation(lc, context->saved.n_bytes);
        uint32_t out = add_activation(lc, stream_bytes);
        lower_add_call(lc, context->i_layer_fwd, layer, task->micro_batch,
                       task->chunk);
        fr_builder_bind(lc->builder, FR_SPACE_WEIGHT,
                        layer_unit(lc, layer)->weight, 'r');
        fr_builder_bind(lc->builder, FR_SPACE_IN, block, 'r');
        fr_builder_bind(lc->builder, FR_SPACE_SAVED, saved, 'w');
        fr_builder_bind(lc->builder, FR_SPACE_OUT, out, 'w');
        *slot(lc, lc->saved, task, i) = is_full ? FR_BLOCK_NONE : saved;
        *slot(lc, lc->inputs, task, i + 1) = block = out;
    }
    if (!is_last_stage(lc, task->chunk))
        send(lc, stage_of(lc, task->chunk) + 1, false, task, block);
}

/* A unit's gradients are complete: the last micro-batch has been there. */
static void finish_unit(lower_class *lc, const lower_unit *unit)
{
    lower_bucket *bucket = &lc->buckets.items[unit->i_bucket];
    if (--bucket->n_pending == 0 && !bucket->is_tied &&
        lc->context->plan->is_overlap)
        lower_reduce_bucket(lc, unit->i_bucket);
}

/* With sequence parallelism the norms' gradients are partial sums. */
static void finish_norms(lower_class *lc, const lower_unit *unit)
{
    lower_context *context = lc->context;
    if (!context->plan->is_sequence_parallel || unit->n_norm == 0)
        return;
    uint32_t i_segment = context->i_norm_reduce;
    if (unit->kind == LOWER_UNIT_FINAL) {
        i_segment = lower_segment_begin(context, FR_LANE_COMPUTE,
                                        "final_norm_grad_reduce");
        fr_instr *instr = lower_collective(
            context, FR_OP_ALL_REDUCE, FR_AXIS_TP, FR_DTYPE_F32, unit->n_norm);
        instr->ref[0] = instr->ref[1] = lower_ref(FR_SPACE_GRAD, 0);
    }
    lower_add_call(lc, i_segment, unit->layer, -1, -1);
    fr_builder_bind(lc->builder, FR_SPACE_GRAD, unit->grad, 'm');
}

static void finish_ends(lower_class *lc, bool is_head)
{
    for (size_t i = lc->units.n; i-- > 0;) {
        const lower_unit *unit = &lc->units.items[i];
        bool is_of_head = unit->kind == LOWER_UNIT_FINAL ||
                          (unit->kind == LOWER_UNIT_TIED && !lc->is_first);
        if (unit->kind == LOWER_UNIT_LAYER || is_of_head != is_head)
            continue;
        finish_norms(lc, unit);
        finish_unit(lc, unit);
    }
}

static void head(lower_class *lc, const fr_task *task, uint32_t gradient)
{
    uint32_t tokens = load_tokens(lc, task->micro_batch);
    lower_add_call(lc, lc->i_head, -1, task->micro_batch, task->chunk);
    bind_ends(lc, true, FR_SPACE_WEIGHT, 'r');
    bind_ends(lc, true, FR_SPACE_GRAD, 'm');
    fr_builder_bind(lc->builder, FR_SPACE_IN,
                    *slot(lc, lc->inputs, task, lc->chunk_layers[task->chunk]),
                    'r');
    fr_builder_bind(lc->builder, FR_SPACE_OUT, gradient, 'w');
    fr_builder_bind(lc->builder, FR_SPACE_TOKENS, tokens, 'r');
    fr_builder_bind(lc->builder, FR_SPACE_STEP, lc->step, 'm');
}

static void layer_backward(lower_class *lc, const fr_task *task, int32_t i,
                           uint32_t gradient)
{
    const lower_context *context = lc->context;
    const int32_t layer = lc->chunk_first[task->chunk] + i;
    const lower_unit *unit = layer_unit(lc, layer);
    uint32_t input = *slot(lc, lc->inputs, task, i);
    uint32_t saved = *slot(lc, lc->saved, task, i);
    if (context->plan->recompute == FR_RECOMPUTE_FULL) {
        saved = add_activation(lc, context->saved.n_bytes);
        lower_add_call(lc, context->i_layer_remake, layer, task->micro_batch,
                       task->chunk);
        fr_builder_bind(lc->builder, FR_SPACE_WEIGHT, unit->weight, 'r');
        fr_builder_bind(lc->builder, FR_SPACE_IN, input, 'r');
        fr_builder_bind(lc->builder, FR_SPACE_SAVED, saved, 'w');
    }
    lower_add_call(lc, context->i_layer_bwd, layer, task->micro_batch,
                   task->chunk);
    fr_builder_bind(lc->builder, FR_SPACE_WEIGHT, unit->weight, 'r');
    fr_builder_bind(lc->builder, FR_SPACE_GRAD, unit->grad, 'm');
    fr_builder_bind(lc->builder, FR_SPACE_IN, gradient, 'm');
    fr_builder_bind(lc->builder, FR_SPACE_INPUT, input, 'r');
    fr_builder_bind(lc->builder, FR_SPACE_SAVED, saved, 'r');
}

static void backward(lower_class *lc, const fr_task *task)
{
    const lower_context *context = lc->context;
    bool is_last_micro = task->micro_batch == context->n_micro - 1;
    uint32_t gradient = *gradient_of(lc, task);
    if (is_last_stage(lc, task->chunk)) {
        gradient = add_activation(lc, context->shape.stream_bytes);
        head(lc, task, gradient);
        if (is_last_micro)
            finish_ends(lc, true);
    }
    for (int32_t i = lc->chunk_layers[task->chunk]; i-- > 0;) {
        layer_backward(lc, task, i, gradient);
        if (!is_last_micro)
            continue;
        const lower_unit *unit =
            layer_unit(lc, lc->chunk_first[task->chunk] + i);
        finish_norms(lc, unit);
        finish_unit(lc, unit);
    }
    if (!is_first_stage(lc, task->chunk)) {
        send(lc, stage_of(lc, task->chunk), true, task, gradient);
        return;
    }
    lower_add_call(lc, lc->i_embed_bwd, -1, task->micro_batch, task->chunk);
    bind_ends(lc, false, FR_SPACE_GRAD, 'm');
    fr_builder_bind(lc->builder, FR_SPACE_TOKENS, lc->tokens[task->micro_batch],
                    'r');
    fr_builder_bind(lc->builder, FR_SPACE_IN, gradient, 'r');
    if (is_last_micro)
        finish_ends(lc, false);
}

/* The tied matrix waits for the other end of the pipeline, so it comes last;
 * without overlap all buckets come now. */
static void finish_reductions(lower_class *lc)
{
    bool is_overlap = lc->context->plan->is_overlap;
    for (uint32_t b = 0; b < lc->buckets.n; b++)
        if (!is_overlap && !lc->buckets.items[b].is_tied)
            lower_reduce_bucket(lc, b);
    lower_reduce_tied(lc);
    for (uint32_t b = 0; b < lc->buckets.n; b++)
        if (lc->buckets.items[b].is_tied)
            lower_reduce_bucket(lc, b);
    lower_reduce_finish(lc);
}

/* All forwards and backwards, with what comes and goes. */
static void run_tasks(lower_class *lc)
{
    const lower_context *context = lc->context;
    const fr_task *tasks =
        &context->tasks[(size_t)lc->stage * context->n_tasks];
    size_t i_arrival = 0;
    lc->sent[0] = lc->sent[1] = FR_BLOCK_NONE;
    for (size_t i = 0; i < context->n_tasks; i++) {
        receive(lc, i, &i_arrival);
        if (tasks[i].kind == FR_TASK_BACKWARD)
            backward(lc, &tasks[i]);
        else
            forward(lc, &tasks[i]);
        /* A send has the time of the next task before its memory is taken. */
        fr_builder_keep(lc->builder, lc->sent[1]);
        lc->sent[1] = lc->sent[0];
        lc->sent[0] = FR_BLOCK_NONE;
    }
}

fr_status lower_stage(lower_class *lc, fr_err *err)
{
    lower_context *context = lc->context;
    lc->first_transfer = (uint32_t)context->segments.n;
    lc->i_pending_bucket = UINT32_MAX;
    add_persistent_blocks(lc);
    lower_ends_segments(lc);
    lower_zero(lc);
    run_tasks(lc);
    finish_reductions(lc);
    lower_update(lc);
    if (context->is_out_of_memory)
        return fr_fail_no_memory(err);
    FR_TRY(fr_builder_finish(lc->builder, lc->klass, err));
    if (lc->units.n > 0) {
        lc->klass->weight_offset_bytes =
            fr_builder_offset(lc->builder, lc->units.items[0].weight);
        lc->klass->grad_offset_bytes =
            fr_builder_offset(lc->builder, lc->units.items[0].grad);
    }
    lc->klass->step_offset_bytes = fr_builder_offset(lc->builder, lc->step);
    return FR_OK;
}
