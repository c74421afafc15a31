/*
 * gpu_cost.c: instructions as kernels of the GPU model.
 */
#include "cost_models/gpu/gpu_model.h"
#include "cost_models/gpu/gpu_precision.h"
#include "plan/codec/compressor.h"

#include <math.h>

/* A price in the making. */
typedef struct price {
    double seconds, bytes;
    int n_kernels;
    fr_gpu_family family;
    bool is_guessed;
} price;

static double product_element_bytes(fr_dtype dtype)
{
    /* Two in a byte, and a scale of a byte for 16 of them (NVFP4). */
    return dtype == FR_DTYPE_FP4 ? 0.5 + 1.0 / 16.0
                                 : (double)fr_dtype_bytes(dtype);
}

/* Results of products below 16 bits are stored in 16. */
static double stored_element_bytes(fr_dtype dtype)
{
    double bytes = (double)fr_dtype_bytes(dtype);
    return bytes < 2.0 ? 2.0 : bytes;
}

static fr_status unit_of(const fr_gpu_model *model, fr_dtype dtype,
                         fr_gpu_math *out, fr_err *err)
{
    *out = fr_gpu_math_of(model, dtype);
    if (*out != FR_GPU_MATH_N)
        return FR_OK;
    return fr_fail_precision(model->id, dtype, err);
}

/* Sets m, n and k of each of the three products (the instruction's are those of
 * forward), and the bytes that the product moves per element of its result. */
static void shape_product(const fr_instr *instr, bool is_grouped,
                          fr_gpu_product *p)
{
    const fr_linear_dims *d = &instr->linear;
    int64_t groups = is_grouped && d->n_groups > 0 ? d->n_groups : 1;
    int64_t rows = (d->m + groups - 1) / groups;
    fr_dtype dtype = (fr_dtype)instr->dtype;
    bool is_added = (instr->flags & FR_INSTR_ACCUMULATE) != 0;

    p->groups = groups;
    p->in_bytes = product_element_bytes(dtype);
    p->out_bytes = stored_element_bytes(dtype) * (is_added ? 2.0 : 1.0);
    p->has_block_scales =
        dtype == FR_DTYPE_FP8 && instr->scaling == FR_SCALING_BLOCK;
    switch ((fr_op)instr->op) {
    case FR_OP_LINEAR_FWD:
    case FR_OP_GROUPED_FWD:
        p->m = rows;
        p->n = d->n;
        p->k = d->k;
        break;
    case FR_OP_LINEAR_DGRAD:
    case FR_OP_GROUPED_DGRAD:
        p->m = rows;
        p->n = d->k;
        p->k = d->n;
        break;
    default:
        p->m = d->n;
        p->n = d->k;
        p->k = rows;
        p->out_bytes =
            2.0 * (double)fr_dtype_bytes((fr_dtype)instr->grad_dtype);
        break;
    }
}

static fr_status price_product(const fr_gpu_model *model, const fr_instr *instr,
                               bool is_grouped, price *out, fr_err *err)
{
    fr_gpu_product p;
    const fr_linear_dims *d = &instr->linear;
    double elements = 0.0;

    FR_TRY(unit_of(model, (fr_dtype)instr->dtype, &p.math, err));
    shape_product(instr, is_grouped, &p);
    out->seconds = fr_gpu_product_s(model, &p);
    elements = (double)p.groups * ((double)p.m + (double)p.n) * (double)p.k;
    out->bytes = elements * p.in_bytes +
                 (double)p.groups * (double)p.m * (double)p.n * p.out_bytes;
    out->family = is_grouped ? FR_GPU_GROUPED : FR_GPU_PRODUCT;
    out->is_guessed = model->is_guessed[p.math];
    out->n_kernels = 1;
    if (instr->op == FR_OP_LINEAR_WGRAD &&
        instr->ref[FR_LINEAR_WGRAD_DBIAS].space != FR_SPACE_NONE) {
        /* The bias's gradient is one more look at dy. */
        double dy = (double)d->m * (double)d->n *
                    stored_element_bytes((fr_dtype)instr->dtype);
        out->seconds += fr_gpu_memory_s(model, dy, FR_GPU_ROWS);
        out->bytes += dy;
        out->n_kernels = 2;
    }
    return FR_OK;
}

static fr_status price_attention(const fr_gpu_model *model,
                                 const fr_instr *instr, price *out, fr_err *err)
{
    const fr_attention_dims *d = &instr->attention;
    fr_dtype dtype = (fr_dtype)instr->dtype;
    bool is_apart = (instr->flags & FR_INSTR_SAVE_PROBS) != 0;
    fr_gpu_attention a = {.batch = d->batch,
                          .heads = d->q_heads,
                          .kv_heads = d->kv_heads,
                          .queries = d->seq,
                          .keys = d->key_rows > 0 ? d->key_rows : d->seq,
                          .qk_dim = d->head_dim,
                          .v_dim = d->v_dim > 0 ? d->v_dim : d->head_dim,
                          .window = d->window,
                          .bytes = stored_element_bytes(dtype),
                          .is_causal = (instr->flags & FR_INSTR_NONCAUSAL) == 0,
                          .is_backward = instr->op == FR_OP_ATTN_BWD,
                          .has_dropout =
                              (instr->flags & FR_INSTR_DROPOUT) != 0};

    /* Products of attention stay in 16 bits where the layers' have fewer. */
    if (dtype == FR_DTYPE_FP8 || dtype == FR_DTYPE_FP4)
        dtype = FR_DTYPE_BF16;
    FR_TRY(unit_of(model, dtype, &a.math, err));
    a.kind = fr_gpu_attention_kind_of(model, (fr_flash_kind)instr->flash_kind);
    out->seconds = is_apart ? fr_gpu_attention_apart_s(model, &a)
                            : fr_gpu_attention_fused_s(model, &a);
    out->bytes = (double)fr_instr_moved_bytes(instr, 1);
    out->family = a.is_backward ? FR_GPU_ATTENTION_BWD : FR_GPU_ATTENTION_FWD;
    out->is_guessed =
        model->is_guessed[a.math] || (!is_apart && !fr_gpu_math_is_16(a.math));
    if (is_apart) {
        out->family = FR_GPU_ROWS;
        out->n_kernels = a.is_backward ? 6 : 4;
    } else {
        out->n_kernels = a.is_backward ? 3 : 1;
    }
    return FR_OK;
}

/*
 * Some of the moved bytes are kept: one kernel writes them and the next reads
 * them.  Backward also writes and reads their gradient.
 */
static fr_status price_layer(const fr_gpu_model *model, const fr_instr *instr,
                             price *out, fr_err *err)
{
    bool is_backward = instr->op == FR_OP_LAYER_BWD;
    double bytes = (double)instr->layer.moved_bytes;
    double extra = (is_backward ? 2.0 : 1.0) * (double)instr->layer.kept_bytes;
    fr_gpu_math math;

    FR_TRY(unit_of(model, (fr_dtype)instr->dtype, &math, err));
    out->seconds = fr_gpu_layers_s(model, math, instr->scalar, bytes, extra);
    out->bytes = bytes + extra;
    out->family = FR_GPU_LAYERS;
    out->is_guessed = model->is_guessed[math];
    out->n_kernels = is_backward ? 2 : 1;
    return FR_OK;
}

/* A convolution by itself, at the rate of a layer's. */
static fr_status price_conv(const fr_gpu_model *model, const fr_instr *instr,
                            price *out, fr_err *err)
{
    const double bytes = (double)fr_instr_moved_bytes(instr, 1);
    fr_gpu_math math;

    FR_TRY(unit_of(model, (fr_dtype)instr->dtype, &math, err));
    out->seconds =
        fr_gpu_layers_s(model, math, (double)fr_instr_flop(instr), bytes, 0.0);
    out->bytes = bytes;
    out->family = FR_GPU_LAYERS;
    out->is_guessed = model->is_guessed[math];
    out->n_kernels = 1;
    return FR_OK;
}

/*
 * Everything else moves bytes.  `passes`: how often the kernels move what the
 * instruction's operands need once.
 */
typedef struct memory_kind {
    fr_gpu_family family;
    double passes;
    int n_kernels;
} memory_kind;

static memory_kind memory_kind_of(fr_op op)
{
    switch (op) {
    case FR_OP_NORM_FWD:
    case FR_OP_HEAD_NORM_FWD:
    case FR_OP_XENT_MAX:
    case FR_OP_XENT_SUM:
    case FR_OP_BIAS_GRAD:
        return (memory_kind){FR_GPU_ROWS, 1.0, 1};
    case FR_OP_HEAD_NORM_BWD:
    case FR_OP_NORM_BWD: /* the gradients of the weights in a second one */
        return (memory_kind){FR_GPU_ROWS, 1.0, 2};
    case FR_OP_XENT: /* a row of the vocabulary does not fit into registers:
                        read for the sum, read again, written */
        return (memory_kind){FR_GPU_ROWS, 1.5, 1};
    case FR_OP_ROUTER_FWD: /* softmax, top-k, weights, counts */
    case FR_OP_ROUTER_BWD:
        return (memory_kind){FR_GPU_ROWS, 2.0, 4};
    case FR_OP_EMBED_FWD:
        return (memory_kind){FR_GPU_ROWS, 1.0, 1};
    case FR_OP_EMBED_BWD: /* tokens are sorted first */
        return (memory_kind){FR_GPU_ROWS, 1.0, 3};
    case FR_OP_PERMUTE:
    case FR_OP_UNPERMUTE:
        return (memory_kind){FR_GPU_ROWS, 1.0, 2};
    case FR_OP_GRAD_SQSUM:
        return (memory_kind){FR_GPU_STREAM, 1.0, 2};
    case FR_OP_COMPRESS: /* by forerun's kernels */
    case FR_OP_DECOMPRESS:
        return (memory_kind){FR_GPU_ROWS, 1.0, 3};
    default:
        return (memory_kind){FR_GPU_STREAM, 1.0, 1};
    }
}

static void price_memory(const fr_gpu_model *model, const fr_instr *instr,
                         price *out)
{
    memory_kind kind = memory_kind_of((fr_op)instr->op);

    out->family = kind.family;
    out->n_kernels = kind.n_kernels;
    out->bytes = kind.passes * (double)fr_instr_moved_bytes(instr, 1);
    out->seconds = fr_gpu_memory_s(model, out->bytes, kind.family) +
                   (kind.n_kernels - 1) * model->constants->kernel_s;
}

/* So many kernels move the bytes, all of them alike. */
static void price_elementwise(const fr_gpu_model *model, const fr_instr *instr,
                              price *out)
{
    int n = (int)instr->elementwise.n_kernels;

    out->family = FR_GPU_STREAM;
    out->n_kernels = n;
    out->bytes = (double)instr->elementwise.moved_bytes;
    if (n > 0)
        out->seconds =
            n * fr_gpu_memory_s(model, out->bytes / n, FR_GPU_STREAM);
}

/*
 * The largest k of n elements, k as large as one likes:
 *   many blocks  radix selection by 8 bits at a time: each pass reads all and
 *                adds up its counts, then one pass counts and one collects
 *                (PyTorch's TensorTopK.cu since 1.12)
 *   one block    2,000,000 elements, k 1000, in 25.6 ms on a Quadro GP100:
 *                PyTorch 1.1, issue 22812.  One block had the whole of a row
 *                until 1.12 (gatherTopK); TensorFlow's sort had one
 *                multiprocessor for it until 2.10 (pull request 55619).
 */
enum { SELECTION_PASSES = 6, SELECTION_KERNELS = 10 };
static const double one_block_s = 25.6e-3 / 2e6;

static void add_work(const fr_codec_work *work, const fr_instr *instr,
                     double n_times, price *out)
{
    const fr_compress_dims *d = &instr->compress;
    double payload = (double)d->payload_bytes * work->payload_ratio;

    out->n_kernels += (int)(n_times * work->n_kernels);
    out->bytes += n_times * ((double)d->n * work->element_bytes + payload);
}

/* A compressor as a framework's operators, so many calls of each of them
 * (compressor.h); nobody has measured them one by one. */
static void price_codec(const fr_gpu_model *model, const fr_instr *instr,
                        price *out)
{
    const fr_compressor *codec = fr_compressors[instr->compressor];
    const bool is_encoder = instr->op == FR_OP_COMPRESS;
    const bool has_error =
        codec->wants_error_feedback && instr->compress.state_bytes > 0;
    double n_payloads = (double)instr->compress.n_payloads;

    if (is_encoder) {
        add_work(&codec->encode, instr, 1.0, out);
        if (has_error && instr->compress.stage == 0) {
            add_work(&fr_codec_feedback, instr, 1.0, out);
            add_work(&codec->decode, instr, 1.0, out);
        }
    } else {
        add_work(&codec->decode, instr, n_payloads, out);
        add_work(&fr_codec_sum, instr, n_payloads - 1.0, out);
    }
    if (is_encoder && codec->encode.is_selection) {
        const double n = (double)instr->compress.n;
        if (instr->flags & FR_INSTR_APART) {
            out->n_kernels += 1;
            out->seconds += n * one_block_s;
        } else {
            out->n_kernels += SELECTION_KERNELS;
            out->bytes += n * SELECTION_PASSES * sizeof(float);
        }
    }
    out->family = FR_GPU_STREAM;
    out->is_guessed = true;
    out->n_kernels = (int)(instr->scalar * out->n_kernels);
    out->seconds += (out->n_kernels - 1) * model->constants->kernel_s +
                    fr_gpu_memory_s(model, out->bytes, FR_GPU_STREAM);
}

static fr_status price_instr(const fr_gpu_model *model, const fr_instr *instr,
                             price *out, fr_err *err)
{
    switch ((fr_op)instr->op) {
    case FR_OP_LINEAR_FWD:
    case FR_OP_LINEAR_DGRAD:
    case FR_OP_LINEAR_WGRAD:
        return price_product(model, instr, false, out, err);
    case FR_OP_GROUPED_FWD:
    case FR_OP_GROUPED_DGRAD:
    case FR_OP_GROUPED_WGRAD:
        return price_product(model, instr, true, out, err);
    case FR_OP_ATTN_FWD:
    case FR_OP_ATTN_BWD:
        return price_attention(model, instr, out, err);
    case FR_OP_LAYER_FWD:
    case FR_OP_LAYER_BWD:
        return price_layer(model, instr, out, err);
    case FR_OP_CONV_FWD:
    case FR_OP_CONV_DGRAD:
    case FR_OP_CONV_WGRAD:
        return price_conv(model, instr, out, err);
    case FR_OP_ELEMENTWISE:
        price_elementwise(model, instr, out);
        return FR_OK;
    case FR_OP_COMPRESS:
    case FR_OP_DECOMPRESS:
        if (instr->scalar > 0.0)
            price_codec(model, instr, out);
        else
            price_memory(model, instr, out);
        return FR_OK;
    default:
        price_memory(model, instr, out);
        return FR_OK;
    }
}

/* Was this kind of kernel measured on this generation? */
static bool is_measured(const fr_gpu_model *model, const price *p)
{
    const int *n_rows = model->constants->n_rows[model->generation];

    if (p->is_guessed)
        return false;
    /* The rate is the generation's; grouping changes the number of tiles. */
    if (p->family == FR_GPU_GROUPED || p->family == FR_GPU_PRODUCT)
        return n_rows[FR_GPU_PRODUCT] > 0;
    return n_rows[p->family] > 0;
}

fr_status fr_gpu_cost_compute(const fr_gpu_model *model, const fr_instr *instr,
                              fr_cost *out, fr_err *err)
{
    fr_op_class op_class = fr_op_class_of((fr_op)instr->op);
    fr_cost cost = {.cores = 1.0};
    price p = {0};

    if (op_class != FR_OP_CLASS_COMPUTE && op_class != FR_OP_CLASS_IO)
        return fr_fail(err, FR_FAILURE, "%s does not compute",
                       fr_op_name((fr_op)instr->op));
    FR_TRY(price_instr(model, instr, &p, err));
    cost.work_s = p.seconds;
    cost.n_kernels = p.n_kernels;
    if (cost.work_s > 0.0)
        cost.memory_frac = fmin(1.0, p.bytes / cost.work_s / model->memory_Bps);
    cost.rel_err = model->constants->rel_err[p.family];
    cost.source = FR_COST_FITTED;
    if (!is_measured(model, &p)) {
        cost.source = FR_COST_EXTRAPOLATED;
        cost.rel_err = hypot(cost.rel_err, model->constants->guess_err);
    }
    *out = cost;
    return FR_OK;
}
