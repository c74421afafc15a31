/*
 * lower_layer.h: the parts of a transformer layer, the layer, and the segments
 * of each kind of layer.
 *
 * Forward of a part: x is the wide operand of the stream, the sum over TP goes
 * to target (unless it stays partial).  Backward: from dy of the stream to the
 * gradient of x, in scratch; `x` is what forward had.
 */
#ifndef FR_PROGRAM_LOWER_SEGMENT_LOWER_LAYER_H
#define FR_PROGRAM_LOWER_SEGMENT_LOWER_LAYER_H

#include "program/lower/segment/lower_block.h"

/* ---- lower_attention.c ---- */

void lower_attention_forward(lower_context *context, const lower_kind *kind,
                             fr_ref x, fr_ref target, bool is_partial);
fr_ref lower_attention_backward(lower_context *context, const lower_kind *kind,
                                fr_ref dy, fr_ref x);
/* With recompute of every second product: attention's last, its keys. */
void lower_attention_recompute_output(lower_context *context,
                                      const lower_kind *kind, fr_ref target);
void lower_attention_recompute_keys(lower_context *context,
                                    const lower_kind *kind, fr_ref x);
/* Bytes of k and v in the qkv operand, which has them last. */
uint64_t lower_key_bytes(const lower_context *context);
/* Attention in parts, for a ring of context parallel ranks: projection, core,
 * output; output's backward, core, projection's. */
void lower_attention_project(lower_context *context, const lower_kind *kind,
                             fr_ref x, fr_ref qkv);
void lower_ring_core(lower_context *context, const lower_kind *kind,
                     int32_t step);
void lower_attention_finish(lower_context *context, const lower_kind *kind,
                            fr_ref target, bool is_partial);
void lower_attention_open(lower_context *context, const lower_kind *kind,
                          fr_ref dy, fr_ref d_o);
void lower_ring_core_backward(lower_context *context, const lower_kind *kind,
                              fr_ref d_o, fr_ref dqkv, fr_ref dkeys,
                              int32_t step);
fr_ref lower_attention_close(lower_context *context, const lower_kind *kind,
                             fr_ref dqkv, fr_ref x);

/* ---- lower_mixer.c: attention or another mixer of tokens ---- */

void lower_mixer_forward(lower_context *context, const lower_kind *kind,
                         fr_ref x, fr_ref target);
fr_ref lower_mixer_backward(lower_context *context, const lower_kind *kind,
                            fr_ref dy, fr_ref x);

/* ---- lower_latent.c: multi-head latent attention's projections ---- */

void lower_latent_forward(lower_context *context, const lower_kind *kind,
                          fr_ref x, fr_ref qkv);
/* All heads once more from the latents. */
void lower_latent_recompute(lower_context *context, const lower_kind *kind,
                            fr_ref qkv);
fr_ref lower_latent_backward(lower_context *context, const lower_kind *kind,
                             fr_ref dqkv, fr_ref x);

/* ---- lower_mlp.c: a dense MLP ---- */

/* The operands that forward has written and its last product reads. */
typedef struct lower_mlp_place {
    fr_ref fc1, act;
} lower_mlp_place;

/* Its begin is all that backward needs of forward. */
lower_mlp_place lower_mlp_begin(lower_context *context, const lower_kind *kind,
                                fr_ref x);
/* The same, what the last product reads included: nothing comes after it. */
void lower_mlp_keep(lower_context *context, const lower_kind *kind, fr_ref x);
void lower_mlp_finish(lower_context *context, const lower_kind *kind,
                      lower_mlp_place at, fr_ref target, bool is_partial);
fr_ref lower_mlp_backward(lower_context *context, const lower_kind *kind,
                          fr_ref dy, fr_ref x);

/* ---- lower_moe.c: experts in the MLP's place ---- */

void lower_moe_forward(lower_context *context, const lower_kind *kind, fr_ref x,
                       fr_ref target);
fr_ref lower_moe_backward(lower_context *context, const lower_kind *kind,
                          fr_ref dy, fr_ref x);

/* ---- lower_layer.c ---- */

/* `is_whole`: to its output, else as far as backward needs. */
void lower_layer_forward(lower_context *context, const lower_kind *kind,
                         fr_ref out, bool is_whole);
void lower_layer_backward(lower_context *context, const lower_kind *kind);
/* A layer in two, before attention's core and after it; backward likewise. */
void lower_layer_before(lower_context *context, const lower_kind *kind);
void lower_layer_after(lower_context *context, const lower_kind *kind,
                       fr_ref out);
void lower_layer_backward_before(lower_context *context, const lower_kind *kind,
                                 fr_ref d_o);
void lower_layer_backward_after(lower_context *context, const lower_kind *kind,
                                fr_ref dqkv);

/* ---- segments ---- */

/* Writes the segments of all kinds of layers of the model (lower_layers.c). */
void lower_layers_segments(lower_context *context);
/* lower_ring.c: a layer whose keys and values go round a ring. */
void lower_ring_write(lower_context *context, lower_kind *kind,
                      const char *name);
/* lower_list.c: an entry of a list of layers. */
void lower_entry_segments(lower_context *context, lower_kind *kind,
                          uint32_t i_entry);
/* lower_split.c: before and after a layer's backward is written that is to be
 * cut into gradients of inputs and of weights. */
void lower_keep_temps(lower_context *context);
void lower_split_backward(lower_context *context, lower_kind *kind,
                          const char *name);

#endif
