/*
 * weight_names.h: what Hugging Face's state dicts call the tensors of a model
 * and how they lie there: a table per family.
 */
#ifndef FR_RUNTIME_WEIGHTS_WEIGHT_NAMES_H
#define FR_RUNTIME_WEIGHTS_WEIGHT_NAMES_H

#include "spec/model/model.h"

/* The layout of a tensor of the file relative to ours, which is (out, in). */
typedef enum fr_weight_layout {
    FR_WEIGHT_PLAIN,
    FR_WEIGHT_CONV1D,   /* (in, out): GPT-2's Conv1D */
    FR_WEIGHT_PER_HEAD, /* q, k and v of a head after each other: GPT-NeoX */
    FR_WEIGHT_ONE_ROW,  /* a vector of ours is a matrix of one row there */
    FR_WEIGHT_CONV2D,   /* columns are (channels, height, width) of a patch */
    FR_WEIGHT_OF_ONE    /* with a dimension of one before: of a sample */
} fr_weight_layout;

/* Names of stacked tensors (q, k, v; gate, up) follow each other in the order
 * of the parts, or one stands for all. */
typedef struct fr_weight_name {
    uint8_t role;     /* fr_tensor_role */
    uint8_t layout;   /* fr_weight_layout */
    const char *name; /* '#' is the number of the layer, '@' of the expert */
} fr_weight_name;

typedef struct fr_weight_family {
    const char *prefix; /* which files of the bare model lack */
    float norm_offset;  /* added to the norms of the file */
    const fr_weight_name *names, *more_names; /* end with name NULL */
    const char *const *buffers; /* endings of names that are no parameters */
} fr_weight_family;

/* NULL: the model is of none. */
const fr_weight_family *fr_weight_family_of(const fr_model *model);

/* The names that a role has, and how many. */
const fr_weight_name *fr_weight_names_find(const fr_weight_family *family,
                                           int role, int *n);

/* With the numbers of layer and expert in it. */
void fr_weight_name_format(const char *name, int64_t layer, int64_t expert,
                           char *out, size_t n);

/* Is a tensor that no parameter is to be passed over? */
bool fr_weight_is_buffer(const fr_weight_family *family, const char *name);

#endif
