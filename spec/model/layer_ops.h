/*
 * layer_ops.h: what the entries of a list of layers compute, where the list
 * says so: operations on square images, one after the other, whose shapes tell
 * flop, parameters and bytes.
 *
 * A residual block has operations of its shortcut too, which begin with what
 * comes into the layer and end at `add`, where both meet.  Convolutions are
 * those of PyTorch's Conv2d; batch norm is BatchNorm2d.
 */
#ifndef FR_SPEC_MODEL_LAYER_OPS_H
#define FR_SPEC_MODEL_LAYER_OPS_H

#include "core/document/fields.h"
#include "spec/model/model.h"

enum {
    FR_LAYER_OPS_MAX = 32,     /* of one layer */
    FR_LAYER_TENSORS_MAX = 32, /* of one layer: as many ids as it has */
    FR_POOL_KERNEL_MAX = 15    /* a place in its window fits into a byte */
};

/* A square image, or with size 1 a row of channels. */
typedef struct fr_image {
    int64_t channels, size;
} fr_image;

/* Elements of an image. */
static inline int64_t fr_image_elements(fr_image image)
{
    return image.channels * image.size * image.size;
}

/* Pixels of the side of what a window of `kernel` makes. */
static inline int64_t fr_window_size(int64_t size, int64_t kernel,
                                     int64_t stride, int64_t padding)
{
    return (size + 2 * padding - kernel) / stride + 1;
}

extern const fr_names fr_layer_op_names;
/* The rows of an operation's JSON object. */
extern const fr_field fr_layer_op_fields[];
extern const size_t fr_n_layer_op_fields;

/* Does the list say what its layers compute? */
static inline bool fr_model_has_layer_ops(const fr_model *model)
{
    return model->kind == FR_MODEL_LAYERS && model->n_layer_ops > 0;
}

/* With what is left out filled in. */
int64_t fr_layer_op_stride(const fr_layer_op *op);
int64_t fr_layer_op_groups(const fr_layer_op *op);
/* Sets *out to the shape of the image after an operation.  FR_INPUT: the
 * operation is impossible, with the reason. */
FR_CHECKED fr_status fr_layer_op_image(const fr_layer_op *op, fr_image in,
                                       fr_image *out, fr_err *err);
/* Elements of its weight (out x in), 0: it has none. */
int64_t fr_layer_op_weight(const fr_layer_op *op, fr_image in);

/* The place of an error in a list: -1 if it is not about a single entry, or not
 * about a single operation of it. */
typedef struct fr_layer_place {
    int64_t i_entry, i_op;
} fr_layer_place;

/*
 * The amounts of every entry from its operations, and the number of labels;
 * nothing where the list has none.  FR_INPUT names the layer that cannot be,
 * and `where` (may be NULL) tells it.
 */
FR_CHECKED fr_status fr_model_derive_layers(fr_model *model,
                                            fr_layer_place *where, fr_err *err);

/* Does a batch norm of the list, which was derived, see images of one pixel?
 * Of a single one the mean is all there is. */
bool fr_model_norms_one_pixel(const fr_model *model);

/* Returns the image that entry i of a list with operations gets. */
fr_image fr_model_layer_image(const fr_model *model, size_t i);

#endif
