/*
 * attention_shape.h: where the operands of attention lie, and the tiles of
 * scores that it goes through.  Inside kernels/cpu/attention/ only.
 *
 * Where a sequence is shared (context parallel), queries and keys are runs of
 * rows (sequence_share.h): a tile lies in one of each, and the mask follows
 * from where they stand in the sequence.
 */
#ifndef FR_KERNELS_CPU_ATTENTION_ATTENTION_SHAPE_H
#define FR_KERNELS_CPU_ATTENTION_ATTENTION_SHAPE_H

#include "kernels/cpu/kernels_cpu.h"
#include "program/ir/sequence_share.h"

#define FR_TILE_ROWS 64
#define FR_TILE_COLS 256

typedef struct fr_attn_shape {
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
} fr_attn_shape;

fr_attn_shape fr_attn_shape_of(const fr_kernel_call *call);

/* m rows of queries by n columns of keys: where they begin in memory, in the
 * sequence, and, of the rows and columns that are there, by index. */
typedef struct fr_tile {
    int64_t row, position, i_row, m;
    int64_t col, key_position, i_col, n;
} fr_tile;

/* The columns that a row of a tile sees: [first, last). */
typedef struct fr_open_columns {
    int64_t first, last;
} fr_open_columns;

static inline int64_t fr_attn_clamp(int64_t x, int64_t most)
{
    if (x < 0)
        return 0;
    return x < most ? x : most;
}

static inline fr_open_columns fr_open_columns_of(const fr_attn_shape *shape,
                                                 const fr_tile *at, int64_t i)
{
    int64_t ahead = at->position + i + 1 - at->key_position;
    fr_open_columns open = {0, at->n};
    if (shape->is_causal)
        open.last = fr_attn_clamp(ahead, at->n);
    if (shape->is_causal && shape->window > 0)
        open.first = fr_attn_clamp(ahead - shape->window, open.last);
    return open;
}

/* A block of query rows: m rows from `first` on in a run. */
typedef struct fr_row_block {
    fr_sequence_run run;
    int64_t first, m;
} fr_row_block;

int64_t fr_attn_blocks_of_run(const fr_attn_shape *shape);
/* Block i_block of sequence b. */
fr_row_block fr_row_block_of(const fr_attn_shape *shape, int64_t b,
                             int64_t i_block);

/* Goes through the tiles of a block, at most `widest` columns each, that any
 * of its rows sees; false: there is no further one. */
typedef struct fr_tile_walk {
    int64_t b, widest, i_run, col;
    bool is_first; /* of the block */
    fr_tile at;
} fr_tile_walk;

bool fr_tile_next(const fr_attn_shape *shape, const fr_row_block *block,
                  fr_tile_walk *walk);

/* The factors of a tile's probabilities where some are dropped. */
void fr_tile_factors(const fr_attn_shape *shape, int64_t b, int64_t h,
                     const fr_tile *at, float *out);

#endif
