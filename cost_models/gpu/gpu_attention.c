/*
 * gpu_attention.c: attention, fused and apart.
 *
 * Fused (Dao, FlashAttention-2, arXiv 2307.08691; Shah et al.,
 * FlashAttention-3, arXiv 2407.08608): a block of 128 queries of one head
 * meets the keys in blocks of 128; a pair costs 2 (d_qk + d_v) flop of
 * products and one softmax on the special-function units, of which each
 * multiprocessor has as many since Volta.  In FlashAttention-2 one waits for
 * the other; later ones overlap them in part:
 *     pair_s = flop / F + core_s / S, sqrt((flop / F)^2 + (core_s / S)^2)
 * and a block of queries costs its pairs and a fixed time for what surrounds
 * its loop.  Backward makes five products, 2 (3 d_qk + 2 d_v) flop, at a rate
 * of its own (dQ is summed by all blocks of keys).  A causal mask halves the
 * pairs but for the blocks on the diagonal, which are computed whole.
 */
#include "cost_models/gpu/gpu_model.h"

#include <math.h>

static const double block = 128.0;

static double squared(double x)
{
    return x * x;
}

/* Keys that a query sees on average, exactly (op.h: T of the rows). */
static double mean_keys(const fr_gpu_attention *a)
{
    double n = (double)a->keys;
    double window =
        a->window > 0 && a->window < a->keys ? (double)a->window : n;

    if (!a->is_causal)
        return window;
    return (window * (window + 1.0) / 2.0 + (n - window) * window) / n;
}

/* And those of the blocks that are looked at. */
static double computed_keys(const fr_gpu_attention *a)
{
    double all = ceil((double)a->keys / block) * block;
    double extra = 0.0;

    if (a->is_causal)
        extra += block / 2.0;
    if (a->window > 0 && a->window < a->keys)
        extra += block / 2.0;
    if (extra == 0.0)
        return all;
    return fmin(all, mean_keys(a) + extra);
}

/* FlashAttention of 2022 was measured on Ampere; on what came later its
 * instructions fare as those of FlashAttention-2 do. */
static double later_share(const fr_gpu_model *model, const fr_gpu_attention *a)
{
    const double *rate = model->constants->attention_rate[a->is_backward];
    bool is_later = a->kind == FR_GPU_ATTENTION_FIRST &&
                    model->attention != FR_GPU_ATTENTION_SYNC;

    return is_later ? rate[FR_GPU_ATTENTION_LATER] / rate[FR_GPU_ATTENTION_SYNC]
                    : 1.0;
}

static double pair_s(const fr_gpu_model *model, const fr_gpu_attention *a)
{
    const fr_gpu_constants *c = model->constants;
    double qk = (double)a->qk_dim, v = (double)a->v_dim;
    double rate = model->flops[a->math] *
                  c->attention_rate[a->is_backward][a->kind] *
                  later_share(model, a);
    double core_s = c->attention_core_s[a->kind];
    double flop = 2.0 * (qk + v);
    double n_cores = model->n_cores * model->exp_ratio;

    if (a->is_backward) {
        flop = 2.0 * (3.0 * qk + 2.0 * v);
        core_s *= c->attention_bwd_core_ratio;
    }
    if (a->kind != FR_GPU_ATTENTION_ASYNC && a->kind != FR_GPU_ATTENTION_TMEM)
        return flop / rate + core_s / n_cores;
    return sqrt(squared(flop / rate) + squared(core_s / n_cores));
}

/* Operands once: q, o, k, v; backward their gradients too. */
static double fused_bytes(const fr_gpu_attention *a)
{
    double head = (double)(a->qk_dim + a->v_dim) * a->bytes;
    double queries = (double)a->batch * (double)a->heads * (double)a->queries;
    double keys = (double)a->batch * (double)a->kv_heads * (double)a->keys;

    return (queries + keys) * head * (a->is_backward ? 2.0 : 1.0);
}

double fr_gpu_attention_fused_s(const fr_gpu_model *model,
                                const fr_gpu_attention *a)
{
    const fr_gpu_constants *c = model->constants;
    double n_blocks =
        (double)a->batch * (double)a->heads * ceil((double)a->queries / block);
    double one_s = pair_s(model, a) * model->n_cores * block;
    double fixed_s = c->attention_tile_s[a->is_backward];
    double mean_s = computed_keys(a) * one_s + fixed_s;
    double work_s, total_s;

    if (a->is_causal) {
        /* Blocks of unlike length, the long ones first: little tail. */
        double longest =
            (double)(a->window > 0 && a->window < a->keys ? a->window
                                                          : a->keys);
        work_s =
            fmax(mean_s * n_blocks / model->n_cores, longest * one_s + fixed_s);
    } else {
        work_s = mean_s * ceil(n_blocks / model->n_cores);
    }
    total_s =
        c->kernel_s +
        fmax(work_s, fused_bytes(a) / (c->stream_frac * model->memory_Bps));
    if (a->is_backward) {
        /* Before: row sums of dO o.  After: dQ from fp32. */
        double rows = (double)a->batch * (double)a->heads * (double)a->queries;
        double before = rows * (double)a->v_dim * 2.0 * a->bytes;
        double after = rows * (double)a->qk_dim * (4.0 + a->bytes);
        total_s += fr_gpu_memory_s(model, before, FR_GPU_STREAM) +
                   fr_gpu_memory_s(model, after, FR_GPU_STREAM);
    }
    return total_s;
}

/* ---- apart --------------------------------------------------------------- */

static double product_s(const fr_gpu_model *model, const fr_gpu_attention *a,
                        int64_t m, int64_t n, int64_t k)
{
    fr_gpu_product p = {.m = m,
                        .n = n,
                        .k = k,
                        .groups = a->batch * a->heads,
                        .math = a->math,
                        .in_bytes = a->bytes,
                        .out_bytes = a->bytes};

    return fr_gpu_product_s(model, &p);
}

/*
 * Narayanan et al. 2021 (arXiv 2104.04473, section 4.2): a strided batched
 * product, one fused kernel of scale, mask and softmax, dropout, another
 * product; backward the gradients of each.  All pairs, masked or not.
 */
double fr_gpu_attention_apart_s(const fr_gpu_model *model,
                                const fr_gpu_attention *a)
{
    double pairs = (double)a->batch * (double)a->heads * (double)a->queries *
                   (double)a->keys;
    int64_t t = a->queries, n = a->keys;
    double softmax = (a->is_backward ? 3.0 : 2.0) * pairs * a->bytes;
    double dropout = pairs * (2.0 * a->bytes + 1.0);
    double sum_s = fr_gpu_memory_s(model, softmax, FR_GPU_ROWS);

    if (a->has_dropout)
        sum_s += fr_gpu_memory_s(model, dropout, FR_GPU_STREAM);
    if (!a->is_backward)
        return sum_s + product_s(model, a, t, n, a->qk_dim) +
               product_s(model, a, t, a->v_dim, n);
    return sum_s + product_s(model, a, t, n, a->v_dim) +
           product_s(model, a, n, a->v_dim, t) +
           product_s(model, a, t, a->qk_dim, n) +
           product_s(model, a, n, a->qk_dim, t);
}
