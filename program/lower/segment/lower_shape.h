/*
 * lower_shape.h: the sizes of one rank, and what writers of segments ask of
 * the plan: which of its choices apply to this model.
 */
#ifndef FR_PROGRAM_LOWER_SEGMENT_LOWER_SHAPE_H
#define FR_PROGRAM_LOWER_SEGMENT_LOWER_SHAPE_H

#include "program/lower/segment/lower_emit.h"

/* Fills the context's shape. */
void lower_shape_init(lower_context *context);

/* Bytes of rows x cols in the storage dtype. */
uint64_t lower_bytes(const lower_context *context, int64_t rows, int64_t cols);
/* dtype of a product's operands. */
fr_dtype lower_product_dtype(const lower_context *context);

/* ---- choices of the plan ---- */

/* Does selective recompute cover a part of a layer (FR_RECOMPUTE_PART_*)? */
bool lower_is_recomputed(const lower_context *context, uint32_t part);
/* Is the sum after attention computed again, from attention's output? */
bool lower_is_mid_recomputed(const lower_context *context);
/* Are the heads of latent attention computed again, from the latents? */
bool lower_is_latent_recomputed(const lower_context *context);
bool lower_is_post_norm(const lower_context *context);
/*
 * Do rows go where the router sends them, as they do when forerun runs the
 * program?  What is only priced says nothing of who goes where.
 */
bool lower_is_routed(const lower_context *context);
/* Sets of a micro-batch's rows over which the router's auxiliary loss is taken;
 * 0: there is none, or the program is only priced. */
int64_t lower_router_sets(const lower_context *context);
/* Context parallelism by a ring of keys and values. */
bool lower_is_ring(const lower_context *context);
/* Do all queries lie before the keys and values, which travel? */
bool lower_is_keys_apart(const lower_context *context);
/* Latent attention as forerun's kernels have it: one makes the keys and turns
 * what is rotated.  What is only priced copies and turns apart. */
bool lower_is_latent_run(const lower_context *context);
/* Does a layer that predicts later tokens have their embedding, its own last
 * norm and a loss, as when forerun runs the program?  What is only priced has
 * what takes time: products, norms and a head. */
bool lower_is_later_run(const lower_context *context);
/* Is a layer's pass several calls, with TP's collectives between them? */
bool lower_is_pass_cut(const lower_context *context);

/* ---- places in a flat list of parameters, in elements ---- */

/* Elements of a tensor with the padding behind it. */
uint64_t lower_padded(uint64_t n);
/* Takes the place of a tensor in a unit; LOWER_ABSENT if it is not there. */
uint64_t lower_place(uint64_t *used, bool is_there, int64_t rows, int64_t cols);
/* Elements that fill a cache line whichever space they lie in. */
uint64_t lower_line_elements(const lower_context *context);
/* Elements of a part of a layer, such that each of its ranks gets a whole
 * number of cache lines. */
uint64_t lower_part_padded(const lower_context *context, bool is_expert,
                           uint64_t n);

#endif
