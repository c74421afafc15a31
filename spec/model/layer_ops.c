/* layer_ops.c: see layer_ops.h. */
#include "spec/model/layer_ops.h"

static const char *const names[FR_LAYER_OP_N] = {
    [FR_LAYER_OP_CONV] = "conv",
    [FR_LAYER_OP_BATCH_NORM] = "batch_norm",
    [FR_LAYER_OP_RELU] = "relu",
    [FR_LAYER_OP_MAX_POOL] = "max_pool",
    [FR_LAYER_OP_AVG_POOL] = "avg_pool",
    [FR_LAYER_OP_LINEAR] = "linear",
    [FR_LAYER_OP_ADD] = "add",
    [FR_LAYER_OP_DROPOUT] = "dropout",
};
const fr_names fr_layer_op_names = FR_NAMES(names);

const fr_field fr_layer_op_fields[] = {
    {"op", FR_MEMBER(fr_layer_op, kind), .names = &fr_layer_op_names,
     .is_required = true},
    {"shortcut", FR_MEMBER(fr_layer_op, is_shortcut), .is_optional = true},
    {"channels", FR_MEMBER(fr_layer_op, channels), .is_optional = true},
    {"kernel", FR_MEMBER(fr_layer_op, kernel), .is_optional = true},
    {"stride", FR_MEMBER(fr_layer_op, stride), .is_optional = true},
    {"padding", FR_MEMBER(fr_layer_op, padding), .is_optional = true},
    {"groups", FR_MEMBER(fr_layer_op, groups), .is_optional = true},
    {"bias", FR_MEMBER(fr_layer_op, has_bias), .is_optional = true},
};
const size_t fr_n_layer_op_fields = FR_LENGTH(fr_layer_op_fields);

/* ---- one operation ------------------------------------------------------ */

enum { MOST_CHANNELS = 1 << 20, MOST_SIDE = 1 << 14 };

/* More parameters or elements than any layer has: what follows is exact. */
#define MOST_ELEMENTS 1e12

static bool is_window(const fr_layer_op *op)
{
    return op->kind == FR_LAYER_OP_CONV || op->kind == FR_LAYER_OP_MAX_POOL ||
           op->kind == FR_LAYER_OP_AVG_POOL;
}

static bool has_weight(const fr_layer_op *op)
{
    return op->kind == FR_LAYER_OP_CONV || op->kind == FR_LAYER_OP_LINEAR;
}

/* An omitted value is 0 and means: a step of 1, one group; pools step by a
 * window. */
int64_t fr_layer_op_stride(const fr_layer_op *op)
{
    if (op->stride > 0)
        return op->stride;
    return op->kind == FR_LAYER_OP_CONV ? 1 : op->kernel;
}

int64_t fr_layer_op_groups(const fr_layer_op *op)
{
    return op->groups > 0 ? op->groups : 1;
}

typedef struct limit {
    const char *name;
    int64_t value, low, high;
} limit;

static fr_status check_members(const fr_layer_op *op, fr_image in, fr_err *err)
{
    const int64_t padded =
        in.size +
        2 * (op->padding > 0 && op->padding < MOST_SIDE ? op->padding : 0);
    const int64_t most_kernel =
        op->kind == FR_LAYER_OP_MAX_POOL && padded > FR_POOL_KERNEL_MAX
            ? FR_POOL_KERNEL_MAX
            : padded;
    const bool is_conv = op->kind == FR_LAYER_OP_CONV;
    const bool is_windowed = is_window(op);
    const bool is_padded = is_conv || op->kind == FR_LAYER_OP_MAX_POOL;
    const limit limits[] = {
        {"channels", op->channels, has_weight(op),
         has_weight(op) ? MOST_CHANNELS : 0},
        {"kernel", op->kernel, is_windowed, is_windowed ? most_kernel : 0},
        {"stride", op->stride, 0, is_windowed ? MOST_SIDE : 0},
        {"padding", op->padding, 0, is_padded ? op->kernel / 2 : 0},
        {"groups", op->groups, 0, is_conv ? in.channels : 0},
        {"bias", op->has_bias, 0, has_weight(op)},
    };
    for (size_t i = 0; i < FR_LENGTH(limits); i++)
        if (limits[i].value < limits[i].low || limits[i].value > limits[i].high)
            return fr_fail(err, FR_INPUT, "%s: %s is %lld; give %lld to %lld",
                           names[op->kind], limits[i].name,
                           (long long)limits[i].value, (long long)limits[i].low,
                           (long long)limits[i].high);
    const int64_t groups = fr_layer_op_groups(op);
    if (is_conv && (in.channels % groups != 0 || op->channels % groups != 0))
        return fr_fail(err, FR_INPUT,
                       "conv: %lld and %lld channels in %lld groups; give "
                       "groups that divide both",
                       (long long)in.channels, (long long)op->channels,
                       (long long)groups);
    return FR_OK;
}

fr_status fr_layer_op_image(const fr_layer_op *op, fr_image in, fr_image *out,
                            fr_err *err)
{
    fr_image made = in;
    FR_TRY(check_members(op, in, err));
    if (is_window(op))
        made.size = fr_window_size(in.size, op->kernel, fr_layer_op_stride(op),
                                   op->padding);
    if (has_weight(op))
        made.channels = op->channels;
    if (op->kind == FR_LAYER_OP_LINEAR)
        made.size = 1;
    if (made.size < 1 ||
        (double)made.channels * (double)made.size * (double)made.size >
            MOST_ELEMENTS)
        return fr_fail(err, FR_INPUT, "%s: makes %lld channels of %lld x %lld",
                       names[op->kind], (long long)made.channels,
                       (long long)made.size, (long long)made.size);
    if (has_weight(op) && (double)op->channels * (double)in.channels *
                                  (double)in.size * (double)in.size >
                              MOST_ELEMENTS * 1e3)
        return fr_fail(err, FR_INPUT, "%s: more than 1e15 parameters",
                       names[op->kind]);
    *out = made;
    return FR_OK;
}

int64_t fr_layer_op_weight(const fr_layer_op *op, fr_image in)
{
    switch (op->kind) {
    case FR_LAYER_OP_CONV:
        return op->channels * (in.channels / fr_layer_op_groups(op)) *
               op->kernel * op->kernel;
    case FR_LAYER_OP_LINEAR:
        return op->channels * fr_image_elements(in);
    default:
        return 0;
    }
}

/* ---- an entry ----------------------------------------------------------- */

/*
 * Returns the elements that backward needs: the input of convolutions, matrices
 * and max pools, and the output of convolutions, which a norm or an activation
 * reads.
 */
static uint64_t kept_elements(const fr_layer_op *op, fr_image in, fr_image out)
{
    switch (op->kind) {
    case FR_LAYER_OP_CONV:
        return (uint64_t)(fr_image_elements(in) + fr_image_elements(out));
    case FR_LAYER_OP_LINEAR:
    case FR_LAYER_OP_MAX_POOL:
        return (uint64_t)fr_image_elements(in);
    default:
        return 0;
    }
}

static void add_amounts(const fr_layer_op *op, fr_image in, fr_image out,
                        fr_model_layer *layer)
{
    const int64_t weight = fr_layer_op_weight(op, in);
    const bool is_norm = op->kind == FR_LAYER_OP_BATCH_NORM;
    layer->forward_flop +=
        2.0 * (double)weight * (double)out.size * (double)out.size;
    layer->n_parameters +=
        (uint64_t)(weight + (op->has_bias ? out.channels : 0) +
                   (is_norm ? 2 * out.channels : 0));
    layer->n_tensors += (weight > 0) + op->has_bias + (is_norm ? 2 : 0);
    layer->activation_bytes += sizeof(float) * kept_elements(op, in, out);
}

/* The images of the two paths through a layer. */
typedef struct paths {
    fr_image main, shortcut;
    bool has_shortcut, is_normed, has_added;
    int n_dropouts;
    int64_t n_held; /* tensors, with biases and running statistics */
} paths;

static fr_status follow(const fr_layer_op *op, paths *at, fr_model_layer *layer,
                        fr_err *err)
{
    fr_image *image = op->is_shortcut ? &at->shortcut : &at->main;
    fr_image out;
    const bool is_norm = op->kind == FR_LAYER_OP_BATCH_NORM;
    const bool is_add = op->kind == FR_LAYER_OP_ADD;
    if ((op->is_shortcut || is_add) && at->has_added)
        return fr_fail(err, FR_INPUT, "a shortcut behind its add");
    if (op->kind == FR_LAYER_OP_DROPOUT && ++at->n_dropouts > 2)
        return fr_fail(err, FR_INPUT, "more than two dropouts");
    if (is_add && (op->is_shortcut || !at->is_normed))
        return fr_fail(err, FR_INPUT, "add stands behind a batch_norm alone");
    if (is_add && (at->main.channels != at->shortcut.channels ||
                   at->main.size != at->shortcut.size))
        return fr_fail(
            err, FR_INPUT,
            "add: %lld channels of %lld x %lld and, of the "
            "shortcut, %lld of %lld x %lld",
            (long long)at->main.channels, (long long)at->main.size,
            (long long)at->main.size, (long long)at->shortcut.channels,
            (long long)at->shortcut.size, (long long)at->shortcut.size);
    FR_TRY(fr_layer_op_image(op, *image, &out, err));
    add_amounts(op, *image, out, layer);
    at->n_held += is_norm ? 4 : has_weight(op) ? 2 : 0;
    *image = out;
    at->has_added = at->has_added || is_add;
    at->has_shortcut = at->has_shortcut || op->is_shortcut;
    if (!op->is_shortcut)
        at->is_normed = is_norm;
    return FR_OK;
}

static fr_status derive(const fr_layer_op *ops, fr_image *image,
                        fr_model_layer *layer, int64_t *i_op, fr_err *err)
{
    const fr_image in = *image;
    paths at = {.main = in, .shortcut = in};
    layer->forward_flop = 0;
    layer->n_parameters = layer->activation_bytes = 0;
    layer->n_tensors = 0;
    *i_op = -1;
    if (layer->n_ops < 1 || layer->n_ops > FR_LAYER_OPS_MAX)
        return fr_fail(err, FR_INPUT,
                       "%lld operations; give 1 to %d, as other layers have "
                       "some",
                       (long long)layer->n_ops, FR_LAYER_OPS_MAX);
    for (*i_op = 0; *i_op < layer->n_ops; ++*i_op)
        FR_TRY(follow(&ops[layer->first_op + *i_op], &at, layer, err));
    *i_op = -1;
    if (at.has_shortcut && !at.has_added)
        return fr_fail(err, FR_INPUT, "a shortcut without add");
    if (at.n_held > FR_LAYER_TENSORS_MAX)
        return fr_fail(err, FR_INPUT, "%lld tensors; make two layers of it",
                       (long long)at.n_held);
    if (layer->repeat > 1 &&
        (at.main.channels != in.channels || at.main.size != in.size))
        return fr_fail(err, FR_INPUT,
                       "repeat: what comes out is not what "
                       "comes in");
    if (layer->n_tensors == 0)
        layer->n_tensors = 1;
    layer->out_channels = at.main.channels;
    layer->out_size = at.main.size;
    layer->output_bytes = sizeof(float) * (uint64_t)fr_image_elements(at.main);
    *image = at.main;
    return FR_OK;
}

fr_image fr_model_layer_image(const fr_model *model, size_t i)
{
    if (i == 0)
        return (fr_image){model->n_channels, model->image_size};
    return (fr_image){model->layers[i - 1].out_channels,
                      model->layers[i - 1].out_size};
}

static fr_status derive_all(fr_model *model, fr_layer_place *where, fr_err *err)
{
    fr_image image = {model->n_channels, model->image_size};
    if (image.channels < 1 || image.channels > MOST_CHANNELS ||
        image.size < 1 || image.size > MOST_SIDE)
        return fr_fail(err, FR_INPUT,
                       "n_channels %lld, image_size %lld; operations need "
                       "both, image_size at most %d",
                       (long long)image.channels, (long long)image.size,
                       MOST_SIDE);
    for (size_t i = 0; i < model->n_layer_entries; i++) {
        fr_err what = {0};
        where->i_entry = (int64_t)i;
        if (derive(model->layer_ops, &image, &model->layers[i], &where->i_op,
                   &what) != FR_OK)
            return fr_fail(err, FR_INPUT, "layer '%s': %s",
                           model->layers[i].name, what.text);
    }
    if (image.size != 1)
        return fr_fail(err, FR_INPUT,
                       "the last layer makes images of %lld x %lld; end with "
                       "a linear",
                       (long long)image.size, (long long)image.size);
    model->n_labels = image.channels;
    return FR_OK;
}

fr_status fr_model_derive_layers(fr_model *model, fr_layer_place *where,
                                 fr_err *err)
{
    fr_layer_place unused;
    fr_layer_place *at = where != NULL ? where : &unused;
    *at = (fr_layer_place){-1, -1};
    return fr_model_has_layer_ops(model) ? derive_all(model, at, err) : FR_OK;
}

bool fr_model_norms_one_pixel(const fr_model *model)
{
    if (!fr_model_has_layer_ops(model))
        return false;
    for (size_t i = 0; i < model->n_layer_entries; i++) {
        const fr_model_layer *layer = &model->layers[i];
        fr_image main = fr_model_layer_image(model, i), shortcut = main;
        for (int64_t k = 0; k < layer->n_ops; k++) {
            const fr_layer_op *op = &model->layer_ops[layer->first_op + k];
            fr_image *at = op->is_shortcut ? &shortcut : &main;
            if (op->kind == FR_LAYER_OP_BATCH_NORM && at->size == 1)
                return true;
            if (fr_layer_op_image(op, *at, at, NULL) != FR_OK)
                return false;
        }
    }
    return false;
}
