/*
 * lower_overhead.c: what a framework's kernels move beyond the operations of
 * op.h, which count each tensor once: a table with a row for what one set of
 * kernels does, read in its sources, and who asks for which rows.
 */
#include "program/lower/framework/lower_overhead.h"

typedef enum overhead {
    RMS_NORM_FWD,
    RMS_NORM_BWD,
    LAYER_NORM_BWD,
    NORM_ADDED,
    ROPE,
    SOFTMAX_FWD,
    SOFTMAX_BWD,
    DROPOUT,
    GATED_FWD,
    GATED_BWD,
    PARTS,
    REPEATED_KEYS_FWD,
    REPEATED_KEYS_BWD,
    UNPAD_FWD,
    UNPAD_BWD,
    PACKED_BWD,
    CONTEXT_FWD,
    GROUPED_FWD,
    SPLIT_BWD,
    SCALING,
    SCALING_TRANSPOSE,
    SCALING_FP4,
    SCALING_BLOCK,
    SCALING_ROW,
    SCALING_COLUMN,
    SCALING_OUTPUT,
    ROUTING_FWD,
    ROUTING_BWD,
    ROUTING_FUSED,
    ROWS_APART,
    GRADIENT_ADDED,
    GRADIENT_VIEWS,
    LOSS,
    LOSS_PARALLEL,
    METRIC
} overhead;

/* For each element: casts to or from float32, whole activations and bytes;
 * minus what the operation itself counts. */
typedef struct overhead_row {
    overhead what;
    unsigned kernels; /* lower_kernels that do so */
    int casts, widths, bytes, n_kernels;
    int scratch_widths, scratch_bytes; /* what the kernels write lies there */
} overhead_row;

enum {
    ANY = LOWER_KERNELS_PLANNED | LOWER_KERNELS_FUSED | LOWER_KERNELS_PYTORCH,
    EAGER = LOWER_KERNELS_EAGER,
    COMPILED = LOWER_KERNELS_COMPILED,
    FUSED = LOWER_KERNELS_FUSED,
    PYTORCH = LOWER_KERNELS_PYTORCH
};

static const overhead_row rows[] = {
    /*
     * RMSNorm of Hugging Face, and torch.nn.RMSNorm before fused kernels:
     * x.float(), pow (8 bytes), mean (4), rsqrt, mul (8), to, weight; backward
     * the derivative of each (derivatives.yaml: pow_backward).  The weight's
     * product: dy w, dy times normed, its sum: 6 widths; x r: 8, 12 and a sum
     * of 4; mean and pow: 4, 8, 8, 12; both gradients of x: 12.  NORM_BWD
     * counts 3 widths.
     */
    {RMS_NORM_FWD, EAGER, 2, 0, 20, 7, 0, 8},
    {RMS_NORM_BWD, EAGER, 2, 3, 68, 12, 0, 12},
    /*
     * native_layer_norm_backward and what Inductor makes look at dy and x once
     * more for the gradients of the weights; Apex' FastLayerNorm and
     * Transformer Engine do not.
     */
    {RMS_NORM_BWD, COMPILED, 0, 2, 0, 1, 0, 0},
    {LAYER_NORM_BWD, PYTORCH, 0, 2, 0, 1, 0, 0},
    /*
     * Gradients that come from two users of a tensor are added by a kernel of
     * its own (torch/csrc/autograd/input_buffer.cpp).
     */
    {NORM_ADDED, ANY & ~COMPILED, 0, 2, 0, 1, 1, 0},
    /*
     * Llama's apply_rotary_emb: float(), product of complex numbers, type_as;
     * Inductor leaves complex operators alone (torch/_inductor/lowering.py).
     * Of q and of k a cast, the product, a cast; ROPE counts 2 widths.
     */
    {ROPE, PYTORCH, 2, -2, 8, 5, 0, 8},
    /*
     * eager_attention_forward of Hugging Face: division, mask, softmax in
     * float32, a cast; backward casts, 12 in float32, the division.  The fused
     * softmax counts 2 widths, its backward 3.
     */
    {SOFTMAX_FWD, EAGER, 0, 4, 8, 3, 1, 0},
    {SOFTMAX_BWD, EAGER, 2, -1, 12, 3, 0, 8},
    /* F.dropout is written, then read by the residual's addition. */
    {DROPOUT, EAGER, 0, 2, 0, 1, 1, 0},
    /* F.silu and a product: 2 and 3 widths for 3; backward 3, 3, 3 for 5. */
    {GATED_FWD, EAGER, 0, 2, 0, 1, 1, 0},
    {GATED_BWD, EAGER, 0, 4, 0, 2, 1, 0},
    /* Llama's projections are apart: the gradients of their input are added.
     * Compiled, the kernel that follows reads each. */
    {PARTS, EAGER, 0, 3, 0, 1, 1, 0},
    {PARTS, COMPILED, 0, 1, 0, 1, 1, 0},
    /* repeat_kv copies keys and values for every query head (Llama). */
    {REPEATED_KEYS_FWD, PYTORCH, 0, 1, 0, 2, 1, 0},
    {REPEATED_KEYS_BWD, PYTORCH, 0, 1, 0, 2, 0, 0},
    /*
     * flash_attn 1.x takes sequences without padding: unpad_input and
     * pad_input (flash_attn/bert_padding.py) gather q, k and v and scatter the
     * output onto zeros; each finds the rows by eight small kernels first.
     */
    {UNPAD_FWD, PYTORCH, 0, 1, 0, 29, 1, 0},
    {UNPAD_BWD, PYTORCH, 0, 1, 0, 7, 1, 0},
    /* dq, dk and dv of a packed projection are put side by side. */
    {PACKED_BWD, PYTORCH, 0, 2, 0, 1, 1, 0},
    /*
     * Megatron-LM: context_layer.permute().contiguous() of unfused attention;
     * get_query_key_value_tensors copies grouped queries out of the packed
     * projection; backward concatenates.
     */
    {CONTEXT_FWD, ANY & ~PYTORCH, 0, 2, 0, 1, 0, 0},
    {GROUPED_FWD, ANY & ~PYTORCH, 0, 2, 0, 1, 0, 0},
    {SPLIT_BWD, ANY & ~PYTORCH, 0, 2, 0, 1, 1, 0},
    /*
     * torchao's float8 (float8_linear.py, its matmul's forward and backward)
     * finds each operand's maximum first, keeps activations as they are and
     * casts them again for the gradients of weights: maximum 2, cast 3, of
     * which forward's cast has had the 1.  A cast that transposes, as that one
     * must, reaches 1.4 TB/s of an H100 where others reach 2.2 (pytorch issue
     * 133242, 2024-08): its 3 bytes count as 5.
     */
    {SCALING, COMPILED, 0, 0, 2, 2, 0, 0},
    {SCALING_TRANSPOSE, COMPILED, 0, 0, 2 + 5 - 1, 2, 0, 0},
    /*
     * Its rowwise recipe casts each operand beside its product: a row by one
     * kernel that reads it once, a column by two, of which the second
     * transposes.  Backward products accumulate
     * precisely, for which CUTLASS' kernel is slow: cuBLAS multiplies, another
     * kernel puts the scales on (float8_ops.py, addmm_float8_unwrapped).
     */
    {SCALING_ROW, ANY, 0, 0, 3, 1, 0, 1},
    {SCALING_COLUMN, ANY, 0, 0, 2 + 5, 2, 0, 1},
    {SCALING_OUTPUT, ANY, 0, 2, 0, 1, 0, 0},
    /*
     * Transformer Engine (pytorch/csrc/quantizer.cpp) casts rows and columns in
     * one kernel.  With current scaling it finds the maximum and makes a scale
     * of it first; scales of blocks are put into the order of the tensor cores
     * before each product (common/swizzle): read and written, twice.  NVFP4:
     * one kernel for the maximum of the tensor and of its Hadamard transform,
     * one for rows, one that transforms and casts columns; CAST has 4 of their
     * 2, 2 9/16 and 2 9/16 (the eighth is added by who asks).
     */
    {SCALING, FUSED, 0, 0, 2, 2, 0, 0},
    {SCALING_BLOCK, FUSED, 0, 0, 4, 2, 0, 0},
    {SCALING_FP4, FUSED, 0, 0, 1, 2, 0, 0},
    /*
     * Megatron-Core routes by operators (core 0.12, transformer/moe: router.py,
     * moe_utils.py, token_dispatcher.py), over tokens times experts.  Forward
     * topk, softmax, a cast, twice zeros and scatter, int, bool, sum: 10; the
     * loss that balances and its record: 8; counts for the exchange
     * (preprocess): 7; the order of permute and of unpermute: 7; the router's
     * own 4 are there.  Backward the derivatives of topk, softmax, scatter and
     * of the loss, and of the weights that unpermute selects: 14 more.  With
     * moe_router_fusion and moe_permute_fusion the counts stay, and a kernel
     * for the loss.
     */
    {ROUTING_FWD, FUSED, 0, 0, 52, 28, 0, 0},
    {ROUTING_BWD, FUSED, 0, 0, 40, 14, 0, 0},
    {ROUTING_FUSED, FUSED, 0, 0, 6, 8, 0, 0},
    /*
     * DTensor shards the sequence, which is not a tensor's first dimension:
     * what was gathered, and what will be scattered, is put into another order
     * (torch/distributed/_functional_collectives.py: cat of chunks in
     * all_gather_tensor and reduce_scatter_tensor): of each byte.
     */
    {ROWS_APART, PYTORCH, 0, 0, 2, 1, 0, 1},
    /*
     * AccumulateGrad adds a micro-batch's gradients to those that are there; in
     * Megatron-LM of 2021 a hook (model/distributed.py: main_grad.add_(grad)).
     * Fused products came in 2022.
     */
    {GRADIENT_ADDED, ANY, 0, 2, 0, 6, 0, 0},
    /*
     * FSDP's flat parameters are split into views: autograd puts their
     * gradients side by side again (_flat_param.py), FSDP2 copies them to what
     * it reduces (foreach_reduce); both in the dtype of the reduction, which
     * may not be that of the products.
     */
    {GRADIENT_VIEWS, PYTORCH, 0, 2, 0, 1, 0, 0},
    /*
     * vocab_parallel_cross_entropy: float(), max 4, -= 8, exp 8, sum 4, div_ 8,
     * mul_ 8.  F.cross_entropy of float() logits: log_softmax in three passes
     * (16 and 16), nll_loss' zeros 4; its output and two gradients.  XENT
     * counts 12 for an element, XENT_MAX, _SUM and _GRAD 16.
     */
    {LOSS, FUSED, 0, 0, 40 - 12, 3, 0, 0},
    {LOSS, ANY & ~FUSED, 0, 0, 36 - 12, 2, 0, 8},
    {LOSS_PARALLEL, FUSED, 0, 0, 40 - 16, 3, 0, 0},
    {LOSS_PARALLEL, ANY & ~FUSED, 0, 0, 36 - 16, 2, 0, 8},
    /*
     * torch.nn.CrossEntropyLoss of the logits again, under autocast in float32:
     * a cast and log_softmax (composer's metrics/nlp.py, LanguageCrossEntropy;
     * trainer.py updates each after every micro-batch's backward).
     */
    {METRIC, ANY, 1, 0, 16, 3, 0, 0},
};

static bool is_kernels(const lower_context *context, unsigned kernels)
{
    return (context->target.kernels & kernels) != 0;
}

static int64_t width(const lower_context *context)
{
    return (int64_t)lower_bytes(context, 1, 1);
}

/* The row for what the target's kernels do; NULL: nothing. */
static const overhead_row *find_row(const lower_context *context, overhead what)
{
    for (size_t i = 0; i < FR_LENGTH(rows); i++)
        if (rows[i].what == what && is_kernels(context, rows[i].kernels))
            return &rows[i];
    return NULL;
}

/* `n_bytes` that are moved by n_kernels; scratch_bytes of them lie in scratch.
 */
static void move(lower_context *context, int64_t n_bytes, int n_kernels,
                 int64_t scratch_bytes)
{
    if (n_bytes <= 0)
        return;
    uint64_t mark = lower_temp_mark(context);
    fr_ref scratch = scratch_bytes > 0
                         ? lower_temp(context, (uint64_t)scratch_bytes)
                         : lower_absent;
    fr_instr *instr = lower_emit(context, FR_OP_ELEMENTWISE);
    instr->elementwise.moved_bytes = n_bytes;
    instr->elementwise.n_kernels = n_kernels;
    instr->elementwise.scratch_bytes = scratch_bytes;
    instr->ref[FR_ELEMENTWISE_SCRATCH] = scratch;
    lower_temp_reset(context, mark);
}

/* Adds a row's bytes for n elements, its kernels n_times, and scratch for
 * n_scratch elements. */
static void add_row(lower_context *context, overhead what, int64_t n,
                    int n_times, int64_t n_scratch)
{
    const overhead_row *row = find_row(context, what);
    const int64_t w = width(context), cast = w < 4 ? w + 4 : 0;
    if (row == NULL)
        return;
    move(context, n * (row->casts * cast + row->widths * w + row->bytes),
         row->n_kernels * n_times,
         n_scratch * (row->scratch_widths * w + row->scratch_bytes));
}

static void add(lower_context *context, overhead what, int64_t n)
{
    add_row(context, what, n, 1, n);
}

void lower_overhead_alias(lower_context *context, fr_ref kept, fr_ref part,
                          uint64_t n_bytes)
{
    fr_instr *instr = lower_emit(context, FR_OP_ELEMENTWISE);
    instr->elementwise.x_bytes = instr->elementwise.scratch_bytes =
        (int64_t)n_bytes;
    instr->ref[FR_ELEMENTWISE_X] = kept;
    instr->ref[FR_ELEMENTWISE_SCRATCH] = part;
}

static bool is_norm_fused(const lower_context *context)
{
    return context->plan->execution.is_norm_fused && is_kernels(context, EAGER);
}

void lower_overhead_norm_fwd(lower_context *context, int64_t n, bool is_rms)
{
    if (is_rms && !is_norm_fused(context))
        add(context, RMS_NORM_FWD, n);
}

void lower_overhead_norm_bwd(lower_context *context, int64_t n, bool is_rms,
                             bool is_added)
{
    if (!is_norm_fused(context))
        add(context, is_rms ? RMS_NORM_BWD : LAYER_NORM_BWD, n);
    /* dx is written, then read with the gradient that is there. */
    if (is_added)
        add(context, NORM_ADDED, n);
}

void lower_overhead_rope(lower_context *context, int64_t n)
{
    add(context, ROPE, n);
}

void lower_overhead_dropout(lower_context *context)
{
    add(context, DROPOUT, context->shape.stream_rows * context->shape.hidden);
}

/* Pairs of queries and keys. */
static int64_t pairs_of(const lower_context *context)
{
    const lower_shape *s = &context->shape;
    return s->rows * s->q_heads * s->seq * context->plan->cp;
}

uint64_t lower_overhead_saved(const lower_context *context, bool has_norms,
                              bool has_activation)
{
    const lower_shape *s = &context->shape;
    const int64_t w = width(context);
    bool is_eager = is_kernels(context, EAGER);
    bool is_fused = context->target.attention == LOWER_ATTENTION_FUSED;
    int64_t n = 0;
    if (!is_kernels(context, PYTORCH) ||
        lower_is_recomputed(context, FR_RECOMPUTE_PART_PRODUCTS))
        return 0;
    if (is_eager && context->model->is_rms_norm && has_norms &&
        !context->plan->execution.is_norm_fused)
        n += 2 * s->stream_rows * s->hidden * (w < 4 ? 4 + w : w);
    if (is_eager && context->model->is_gated_mlp && has_activation)
        n += s->rows * s->ffn * w;
    if (is_eager && !is_fused && w < 4)
        n += 4 * pairs_of(context);
    if (is_fused && s->kv_heads < s->q_heads)
        n +=
            s->rows * (s->q_heads - s->kv_heads) * (s->head_dim + s->v_dim) * w;
    if (context->target.is_unpadded)
        n += s->rows * s->attn * w;
    return (uint64_t)n;
}

void lower_overhead_scaling(lower_context *context, int64_t n,
                            bool is_transpose)
{
    const fr_plan *plan = context->plan;
    if (!context->target.is_low)
        return;
    if (is_transpose)
        add(context, SCALING_TRANSPOSE, n);
    else if (is_kernels(context, COMPILED) ||
             (plan->precision != FR_DTYPE_FP4 &&
              plan->execution.scaling == FR_SCALING_CURRENT))
        add(context, SCALING, n);
    else if (plan->precision == FR_DTYPE_FP4)
        add(context, SCALING_FP4, 3 * n + n / 8);
    else if (plan->execution.scaling == FR_SCALING_BLOCK)
        add(context, SCALING_BLOCK, n / 32);
}

void lower_overhead_row_scaling(lower_context *context, fr_op op, int64_t m,
                                int64_t n, int64_t k)
{
    if (!lower_has_row_scales(context->plan))
        return;
    switch (op) {
    case FR_OP_LINEAR_FWD:
        add(context, SCALING_ROW, m * k + n * k);
        break;
    case FR_OP_LINEAR_DGRAD:
        add(context, SCALING_ROW, m * n);
        add(context, SCALING_COLUMN, n * k);
        add(context, SCALING_OUTPUT, m * k);
        break;
    default:
        add(context, SCALING_COLUMN, m * n + m * k);
        add(context, SCALING_OUTPUT, n * k);
        break;
    }
}

/* Weights are not transformed: NVFP4 casts both ways at once. */
void lower_overhead_weight_scaling(lower_context *context, int64_t n)
{
    const fr_plan *plan = context->plan;
    if (context->target.is_low && is_kernels(context, FUSED) &&
        (plan->precision == FR_DTYPE_FP4 ||
         plan->execution.scaling == FR_SCALING_CURRENT))
        add(context, SCALING, n);
}

void lower_overhead_core(lower_context *context, bool is_backward)
{
    const lower_shape *s = &context->shape;
    const int64_t q = s->rows * s->q_heads * s->head_dim;
    const int64_t kv = s->rows * s->kv_heads * (s->head_dim + s->v_dim);
    const int64_t repeated = s->rows * s->q_heads * (s->head_dim + s->v_dim);
    const int64_t o = s->rows * s->attn, qkv = q + kv;
    bool is_fused = context->target.attention == LOWER_ATTENTION_FUSED;
    bool is_grouped = s->kv_heads < s->q_heads;
    if (!is_fused && width(context) < 4)
        add(context, is_backward ? SOFTMAX_BWD : SOFTMAX_FWD,
            pairs_of(context));
    if (is_grouped) /* repeat_kv, or its sum over the copies */
        add_row(context, is_backward ? REPEATED_KEYS_BWD : REPEATED_KEYS_FWD,
                kv + repeated, 1, repeated);
    if (context->target.is_unpadded && is_backward)
        add_row(context, UNPAD_BWD, 3 * qkv + 2 * o, 1, qkv);
    else if (context->target.is_unpadded)
        add_row(context, UNPAD_FWD, 2 * qkv + 3 * o, 1, qkv);
    if (!context->model->is_gated_mlp && is_backward)
        add(context, PACKED_BWD, qkv);
    if (!is_fused && !is_backward)
        add(context, CONTEXT_FWD, o);
    if (is_grouped && !is_backward)
        add(context, GROUPED_FWD, q);
    if (is_backward && (is_grouped || !is_fused))
        add(context, SPLIT_BWD, qkv);
}

void lower_overhead_routing(lower_context *context, bool is_backward)
{
    const int64_t n = context->shape.stream_rows * context->model->n_experts;
    if (!context->plan->execution.is_routing_fused)
        add(context, is_backward ? ROUTING_BWD : ROUTING_FWD, n);
    else if (!is_backward)
        add(context, ROUTING_FUSED, n);
}

void lower_overhead_rows_apart(lower_context *context, uint64_t n_bytes)
{
    if (!context->plan->is_tp_overlap) /* whose pieces lie in order */
        add(context, ROWS_APART, (int64_t)n_bytes);
}

void lower_overhead_activation(lower_context *context, bool is_backward,
                               int64_t n)
{
    if (context->model->is_gated_mlp)
        add(context, is_backward ? GATED_BWD : GATED_FWD, n);
}

void lower_overhead_parts(lower_context *context, int64_t n, int n_parts)
{
    bool is_one_kernel = is_kernels(context, COMPILED);
    if (context->target.is_apart)
        add_row(context, PARTS, n * (n_parts - 1),
                is_one_kernel ? 1 : n_parts - 1, n);
}

void lower_overhead_gradients(lower_context *context, uint64_t n)
{
    const fr_plan *plan = context->plan;
    bool is_sharded = plan->zero_stage >= 2;
    bool is_apart = is_kernels(context, PYTORCH)
                        ? !is_sharded && context->n_micro > 1
                        : plan->execution.is_grad_added_apart;
    bool is_cast = plan->grad_dtype != fr_plan_storage_dtype(plan);
    if (is_apart)
        add(context, GRADIENT_ADDED, (int64_t)n);
    if (is_sharded && is_cast && is_kernels(context, PYTORCH))
        /* Side by side, then cast to what is reduced. */
        move(context,
             (int64_t)n * (3 * width(context) +
                           (int64_t)fr_dtype_bytes(plan->grad_dtype)),
             2, 0);
    else if (is_sharded)
        add(context, GRADIENT_VIEWS, (int64_t)n);
}

void lower_overhead_loss(lower_context *context)
{
    const lower_shape *s = &context->shape;
    add(context, context->plan->tp == 1 ? LOSS : LOSS_PARALLEL,
        s->rows * s->vocab_local);
}

/* Their float32 copies come when the layers' activations are gone: they are
 * no scratch of the head. */
void lower_overhead_metrics(lower_context *context)
{
    const lower_shape *s = &context->shape;
    const int n = context->plan->execution.n_loss_metrics;
    add_row(context, METRIC, s->rows * s->vocab_local * n, n, 0);
}
