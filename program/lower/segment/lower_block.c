/* lower_block.c: products, norms and sums that layers are made of. */
#include "program/lower/segment/lower_block.h"

#include "program/lower/framework/lower_overhead.h"

/* ---- rows over tensor parallel ranks ---- */

fr_ref lower_gather_rows(lower_context *context, fr_ref shard, int64_t cols,
                         fr_dtype dtype)
{
    const uint64_t n = (uint64_t)(context->shape.rows * cols);
    const uint64_t n_bytes = n * fr_dtype_bytes(dtype);
    if (!context->plan->is_sequence_parallel)
        return shard;
    fr_ref whole = lower_temp(context, n_bytes);
    lower_collective(context, FR_OP_ALL_GATHER, FR_AXIS_TP, dtype, n, shard,
                     whole);
    lower_overhead_rows_apart(context, n_bytes);
    return whole;
}

fr_ref lower_partial_cols(lower_context *context, fr_ref target, int64_t cols)
{
    return context->plan->is_sequence_parallel
               ? lower_temp(context,
                            lower_bytes(context, context->shape.rows, cols))
               : target;
}

void lower_sum_cols(lower_context *context, fr_ref partial, fr_ref target,
                    int64_t cols)
{
    bool is_scattered = context->plan->is_sequence_parallel;
    if (context->plan->tp == 1)
        return;
    if (is_scattered)
        lower_overhead_rows_apart(
            context, lower_bytes(context, context->shape.rows, cols));
    lower_collective(context,
                     is_scattered ? FR_OP_REDUCE_SCATTER : FR_OP_ALL_REDUCE,
                     FR_AXIS_TP, fr_plan_storage_dtype(context->plan),
                     (uint64_t)(context->shape.rows * cols), partial, target);
}

fr_ref lower_partial_rows(lower_context *context, fr_ref target)
{
    return lower_partial_cols(context, target, context->shape.hidden);
}

void lower_sum_rows(lower_context *context, fr_ref partial, fr_ref target)
{
    lower_sum_cols(context, partial, target, context->shape.hidden);
}

/* ---- operands of products ---- */

static uint64_t low_bytes(const lower_context *context, int64_t rows,
                          int64_t cols)
{
    return (uint64_t)rows * (uint64_t)cols *
           fr_dtype_bytes(context->plan->precision);
}

fr_instr *lower_cast(lower_context *context, fr_ref src, fr_dtype from,
                     fr_ref dst, fr_dtype to, int64_t n)
{
    fr_instr *instr = lower_emit(context, FR_OP_CAST);
    instr->dtype = (uint8_t)to;
    instr->vector.n = n;
    instr->scalar = (double)fr_dtype_bytes(from);
    instr->ref[FR_CAST_SRC] = src;
    instr->ref[FR_CAST_DST] = dst;
    return instr;
}

/* To the type of products, the transpose too where that is kept. */
static void cast(lower_context *context, fr_ref src, fr_dtype from, fr_ref dst,
                 fr_ref transposed, int64_t n)
{
    fr_instr *instr =
        lower_cast(context, src, from, dst, context->plan->precision, n);
    instr->ref[FR_CAST_DST_T] = transposed;
    if (transposed.space != FR_SPACE_NONE)
        instr->flags = FR_INSTR_TRANSPOSE;
}

fr_ref lower_operand(lower_context *context, fr_ref x, lower_kept kept,
                     int64_t rows, int64_t cols)
{
    if (!context->target.is_low)
        return x;
    fr_ref low = lower_temp(context, low_bytes(context, rows, cols));
    lower_overhead_scaling(context, rows * cols, false);
    cast(context, x, fr_plan_storage_dtype(context->plan), low,
         lower_saved_at(kept.low), rows * cols);
    return low;
}

fr_ref lower_kept_operand(lower_kept kept)
{
    return lower_saved_at(kept.low != LOWER_ABSENT ? kept.low : kept.wide);
}

fr_ref lower_gradient_shard(lower_context *context, fr_ref dy, int64_t rows,
                            int64_t cols)
{
    if (!context->target.is_low)
        return dy;
    fr_ref shard = lower_temp(context, low_bytes(context, rows, cols));
    lower_overhead_scaling(context, rows * cols, false);
    cast(context, dy, fr_plan_storage_dtype(context->plan), shard, lower_absent,
         rows * cols);
    return shard;
}

lower_gradient lower_gradient_columns(lower_context *context, fr_ref whole,
                                      int64_t rows, int64_t cols)
{
    lower_gradient out = {whole, whole};
    if (!context->target.is_low)
        return out;
    out.columns = lower_temp(context, low_bytes(context, rows, cols));
    cast(context, whole, context->plan->precision, out.columns, lower_absent,
         rows * cols);
    return out;
}

lower_gradient lower_gradient_operand(lower_context *context, fr_ref dy,
                                      bool is_shard, int64_t rows, int64_t cols)
{
    const fr_dtype wide = fr_plan_storage_dtype(context->plan);
    bool is_gathered = is_shard && context->plan->is_sequence_parallel;
    fr_dtype dtype = lower_product_dtype(context);
    if (!context->target.is_low) {
        fr_ref whole =
            is_shard ? lower_gather_rows(context, dy, cols, dtype) : dy;
        return (lower_gradient){whole, whole};
    }
    if (is_gathered) {
        fr_ref shard =
            lower_gradient_shard(context, dy, rows / context->plan->tp, cols);
        fr_ref whole = lower_gather_rows(context, shard, cols, dtype);
        return lower_gradient_columns(context, whole, rows, cols);
    }
    lower_gradient out;
    out.rows = lower_temp(context, low_bytes(context, rows, cols));
    out.columns = lower_temp(context, low_bytes(context, rows, cols));
    lower_overhead_scaling(context, rows * cols, false);
    cast(context, dy, wide, out.rows, out.columns, rows * cols);
    return out;
}

/* Elements of all matrices of a product. */
static int64_t matrix_elements(const lower_matrix *matrix)
{
    return matrix->n * matrix->k *
           (matrix->n_groups > 0 ? matrix->n_groups : 1);
}

/* The weight as a product reads it; that of backward reads its transpose. */
static fr_ref product_weight(lower_context *context, const lower_kind *kind,
                             const lower_matrix *matrix, bool is_transposed)
{
    const uint64_t width = fr_dtype_bytes(context->plan->precision);
    const fr_ref wide = lower_weight(context, matrix->w);
    if (!context->target.is_low || matrix->is_wide)
        return wide;
    if (kind->low_bytes > 0)
        return lower_ref(FR_SPACE_LOW,
                         (matrix->w + (is_transposed ? kind->layout.n : 0)) *
                             width);
    fr_ref low = lower_temp(context, (uint64_t)matrix_elements(matrix) * width);
    lower_overhead_weight_scaling(context, matrix_elements(matrix));
    cast(context, wide, fr_plan_storage_dtype(context->plan), low, lower_absent,
         matrix_elements(matrix));
    return low;
}

/* Casts elements [first, first + n) of a layer's weights, and their
 * transpose. */
static void cast_weights(lower_context *context, const lower_kind *kind,
                         uint64_t first, uint64_t n)
{
    const uint64_t width = fr_dtype_bytes(context->plan->precision);
    if (n == 0)
        return;
    lower_overhead_weight_scaling(context, (int64_t)n);
    cast(context, lower_weight(context, first),
         fr_plan_storage_dtype(context->plan),
         lower_ref(FR_SPACE_LOW, first * width),
         lower_ref(FR_SPACE_LOW, (kind->layout.n + first) * width), (int64_t)n);
}

void lower_cast_segment(lower_context *context, lower_kind *kind)
{
    const lower_layer_layout *l = &kind->layout;
    if (kind->low_bytes == 0)
        return;
    kind->segments.i_cast =
        lower_segment_begin(context, FR_LANE_COMPUTE, "weight_cast");
    cast_weights(context, kind, 0, l->n_dense);
    cast_weights(context, kind, l->n_dense, l->n - l->n_dense);
}

/* A wide product has at least 16 bits: below that it runs in the storage's
 * type.  TF32 is no such type: it is how all float32 products run
 * (torch.backends.cuda.matmul.allow_tf32, NVIDIA_TF32_OVERRIDE). */
static fr_dtype product_dtype(const lower_context *context,
                              const lower_matrix *matrix)
{
    const fr_dtype precision = context->plan->precision;
    return matrix->is_wide && fr_dtype_bytes(precision) < 2
               ? fr_plan_storage_dtype(context->plan)
               : precision;
}

static fr_instr *product(lower_context *context, fr_op op, fr_op grouped,
                         const lower_matrix *matrix)
{
    bool is_grouped = matrix->n_groups > 0;
    if (!matrix->is_wide)
        lower_overhead_row_scaling(context, op, matrix->m, matrix->n,
                                   matrix->k *
                                       (is_grouped ? matrix->n_groups : 1));
    fr_instr *instr = lower_emit(context, is_grouped ? grouped : op);
    instr->dtype = (uint8_t)product_dtype(context, matrix);
    if (instr->dtype == FR_DTYPE_FP8)
        instr->scaling = (uint8_t)context->plan->execution.scaling;
    instr->linear.m = matrix->m;
    instr->linear.n = matrix->n;
    instr->linear.k = matrix->k;
    instr->linear.n_groups = matrix->n_groups;
    instr->linear.n_first = matrix->n_first;
    if (is_grouped) {
        instr->grouped.m = matrix->n_rows;
        instr->grouped.n_runs = matrix->n_runs;
        instr->grouped.run_rows = matrix->m / matrix->n_runs;
    }
    return instr;
}

void lower_product_fwd(lower_context *context, const lower_kind *kind,
                       const lower_matrix *matrix, fr_ref x, fr_ref y)
{
    fr_ref w = product_weight(context, kind, matrix, false);
    fr_instr *instr =
        product(context, FR_OP_LINEAR_FWD, FR_OP_GROUPED_FWD, matrix);
    instr->ref[FR_LINEAR_FWD_X] = x;
    instr->ref[FR_LINEAR_FWD_W] = w;
    instr->ref[FR_LINEAR_FWD_BIAS] = lower_weight(context, matrix->b);
    instr->ref[FR_LINEAR_FWD_Y] = y;
    if (matrix->n_groups > 0)
        instr->ref[FR_GROUPED_FWD_COUNTS] = matrix->counts;
}

fr_instr *lower_product_dgrad(lower_context *context, const lower_kind *kind,
                              const lower_matrix *matrix, fr_ref dy, fr_ref dx)
{
    fr_ref w = product_weight(context, kind, matrix, true);
    fr_instr *instr =
        product(context, FR_OP_LINEAR_DGRAD, FR_OP_GROUPED_DGRAD, matrix);
    instr->ref[FR_LINEAR_DGRAD_DY] = dy;
    instr->ref[FR_LINEAR_DGRAD_W] = w;
    instr->ref[FR_LINEAR_DGRAD_DX] = dx;
    if (matrix->n_groups > 0)
        instr->ref[FR_GROUPED_DGRAD_COUNTS] = matrix->counts;
    return instr;
}

void lower_product_wgrad(lower_context *context, const lower_matrix *matrix,
                         fr_ref dy, fr_ref x)
{
    if (!matrix->is_wide)
        lower_overhead_scaling(context, matrix->m * matrix->k, true);
    fr_instr *instr =
        product(context, FR_OP_LINEAR_WGRAD, FR_OP_GROUPED_WGRAD, matrix);
    instr->ref[FR_LINEAR_WGRAD_DY] = dy;
    instr->ref[FR_LINEAR_WGRAD_X] = x;
    instr->ref[FR_LINEAR_WGRAD_DW] = lower_grad(context, matrix->w);
    instr->ref[FR_LINEAR_WGRAD_DBIAS] = lower_grad(context, matrix->b);
    if (matrix->n_groups > 0)
        instr->ref[FR_GROUPED_WGRAD_COUNTS] = matrix->counts;
}

/* ---- element by element ---- */

lower_norm lower_stream_norm(const lower_context *context, uint64_t w,
                             uint64_t b)
{
    return (lower_norm){context->shape.stream_rows, context->shape.hidden, w, b,
                        context->model->is_rms_norm};
}

static fr_instr *norm_instr(lower_context *context, fr_op op,
                            const lower_norm *norm)
{
    fr_instr *instr = lower_emit(context, op);
    instr->matrix.rows = norm->rows;
    instr->matrix.cols = norm->cols;
    instr->scalar = context->model->norm_eps;
    instr->flags = norm->is_rms ? FR_INSTR_RMS : 0;
    return instr;
}

void lower_norm_fwd(lower_context *context, const lower_norm *norm, fr_ref x,
                    fr_ref y, fr_ref stats)
{
    fr_instr *instr = norm_instr(context, FR_OP_NORM_FWD, norm);
    instr->ref[FR_NORM_FWD_X] = x;
    instr->ref[FR_NORM_FWD_W] = lower_weight(context, norm->w);
    instr->ref[FR_NORM_FWD_B] = lower_weight(context, norm->b);
    instr->ref[FR_NORM_FWD_Y] = y;
    instr->ref[FR_NORM_FWD_STATS] = stats;
    lower_overhead_norm_fwd(context, norm->rows * norm->cols, norm->is_rms);
}

void lower_norm_bwd(lower_context *context, const lower_norm *norm, fr_ref dy,
                    fr_ref x, fr_ref stats, fr_ref dx, bool is_added)
{
    fr_instr *instr = norm_instr(context, FR_OP_NORM_BWD, norm);
    instr->ref[FR_NORM_BWD_DY] = dy;
    instr->ref[FR_NORM_BWD_X] = x;
    instr->ref[FR_NORM_BWD_W] = lower_weight(context, norm->w);
    instr->ref[FR_NORM_BWD_STATS] = stats;
    instr->ref[FR_NORM_BWD_DX] = dx;
    instr->ref[FR_NORM_BWD_DW] = lower_grad(context, norm->w);
    instr->ref[FR_NORM_BWD_DB] = lower_grad(context, norm->b);
    if (is_added)
        instr->flags |= FR_INSTR_ACCUMULATE;
    lower_overhead_norm_bwd(context, norm->rows * norm->cols, norm->is_rms,
                            is_added);
}

void lower_residual(lower_context *context, fr_ref a, uint64_t bias, fr_ref sum,
                    uint64_t mask, int place)
{
    bool is_dropped = mask != LOWER_ABSENT;
    fr_instr *instr = lower_emit(context, is_dropped ? FR_OP_DROPOUT_ADD
                                                     : FR_OP_RESIDUAL_ADD);
    instr->matrix.rows = context->shape.stream_rows;
    instr->matrix.cols = context->shape.hidden;
    instr->ref[FR_DROPOUT_ADD_A] = is_dropped ? sum : a;
    instr->ref[FR_DROPOUT_ADD_B] = is_dropped ? a : sum;
    instr->ref[FR_DROPOUT_ADD_BIAS] = lower_weight(context, bias);
    instr->ref[FR_DROPOUT_ADD_OUT] = sum;
    instr->ref[FR_DROPOUT_ADD_MASK] = lower_saved_at(mask);
    if (is_dropped) {
        instr->scalar = context->job->dropout;
        instr->place = (uint8_t)place;
        lower_overhead_dropout(context);
    }
}

void lower_residual_two(lower_context *context, fr_ref a,
                        const lower_kind *kind, fr_ref sum)
{
    const lower_layer_layout *l = &kind->layout;
    const size_t i_sum = context->instrs.n;
    bool is_dropped = kind->saved.mask2 != LOWER_ABSENT;
    lower_residual(context, a, l->fc2_b, sum, kind->saved.mask2, 2);
    if (!context->is_out_of_memory)
        context->instrs.items[i_sum]
            .ref[is_dropped ? FR_DROPOUT_ADD_BIAS2 : FR_RESIDUAL_ADD_BIAS2] =
            lower_weight(context, l->out_b);
}

fr_ref lower_dropped(lower_context *context, fr_ref dy, uint64_t mask)
{
    const lower_shape *s = &context->shape;
    if (mask == LOWER_ABSENT)
        return dy;
    fr_ref dx = lower_temp(context, s->stream_bytes);
    fr_instr *instr = lower_emit(context, FR_OP_DROPOUT_BWD);
    instr->matrix.rows = s->stream_rows;
    instr->matrix.cols = s->hidden;
    instr->scalar = context->job->dropout;
    instr->ref[FR_DROPOUT_BWD_DY] = dy;
    instr->ref[FR_DROPOUT_BWD_MASK] = lower_saved_at(mask);
    instr->ref[FR_DROPOUT_BWD_DX] = dx;
    return dx;
}

void lower_add(lower_context *context, fr_ref src, fr_ref dst, int64_t n)
{
    fr_instr *instr = lower_emit(context, FR_OP_ADD);
    instr->vector.n = n;
    instr->ref[FR_ADD_SRC] = src;
    instr->ref[FR_ADD_DST] = dst;
}

void lower_copy(lower_context *context, fr_ref src, fr_ref dst,
                uint64_t n_bytes)
{
    fr_instr *instr = lower_emit(context, FR_OP_COPY);
    instr->copy.n_bytes = (int64_t)n_bytes;
    instr->ref[FR_COPY_SRC] = src;
    instr->ref[FR_COPY_DST] = dst;
}

fr_instr *lower_activation(lower_context *context, bool is_backward,
                           int64_t rows, int64_t ffn)
{
    bool is_gated = context->model->is_gated_mlp;
    fr_instr *instr = lower_emit(
        context, is_gated ? is_backward ? FR_OP_SWIGLU_BWD : FR_OP_SWIGLU_FWD
                 : is_backward ? FR_OP_GELU_BWD
                               : FR_OP_GELU_FWD);
    instr->activation = (uint8_t)context->model->activation;
    if (is_gated)
        instr->matrix = (fr_matrix_dims){rows, ffn};
    else
        instr->vector.n = rows * ffn;
    return instr;
}

void lower_rope(lower_context *context, fr_op op, fr_ref qkv)
{
    const fr_model *model = context->model;
    const lower_shape *s = &context->shape;
    bool is_latent = model->kv_lora_rank > 0;
    bool is_partial = !is_latent && model->rope_frac < 1.0;
    /* So many columns of each head are rotated; latent keys share theirs. */
    int64_t rotated = is_latent    ? model->qk_rope_head_dim
                      : is_partial ? fr_model_rotated(model)
                                   : s->head_dim;
    const fr_rope_dims dims = {s->rows,
                               s->seq,
                               s->q_heads,
                               is_latent ? 1 : s->kv_heads,
                               is_partial ? s->head_dim : rotated,
                               is_partial ? rotated : 0,
                               model->has_rope_scaling};
    if (!model->is_rope || lower_is_latent_run(context))
        return;
    fr_instr *instr = lower_emit(context, op);
    instr->rope = dims;
    instr->flags = lower_is_keys_apart(context) ? FR_INSTR_KEYS_APART : 0;
    instr->scalar = model->rope_theta;
    instr->ref[FR_ROPE_FWD_QKV] = qkv;
    lower_overhead_rope(context,
                        dims.rows * (dims.q_heads + dims.kv_heads) * rotated);
}
