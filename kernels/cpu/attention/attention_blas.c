/*
 * attention_blas.c: attention in tiles, its products by OpenBLAS
 * (single-threaded: the heads are what the threads share).
 *
 * Query rows go in blocks of 64, whose masked columns are never touched.
 * Without SAVE_PROBS the columns go in tiles of 256 with a running maximum
 * and sum, and backward makes the probabilities again from the row's lse
 * (Dao et al. 2022, arXiv 2205.14135).  Scratch: at most two tiles (128 KiB)
 * on the stack of each thread, so no operand `temp`.
 *
 * With SAVE_PROBS probs[b,h,t,s] is written for s < the end of t's row block
 * (0 above the diagonal); what lies beyond is neither written nor read.
 */
#include "kernels/cpu/attention/attention_shape.h"
#include "kernels/cpu/dropout/dropout.h"
#include "kernels/cpu/kernels_simd.h"
#include "kernels/kernels_list.h"

#include <assert.h>
#include <cblas.h>
#include <math.h>

/* Row-major operand of a product. */
typedef struct mat {
    const float *at;
    int64_t stride;
    bool is_transposed;
} mat;

/* c[m,n] = alpha a[m,k] b[k,n] + beta c */
static void product(mat a, mat b, float *c, int64_t c_stride,
                    const int64_t mnk[3], const float alpha_beta[2])
{
    cblas_sgemm(CblasRowMajor, a.is_transposed ? CblasTrans : CblasNoTrans,
                b.is_transposed ? CblasTrans : CblasNoTrans, (blasint)mnk[0],
                (blasint)mnk[1], (blasint)mnk[2], alpha_beta[0], a.at,
                (blasint)a.stride, b.at, (blasint)b.stride, alpha_beta[1], c,
                (blasint)c_stride);
}

/* ds = scale p (dp - delta), over dp */
FR_SIMD static void row_dscore(float *restrict dp, const float *restrict p,
                               int64_t n, float delta, float scale)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        dp[i] = p[i] * (dp[i] - delta) * scale;
}

static void row_clear(float *x, int64_t from, int64_t to)
{
    for (int64_t i = from; i < to; i++)
        x[i] = 0.0F;
}

/* ---- forward ------------------------------------------------------------ */

/* One head of one sequence: its q, k, v and output in place. */
typedef struct attn_head {
    int64_t b, h;
    const float *q, *k, *v;
    float *o;
    float *probs; /* [queries,keys] or NULL */
    float *lse;   /* [queries] or NULL */
} attn_head;

static attn_head head_of(const fr_attn_shape *shape, const fr_kernel_call *call,
                         int64_t b, int64_t h)
{
    const int64_t hd = shape->head_dim, i_kv = h / shape->q_per_kv;
    const float *q = call->ptr[FR_ATTN_FWD_QKV];
    const float *keys = call->ptr[FR_ATTN_FWD_KEYS];
    float *kept = call->ptr[FR_ATTN_FWD_KEPT], *o = call->ptr[FR_ATTN_FWD_O];
    int64_t i_head = b * shape->n_q + h;
    bool is_saved = call->instr->flags & FR_INSTR_SAVE_PROBS;
    const float *k = keys != NULL ? keys : q + shape->k_first;
    return (attn_head){
        .b = b,
        .h = h,
        .q = q + h * hd,
        .k = k + i_kv * hd,
        .v = k + shape->n_kv * hd + i_kv * shape->v_dim,
        .o = o + h * shape->v_dim,
        .probs =
            is_saved ? kept + i_head * shape->n_queries * shape->n_keys : NULL,
        .lse = is_saved ? NULL : kept + i_head * shape->n_queries};
}

/* s = scale q k^T over the tile */
static void tile_scores(const fr_attn_shape *shape, const float *q,
                        const float *k, const fr_tile *at, float *s,
                        int64_t s_stride)
{
    product((mat){q + at->row * shape->q_stride, shape->q_stride, false},
            (mat){k + at->col * shape->k_stride, shape->k_stride, true}, s,
            s_stride, (int64_t[]){at->m, at->n, shape->head_dim},
            (float[]){shape->scale, 0.0F});
}

/* o rows of the tile (+)= p v */
static void tile_output(const fr_attn_shape *shape, const attn_head *head,
                        const fr_tile *at, mat p, float beta)
{
    product(p,
            (mat){head->v + at->col * shape->k_stride, shape->k_stride, false},
            head->o + at->row * shape->o_stride, shape->o_stride,
            (int64_t[]){at->m, shape->v_dim, at->n}, (float[]){1.0F, beta});
}

/* A tile of probabilities that are kept. */
static float *kept_probs(const fr_attn_shape *shape, float *probs,
                         const fr_tile *at)
{
    return probs + at->i_row * shape->n_keys + at->i_col;
}

/* The kept probabilities of a tile with some dropped, into `scratch`. */
static mat dropped_probs(const fr_attn_shape *shape, const attn_head *head,
                         const fr_tile *at, float *scratch)
{
    const float *kept = kept_probs(shape, head->probs, at);
    float factor[FR_TILE_COLS];
    for (int64_t i = 0; i < at->m; i++) {
        float *to = scratch + i * at->n;
        memcpy(to, kept + i * shape->n_keys, (size_t)at->n * sizeof *to);
        fr_dropout_keys(shape->dropped,
                        (int64_t[]){head->b, head->h, at->position + i},
                        at->key_position, at->n, factor);
        fr_floats_multiply(to, factor, at->n);
    }
    return (mat){scratch, at->n, false};
}

/* The output of a block from probabilities that are kept. */
static void output_saved(const fr_attn_shape *shape, const attn_head *head,
                         const fr_row_block *block)
{
    const bool is_dropped = shape->dropped != NULL;
    float scratch[FR_TILE_ROWS * FR_TILE_COLS];
    fr_tile_walk walk = {.b = head->b,
                         .widest = is_dropped ? FR_TILE_COLS : shape->n_keys};
    while (fr_tile_next(shape, block, &walk)) {
        const mat p = is_dropped
                          ? dropped_probs(shape, head, &walk.at, scratch)
                          : (mat){kept_probs(shape, head->probs, &walk.at),
                                  shape->n_keys, false};
        tile_output(shape, head, &walk.at, p, walk.is_first ? 0.0F : 1.0F);
    }
}

/* If probabilities are kept, a tile is all of a run and lies in its final
 * place. */
static void forward_saved(const fr_attn_shape *shape, const attn_head *head,
                          const fr_row_block *block)
{
    const int64_t stride = shape->n_keys;
    fr_tile_walk walk = {.b = head->b, .widest = stride};
    fr_tile all = {0};
    while (fr_tile_next(shape, block, &walk)) {
        all = walk.at;
        tile_scores(shape, head->q, head->k, &all,
                    kept_probs(shape, head->probs, &all), stride);
    }
    /* All columns of the block: those of the last tile and what is before. */
    all.key_position -= all.i_col;
    all.n += all.i_col;
    all.i_col = 0;
    for (int64_t i = 0; i < block->m; i++) {
        fr_open_columns open = fr_open_columns_of(shape, &all, i);
        float *x = kept_probs(shape, head->probs, &all) + i * stride;
        int64_t n = open.last - open.first;
        float *y = x + open.first;
        float sum = fr_floats_exp(y, n, fr_floats_max(y, n, y[0]));
        fr_floats_scale(y, n, 1.0F / sum);
        row_clear(x, 0, open.first);
        row_clear(x, open.last, all.n);
    }
    output_saved(shape, head, block);
}

/* Running maximum and sum of the rows of a block. */
typedef struct running {
    float max[FR_TILE_ROWS], sum[FR_TILE_ROWS];
} running;

/* Turns scores into exp(s - max), rescales what the rows have so far. */
static void tile_softmax(const fr_attn_shape *shape, const attn_head *head,
                         const fr_tile *at, float *s, running *run)
{
    for (int64_t i = 0; i < at->m; i++) {
        fr_open_columns open = fr_open_columns_of(shape, at, i);
        int64_t n = open.last - open.first;
        float *x = s + i * at->n;
        row_clear(x, 0, open.first);
        row_clear(x, open.last, at->n);
        if (n == 0)
            continue;
        x += open.first;
        bool has_some = run->sum[i] > 0.0F;
        float max = fr_floats_max(x, n, has_some ? run->max[i] : x[0]);
        float sum = fr_floats_exp(x, n, max);
        if (has_some) {
            float factor = fr_fast_expf(run->max[i] - max);
            sum += run->sum[i] * factor;
            fr_floats_scale(head->o + (at->row + i) * shape->o_stride,
                            shape->v_dim, factor);
        }
        run->max[i] = max;
        run->sum[i] = sum;
    }
}

/* A row that sees none of these keys has an output of 0 and an lse of minus
 * infinity: a weight of 0 where it is merged with others. */
static void forward_tiled(const fr_attn_shape *shape, const attn_head *head,
                          const fr_row_block *block)
{
    float s[FR_TILE_ROWS * FR_TILE_COLS], factor[FR_TILE_ROWS * FR_TILE_COLS];
    running run = {0};
    fr_tile_walk walk = {.b = head->b, .widest = FR_TILE_COLS};
    while (fr_tile_next(shape, block, &walk)) {
        const fr_tile *at = &walk.at;
        tile_scores(shape, head->q, head->k, at, s, at->n);
        tile_softmax(shape, head, at, s, &run);
        if (shape->dropped != NULL) { /* the sums are those of all */
            fr_tile_factors(shape, head->b, head->h, at, factor);
            fr_floats_multiply(s, factor, at->m * at->n);
        }
        tile_output(shape, head, at, (mat){s, at->n, false},
                    walk.is_first ? 0.0F : 1.0F);
    }
    assert(head->lse != NULL); /* or else the probabilities are kept */
    for (int64_t i = 0; i < block->m; i++) {
        int64_t at = block->first + i;
        float *o = head->o + (block->run.row + at) * shape->o_stride;
        float *lse = head->lse + block->run.index + at;
        if (run.sum[i] > 0.0F) {
            fr_floats_scale(o, shape->v_dim, 1.0F / run.sum[i]);
            *lse = run.max[i] + logf(run.sum[i]);
        } else {
            row_clear(o, 0, shape->v_dim);
            *lse = -INFINITY;
        }
    }
}

/*
 * Threads for n_tasks whole heads.  OpenBLAS sees that it is inside a
 * parallel region and stays on one thread.
 */
static int head_team(const fr_kernel_call *call, int64_t n_tasks,
                     int64_t n_work)
{
    int n_team = fr_team(call, n_work);
    return n_tasks < n_team ? (int)n_tasks : n_team;
}

static int64_t work_of(const fr_attn_shape *shape)
{
    return shape->batch * shape->n_q * shape->n_queries *
           (shape->n_keys + shape->head_dim);
}

void fr_kernel_attn_fwd(const fr_kernel_call *call)
{
    fr_attn_shape shape = fr_attn_shape_of(call);
    int64_t n_blocks =
        fr_attn_blocks_of_run(&shape) * fr_sequence_n_runs(&shape.query_rows);
    int64_t n_heads = shape.batch * shape.n_q;
    int64_t n_tasks = n_heads * n_blocks;
    /* The last row blocks have the most columns: they go first. */
    int n_team = head_team(call, n_tasks, work_of(&shape));
    FR_FOR_TEAM(n_team);
#pragma omp parallel for num_threads(n_team) schedule(dynamic)
    for (int64_t i = 0; i < n_tasks; i++) {
        int64_t i_head = i % n_heads;
        attn_head head =
            head_of(&shape, call, i_head / shape.n_q, i_head % shape.n_q);
        fr_row_block block =
            fr_row_block_of(&shape, head.b, n_blocks - 1 - i / n_heads);
        if (head.probs != NULL)
            forward_saved(&shape, &head, &block);
        else
            forward_tiled(&shape, &head, &block);
    }
}

/* ---- backward ----------------------------------------------------------- */

/* Backward of one head of one sequence. */
typedef struct attn_grad {
    int64_t b, h;
    const float *q, *k, *v, *o, *d_o, *lse;
    float *probs; /* is only read */
    float *dq, *dk, *dv;
} attn_grad;

static attn_grad grad_of(const fr_attn_shape *shape, const fr_kernel_call *call,
                         int64_t b, int64_t h)
{
    const int64_t hd = shape->head_dim, i_kv = h / shape->q_per_kv;
    const int64_t k_at = i_kv * hd;
    const int64_t v_at = shape->n_kv * hd + i_kv * shape->v_dim;
    const float *q = call->ptr[FR_ATTN_BWD_QKV];
    const float *keys = call->ptr[FR_ATTN_BWD_KEYS];
    float *dq = call->ptr[FR_ATTN_BWD_DQKV];
    float *dkeys = call->ptr[FR_ATTN_BWD_DKEYS];
    float *kept = call->ptr[FR_ATTN_BWD_KEPT];
    int64_t i_head = b * shape->n_q + h;
    bool is_saved = call->instr->flags & FR_INSTR_SAVE_PROBS;
    if (keys == NULL)
        keys = q + shape->k_first;
    if (dkeys == NULL)
        dkeys = dq + shape->k_first;
    return (attn_grad){
        .b = b,
        .h = h,
        .q = q + h * hd,
        .k = keys + k_at,
        .v = keys + v_at,
        .o = (const float *)call->ptr[FR_ATTN_BWD_O] + h * shape->v_dim,
        .d_o = (const float *)call->ptr[FR_ATTN_BWD_DO] + h * shape->v_dim,
        .lse = is_saved ? NULL : kept + i_head * shape->n_queries,
        .probs =
            is_saved ? kept + i_head * shape->n_queries * shape->n_keys : NULL,
        .dq = dq + h * hd,
        .dk = dkeys + k_at,
        .dv = dkeys + v_at};
}

/* The tile's probabilities: kept ones, or ones that are recomputed in
 * `scratch`. */
static mat tile_probs(const fr_attn_shape *shape, const attn_grad *grad,
                      const fr_tile *at, float *scratch)
{
    if (grad->probs != NULL)
        return (mat){kept_probs(shape, grad->probs, at), shape->n_keys, true};
    assert(grad->lse != NULL);
    tile_scores(shape, grad->q, grad->k, at, scratch, at->n);
    for (int64_t i = 0; i < at->m; i++) {
        fr_open_columns open = fr_open_columns_of(shape, at, i);
        float *x = scratch + i * at->n;
        row_clear(x, 0, open.first);
        fr_floats_exp(x + open.first, open.last - open.first,
                      grad->lse[at->i_row + i]);
        row_clear(x, open.last, at->n);
    }
    return (mat){scratch, at->n, true};
}

/* Adds the tile to dq (or sets it), dk and dv; delta[i] = do . o of the
 * row. */
static void backward_tile(const fr_attn_shape *shape, const attn_grad *grad,
                          const fr_tile *at, const float *delta, bool is_first)
{
    float scratch[FR_TILE_ROWS * FR_TILE_COLS], ds[FR_TILE_ROWS * FR_TILE_COLS];
    float factor[FR_TILE_ROWS * FR_TILE_COLS];
    const int64_t qs = shape->q_stride, ks = shape->k_stride;
    const int64_t hd = shape->head_dim, vd = shape->v_dim;
    mat d_o = {grad->d_o + at->row * shape->o_stride, shape->o_stride, false};
    mat v_t = {grad->v + at->col * ks, ks, true};
    mat k = {grad->k + at->col * ks, ks, false};
    mat q = {grad->q + at->row * qs, qs, false};
    mat p = tile_probs(shape, grad, at, scratch);
    mat dropped = p;
    if (shape->dropped != NULL) {
        fr_tile_factors(shape, grad->b, grad->h, at, factor);
        for (int64_t i = 0; i < at->m; i++)
            memcpy(ds + i * at->n, p.at + i * p.stride,
                   (size_t)at->n * sizeof *ds);
        fr_floats_multiply(ds, factor, at->m * at->n);
        dropped = (mat){ds, at->n, true};
    }
    product(dropped, d_o, grad->dv + at->col * ks, ks,
            (int64_t[]){at->n, vd, at->m}, (float[]){1.0F, 1.0F});
    product(d_o, v_t, ds, at->n, (int64_t[]){at->m, at->n, vd},
            (float[]){1.0F, 0.0F});
    if (shape->dropped != NULL)
        fr_floats_multiply(ds, factor, at->m * at->n);
    for (int64_t i = 0; i < at->m; i++) {
        fr_open_columns open = fr_open_columns_of(shape, at, i);
        float *x = ds + i * at->n;
        row_clear(x, 0, open.first);
        row_dscore(x + open.first, p.at + i * p.stride + open.first,
                   open.last - open.first, delta[i], shape->scale);
        row_clear(x, open.last, at->n);
    }
    product((mat){ds, at->n, false}, k, grad->dq + at->row * qs, qs,
            (int64_t[]){at->m, hd, at->n},
            (float[]){1.0F, is_first ? 0.0F : 1.0F});
    product((mat){ds, at->n, true}, q, grad->dk + at->col * ks, ks,
            (int64_t[]){at->n, hd, at->m}, (float[]){1.0F, 1.0F});
}

static void backward_head(const fr_attn_shape *shape, const attn_grad *grad)
{
    const int64_t n_blocks =
        fr_attn_blocks_of_run(shape) * fr_sequence_n_runs(&shape->query_rows);
    float delta[FR_TILE_ROWS];
    for (int64_t i_block = 0; i_block < n_blocks; i_block++) {
        fr_row_block block = fr_row_block_of(shape, grad->b, i_block);
        int64_t row = block.run.row + block.first;
        fr_tile_walk walk = {.b = grad->b, .widest = FR_TILE_COLS};
        for (int64_t i = 0; i < block.m; i++)
            delta[i] = fr_floats_dot(grad->d_o + (row + i) * shape->o_stride,
                                     grad->o + (row + i) * shape->o_stride,
                                     shape->v_dim);
        while (fr_tile_next(shape, &block, &walk))
            backward_tile(shape, grad, &walk.at, delta, walk.is_first);
        for (int64_t i = 0; walk.at.n == 0 && i < block.m; i++)
            row_clear(grad->dq + (row + i) * shape->q_stride, 0,
                      shape->head_dim);
    }
}

static void clear_keys(const fr_attn_shape *shape, const attn_grad *grad)
{
    const fr_sequence_rows *rows = &shape->key_rows;
    for (int64_t i = 0; i < fr_sequence_n_runs(rows); i++) {
        fr_sequence_run run =
            fr_sequence_run_of(rows, shape->batch, grad->b, i);
        for (int64_t t = run.row; t < run.row + run.n; t++) {
            row_clear(grad->dk + t * shape->k_stride, 0, shape->head_dim);
            row_clear(grad->dv + t * shape->k_stride, 0, shape->v_dim);
        }
    }
}

/* The query heads of a group add to the same dk and dv: one thread's work. */
static void backward_group(const fr_attn_shape *shape,
                           const fr_kernel_call *call, int64_t b, int64_t kv)
{
    for (int64_t i = 0; i < shape->q_per_kv; i++) {
        attn_grad grad = grad_of(shape, call, b, kv * shape->q_per_kv + i);
        if (i == 0)
            clear_keys(shape, &grad);
        backward_head(shape, &grad);
    }
}

void fr_kernel_attn_bwd(const fr_kernel_call *call)
{
    fr_attn_shape shape = fr_attn_shape_of(call);
    int64_t n_tasks = shape.batch * shape.n_kv;
    int n_team = head_team(call, n_tasks, work_of(&shape));
    FR_FOR_TEAM(n_team);
#pragma omp parallel for num_threads(n_team) schedule(dynamic)
    for (int64_t i = 0; i < n_tasks; i++)
        backward_group(&shape, call, i / shape.n_kv, i % shape.n_kv);
}
