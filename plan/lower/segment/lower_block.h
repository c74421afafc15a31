/*
 * lower_block.h: what layers are made of: products, norms, sums over tensor
 * parallel ranks.  Shared by the files that lower parts of a layer.
 *
 * Below 16 bits (fp8, fp4) a product's operands are cast first, as
 * Transformer Engine does: an activation once, its transpose being kept for
 * the weight's gradient; a gradient once, for both products of backward;
 * weights once per step (ZeRO 3, which has them for one use only: every time).
 */
#ifndef FR_PLAN_LOWER_SEGMENT_LOWER_BLOCK_H
#define FR_PLAN_LOWER_SEGMENT_LOWER_BLOCK_H

#include "plan/lower/step/lower_internal.h"

#include <string.h>

/* A product y[m,n] = x[m,k] w[n,k]^T + b; offsets in the layer's parameters. */
typedef struct lower_matrix {
    int64_t m, n, k;
    uint64_t w, b;
    int64_t n_groups; /* > 0: m rows over so many matrices */
    bool is_wide;     /* never below 16 bits */
} lower_matrix;

/* A norm of rows x cols. */
typedef struct lower_norm {
    int64_t rows, cols;
    uint64_t w, b;
    bool is_rms;
} lower_norm;

/* A gradient as the two products of backward read it. */
typedef struct lower_gradient {
    fr_ref rows, columns;
} lower_gradient;

extern const fr_ref lower_absent;

uint64_t lower_bytes(const lower_context *context, int64_t rows, int64_t cols);
bool lower_is_part_remade(const lower_context *context, uint32_t part);
bool lower_is_post_norm(const lower_context *context);
/* Attention of the CPU runtime: in f32, not said to be fused. */
bool lower_is_cpu_attention(const lower_context *context);

/* Are Llama's projections products of their own? */
bool lower_is_apart(const lower_context *context);
/* Is the sum after attention made again, from attention's output? */
bool lower_is_mid_remade(const lower_context *context);

/* lower_saved.c */
void lower_saved_init(const lower_context *context, lower_kind *kind);
/* What the core of attention leaves for backward: lse, or probabilities. */
uint64_t lower_core_bytes(const lower_context *context);

fr_ref lower_saved_at(uint64_t offset_bytes);
/* Where forward writes what it keeps, or scratch if it does not. */
fr_ref lower_place_kept(lower_context *context, uint64_t offset_bytes,
                        uint64_t n_bytes);
fr_ref lower_weight(const lower_context *context, uint64_t first);
fr_ref lower_grad(const lower_context *context, uint64_t first);

/* Marks all instructions from number `first` on as made again. */
void lower_mark_remade(lower_context *context, size_t first);

/* The whole rows of a stream-sharded operand; itself where nothing is. */
fr_ref lower_gather_rows(lower_context *context, fr_ref shard, int64_t cols,
                         fr_dtype dtype);
/* Where a partial sum is to be written that lower_sum_rows() will finish. */
fr_ref lower_partial_rows(lower_context *context, fr_ref target);
void lower_sum_rows(lower_context *context, fr_ref partial, fr_ref target);
/* The same of another width than hidden. */
fr_ref lower_partial_cols(lower_context *context, fr_ref target, int64_t cols);
void lower_sum_cols(lower_context *context, fr_ref partial, fr_ref target,
                    int64_t cols);

/* dtype of a product's operands. */
fr_dtype lower_product_dtype(const lower_context *context);
/* x, or its copy for products; a transpose goes to where it is kept. */
fr_ref lower_operand(lower_context *context, fr_ref x, lower_kept kept,
                     int64_t rows, int64_t cols);
/* The same, of what forward has kept. */
fr_ref lower_kept_operand(lower_kept kept);
/* dy for products; `is_shard`: of the stream, to be gathered. */
lower_gradient lower_gradient_operand(lower_context *context, fr_ref dy,
                                      bool is_shard, int64_t rows,
                                      int64_t cols);

/* Its two steps: the stream's rows of dy in the dtype of products; whole rows
 * of that for both products. */
fr_ref lower_gradient_shard(lower_context *context, fr_ref dy, int64_t rows,
                            int64_t cols);
lower_gradient lower_gradient_columns(lower_context *context, fr_ref whole,
                                      int64_t rows, int64_t cols);

/* A product that is split by its output, from the stream's rows of x. */
void lower_column_forward(lower_context *context, const lower_kind *kind,
                          const lower_matrix *matrix, fr_ref x, lower_kept kept,
                          fr_ref y);
/* One that is split by its input, summed over TP into the stream's rows. */
void lower_row_forward(lower_context *context, const lower_kind *kind,
                       const lower_matrix *matrix, fr_ref x, fr_ref target);
/* Its gradients from the stream's dy. */
void lower_row_backward(lower_context *context, const lower_kind *kind,
                        const lower_matrix *matrix, fr_ref dy, fr_ref x,
                        fr_ref dx);
void lower_product_fwd(lower_context *context, const lower_kind *kind,
                       const lower_matrix *matrix, fr_ref x, fr_ref y);
fr_instr *lower_product_dgrad(lower_context *context, const lower_kind *kind,
                              const lower_matrix *matrix, fr_ref dy, fr_ref dx);
void lower_product_wgrad(lower_context *context, const lower_matrix *matrix,
                         fr_ref dy, fr_ref x);
/* Backward of a product that is split by its output: from dy to the gradient
 * of the stream's rows, in scratch; x: the operand of forward, of the stream.
 */
fr_ref lower_column_backward(lower_context *context, const lower_kind *kind,
                             const lower_matrix *matrix, fr_ref dy, fr_ref x);
/* The segment that casts a kind's weights; none where nothing is kept. */
void lower_cast_segment(lower_context *context, lower_kind *kind);

lower_norm lower_stream_norm(const lower_context *context, uint64_t w,
                             uint64_t b);
void lower_norm_fwd(lower_context *context, const lower_norm *norm, fr_ref x,
                    fr_ref y, fr_ref stats);
/* is_added: onto dx. */
void lower_norm_bwd(lower_context *context, const lower_norm *norm, fr_ref dy,
                    fr_ref x, fr_ref stats, fr_ref dx, bool is_added);

/* out = a + sum (+ bias), dropped out if the job says so; in place on sum. */
void lower_residual(lower_context *context, fr_ref a, uint64_t bias, fr_ref sum,
                    uint64_t mask);
/* The gradient that goes into a block whose output was dropped out. */
fr_ref lower_dropped(lower_context *context, fr_ref dy, uint64_t mask);
void lower_add(lower_context *context, fr_ref src, fr_ref dst, int64_t n);
fr_instr *lower_activation(lower_context *context, bool is_backward,
                           int64_t rows, int64_t ffn);

/*
 * lower_attention.c.  Forward: x is the wide operand of the stream, the sum
 * over TP goes to target (unless it stays partial).  Backward: from dy of the
 * stream to the gradient of x, in scratch; `x` what forward had.
 */
void lower_attention_forward(lower_context *context, const lower_kind *kind,
                             fr_ref x, fr_ref target, bool is_partial);
fr_ref lower_attention_backward(lower_context *context, const lower_kind *kind,
                                fr_ref dy, fr_ref x);

/* The same in parts, for a ring of context parallel ranks (lower_ring.c):
 * projection, core, output; output's backward, core, projection's. */
/* Bytes of k and v in the qkv operand, which has them last. */
uint64_t lower_key_bytes(const lower_context *context);
void lower_attention_project(lower_context *context, const lower_kind *kind,
                             fr_ref x, fr_ref qkv);
/* Every second product: attention's last, its keys. */
void lower_attention_again(lower_context *context, const lower_kind *kind,
                           fr_ref target);
void lower_keys_again(lower_context *context, const lower_kind *kind, fr_ref x);
void lower_ring_core(lower_context *context, const lower_kind *kind,
                     bool is_own);
void lower_attention_finish(lower_context *context, const lower_kind *kind,
                            fr_ref target, bool is_partial);
void lower_attention_open(lower_context *context, const lower_kind *kind,
                          fr_ref dy, fr_ref d_o);
void lower_ring_core_backward(lower_context *context, const lower_kind *kind,
                              fr_ref d_o, fr_ref dqkv, bool is_own);
fr_ref lower_attention_close(lower_context *context, const lower_kind *kind,
                             fr_ref dqkv, fr_ref x);

/* lower_layer.c: a layer in two, before attention's core and after it;
 * backward likewise. */
void lower_layer_before(lower_context *context, const lower_kind *kind);
void lower_layer_after(lower_context *context, const lower_kind *kind,
                       fr_ref out);
void lower_layer_backward_before(lower_context *context, const lower_kind *kind,
                                 fr_ref d_o);
void lower_layer_backward_after(lower_context *context, const lower_kind *kind,
                                fr_ref dqkv);
/* lower_ring.c */
void lower_ring_segments(lower_context *context, lower_kind *kind,
                         const char *name);

/* lower_pass.c; scratch begins at first_bytes of CARRY. */
bool lower_is_pass_cut(const lower_context *context);
void lower_pass_begin(lower_context *context, lower_pass *pass,
                      const char *name, const char *direction,
                      uint64_t first_bytes);
void lower_pass_end(lower_context *context);
/* The next call, on the rank's own lane or beside it. */
void lower_pass_compute(lower_context *context, uint8_t in, uint8_t out);
void lower_pass_beside(lower_context *context, uint8_t in, uint8_t out);
/* Around an exchange of experts' tokens from src to dst (lane EP). */
bool lower_is_exchange_beside(const lower_context *context);
void lower_pass_exchange(lower_context *context, fr_ref src, fr_ref dst);
uint8_t lower_pass_piece(lower_context *context, uint64_t n_bytes);
/* As lower_column_backward(), in a pass that is cut. */
fr_ref lower_pass_column_backward(lower_context *context,
                                  const lower_kind *kind,
                                  const lower_matrix *matrix, fr_ref dy,
                                  fr_ref x);

/* In pieces over the TP ranks: whole rows from a shard of them, times the
 * matrix; the product, summed into a shard; gradients of whole rows. */
bool lower_is_in_pieces(const lower_context *context);
void lower_pass_gather_product(lower_context *context, const lower_kind *kind,
                               const lower_matrix *matrix, fr_ref shard,
                               fr_ref y);
void lower_pass_product_scatter(lower_context *context, const lower_kind *kind,
                                const lower_matrix *matrix, fr_ref x,
                                fr_ref target);
lower_gradient lower_pass_gather_dgrad(lower_context *context,
                                       const lower_kind *kind,
                                       const lower_matrix *matrix, fr_ref dy,
                                       fr_ref dx);

/* lower_kernels.c: what kernels of the plan's set move besides. */
/* Frameworks have two tensors where an operand here is one: kept is part of
 * it, and nothing moves. */
void lower_same(lower_context *context, fr_ref kept, fr_ref part,
                uint64_t n_bytes);
void lower_besides_norm_fwd(lower_context *context, const lower_norm *norm);
void lower_besides_norm_bwd(lower_context *context, const lower_norm *norm,
                            bool is_added);
/* Bytes that their backward needs of a layer besides: norms' inputs in float32
 * and results before the weight, silu's result, repeated keys and values,
 * attention's output without padding. */
uint64_t lower_besides_saved(const lower_context *context, bool has_norms,
                             bool has_activation);
void lower_besides_rope(lower_context *context, int64_t n);
void lower_besides_core(lower_context *context, bool is_backward);
void lower_besides_dropout(lower_context *context);
void lower_besides_scaling(lower_context *context, int64_t n, bool is_again);
void lower_besides_weight_scaling(lower_context *context, int64_t n);
void lower_besides_activation(lower_context *context, bool is_backward,
                              int64_t n);
/* Gradients of n parameters on their way into what FSDP reduces, or onto
 * those of the micro-batches before. */
void lower_besides_gradients(lower_context *context, uint64_t n);
void lower_besides_parts(lower_context *context, int64_t n, int n_parts);
/* The loss reads logits as they are, without a copy in float32. */
bool lower_is_loss_narrow(const lower_context *context);
void lower_besides_loss(lower_context *context);
void lower_besides_metrics(lower_context *context);

/* lower_ends.c: the loss; logits become their gradients. */
void lower_loss(lower_context *context, fr_ref logits);

void lower_copy(lower_context *context, fr_ref src, fr_ref dst,
                uint64_t n_bytes);
/* Rotary positions of the qkv operand, in place; nothing without them. */
void lower_rope(lower_context *context, fr_op op, fr_ref qkv);

/* lower_latent.c: multi-head latent attention's projections; all heads go to
 * qkv, and can be made again from the latents. */
bool lower_is_latent_remade(const lower_context *context);
void lower_latent_forward(lower_context *context, const lower_kind *kind,
                          fr_ref x, fr_ref qkv);
void lower_latent_again(lower_context *context, const lower_kind *kind,
                        fr_ref qkv);
fr_ref lower_latent_backward(lower_context *context, const lower_kind *kind,
                             fr_ref dqkv, fr_ref x);

/* Where a forward has put what its last product reads. */
typedef struct lower_mlp_place {
    fr_ref fc1, act;
} lower_mlp_place;

/*
 * lower_mlp.c: a dense MLP.  Its begin is all that backward needs of forward;
 * x as in attention.
 */
lower_mlp_place lower_mlp_begin(lower_context *context, const lower_kind *kind,
                                fr_ref x);
void lower_mlp_finish(lower_context *context, const lower_kind *kind,
                      lower_mlp_place at, fr_ref target, bool is_partial);
fr_ref lower_mlp_backward(lower_context *context, const lower_kind *kind,
                          fr_ref dy, fr_ref x);

/* lower_moe.c: experts in the MLP's place. */
void lower_moe_forward(lower_context *context, const lower_kind *kind, fr_ref x,
                       fr_ref target);
fr_ref lower_moe_backward(lower_context *context, const lower_kind *kind,
                          fr_ref dy, fr_ref x);

/* lower_list.c: an entry of a list of layers. */
void lower_entry_segments(lower_context *context, lower_kind *kind,
                          uint32_t i_entry);

#endif
