/* lower_images.c: forward and backward of an entry's steps. */
#include "program/lower/images/lower_images.h"

#include "core/base/minmax.h"
#include "program/lower/segment/lower_ends.h"

enum { N_ROOMS = 3 };

/* One entry at work; `made`: where the output of each step is in forward. */
typedef struct images {
    lower_context *context;
    lower_image_steps steps;
    fr_ref made[FR_LAYER_OPS_MAX];
    fr_ref room[N_ROOMS]; /* gradients between steps */
    bool has_room[N_ROOMS];
    fr_ref kept; /* the gradient of the other path */
} images;

static fr_ref input_of(const images *at, const lower_image_step *step,
                       fr_space space)
{
    if (step->before < 0)
        return lower_ref(space, 0);
    return lower_saved_at(at->steps.items[step->before].y);
}

static fr_instr *conv(const images *at, const lower_image_step *step, fr_op op)
{
    fr_instr *instr = lower_emit(at->context, op);
    instr->conv = (fr_conv_dims){.batch = at->context->shape.batch,
                                 .in = step->in.channels,
                                 .size = step->in.size,
                                 .out = step->out.channels,
                                 .kernel = step->op->kernel,
                                 .stride = fr_layer_op_stride(step->op),
                                 .padding = step->op->padding,
                                 .groups = fr_layer_op_groups(step->op)};
    return instr;
}

static fr_instr *pool(const images *at, const lower_image_step *step, fr_op op)
{
    fr_instr *instr = lower_emit(at->context, op);
    instr->pool = (fr_pool_dims){.batch = at->context->shape.batch,
                                 .channels = step->in.channels,
                                 .size = step->in.size,
                                 .kernel = step->op->kernel,
                                 .stride = fr_layer_op_stride(step->op),
                                 .padding = step->op->padding};
    if (step->op->kind == FR_LAYER_OP_MAX_POOL)
        instr->flags |= FR_INSTR_MAX;
    return instr;
}

static fr_instr *batch_norm(const images *at, const lower_image_step *step,
                            fr_op op)
{
    const fr_job *job = at->context->job;
    const int64_t batch = at->context->shape.batch;
    fr_instr *instr = lower_emit(at->context, op);
    instr->batch_norm =
        (fr_batch_norm_dims){.rows = batch * step->in.size * step->in.size,
                             .cols = step->in.channels,
                             .stride = (int64_t)lower_image_stride(step)};
    instr->scalar = op == FR_OP_BATCH_NORM_FWD
                        ? at->context->model->norm_eps
                        : (double)batch / (double)job->global_batch;
    if (step->has_relu)
        instr->flags |= FR_INSTR_RELU;
    return instr;
}

static fr_instr *relu(const images *at, const lower_image_step *step, fr_op op)
{
    fr_instr *instr = lower_emit(at->context, op);
    instr->activation = FR_ACTIVATION_RELU;
    instr->vector.n = at->context->shape.batch * fr_image_elements(step->out);
    return instr;
}

/* place: the first dropout of the layer, or the second. */
static fr_instr *dropout(const images *at, const lower_image_step *step,
                         fr_op op)
{
    const lower_image_step *first = at->steps.items;
    fr_instr *instr = lower_emit(at->context, op);
    int place = 1;
    for (; first < step; first++)
        place += first->op->kind == FR_LAYER_OP_DROPOUT;
    instr->place = (uint8_t)place;
    instr->matrix = (fr_matrix_dims){at->context->shape.batch,
                                     fr_image_elements(step->out)};
    instr->scalar = at->context->job->dropout;
    return instr;
}

static lower_matrix matrix_of(const images *at, const lower_image_step *step)
{
    return (lower_matrix){.m = at->context->shape.batch,
                          .n = step->out.channels,
                          .k = fr_image_elements(step->in),
                          .w = step->w,
                          .b = step->b,
                          .is_wide = true};
}

/* ---- forward ------------------------------------------------------------ */

static void step_forward(images *at, const lower_image_step *step, fr_ref x,
                         fr_ref y)
{
    lower_context *context = at->context;
    const fr_ref w = lower_weight(context, step->w);
    const int last = at->steps.n_shortcut - 1;
    fr_instr *instr;
    lower_matrix matrix;
    switch ((fr_layer_op_kind)step->op->kind) {
    case FR_LAYER_OP_CONV:
        instr = conv(at, step, FR_OP_CONV_FWD);
        instr->ref[FR_CONV_FWD_X] = x;
        instr->ref[FR_CONV_FWD_W] = w;
        instr->ref[FR_CONV_FWD_BIAS] = lower_weight(context, step->b);
        instr->ref[FR_CONV_FWD_Y] = y;
        break;
    case FR_LAYER_OP_BATCH_NORM:
        instr = batch_norm(at, step, FR_OP_BATCH_NORM_FWD);
        instr->ref[FR_BATCH_NORM_FWD_X] = x;
        instr->ref[FR_BATCH_NORM_FWD_P] = w;
        instr->ref[FR_BATCH_NORM_FWD_Y] = y;
        instr->ref[FR_BATCH_NORM_FWD_STATS] = lower_saved_at(step->note);
        if (step->has_add)
            instr->ref[FR_BATCH_NORM_FWD_ADD] =
                last >= 0 ? at->made[last] : lower_ref(FR_SPACE_IN, 0);
        instr->ref[FR_BATCH_NORM_FWD_MASK] = lower_saved_at(step->mask);
        break;
    case FR_LAYER_OP_RELU:
        instr = relu(at, step, FR_OP_GELU_FWD);
        instr->ref[FR_GELU_FWD_X] = x;
        instr->ref[FR_GELU_FWD_Y] = y;
        break;
    case FR_LAYER_OP_MAX_POOL:
    case FR_LAYER_OP_AVG_POOL:
        instr = pool(at, step, FR_OP_POOL_FWD);
        instr->ref[FR_POOL_FWD_X] = x;
        instr->ref[FR_POOL_FWD_Y] = y;
        instr->ref[FR_POOL_FWD_INDEX] = lower_saved_at(step->note);
        break;
    case FR_LAYER_OP_LINEAR:
        matrix = matrix_of(at, step);
        lower_product_fwd(context, NULL, &matrix, x, y);
        break;
    case FR_LAYER_OP_DROPOUT:
        instr = dropout(at, step, FR_OP_DROPOUT_ADD);
        instr->ref[FR_DROPOUT_ADD_A] = x;
        instr->ref[FR_DROPOUT_ADD_OUT] = y;
        instr->ref[FR_DROPOUT_ADD_MASK] = lower_saved_at(step->note);
        break;
    default: /* done by a batch norm */
        break;
    }
}

/* Everything, to `out`. */
static void forward(images *at, fr_ref out)
{
    for (int i = 0; i < at->steps.n; i++) {
        const lower_image_step *step = &at->steps.items[i];
        const fr_ref x = step->before < 0 ? lower_ref(FR_SPACE_IN, 0)
                                          : at->made[step->before];
        if (step->is_end)
            at->made[i] = out;
        else if (step->y != LOWER_ABSENT)
            at->made[i] = lower_saved_at(step->y);
        else
            at->made[i] = lower_temp(at->context,
                                     lower_image_bytes(at->context, step->out));
        step_forward(at, step, x, at->made[i]);
    }
}

/* ---- backward ----------------------------------------------------------- */

static bool is_same(fr_ref a, fr_ref b)
{
    return a.space == b.space && a.offset_bytes == b.offset_bytes;
}

static fr_ref room(images *at, int i)
{
    uint64_t most = 0;
    for (int k = 0; k < at->steps.n; k++) {
        const lower_image_step *step = &at->steps.items[k];
        most = fr_max_u64(most, lower_image_bytes(at->context, step->in));
        most = fr_max_u64(most, lower_image_bytes(at->context, step->out));
    }
    if (!at->has_room[i])
        at->room[i] = lower_temp(at->context, most);
    at->has_room[i] = true;
    return at->room[i];
}

/* Room for a gradient beside d and what is kept. */
static fr_ref other_room(images *at, fr_ref d)
{
    for (int i = 0; i + 1 < N_ROOMS; i++)
        if (!is_same(room(at, i), d) && !is_same(room(at, i), at->kept))
            return room(at, i);
    return room(at, N_ROOMS - 1);
}

static void weights_backward(images *at, const lower_image_step *step,
                             fr_ref dy)
{
    lower_context *context = at->context;
    const fr_ref x = input_of(at, step, FR_SPACE_INPUT);
    if (step->op->kind == FR_LAYER_OP_LINEAR) {
        const lower_matrix matrix = matrix_of(at, step);
        lower_product_wgrad(context, &matrix, dy, x);
        return;
    }
    fr_instr *instr = conv(at, step, FR_OP_CONV_WGRAD);
    instr->ref[FR_CONV_WGRAD_DY] = dy;
    instr->ref[FR_CONV_WGRAD_X] = x;
    instr->ref[FR_CONV_WGRAD_DW] = lower_grad(context, step->w);
    instr->ref[FR_CONV_WGRAD_DBIAS] = lower_grad(context, step->b);
}

/* From the gradient of what a step makes to that of what it reads, and of its
 * weights; dadd: to where the sum's other gradient goes. */
static void step_backward(images *at, const lower_image_step *step, fr_ref dy,
                          fr_ref dx, fr_ref dadd)
{
    lower_context *context = at->context;
    const fr_ref w = lower_weight(context, step->w);
    fr_instr *instr;
    switch ((fr_layer_op_kind)step->op->kind) {
    case FR_LAYER_OP_CONV:
        instr = conv(at, step, FR_OP_CONV_DGRAD);
        instr->ref[FR_CONV_DGRAD_DY] = dy;
        instr->ref[FR_CONV_DGRAD_W] = w;
        instr->ref[FR_CONV_DGRAD_DX] = dx;
        break;
    case FR_LAYER_OP_BATCH_NORM:
        instr = batch_norm(at, step, FR_OP_BATCH_NORM_BWD);
        instr->ref[FR_BATCH_NORM_BWD_DY] = dy;
        instr->ref[FR_BATCH_NORM_BWD_X] = input_of(at, step, FR_SPACE_INPUT);
        instr->ref[FR_BATCH_NORM_BWD_P] = w;
        instr->ref[FR_BATCH_NORM_BWD_STATS] = lower_saved_at(step->note);
        instr->ref[FR_BATCH_NORM_BWD_DX] = dx;
        instr->ref[FR_BATCH_NORM_BWD_DP] = lower_grad(context, step->w);
        instr->ref[FR_BATCH_NORM_BWD_MASK] = lower_saved_at(step->mask);
        instr->ref[FR_BATCH_NORM_BWD_DADD] = dadd;
        break;
    case FR_LAYER_OP_RELU:
        instr = relu(at, step, FR_OP_GELU_BWD);
        instr->ref[FR_GELU_BWD_DY] = dy;
        instr->ref[FR_GELU_BWD_X] = input_of(at, step, FR_SPACE_INPUT);
        instr->ref[FR_GELU_BWD_DX] = dx;
        break;
    case FR_LAYER_OP_MAX_POOL:
    case FR_LAYER_OP_AVG_POOL:
        instr = pool(at, step, FR_OP_POOL_BWD);
        instr->ref[FR_POOL_BWD_DX] = dx;
        instr->ref[FR_POOL_BWD_DY] = dy;
        instr->ref[FR_POOL_BWD_INDEX] = lower_saved_at(step->note);
        break;
    case FR_LAYER_OP_LINEAR: {
        const lower_matrix matrix = matrix_of(at, step);
        lower_product_dgrad(context, NULL, &matrix, dy, dx);
        break;
    }
    case FR_LAYER_OP_DROPOUT:
        instr = dropout(at, step, FR_OP_DROPOUT_BWD);
        instr->ref[FR_DROPOUT_BWD_DY] = dy;
        instr->ref[FR_DROPOUT_BWD_MASK] = lower_saved_at(step->note);
        instr->ref[FR_DROPOUT_BWD_DX] = dx;
        break;
    default:
        break;
    }
}

static bool is_product(const lower_image_step *step)
{
    return step->op->kind == FR_LAYER_OP_CONV ||
           step->op->kind == FR_LAYER_OP_LINEAR;
}

static bool is_in_place(const lower_image_step *step)
{
    return (step->op->kind == FR_LAYER_OP_BATCH_NORM && !step->has_add) ||
           step->op->kind == FR_LAYER_OP_RELU ||
           step->op->kind == FR_LAYER_OP_DROPOUT;
}

/* Returns the place for the gradient of a step's input.  For the first step of
 * a path it is `target`, unless the step reads the gradient from there. */
static fr_ref place_gradient(images *at, const lower_image_step *step,
                             bool is_first, fr_ref d, fr_ref target)
{
    const fr_ref in = lower_ref(FR_SPACE_IN, 0);
    if (is_first && target.space != FR_SPACE_NONE &&
        (is_in_place(step) || !is_same(d, target)))
        return target;
    return !is_first && is_in_place(step) && !is_same(d, in)
               ? d
               : other_room(at, d);
}

/* Steps [first, end) of a path that begins with step `begin`; returns where the
 * gradient is then.  Nobody asks for that of images: no target. */
static fr_ref walk(images *at, int begin, int first, int end, fr_ref d,
                   fr_ref target)
{
    for (int i = end; i-- > first;) {
        const lower_image_step *step = &at->steps.items[i];
        const bool is_asked = i > begin || target.space != FR_SPACE_NONE;
        if (is_product(step))
            weights_backward(at, step, d);
        if (is_product(step) && !is_asked)
            break;
        const fr_ref dx = place_gradient(at, step, i == begin, d, target);
        step_backward(at, step, d, dx,
                      step->has_add ? lower_ref(FR_SPACE_IN, 0) : lower_absent);
        if (i == begin && is_asked && !is_same(dx, target))
            lower_copy(at->context, dx, target,
                       lower_image_bytes(at->context, step->in));
        d = dx;
    }
    return d;
}

/*
 * The gradient of what the entry makes is read from IN, which is free behind
 * its last step.  That of a sum goes there too, through the shortcut, and on to
 * the other path, whose gradient is added in the end.
 */
static void backward(images *at, bool is_asked)
{
    const fr_ref in = lower_ref(FR_SPACE_IN, 0);
    const fr_ref target = is_asked ? in : lower_absent;
    const int begin = at->steps.n_shortcut, end = at->steps.n;
    int sum = begin;
    while (sum < end && !at->steps.items[sum].has_add)
        sum++;
    if (sum == end) {
        walk(at, begin, begin, end, in, target);
        return;
    }
    const fr_ref other = is_asked ? room(at, N_ROOMS - 1) : lower_absent;
    at->kept = walk(at, begin, sum, end, in, other);
    fr_ref d = at->kept;
    walk(at, 0, 0, begin, in, target);
    at->kept = lower_absent;
    walk(at, begin, begin, sum, d, other);
    if (is_asked)
        lower_add(at->context, other, in,
                  at->context->shape.batch *
                      fr_image_elements(at->steps.items[begin].in));
}

/* ---- segments ----------------------------------------------------------- */

void lower_image_segments(lower_context *context, lower_kind *kind,
                          uint32_t i_entry)
{
    images at = {.context = context};
    /* The first entry reads images, unless it stands for layers behind it. */
    const bool is_asked = i_entry > 0 || kind->entry->repeat > 1;
    lower_image_steps_of(context, kind->entry, &at.steps);
    kind->segments.i_fwd = lower_segment_begin(
        context, FR_LANE_COMPUTE, "entry%u_fwd", (unsigned)i_entry);
    lower_segments_mark(context, kind->segments.i_fwd, FR_SEGMENT_FORWARD);
    forward(&at, lower_ref(FR_SPACE_OUT, 0));
    if (context->plan->recompute == FR_RECOMPUTE_FULL) {
        kind->segments.i_recompute = lower_segment_begin(
            context, FR_LANE_COMPUTE, "entry%u_recompute", (unsigned)i_entry);
        lower_segments_mark(context, kind->segments.i_recompute,
                            FR_SEGMENT_RECOMPUTE);
        forward(&at, lower_temp(context, kind->out_bytes));
    }
    kind->segments.i_bwd = lower_segment_begin(
        context, FR_LANE_COMPUTE, "entry%u_bwd", (unsigned)i_entry);
    lower_segments_mark(context, kind->segments.i_bwd, FR_SEGMENT_BACKWARD);
    backward(&at, is_asked);
}

void lower_image_input(lower_context *context, fr_ref out)
{
    const fr_model *m = context->model;
    fr_instr *instr = lower_emit(context, FR_OP_IMAGES);
    instr->images = (fr_images_dims){.batch = context->shape.batch,
                                     .pixels = m->image_size * m->image_size,
                                     .channels = m->n_channels};
    instr->ref[FR_IMAGES_OUT] = out;
}

void lower_image_loss(lower_context *context)
{
    const int64_t n = context->shape.batch, n_labels = context->model->n_labels;
    const fr_ref logits = lower_ref(FR_SPACE_OUT, 0);
    lower_copy(context, lower_ref(FR_SPACE_IN, 0), logits,
               lower_bytes(context, n, n_labels));
    fr_ref labels = lower_temp(context, 2 * sizeof(int32_t) * (uint64_t)n);
    lower_labels_loss(context, logits, labels, n, n_labels);
}
