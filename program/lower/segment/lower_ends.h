/*
 * lower_ends.h: the two ends of the model: embedding, and last norm, head and
 * loss.
 */
#ifndef FR_PROGRAM_LOWER_SEGMENT_LOWER_ENDS_H
#define FR_PROGRAM_LOWER_SEGMENT_LOWER_ENDS_H

#include "program/lower/segment/lower_block.h"

/* Offsets of the tensors outside layers in WEIGHT and GRAD, in elements;
 * LOWER_ABSENT: the model has no such tensor.  All members are offsets. */
typedef struct lower_embed_places {
    uint64_t wte, wpe;
    /* These exist in encoders only. */
    uint64_t types, norm_w, norm_b, patch, patch_b, first_token;
} lower_embed_places;

typedef struct lower_head_places {
    uint64_t norm_w, norm_b, head;
    /* These exist in encoders only. */
    uint64_t pooler, pooler_b, dense, dense_b, dense_norm_w, dense_norm_b;
    uint64_t vocab_b, pair, pair_b, labels, labels_b;
} lower_head_places;

typedef struct lower_ends {
    lower_embed_places embed;
    lower_head_places head;
} lower_ends;

/* Their segments; those of an end that is not asked for stay as they are. */
typedef struct lower_ends_segments {
    uint32_t i_embed_fwd, i_embed_bwd, i_head;
    uint32_t i_head_added; /* onto a gradient that is there */
    /* This segment makes the input of a later token's layer.  The head of the
     * later token is then i_head, and the head of the next token is
     * i_head_added, which also makes the embedding's gradient. */
    uint32_t i_later;
} lower_ends_segments;

void lower_ends_write(lower_context *context, const lower_ends *ends,
                      bool has_embed, bool has_head, lower_ends_segments *out);

/* lower_loss.c: the loss; logits become their gradients.  is_later: that of the
 * token after the next, which is weighed and not added to the one told. */
void lower_loss(lower_context *context, fr_ref logits, bool is_later);

/* The tokens and targets of the micro-batch, or those one token further on. */
fr_ref lower_tokens(const lower_context *context, bool is_later);
/* The loss of n samples and their labels, for which there is room. */
void lower_labels_loss(lower_context *context, fr_ref logits, fr_ref labels,
                       int64_t n, int64_t n_labels);

/* lower_encoder.c */
/* EMBED_FWD or EMBED_BWD of the tokens in a table of n rows, of which this rank
 * has n_local. */
fr_instr *lower_look_up(lower_context *context, fr_op op, int64_t n_local,
                        int64_t n);
void lower_encoder_embed(lower_context *context, const lower_ends *ends,
                         lower_ends_segments *out);
void lower_encoder_head(lower_context *context, const lower_ends *ends,
                        lower_ends_segments *out);
/* lower_list.c */
void lower_list_ends(lower_context *context, bool has_embed, bool has_head,
                     lower_ends_segments *out);

#endif
