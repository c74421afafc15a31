/*
 * attention_blas.c: causal attention in tiles, its products by OpenBLAS
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
#include "runtime/kernels_cpu/kernels_list.h"
#include "runtime/kernels_cpu/kernels_simd.h"

#include <assert.h>
#include <cblas.h>
#include <math.h>

#define TILE_ROWS 64
#define TILE_COLS 256

typedef struct attn_shape {
    int64_t batch, seq, n_q, n_kv, head_dim;
    int64_t qkv_stride, o_stride;
    int64_t q_per_kv;
    float scale;
} attn_shape;

static attn_shape shape_of(const fr_instr *instr)
{
    const fr_attention_dims *dim = &instr->attention;
    return (attn_shape){.batch = dim->batch,
                        .seq = dim->seq,
                        .n_q = dim->q_heads,
                        .n_kv = dim->kv_heads,
                        .head_dim = dim->head_dim,
                        .qkv_stride =
                            (dim->q_heads + 2 * dim->kv_heads) * dim->head_dim,
                        .o_stride = dim->q_heads * dim->head_dim,
                        .q_per_kv = dim->q_heads / dim->kv_heads,
                        .scale = (float)(1.0 / sqrt((double)dim->head_dim))};
}

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

/* x = exp(x - shift); returns the sum. */
FR_SIMD static float row_exp(float *x, int64_t n, float shift)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) {
        float e = fr_fast_expf(x[i] - shift);
        x[i] = e;
        sum += e;
    }
    return sum;
}

FR_SIMD static float row_dot(const float *restrict a, const float *restrict b,
                             int64_t n)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
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

/* One tile of scores: query rows [row, row + m) by columns [col, col + n). */
typedef struct tile {
    int64_t row, m, col, n;
} tile;

/* Unmasked columns of the tile in its row i. */
static int64_t n_open(const tile *at, int64_t i)
{
    int64_t n = at->row + i + 1 - at->col;
    if (n < 0)
        return 0;
    return n < at->n ? n : at->n;
}

/* One head: its q, k, v and output in place inside qkv and o. */
typedef struct attn_head {
    const float *q, *k, *v;
    float *o;
    float *probs; /* [T,T] or NULL */
    float *lse;   /* [T] or NULL */
} attn_head;

static attn_head head_of(const attn_shape *shape, const fr_kernel_call *call,
                         int64_t b, int64_t h)
{
    int64_t seq = shape->seq, hd = shape->head_dim;
    int64_t kv = shape->n_q + h / shape->q_per_kv;
    const float *qkv = call->ptr[0];
    const float *rows = qkv + b * seq * shape->qkv_stride;
    float *kept = call->ptr[2];
    float *o = call->ptr[1];
    int64_t i_head = b * shape->n_q + h;
    bool is_saved = call->instr->flags & FR_INSTR_SAVE_PROBS;
    return (attn_head){.q = rows + h * hd,
                       .k = rows + kv * hd,
                       .v = rows + (kv + shape->n_kv) * hd,
                       .o = o + b * seq * shape->o_stride + h * hd,
                       .probs = is_saved ? kept + i_head * seq * seq : NULL,
                       .lse = is_saved ? NULL : kept + i_head * seq};
}

/* s = scale q k^T over the tile */
static void tile_scores(const attn_shape *shape, const float *q, const float *k,
                        const tile *at, float *s, int64_t s_stride)
{
    int64_t stride = shape->qkv_stride;
    product((mat){q + at->row * stride, stride, false},
            (mat){k + at->col * stride, stride, true}, s, s_stride,
            (int64_t[]){at->m, at->n, shape->head_dim},
            (float[]){shape->scale, 0.0F});
}

/* o rows of the tile (+)= p v */
static void tile_output(const attn_shape *shape, const attn_head *head,
                        const tile *at, mat p, float beta)
{
    product(
        p,
        (mat){head->v + at->col * shape->qkv_stride, shape->qkv_stride, false},
        head->o + at->row * shape->o_stride, shape->o_stride,
        (int64_t[]){at->m, shape->head_dim, at->n}, (float[]){1.0F, beta});
}

/* Where probabilities are kept, one tile has all columns and lies in place. */
static void forward_saved(const attn_shape *shape, const attn_head *head,
                          int64_t row)
{
    int64_t seq = shape->seq;
    int64_t m = seq - row < TILE_ROWS ? seq - row : TILE_ROWS;
    tile at = {row, m, 0, row + m};
    float *p = head->probs + row * seq;
    tile_scores(shape, head->q, head->k, &at, p, seq);
    for (int64_t i = 0; i < m; i++) {
        int64_t n = n_open(&at, i);
        float *x = p + i * seq;
        float sum = row_exp(x, n, fr_floats_max(x, n, x[0]));
        fr_floats_scale(x, n, 1.0F / sum);
        row_clear(x, n, at.n);
    }
    tile_output(shape, head, &at, (mat){p, seq, false}, 0.0F);
}

/* Running maximum and sum of the rows of a block. */
typedef struct running {
    float max[TILE_ROWS], sum[TILE_ROWS];
} running;

/* Turns scores into exp(s - max), rescales what the rows have so far. */
static void tile_softmax(const attn_shape *shape, const attn_head *head,
                         const tile *at, float *s, running *run)
{
    for (int64_t i = 0; i < at->m; i++) {
        int64_t n = n_open(at, i);
        float *x = s + i * at->n;
        row_clear(x, n, at->n);
        if (n == 0)
            continue;
        float max = fr_floats_max(x, n, at->col == 0 ? x[0] : run->max[i]);
        float sum = row_exp(x, n, max);
        if (at->col > 0) {
            float factor = fr_fast_expf(run->max[i] - max);
            sum += run->sum[i] * factor;
            fr_floats_scale(head->o + (at->row + i) * shape->o_stride,
                            shape->head_dim, factor);
        }
        run->max[i] = max;
        run->sum[i] = sum;
    }
}

static void forward_tiled(const attn_shape *shape, const attn_head *head,
                          int64_t row)
{
    float s[TILE_ROWS * TILE_COLS];
    running run = {0};
    int64_t m = shape->seq - row < TILE_ROWS ? shape->seq - row : TILE_ROWS;
    for (int64_t col = 0; col < row + m; col += TILE_COLS) {
        int64_t left = row + m - col;
        tile at = {row, m, col, left < TILE_COLS ? left : TILE_COLS};
        tile_scores(shape, head->q, head->k, &at, s, at.n);
        tile_softmax(shape, head, &at, s, &run);
        tile_output(shape, head, &at, (mat){s, at.n, false},
                    col > 0 ? 1.0F : 0.0F);
    }
    assert(head->lse != NULL); /* or else the probabilities are kept */
    for (int64_t i = 0; i < m; i++) {
        fr_floats_scale(head->o + (row + i) * shape->o_stride, shape->head_dim,
                        1.0F / run.sum[i]);
        head->lse[row + i] = run.max[i] + logf(run.sum[i]);
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

void fr_kernel_attn_fwd(const fr_kernel_call *call)
{
    attn_shape shape = shape_of(call->instr);
    int64_t n_blocks = (shape.seq + TILE_ROWS - 1) / TILE_ROWS;
    int64_t n_heads = shape.batch * shape.n_q;
    int64_t n_tasks = n_heads * n_blocks;
    int64_t n_work = n_heads * shape.seq * (shape.seq + shape.head_dim);
    /* The last row blocks have the most columns: they go first. */
    int n_team = head_team(call, n_tasks, n_work);
    FR_FOR_TEAM(n_team);
#pragma omp parallel for num_threads(n_team) schedule(dynamic)
    for (int64_t i = 0; i < n_tasks; i++) {
        int64_t i_head = i % n_heads;
        int64_t row = (n_blocks - 1 - i / n_heads) * TILE_ROWS;
        attn_head head =
            head_of(&shape, call, i_head / shape.n_q, i_head % shape.n_q);
        if (head.probs != NULL)
            forward_saved(&shape, &head, row);
        else
            forward_tiled(&shape, &head, row);
    }
}

/* Backward of one head. */
typedef struct attn_grad {
    const float *q, *k, *v, *o, *d_o, *probs, *lse;
    float *dq, *dk, *dv;
} attn_grad;

static attn_grad grad_of(const attn_shape *shape, const fr_kernel_call *call,
                         int64_t b, int64_t h)
{
    int64_t seq = shape->seq, hd = shape->head_dim;
    int64_t kv = shape->n_q + h / shape->q_per_kv;
    int64_t first_row = b * seq * shape->qkv_stride;
    int64_t first_o = b * seq * shape->o_stride + h * hd;
    int64_t i_head = b * shape->n_q + h;
    const float *d_o = call->ptr[0], *qkv = call->ptr[1], *o = call->ptr[2];
    const float *kept = call->ptr[3];
    float *dqkv = call->ptr[4];
    bool is_saved = call->instr->flags & FR_INSTR_SAVE_PROBS;
    return (attn_grad){.q = qkv + first_row + h * hd,
                       .k = qkv + first_row + kv * hd,
                       .v = qkv + first_row + (kv + shape->n_kv) * hd,
                       .o = o + first_o,
                       .d_o = d_o + first_o,
                       .probs = is_saved ? kept + i_head * seq * seq : NULL,
                       .lse = is_saved ? NULL : kept + i_head * seq,
                       .dq = dqkv + first_row + h * hd,
                       .dk = dqkv + first_row + kv * hd,
                       .dv = dqkv + first_row + (kv + shape->n_kv) * hd};
}

/* The tile's probabilities: kept ones, or ones that are recomputed in
 * `scratch`. */
static mat tile_probs(const attn_shape *shape, const attn_grad *grad,
                      const tile *at, float *scratch)
{
    if (grad->probs != NULL)
        return (mat){grad->probs + at->row * shape->seq + at->col, shape->seq,
                     true};
    assert(grad->lse != NULL);
    tile_scores(shape, grad->q, grad->k, at, scratch, at->n);
    for (int64_t i = 0; i < at->m; i++) {
        int64_t n = n_open(at, i);
        row_exp(scratch + i * at->n, n, grad->lse[at->row + i]);
        row_clear(scratch + i * at->n, n, at->n);
    }
    return (mat){scratch, at->n, true};
}

/* Adds the tile to dq, dk and dv; delta[i] = do . o of the row. */
static void backward_tile(const attn_shape *shape, const attn_grad *grad,
                          const tile *at, const float *delta)
{
    float scratch[TILE_ROWS * TILE_COLS], ds[TILE_ROWS * TILE_COLS];
    int64_t stride = shape->qkv_stride, hd = shape->head_dim;
    mat d_o = {grad->d_o + at->row * shape->o_stride, shape->o_stride, false};
    mat v_t = {grad->v + at->col * stride, stride, true};
    mat k = {grad->k + at->col * stride, stride, false};
    mat q = {grad->q + at->row * stride, stride, false};
    mat p = tile_probs(shape, grad, at, scratch);
    product(p, d_o, grad->dv + at->col * stride, stride,
            (int64_t[]){at->n, hd, at->m}, (float[]){1.0F, 1.0F});
    product(d_o, v_t, ds, at->n, (int64_t[]){at->m, at->n, hd},
            (float[]){1.0F, 0.0F});
    for (int64_t i = 0; i < at->m; i++) {
        int64_t n = n_open(at, i);
        row_dscore(ds + i * at->n, p.at + i * p.stride, n, delta[i],
                   shape->scale);
        row_clear(ds + i * at->n, n, at->n);
    }
    product((mat){ds, at->n, false}, k, grad->dq + at->row * stride, stride,
            (int64_t[]){at->m, hd, at->n},
            (float[]){1.0F, at->col > 0 ? 1.0F : 0.0F});
    product((mat){ds, at->n, true}, q, grad->dk + at->col * stride, stride,
            (int64_t[]){at->n, hd, at->m}, (float[]){1.0F, 1.0F});
}

static void backward_head(const attn_shape *shape, const attn_grad *grad)
{
    float delta[TILE_ROWS];
    for (int64_t row = 0; row < shape->seq; row += TILE_ROWS) {
        int64_t left = shape->seq - row;
        int64_t m = left < TILE_ROWS ? left : TILE_ROWS;
        for (int64_t i = 0; i < m; i++)
            delta[i] =
                row_dot(grad->d_o + (row + i) * shape->o_stride,
                        grad->o + (row + i) * shape->o_stride, shape->head_dim);
        for (int64_t col = 0; col < row + m; col += TILE_COLS) {
            int64_t n = row + m - col;
            tile at = {row, m, col, n < TILE_COLS ? n : TILE_COLS};
            backward_tile(shape, grad, &at, delta);
        }
    }
}

/* The query heads of a group add to the same dk and dv: one thread's work. */
static void backward_group(const attn_shape *shape, const fr_kernel_call *call,
                           int64_t b, int64_t kv)
{
    for (int64_t i = 0; i < shape->q_per_kv; i++) {
        attn_grad grad = grad_of(shape, call, b, kv * shape->q_per_kv + i);
        for (int64_t t = 0; i == 0 && t < shape->seq; t++) {
            row_clear(grad.dk + t * shape->qkv_stride, 0, shape->head_dim);
            row_clear(grad.dv + t * shape->qkv_stride, 0, shape->head_dim);
        }
        backward_head(shape, &grad);
    }
}

void fr_kernel_attn_bwd(const fr_kernel_call *call)
{
    attn_shape shape = shape_of(call->instr);
    int64_t n_tasks = shape.batch * shape.n_kv;
    int64_t n_work =
        shape.batch * shape.n_q * shape.seq * (shape.seq + shape.head_dim);
    int n_team = head_team(call, n_tasks, n_work);
    FR_FOR_TEAM(n_team);
#pragma omp parallel for num_threads(n_team) schedule(dynamic)
    for (int64_t i = 0; i < n_tasks; i++)
        backward_group(&shape, call, i / shape.n_kv, i % shape.n_kv);
}
