/*
 * lower_images.h: an entry of a list of layers that says what it computes
 * (spec/model/layer_ops.h), as forerun runs it: one instruction or a few for
 * each of its steps.  What is only priced is one instruction an entry
 * (lower_list.c).
 *
 * A step is an operation with those that are done in the same pass over memory:
 * a batch norm takes the shortcut's sum and the activation behind it with it.
 */
#ifndef FR_PROGRAM_LOWER_IMAGES_LOWER_IMAGES_H
#define FR_PROGRAM_LOWER_IMAGES_LOWER_IMAGES_H

#include "program/lower/segment/lower_kind.h"
#include "spec/model/layer_ops.h"

typedef struct lower_image_step {
    const fr_layer_op *op;
    fr_image in, out;
    int before;  /* step whose output it reads; -1: what comes into the layer */
    bool is_end; /* its output leaves the layer */
    bool has_relu, has_add; /* batch norm: in the same pass */
    /* Places in the layer's parameters, in elements, and in what it keeps, in
     * bytes; LOWER_ABSENT: none.  y: what it makes, else in scratch; note: a
     * batch norm's statistics, a pool's places, what was not dropped; mask: of
     * a sum. */
    uint64_t w, b;
    uint64_t y, note, mask;
} lower_image_step;

/* The steps of an entry, those of its shortcut first. */
typedef struct lower_image_steps {
    lower_image_step items[FR_LAYER_OPS_MAX];
    int n, n_shortcut;
    uint64_t n_parameters; /* elements, with padding */
    uint64_t saved_bytes;
} lower_image_steps;

/* Are entries lowered to what they compute? */
bool lower_is_images_run(const lower_context *context);
void lower_image_steps_of(const lower_context *context,
                          const fr_model_layer *entry, lower_image_steps *out);
/* Elements from row to row of a batch norm's parameters. */
uint64_t lower_image_stride(const lower_image_step *step);
/* Deviation of its weights at the beginning. */
double lower_image_std(const lower_image_step *step);
/* Bytes of an image of a micro-batch. */
uint64_t lower_image_bytes(const lower_context *context, fr_image image);

/* Segments of an entry.  i_entry 0 has no gradient of what comes in. */
void lower_image_segments(lower_context *context, lower_kind *kind,
                          uint32_t i_entry);
/* The images that come in; the loss, which makes their gradient of what the
 * last layer makes. */
void lower_image_input(lower_context *context, fr_ref out);
void lower_image_loss(lower_context *context);

#endif
