/*
 * lower_image_steps.c: from the operations of an entry to its steps, and where
 * their parameters and what they keep lie.
 */
#include "program/lower/images/lower_images.h"

#include <math.h>

bool lower_is_images_run(const lower_context *context)
{
    return fr_model_has_layer_ops(context->model) &&
           context->target.kernels == LOWER_KERNELS_RUN;
}

uint64_t lower_image_bytes(const lower_context *context, fr_image image)
{
    return lower_bytes(context, context->shape.batch, fr_image_elements(image));
}

uint64_t lower_image_stride(const lower_image_step *step)
{
    return lower_padded((uint64_t)step->in.channels);
}

/*
 * He et al. 2015, arXiv 1502.01852: convolutions such that gradients keep their
 * size (by what goes out), as in torchvision; matrices such that activations
 * do.
 */
double lower_image_std(const lower_image_step *step)
{
    const fr_layer_op *op = step->op;
    if (op->kind == FR_LAYER_OP_LINEAR)
        return sqrt(1.0 / (double)fr_image_elements(step->in));
    return sqrt(2.0 / (double)(op->kernel * op->kernel * step->out.channels));
}

/* ---- operations to steps ------------------------------------------------ */

/* The next operation on the same path; NULL: none. */
static const fr_layer_op *next_of(const fr_layer_op *ops, int64_t n, int64_t i)
{
    for (int64_t k = i + 1; k < n; k++)
        if (ops[k].is_shortcut == ops[i].is_shortcut)
            return &ops[k];
    return NULL;
}

static bool is_kind(const fr_layer_op *op, fr_layer_op_kind kind)
{
    return op != NULL && op->kind == kind;
}

/* A batch norm takes what follows it into its pass. */
static void fuse(const fr_layer_op *ops, int64_t n, int64_t i,
                 lower_image_step *step)
{
    const fr_layer_op *next = next_of(ops, n, i);
    step->has_add = is_kind(next, FR_LAYER_OP_ADD);
    if (step->has_add)
        next = next_of(ops, n, next - ops);
    step->has_relu = is_kind(next, FR_LAYER_OP_RELU);
}

/* Appends the steps of one path. */
static void add_path(const lower_context *context, const fr_model_layer *entry,
                     bool is_shortcut, fr_image image, lower_image_steps *steps)
{
    const fr_layer_op *ops = &context->model->layer_ops[entry->first_op];
    const bool is_dropping = context->job->dropout > 0;
    int before = -1;
    bool is_fused = false;
    for (int64_t i = 0; i < entry->n_ops; i++) {
        const fr_layer_op *op = &ops[i];
        bool is_passed = op->kind == FR_LAYER_OP_ADD ||
                         (op->kind == FR_LAYER_OP_DROPOUT && !is_dropping) ||
                         (op->kind == FR_LAYER_OP_RELU && is_fused);
        if (op->is_shortcut != is_shortcut || is_passed)
            continue;
        lower_image_step *step = &steps->items[steps->n];
        *step = (lower_image_step){.op = op, .in = image, .before = before};
        /* Shapes were proven when the model was read. */
        if (fr_layer_op_image(op, image, &step->out, NULL) != FR_OK)
            return;
        image = step->out;
        is_fused = op->kind == FR_LAYER_OP_BATCH_NORM;
        if (is_fused)
            fuse(ops, entry->n_ops, i, step);
        is_fused = is_fused && step->has_relu;
        before = steps->n++;
    }
}

/* ---- places ------------------------------------------------------------- */

static uint64_t keep(uint64_t *used, bool is_kept, uint64_t n_bytes)
{
    const uint64_t at = *used;
    if (!is_kept)
        return LOWER_ABSENT;
    *used += (n_bytes + 63) / 64 * 64;
    return at;
}

static void place_parameters(lower_image_step *step, uint64_t *used)
{
    const int64_t weight = fr_layer_op_weight(step->op, step->in);
    if (step->op->kind == FR_LAYER_OP_BATCH_NORM) {
        step->w = lower_place(used, true, 4, (int64_t)lower_image_stride(step));
        step->b = LOWER_ABSENT;
        return;
    }
    step->w = lower_place(used, weight > 0, step->out.channels,
                          weight / step->out.channels);
    step->b = lower_place(used, step->op->has_bias, 1, step->out.channels);
}

/* Does backward read what comes into it? */
static bool is_input_kept(const lower_image_step *step)
{
    return step->op->kind != FR_LAYER_OP_MAX_POOL &&
           step->op->kind != FR_LAYER_OP_AVG_POOL &&
           step->op->kind != FR_LAYER_OP_DROPOUT;
}

static void place_kept(const lower_context *context, lower_image_steps *steps,
                       int i)
{
    lower_image_step *step = &steps->items[i];
    const bool is_last = i + 1 == steps->n || i + 1 == steps->n_shortcut;
    const uint64_t n_bytes = lower_image_bytes(context, step->out);
    const uint64_t n_elements = n_bytes / lower_bytes(context, 1, 1);
    uint64_t *used = &steps->saved_bytes;
    step->is_end = i + 1 == steps->n;
    bool is_kept = !is_last && is_input_kept(&steps->items[i + 1]);
    /* An activation has the sign of its input: it takes its place. */
    if (step->op->kind == FR_LAYER_OP_RELU && !is_last && step->before >= 0)
        step->y = steps->items[step->before].y;
    else
        step->y = keep(used, is_kept, n_bytes);
    switch (step->op->kind) {
    case FR_LAYER_OP_BATCH_NORM:
        step->note =
            keep(used, true, 2 * sizeof(float) * (uint64_t)step->out.channels);
        step->mask = keep(used, step->has_add && step->has_relu, n_elements);
        break;
    case FR_LAYER_OP_MAX_POOL:
    case FR_LAYER_OP_DROPOUT:
        step->note = keep(used, true, n_elements);
        step->mask = LOWER_ABSENT;
        break;
    default:
        step->note = step->mask = LOWER_ABSENT;
        break;
    }
}

void lower_image_steps_of(const lower_context *context,
                          const fr_model_layer *entry, lower_image_steps *out)
{
    const fr_model *model = context->model;
    const fr_image in =
        fr_model_layer_image(model, (size_t)(entry - model->layers));
    out->n = 0;
    out->n_parameters = out->saved_bytes = 0;
    add_path(context, entry, true, in, out);
    out->n_shortcut = out->n;
    add_path(context, entry, false, in, out);
    for (int i = 0; i < out->n; i++) {
        place_parameters(&out->items[i], &out->n_parameters);
        place_kept(context, out, i);
    }
}
