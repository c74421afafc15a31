/*
 * lower_overhead.h: what a framework's kernels move beyond the operations of
 * op.h, as instructions of a segment.
 */
#ifndef FR_PROGRAM_LOWER_FRAMEWORK_LOWER_OVERHEAD_H
#define FR_PROGRAM_LOWER_FRAMEWORK_LOWER_OVERHEAD_H

#include "program/lower/segment/lower_shape.h"

/* Frameworks have two tensors where an operand here is one: kept is part of
 * it, and nothing moves. */
void lower_overhead_alias(lower_context *context, fr_ref kept, fr_ref part,
                          uint64_t n_bytes);
/* Norms of n elements. */
void lower_overhead_norm_fwd(lower_context *context, int64_t n, bool is_rms);
void lower_overhead_norm_bwd(lower_context *context, int64_t n, bool is_rms,
                             bool is_added);
/* Bytes that their backward needs of a layer beyond lower_saved: norms' inputs
 * in float32 and results before the weight, silu's result, repeated keys and
 * values, attention's output without padding. */
uint64_t lower_overhead_saved(const lower_context *context, bool has_norms,
                              bool has_activation);
void lower_overhead_rope(lower_context *context, int64_t n);
/* Before and after the core of attention. */
void lower_overhead_core(lower_context *context, bool is_backward);
/* Routing to experts, without its softmax. */
void lower_overhead_routing(lower_context *context, bool is_backward);
void lower_overhead_dropout(lower_context *context);
/* Scaling of n elements of an operand, or of the transpose of one that was
 * kept; of weights. */
void lower_overhead_scaling(lower_context *context, int64_t n,
                            bool is_transpose);
void lower_overhead_weight_scaling(lower_context *context, int64_t n);
/* With scales of rows: both operands of a product of m x n x k, its result. */
void lower_overhead_row_scaling(lower_context *context, fr_op op, int64_t m,
                                int64_t n, int64_t k);
/* Rows that tensor-parallel ranks gathered or will scatter. */
void lower_overhead_rows_apart(lower_context *context, uint64_t n_bytes);
/* A gated activation of n elements. */
void lower_overhead_activation(lower_context *context, bool is_backward,
                               int64_t n);
/* Gradients of n parameters on their way into what FSDP reduces, or onto
 * those of the micro-batches before. */
void lower_overhead_gradients(lower_context *context, uint64_t n);
/* The input's gradients from n_parts projections that a product has as one. */
void lower_overhead_parts(lower_context *context, int64_t n, int n_parts);
void lower_overhead_loss(lower_context *context);
void lower_overhead_metrics(lower_context *context);

#endif
