/* attention_shape.c: see attention_shape.h. */
#include "kernels/cpu/attention/attention_shape.h"

#include "kernels/cpu/dropout/dropout.h"
#include "spec/model/rope.h"

/* Sets the rows of the sequence that the operands have: see op_list.inc. */
static void set_rows(const fr_kernel_call *call, fr_attn_shape *shape)
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

fr_attn_shape fr_attn_shape_of(const fr_kernel_call *call)
{
    const fr_instr *instr = call->instr;
    const fr_attention_dims *dim = &instr->attention;
    const int64_t v_dim = dim->v_dim > 0 ? dim->v_dim : dim->head_dim;
    const int64_t q = dim->q_heads * dim->head_dim;
    const int64_t kv = dim->kv_heads * (dim->head_dim + v_dim);
    bool is_apart = (instr->flags & FR_INSTR_KEYS_APART) != 0;
    fr_attn_shape shape = {
        .batch = dim->batch,
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
        .scale = (float)fr_rope_score_scale(call->model, dim->head_dim)};
    if (instr->flags & FR_INSTR_DROPOUT && call->dropout > 0)
        shape.dropped = call;
    set_rows(call, &shape);
    return shape;
}

int64_t fr_attn_blocks_of_run(const fr_attn_shape *shape)
{
    const fr_sequence_rows *rows = &shape->query_rows;
    int64_t n = fr_sequence_run_of(rows, shape->batch, 0, 0).n;
    return (n + FR_TILE_ROWS - 1) / FR_TILE_ROWS;
}

fr_row_block fr_row_block_of(const fr_attn_shape *shape, int64_t b,
                             int64_t i_block)
{
    int64_t per_run = fr_attn_blocks_of_run(shape);
    fr_row_block block = {fr_sequence_run_of(&shape->query_rows, shape->batch,
                                             b, i_block / per_run),
                          i_block % per_run * FR_TILE_ROWS, 0};
    int64_t left = block.run.n - block.first;
    block.m = left < FR_TILE_ROWS ? left : FR_TILE_ROWS;
    return block;
}

bool fr_tile_next(const fr_attn_shape *shape, const fr_row_block *block,
                  fr_tile_walk *walk)
{
    const fr_sequence_rows *rows = &shape->key_rows;
    int64_t end = block->run.position + block->first + block->m;
    walk->is_first = walk->at.n == 0;
    for (; walk->i_run < fr_sequence_n_runs(rows); walk->i_run++) {
        fr_sequence_run keys =
            fr_sequence_run_of(rows, shape->batch, walk->b, walk->i_run);
        int64_t n = shape->is_causal
                        ? fr_attn_clamp(end - keys.position, keys.n)
                        : keys.n;
        int64_t left = n - walk->col;
        if (left > 0) {
            left = left < walk->widest ? left : walk->widest;
            walk->at = (fr_tile){block->run.row + block->first,
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

void fr_tile_factors(const fr_attn_shape *shape, int64_t b, int64_t h,
                     const fr_tile *at, float *out)
{
    for (int64_t i = 0; i < at->m; i++)
        fr_dropout_keys(shape->dropped, (int64_t[]){b, h, at->position + i},
                        at->key_position, at->n, out + i * at->n);
}
