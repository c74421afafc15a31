/*
 * lower_block.h: what layers are made of: products, norms, sums over tensor
 * parallel ranks.  Shared by the files that lower parts of a layer.
 *
 * Below 16 bits (fp8, fp4) a product's operands are cast first, as
 * Transformer Engine does: an activation once, its transpose being kept for
 * the weight's gradient; a gradient once, for both products of backward;
 * weights once per step (ZeRO 3, which has them for one use only: every time).
 */
#ifndef FR_PROGRAM_LOWER_SEGMENT_LOWER_BLOCK_H
#define FR_PROGRAM_LOWER_SEGMENT_LOWER_BLOCK_H

#include "program/lower/segment/lower_kind.h"

/* A product y[m,n] = x[m,k] w[n,k]^T + b; offsets in the layer's parameters. */
typedef struct lower_matrix {
    int64_t m, n, k;
    uint64_t w, b;
    int64_t n_groups; /* > 0: m rows over so many matrices */
    int64_t n_rows;   /* of the m that are there, on the busiest rank */
    int64_t n_runs;   /* of rows that are in the order of these ... */
    fr_ref counts;    /* ... and how many rows each has of each */
    int64_t n_first;  /* > 0: so many columns of y before the others */
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

/* ---- rows over tensor parallel ranks ---- */

/* The whole rows of a stream-sharded operand; itself where nothing is. */
fr_ref lower_gather_rows(lower_context *context, fr_ref shard, int64_t cols,
                         fr_dtype dtype);
/* Returns the place for a partial sum, which lower_sum_rows() then reduces. */
fr_ref lower_partial_rows(lower_context *context, fr_ref target);
void lower_sum_rows(lower_context *context, fr_ref partial, fr_ref target);
/* The same of another width than hidden. */
fr_ref lower_partial_cols(lower_context *context, fr_ref target, int64_t cols);
void lower_sum_cols(lower_context *context, fr_ref partial, fr_ref target,
                    int64_t cols);

/* ---- operands of products ---- */

/* n elements in another type. */
fr_instr *lower_cast(lower_context *context, fr_ref src, fr_dtype from,
                     fr_ref dst, fr_dtype to, int64_t n);
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
/* The segment that casts a kind's weights; none where nothing is kept. */
void lower_cast_segment(lower_context *context, lower_kind *kind);

/* ---- products ---- */

void lower_product_fwd(lower_context *context, const lower_kind *kind,
                       const lower_matrix *matrix, fr_ref x, fr_ref y);
fr_instr *lower_product_dgrad(lower_context *context, const lower_kind *kind,
                              const lower_matrix *matrix, fr_ref dy, fr_ref dx);
void lower_product_wgrad(lower_context *context, const lower_matrix *matrix,
                         fr_ref dy, fr_ref x);

/* Products over tensor parallel ranks (lower_pass.c); with is_tp_overlap in
 * pieces.  Split by the output, from the stream's rows of x: */
void lower_column_forward(lower_context *context, const lower_kind *kind,
                          const lower_matrix *matrix, fr_ref x, lower_kept kept,
                          fr_ref y);
/* Its backward: from dy to the gradient of the stream's rows, in scratch; x:
 * the operand of forward, of the stream. */
fr_ref lower_column_backward(lower_context *context, const lower_kind *kind,
                             const lower_matrix *matrix, fr_ref dy, fr_ref x);
/* Split by the input, summed over TP into the stream's rows: */
void lower_row_forward(lower_context *context, const lower_kind *kind,
                       const lower_matrix *matrix, fr_ref x, fr_ref target);
/* Its gradients from the stream's dy. */
void lower_row_backward(lower_context *context, const lower_kind *kind,
                        const lower_matrix *matrix, fr_ref dy, fr_ref x,
                        fr_ref dx);

/* ---- element by element ---- */

lower_norm lower_stream_norm(const lower_context *context, uint64_t w,
                             uint64_t b);
void lower_norm_fwd(lower_context *context, const lower_norm *norm, fr_ref x,
                    fr_ref y, fr_ref stats);
/* is_added: onto dx. */
void lower_norm_bwd(lower_context *context, const lower_norm *norm, fr_ref dy,
                    fr_ref x, fr_ref stats, fr_ref dx, bool is_added);
/* out = a + sum + both biases of a parallel block. */
void lower_residual_two(lower_context *context, fr_ref a,
                        const lower_kind *kind, fr_ref sum);
/* out = a + sum (+ bias), dropped out if the job says so; in place on sum. */
void lower_residual(lower_context *context, fr_ref a, uint64_t bias, fr_ref sum,
                    uint64_t mask, int place);
/* The gradient that goes into a block whose output was dropped out. */
fr_ref lower_dropped(lower_context *context, fr_ref dy, uint64_t mask);
void lower_add(lower_context *context, fr_ref src, fr_ref dst, int64_t n);
void lower_copy(lower_context *context, fr_ref src, fr_ref dst,
                uint64_t n_bytes);
fr_instr *lower_activation(lower_context *context, bool is_backward,
                           int64_t rows, int64_t ffn);
/* Rotary positions of the qkv operand, in place; nothing without them. */
void lower_rope(lower_context *context, fr_op op, fr_ref qkv);

#endif
