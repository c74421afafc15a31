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
 *
 * Where a sequence is shared (context parallel), queries and keys are runs of
 * rows (sequence_share.h): a tile lies in one of each, and the mask follows
 * from where they stand in the sequence.
 */
#include "plan/ir/sequence_share.h"
#include "runtime/kernels_cpu/dropout/dropout.h"
#include "runtime/kernels_cpu/kernels_list.h"
#include "runtime/kernels_cpu/kernels_simd.h"

#include <assert.h>
#include <cblas.h>
#include <math.h>

#define TILE_ROWS 64
#define TILE_COLS 256

typedef struct attn_shape {
    int64_t batch, n_q, n_kv, head_dim, v_dim;
    int64_t n_queries, n_keys; /* of a sequence, that are there */
    fr_sequence_rows query_rows, key_rows;
    int64_t q_stride, k_stride, o_stride;
    int64_t k_first; /* floats from the queries' begin to the keys' */
    int64_t q_per_kv;
    int64_t window; /* keys that a query sees; 0: all before it */
    bool is_causal;
    float scale;
    const fr_kernel_call *dropped; /* NULL: no probability is */
} attn_shape;

/* Which rows of the sequence the operands have: see op_list.inc. */
static void set_rows(const fr_kernel_call *call, attn_shape *shape)
{
    const fr_instr *instr = call->instr;
    const fr_attention_dims *dim = &instr->attention;
    const fr_sequence_share share = call->share;
    shape->query_rows = (fr_sequence_rows){share, false, dim->seq};
    shape->key_rows = shape->query_rows;
    if (instr->axis != FR_AXIS_CP)
        return;
    if (instr->peer > 0) {
        shape->key_rows.share.i = (share.i - instr->peer + share.n) % share.n;
        shape->is_causal = true; /* half of the pairs, whichever they are */
        shape->n_keys = dim->seq;
    } else if (dim->key_rows > dim->seq) {
        shape->key_rows.has_all = true;
    } else {
        shape->query_rows.len = fr_sequence_share_len(share, dim->seq);
        shape->query_rows.has_all = true;
        shape->key_rows = shape->query_rows;
    }
}

static attn_shape shape_of(const fr_kernel_call *call)
{
    const fr_instr *instr = call->instr;
    const fr_attention_dims *dim = &instr->attention;
    const int64_t v_dim = dim->v_dim > 0 ? dim->v_dim : dim->head_dim;
    const int64_t q = dim->q_heads * dim->head_dim;
    const int64_t kv = dim->kv_heads * (dim->head_dim + v_dim);
    bool is_apart = (instr->flags & FR_INSTR_KEYS_APART) != 0;
    attn_shape shape = {.batch = dim->batch,
                        .n_q = dim->q_heads,
                        .n_kv = dim->kv_heads,
                        .head_dim = dim->head_dim,
                        .v_dim = v_dim,
                        .n_queries = dim->seq,
                        .n_keys = dim->key_rows > 0 ? dim->key_rows : dim->seq,
                        .q_stride = is_apart ? q : q + kv,
                        .k_stride = is_apart ? kv : q + kv,
                        .o_stride = dim->q_heads * v_dim,
                        .k_first = is_apart ? dim->batch * dim->seq * q : q,
                        .q_per_kv = dim->q_heads / dim->kv_heads,
                        .window = dim->window,
                        .is_causal = !(instr->flags & FR_INSTR_NONCAUSAL),
                        .scale = (float)(1.0 / sqrt((double)dim->head_dim))};
    if (instr->flags & FR_INSTR_DROPOUT && call->dropout > 0)
        shape.dropped = call;
    set_rows(call, &shape);
    return shape;
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

/* ---- tiles -------------------------------------------------------------- */

/* m rows of queries by n columns of keys: where they begin in memory, in the
 * sequence, and, of the rows and columns that are there, by index. */
typedef struct tile {
    int64_t row, position, i_row, m;
    int64_t col, key_position, i_col, n;
} tile;

/* The columns that a row of a tile sees: [first, last). */
typedef struct open_columns {
    int64_t first, last;
} open_columns;

static int64_t clamp(int64_t x, int64_t most)
{
    if (x < 0)
        return 0;
    return x < most ? x : most;
}

static open_columns open_of(const attn_shape *shape, const tile *at, int64_t i)
{
    int64_t ahead = at->position + i + 1 - at->key_position;
    open_columns open = {0, at->n};
    if (shape->is_causal)
        open.last = clamp(ahead, at->n);
    if (shape->is_causal && shape->window > 0)
        open.first = clamp(ahead - shape->window, open.last);
    return open;
}

/* A block of query rows: m rows from `first` on in a run. */
typedef struct row_block {
    fr_sequence_run run;
    int64_t first, m;
} row_block;

static int64_t blocks_of_run(const attn_shape *shape)
{
    const fr_sequence_rows *rows = &shape->query_rows;
    int64_t n = fr_sequence_run_of(rows, shape->batch, 0, 0).n;
    return (n + TILE_ROWS - 1) / TILE_ROWS;
}

static row_block block_of(const attn_shape *shape, int64_t b, int64_t i_block)
{
    int64_t per_run = blocks_of_run(shape);
    row_block block = {fr_sequence_run_of(&shape->query_rows, shape->batch, b,
                                          i_block / per_run),
                       i_block % per_run * TILE_ROWS, 0};
    int64_t left = block.run.n - block.first;
    block.m = left < TILE_ROWS ? left : TILE_ROWS;
    return block;
}

/* Goes through the tiles of a block, at most `widest` columns each, that any
 * of its rows sees; false: there is no further one. */
typedef struct tile_walk {
    int64_t b, widest, i_run, col;
    bool is_first; /* of the block */
    tile at;
} tile_walk;

static bool next_tile(const attn_shape *shape, const row_block *block,
                      tile_walk *walk)
{
    const fr_sequence_rows *rows = &shape->key_rows;
    int64_t end = block->run.position + block->first + block->m;
    walk->is_first = walk->at.n == 0;
    for (; walk->i_run < fr_sequence_n_runs(rows); walk->i_run++) {
        fr_sequence_run keys =
            fr_sequence_run_of(rows, shape->batch, walk->b, walk->i_run);
        int64_t n =
            shape->is_causal ? clamp(end - keys.position, keys.n) : keys.n;
        int64_t left = n - walk->col;
        if (left > 0) {
            left = left < walk->widest ? left : walk->widest;
            walk->at = (tile){block->run.row + block->first,
                              block->run.position + block->first,
                              block->run.index + block->first,
                              block->m,
                              keys.row + walk->col,
                              keys.position + walk->col,
                              keys.index + walk->col,
                              left};
            walk->col += left;
            return true;
        }
        walk->col = 0;
    }
    return false;
}

/* The factors of a tile's probabilities where some are dropped. */
static void tile_factors(const attn_shape *shape, int64_t b, int64_t h,
                         const tile *at, float *out)
{
    for (int64_t i = 0; i < at->m; i++)
        fr_dropout_keys(shape->dropped, (int64_t[]){b, h, at->position + i},
                        at->key_position, at->n, out + i * at->n);
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

static attn_head head_of(const attn_shape *shape, const fr_kernel_call *call,
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
static void tile_scores(const attn_shape *shape, const float *q, const float *k,
                        const tile *at, float *s, int64_t s_stride)
{
    product((mat){q + at->row * shape->q_stride, shape->q_stride, false},
            (mat){k + at->col * shape->k_stride, shape->k_stride, true}, s,
            s_stride, (int64_t[]){at->m, at->n, shape->head_dim},
            (float[]){shape->scale, 0.0F});
}

/* o rows of the tile (+)= p v */
static void tile_output(const attn_shape *shape, const attn_head *head,
                        const tile *at, mat p, float beta)
{
    product(p,
            (mat){head->v + at->col * shape->k_stride, shape->k_stride, false},
            head->o + at->row * shape->o_stride, shape->o_stride,
            (int64_t[]){at->m, shape->v_dim, at->n}, (float[]){1.0F, beta});
}

/* A tile of probabilities that are kept. */
static float *kept_probs(const attn_shape *shape, float *probs, const tile *at)
{
    return probs + at->i_row * shape->n_keys + at->i_col;
}

/* Where probabilities are kept, a tile is all of a run and lies in place. */
static void forward_saved(const attn_shape *shape, const attn_head *head,
                          const row_block *block)
{
    const int64_t stride = shape->n_keys;
    tile_walk walk = {.b = head->b, .widest = stride};
    tile all = {0};
    while (next_tile(shape, block, &walk)) {
        all = walk.at;
        tile_scores(shape, head->q, head->k, &all,
                    kept_probs(shape, head->probs, &all), stride);
    }
    /* All columns of the block: those of the last tile and what is before. */
    all.key_position -= all.i_col;
    all.n += all.i_col;
    all.i_col = 0;
    for (int64_t i = 0; i < block->m; i++) {
        open_columns open = open_of(shape, &all, i);
        float *x = kept_probs(shape, head->probs, &all) + i * stride;
        int64_t n = open.last - open.first;
        float *y = x + open.first;
        float sum = fr_floats_exp(y, n, fr_floats_max(y, n, y[0]));
        fr_floats_scale(y, n, 1.0F / sum);
        row_clear(x, 0, open.first);
        row_clear(x, open.last, all.n);
    }
    walk = (tile_walk){.b = head->b, .widest = stride};
    while (next_tile(shape, block, &walk))
        tile_output(
            shape, head, &walk.at,
            (mat){kept_probs(shape, head->probs, &walk.at), stride, false},
            walk.is_first ? 0.0F : 1.0F);
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
        open_columns open = open_of(shape, at, i);
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
static void forward_tiled(const attn_shape *shape, const attn_head *head,
                          const row_block *block)
{
    float s[TILE_ROWS * TILE_COLS], factor[TILE_ROWS * TILE_COLS];
    running run = {0};
    tile_walk walk = {.b = head->b, .widest = TILE_COLS};
    while (next_tile(shape, block, &walk)) {
        const tile *at = &walk.at;
        tile_scores(shape, head->q, head->k, at, s, at->n);
        tile_softmax(shape, head, at, s, &run);
        if (shape->dropped != NULL) { /* the sums are those of all */
            tile_factors(shape, head->b, head->h, at, factor);
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

static int64_t work_of(const attn_shape *shape)
{
    return shape->batch * shape->n_q * shape->n_queries *
           (shape->n_keys + shape->head_dim);
}

void fr_kernel_attn_fwd(const fr_kernel_call *call)
{
    attn_shape shape = shape_of(call);
    int64_t n_blocks =
        blocks_of_run(&shape) * fr_sequence_n_runs(&shape.query_rows);
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
        row_block block = block_of(&shape, head.b, n_blocks - 1 - i / n_heads);
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

static attn_grad grad_of(const attn_shape *shape, const fr_kernel_call *call,
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
static mat tile_probs(const attn_shape *shape, const attn_grad *grad,
                      const tile *at, float *scratch)
{
    if (grad->probs != NULL)
        return (mat){kept_probs(shape, grad->probs, at), shape->n_keys, true};
    assert(grad->lse != NULL);
    tile_scores(shape, grad->q, grad->k, at, scratch, at->n);
    for (int64_t i = 0; i < at->m; i++) {
        open_columns open = open_of(shape, at, i);
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
static void backward_tile(const attn_shape *shape, const attn_grad *grad,
                          const tile *at, const float *delta, bool is_first)
{
    float scratch[TILE_ROWS * TILE_COLS], ds[TILE_ROWS * TILE_COLS];
    float factor[TILE_ROWS * TILE_COLS];
    const int64_t qs = shape->q_stride, ks = shape->k_stride;
    const int64_t hd = shape->head_dim, vd = shape->v_dim;
    mat d_o = {grad->d_o + at->row * shape->o_stride, shape->o_stride, false};
    mat v_t = {grad->v + at->col * ks, ks, true};
    mat k = {grad->k + at->col * ks, ks, false};
    mat q = {grad->q + at->row * qs, qs, false};
    mat p = tile_probs(shape, grad, at, scratch);
    mat dropped = p;
    if (shape->dropped != NULL) {
        tile_factors(shape, grad->b, grad->h, at, factor);
        memcpy(ds, p.at, (size_t)(at->m * at->n) * sizeof *ds);
        fr_floats_multiply(ds, factor, at->m * at->n);
        dropped.at = ds;
    }
    product(dropped, d_o, grad->dv + at->col * ks, ks,
            (int64_t[]){at->n, vd, at->m}, (float[]){1.0F, 1.0F});
    product(d_o, v_t, ds, at->n, (int64_t[]){at->m, at->n, vd},
            (float[]){1.0F, 0.0F});
    if (shape->dropped != NULL)
        fr_floats_multiply(ds, factor, at->m * at->n);
    for (int64_t i = 0; i < at->m; i++) {
        open_columns open = open_of(shape, at, i);
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

static void backward_head(const attn_shape *shape, const attn_grad *grad)
{
    const int64_t n_blocks =
        blocks_of_run(shape) * fr_sequence_n_runs(&shape->query_rows);
    float delta[TILE_ROWS];
    for (int64_t i_block = 0; i_block < n_blocks; i_block++) {
        row_block block = block_of(shape, grad->b, i_block);
        int64_t row = block.run.row + block.first;
        tile_walk walk = {.b = grad->b, .widest = TILE_COLS};
        for (int64_t i = 0; i < block.m; i++)
            delta[i] = fr_floats_dot(grad->d_o + (row + i) * shape->o_stride,
                                     grad->o + (row + i) * shape->o_stride,
                                     shape->v_dim);
        while (next_tile(shape, &block, &walk))
            backward_tile(shape, grad, &walk.at, delta, walk.is_first);
        for (int64_t i = 0; walk.at.n == 0 && i < block.m; i++)
            row_clear(grad->dq + (row + i) * shape->q_stride, 0,
                      shape->head_dim);
    }
}

static void clear_keys(const attn_shape *shape, const attn_grad *grad)
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
static void backward_group(const attn_shape *shape, const fr_kernel_call *call,
                           int64_t b, int64_t kv)
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
    attn_shape shape = shape_of(call);
    int64_t n_tasks = shape.batch * shape.n_kv;
    int n_team = head_team(call, n_tasks, work_of(&shape));
    FR_FOR_TEAM(n_team);
#pragma omp parallel for num_threads(n_team) schedule(dynamic)
    for (int64_t i = 0; i < n_tasks; i++)
        backward_group(&shape, call, i / shape.n_kv, i % shape.n_kv);
}
