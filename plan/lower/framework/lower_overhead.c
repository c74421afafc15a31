/*
 * lower_overhead.c: what a framework's kernels move beyond the operations of
 * op.h, which count each tensor once.
 *
 * FUSED is Megatron-LM with Apex or Transformer Engine, COMPILED PyTorch with
 * torch.compile (Inductor) around each layer, EAGER PyTorch as written, one
 * kernel per operator.  Read in their sources:
 *   autograd      torch/csrc/autograd/input_buffer.cpp: gradients that come
 *                 from two users of a tensor are added by a kernel of its own
 *   RMSNorm       Hugging Face's and torch.nn.RMSNorm before fused kernels:
 *                 x.float(), pow, mean, rsqrt, mul, to, weight; backward the
 *                 derivative of each (derivatives.yaml: pow_backward)
 *   norm weights  native_layer_norm_backward and what Inductor makes look at
 *                 dy and x once more for the gradients of the weights; Apex'
 *                 FastLayerNorm and Transformer Engine do not
 *   rotation      Llama's apply_rotary_emb: float(), product of complex
 *                 numbers, type_as; Inductor leaves complex operators alone
 *                 (torch/_inductor/lowering.py)
 *   keys, values  repeat_kv copies them for every query head (Llama);
 *                 Megatron-Core's get_query_key_value_tensors copies grouped
 *                 queries out of the packed projection; backward concatenates
 *   attention 1   flash_attn 1.x takes sequences without padding: unpad_input
 *                 and pad_input (flash_attn/bert_padding.py) gather q, k and v
 *                 and scatter the output; each finds the rows by eight small
 *                 kernels first
 *   unfused       context_layer.permute().contiguous() (Megatron-LM)
 *                 eager_attention_forward of Hugging Face: division, mask,
 *                 softmax in float32, a cast
 *   dropout       F.dropout before the residual's addition
 *   SwiGLU        F.silu and a product; Llama's projections are apart, so that
 *                 the gradients of their input are added
 *   gradients     FSDP's flat parameters are split into views: autograd puts
 *                 their gradients side by side again (_flat_param.py), FSDP2
 *                 copies them to what it reduces (foreach_reduce); both in the
 *                 dtype of the reduction, which is not that of the products
 *                 Else AccumulateGrad adds them to those that are there, in
 *                 Megatron-LM of 2021 a hook (model/distributed.py:
 *                 main_grad.add_(grad)); fused products came in 2022
 *   loss          vocab_parallel_cross_entropy: float(), max, -=, exp, sum,
 *                 div_, mul_ and back; F.cross_entropy of float() logits:
 *                 log_softmax in three passes, nll_loss' zeros, backward in two
 *   metrics       torch.nn.CrossEntropyLoss of the logits again, under
 *                 autocast in float32: a cast and log_softmax (composer's
 *                 metrics/nlp.py, LanguageCrossEntropy; trainer.py updates each
 *                 after every micro-batch's backward)
 * Bytes are per element, w being the activations' width.
 */
#include "plan/lower/framework/lower_overhead.h"

static bool is_kernels(const lower_context *context, fr_kernel_set kernels)
{
    return !context->is_executable && context->plan->kernels == kernels;
}

static bool is_pytorch(const lower_context *context)
{
    return is_kernels(context, FR_KERNELS_EAGER) ||
           is_kernels(context, FR_KERNELS_COMPILED);
}

bool lower_is_apart(const lower_context *context)
{
    return is_pytorch(context) && context->model->is_gated_mlp;
}

/* n_kernels that move n_bytes in all; what they write lies in scratch of
 * scratch_bytes. */
static void add_overhead(lower_context *context, int64_t n_bytes, int n_kernels,
                         uint64_t scratch_bytes)
{
    if (n_bytes <= 0)
        return;
    uint64_t mark = lower_temp_mark(context);
    fr_ref scratch =
        scratch_bytes > 0 ? lower_temp(context, scratch_bytes) : lower_absent;
    fr_instr *instr = lower_emit(context, FR_OP_ELEMENTWISE);
    instr->dim[0] = n_bytes;
    instr->dim[1] = n_kernels;
    instr->dim[3] = (int64_t)scratch_bytes;
    instr->ref[1] = scratch;
    lower_temp_reset(context, mark);
}

void lower_overhead_alias(lower_context *context, fr_ref kept, fr_ref part,
                          uint64_t n_bytes)
{
    fr_instr *instr = lower_emit(context, FR_OP_ELEMENTWISE);
    instr->dim[2] = instr->dim[3] = (int64_t)n_bytes;
    instr->ref[0] = kept;
    instr->ref[1] = part;
}

static int64_t width(const lower_context *context)
{
    return (int64_t)lower_bytes(context, 1, 1);
}

/* To float32 or back. */
static int64_t cast_bytes(const lower_context *context)
{
    return width(context) < 4 ? width(context) + 4 : 0;
}

void lower_overhead_norm_fwd(lower_context *context, int64_t n, bool is_rms)
{
    const int64_t w = width(context);
    if (!is_kernels(context, FR_KERNELS_EAGER) || !is_rms)
        return;
    /* Casts; pow 8, mean 4, mul 8; the weight's 2 w, which NORM_FWD has. */
    add_overhead(context, n * (2 * cast_bytes(context) + 20 + 2 * w - 2 * w), 7,
                 (uint64_t)(n * 8));
}

void lower_overhead_norm_bwd(lower_context *context, int64_t n, bool is_rms,
                             bool is_added)
{
    const int64_t w = width(context);
    bool is_eager = is_kernels(context, FR_KERNELS_EAGER);
    if (context->is_executable)
        return;
    if (is_eager && is_rms) {
        /*
         * The weight's product: dy w, dy times normed, its sum: 6 w; casts;
         * x r: 8, 12 and a sum of 4; mean and pow: 4, 8, 8, 12; both
         * gradients of x: 12.  NORM_BWD has 3 w.
         */
        add_overhead(context,
                     n * (6 * w + 2 * cast_bytes(context) + 68 - 3 * w), 12,
                     (uint64_t)(n * 12));
    } else if (is_pytorch(context)) {
        add_overhead(context, n * 2 * w, 1, 0); /* once more for the weights */
    }
    /* dx is written, then read with the gradient that is there. */
    if (is_added && !is_kernels(context, FR_KERNELS_COMPILED))
        add_overhead(context, n * 2 * w, 1, (uint64_t)(n * w));
}

void lower_overhead_rope(lower_context *context, int64_t n)
{
    const int64_t w = width(context);
    if (!is_pytorch(context))
        return;
    /* Of q and of k: a cast, the product, a cast; ROPE has 2 w. */
    add_overhead(context, n * (2 * cast_bytes(context) + 8 - 2 * w), 5,
                 (uint64_t)(n * 8));
}

/* Pairs of queries and keys. */
static int64_t pairs_of(const lower_context *context)
{
    const lower_shape *s = &context->shape;
    return s->rows * s->q_heads * s->seq * context->plan->cp;
}

/* Scores that are divided, masked and made probabilities in float32 by
 * operators of their own; the fused softmax has 2 w, backward 3 w. */
static void softmax_overhead(lower_context *context, bool is_backward)
{
    const int64_t n = pairs_of(context), w = width(context);
    if (!is_kernels(context, FR_KERNELS_EAGER) || context->is_fused || w == 4)
        return;
    if (is_backward) /* casts, 12 in float32, the division */
        add_overhead(context,
                     n * (2 * cast_bytes(context) + 12 + 2 * w - 3 * w), 3,
                     (uint64_t)(n * 8));
    else /* division, mask, softmax, cast */
        add_overhead(context, n * (4 * w + w + 4 + 4 + w - 2 * w), 3,
                     (uint64_t)(n * w));
}

void lower_overhead_dropout(lower_context *context)
{
    const lower_shape *s = &context->shape;
    const int64_t n = s->stream_rows * s->hidden, w = width(context);
    if (is_kernels(context, FR_KERNELS_EAGER)) /* written, then read */
        add_overhead(context, n * 2 * w, 1, (uint64_t)(n * w));
}

uint64_t lower_overhead_saved(const lower_context *context, bool has_norms,
                              bool has_activation)
{
    const lower_shape *s = &context->shape;
    const int64_t w = width(context);
    const fr_plan *plan = context->plan;
    bool is_eager = is_kernels(context, FR_KERNELS_EAGER);
    int64_t n = 0;
    if (!is_pytorch(context) ||
        lower_is_recomputed(context, FR_RECOMPUTE_PART_PRODUCTS))
        return 0;
    if (is_eager && context->model->is_rms_norm && has_norms)
        n += 2 * s->stream_rows * s->hidden * (w < 4 ? 4 + w : w);
    if (is_eager && context->model->is_gated_mlp && has_activation)
        n += s->rows * s->ffn * w;
    if (is_eager && !context->is_fused && w < 4)
        n += 4 * pairs_of(context);
    if (context->is_fused && s->kv_heads < s->q_heads)
        n +=
            s->rows * (s->q_heads - s->kv_heads) * (s->head_dim + s->v_dim) * w;
    if (context->is_fused && plan->flash_kind == FR_FLASH_1)
        n += s->rows * s->attn * w;
    return (uint64_t)n;
}

/*
 * torchao's float8 (float8_linear.py, its matmul's forward and backward) finds
 * each operand's maximum first, keeps activations as they are and casts them
 * again for the gradients of weights; n elements of something read as 16 bits.
 *
 * Transformer Engine (pytorch/csrc/quantizer.cpp) casts rows and columns in one
 * kernel.  With current scaling it finds the maximum and makes a scale of it
 * first; scales of blocks are put into the order of the tensor cores before
 * each product (common/swizzle).  NVFP4: one kernel for the maximum of the
 * tensor and of its Hadamard transform, one for rows, one that transforms and
 * casts columns; CAST has 4 of their 2, 2 9/16 and 2 9/16.
 */
void lower_overhead_scaling(lower_context *context, int64_t n,
                            bool is_transpose)
{
    const fr_plan *plan = context->plan;
    if (!context->is_low)
        return;
    if (is_kernels(context, FR_KERNELS_COMPILED))
        /* Transposed: maximum 2, cast 3, of which forward's cast has had the 1.
         */
        add_overhead(context, n * (is_transpose ? 4 : 2), 2, 0);
    if (!is_kernels(context, FR_KERNELS_FUSED) || is_transpose)
        return;
    if (plan->precision == FR_DTYPE_FP4)
        add_overhead(context, 3 * n + n / 8, 2, 0);
    else if (plan->scaling == FR_SCALING_CURRENT)
        add_overhead(context, 2 * n, 2, 0);
    else if (plan->scaling == FR_SCALING_BLOCK) /* read and written, twice */
        add_overhead(context, 4 * (n / 32), 2, 0);
}

/* Weights are not transformed: NVFP4 casts both ways at once. */
void lower_overhead_weight_scaling(lower_context *context, int64_t n)
{
    const fr_plan *plan = context->plan;
    if (context->is_low && is_kernels(context, FR_KERNELS_FUSED) &&
        (plan->precision == FR_DTYPE_FP4 ||
         plan->scaling == FR_SCALING_CURRENT))
        add_overhead(context, 2 * n, 2, 0);
}

/* Before and after the core of attention. */
void lower_overhead_core(lower_context *context, bool is_backward)
{
    const lower_shape *s = &context->shape;
    const int64_t w = width(context);
    const int64_t q = s->rows * s->q_heads * s->head_dim;
    const int64_t kv = s->rows * s->kv_heads * (s->head_dim + s->v_dim);
    const int64_t repeated = s->rows * s->q_heads * (s->head_dim + s->v_dim);
    const int64_t o = s->rows * s->attn, qkv = q + kv;
    bool is_grouped = s->kv_heads < s->q_heads;
    if (context->is_executable)
        return;
    softmax_overhead(context, is_backward);
    if (is_pytorch(context)) {
        bool is_packed = !context->model->is_gated_mlp;
        bool is_unpadded =
            context->is_fused && context->plan->flash_kind == FR_FLASH_1;
        if (is_grouped) /* repeat_kv, or its sum over the copies */
            add_overhead(context, (kv + repeated) * w, 2,
                         is_backward ? 0 : (uint64_t)(repeated * w));
        if (is_unpadded) /* gather and scatter, one of them onto zeros */
            add_overhead(context,
                         is_backward ? (3 * qkv + 2 * o) * w
                                     : (2 * qkv + 3 * o) * w,
                         is_backward ? 7 : 29, (uint64_t)(qkv * w));
        if (is_packed && is_backward) /* dq, dk, dv side by side */
            add_overhead(context, 2 * qkv * w, 1, (uint64_t)(qkv * w));
        return;
    }
    if (!context->is_fused && !is_backward)
        add_overhead(context, 2 * o * w, 1, 0);
    if (!is_backward && is_grouped)
        add_overhead(context, 2 * q * w, 1, 0);
    if (is_backward && (is_grouped || !context->is_fused))
        add_overhead(context, 2 * qkv * w, 1, (uint64_t)(qkv * w));
}

/* A gated activation of n elements. */
void lower_overhead_activation(lower_context *context, bool is_backward,
                               int64_t n)
{
    const int64_t w = width(context);
    if (!is_kernels(context, FR_KERNELS_EAGER) || !context->model->is_gated_mlp)
        return;
    /* silu 2, mul 3 for 3; backward 3, 3, 3 for 5. */
    add_overhead(context, n * w * (is_backward ? 4 : 2), is_backward ? 2 : 1,
                 (uint64_t)(n * w));
}

/* The input's gradients from n_parts projections that a product has as one. */
void lower_overhead_parts(lower_context *context, int64_t n, int n_parts)
{
    const int64_t w = width(context);
    if (!lower_is_apart(context))
        return;
    /* Compiled, the kernel that follows reads each. */
    bool is_eager = is_kernels(context, FR_KERNELS_EAGER);
    add_overhead(context, n * w * (n_parts - 1) * (is_eager ? 3 : 1),
                 is_eager ? n_parts - 1 : 1, (uint64_t)(n * w));
}

void lower_overhead_gradients(lower_context *context, uint64_t n)
{
    const int64_t w = width(context);
    const fr_dtype grad = context->plan->grad_dtype;
    bool is_sharded = context->plan->zero_stage >= 2;
    bool is_apart = is_pytorch(context) ? !is_sharded && context->n_micro > 1
                                        : context->plan->is_grad_added_apart;
    /* Written and read once more than a product that adds. */
    if (is_apart && !context->is_executable)
        add_overhead(context, (int64_t)n * 2 * w, 6, 0);
    if (!is_pytorch(context) || !is_sharded)
        return;
    /* Side by side, then cast to what is reduced. */
    int64_t g = grad == fr_plan_storage_dtype(context->plan)
                    ? 0
                    : w + (int64_t)fr_dtype_bytes(grad);
    add_overhead(context, (int64_t)n * (2 * w + g), g > 0 ? 2 : 1, 0);
}

bool lower_is_loss_narrow(const lower_context *context)
{
    return !context->is_executable && context->plan->is_loss_fused;
}

/* Of float32 logits that are there; XENT in one moves 12 for an element,
 * XENT_MAX, _SUM and _GRAD 16. */
void lower_overhead_loss(lower_context *context)
{
    const lower_shape *s = &context->shape;
    const int64_t n = s->rows * s->vocab_local;
    const int64_t has = context->plan->tp == 1 ? 12 : 16;
    if (context->is_executable)
        return;
    if (context->plan->kernels == FR_KERNELS_FUSED)
        /* max 4, -= 8, exp 8, sum 4, div_ 8, mul_ 8 */
        add_overhead(context, n * (40 - has), 3, 0);
    else
        /* log_softmax 16 and 16, zeros 4; its output and two gradients */
        add_overhead(context, n * (36 - has), 2, (uint64_t)(n * 8));
}

/* Their float32 copies come when the layers' activations are gone: they are
 * no scratch of the head. */
void lower_overhead_metrics(lower_context *context)
{
    const lower_shape *s = &context->shape;
    const int n = context->plan->n_loss_metrics;
    if (!context->is_executable)
        add_overhead(context,
                     s->rows * s->vocab_local * n * (cast_bytes(context) + 16),
                     3 * n, 0);
}
