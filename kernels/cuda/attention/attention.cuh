/*
 * attention.cuh: what the two families of attention kernels share.  Inside
 * runtime/, for .cu files only.
 *
 * Rows of queries and of keys are counted in the order of their sequence.
 * Where that is not the order in memory (context parallel ranks have shares of
 * sequences, sequence_share.h), where a query sees a window of keys alone or
 * probabilities are dropped, kernels are those of attn_shape<false>; all others
 * know nothing of it.
 */
#ifndef FR_KERNELS_CUDA_ATTENTION_ATTENTION_CUH
#define FR_KERNELS_CUDA_ATTENTION_ATTENTION_CUH

#include "kernels/cuda/dropout/dropout.cuh"

/* Probabilities that are dropped. */
struct attn_dropped {
    bool is_some;
    drop_place place;
    uint32_t first_head, n_heads; /* of sequence 0 here; of the model */
};

/* Strides in elements.  A row has q heads in one matrix, k heads, then v heads
 * in the other, which may lie between the rows of the first. */
template <bool IS_PLAIN_> struct attn_shape {
    static constexpr bool IS_PLAIN = IS_PLAIN_;
    int batch, n_q, n_kv, head_dim, v_dim, q_per_kv;
    int n_queries, n_keys; /* of a sequence, that are there */
    int64_t q_stride, k_stride, o_stride;
    float scale;
    bool is_causal;
    /* Plain attention does not use the members below. */
    int window; /* keys that a query sees; 0: all before it */
    fr_sequence_rows queries, keys;
    attn_dropped dropped;
};

template <class T, class S> struct attn_forward {
    static constexpr bool IS_PLAIN = S::IS_PLAIN;
    S shape;
    const T *q, *k;
    T *o;
    float *lse; /* [batch, n_q, n_queries], natural logarithm */
};

template <class T, class S> struct attn_backward {
    static constexpr bool IS_PLAIN = S::IS_PLAIN;
    S shape;
    const T *d_o, *q, *k, *o;
    const float *lse, *delta; /* delta = sum of do * o per row and head */
    T *dq, *dk;
};

/* ---- rows ---------------------------------------------------------------- */

FR_DEVICE int64_t row_in_memory(const fr_sequence_rows &rows, int batch, int b,
                                int i)
{
    const int run_rows = (int)(rows.len / 2);
    if (rows.share.n <= 1)
        return (int64_t)b * rows.len + i;
    return fr_sequence_run_of(&rows, batch, b, i / run_rows).row + i % run_rows;
}

FR_DEVICE int position_in(const fr_sequence_rows &rows, int i)
{
    const int run_rows = (int)(rows.len / 2);
    if (rows.share.n <= 1)
        return i;
    return (int)fr_sequence_run_of(&rows, 1, 0, i / run_rows).position +
           i % run_rows;
}

/* Returns how many of `n` rows come before a position. */
FR_DEVICE int rows_before(const fr_sequence_rows &rows, int n, int position)
{
    int sum = 0;
    if (rows.share.n <= 1)
        return position < 0 ? 0 : position < n ? position : n;
    for (int64_t i = 0; i < fr_sequence_n_runs(&rows); i++) {
        const fr_sequence_run run = fr_sequence_run_of(&rows, 1, 0, i);
        const int64_t left = position - run.position;
        sum += (int)(left < 0 ? 0 : left < run.n ? left : run.n);
    }
    return sum;
}

template <class S> FR_DEVICE int64_t query_row(const S &shape, int b, int i)
{
    if constexpr (S::IS_PLAIN)
        return (int64_t)b * shape.n_queries + i;
    else
        return row_in_memory(shape.queries, shape.batch, b, i);
}

template <class S> FR_DEVICE int64_t key_row(const S &shape, int b, int i)
{
    if constexpr (S::IS_PLAIN)
        return (int64_t)b * shape.n_keys + i;
    else
        return row_in_memory(shape.keys, shape.batch, b, i);
}

template <class S> FR_DEVICE int query_position(const S &shape, int i)
{
    if constexpr (S::IS_PLAIN)
        return i;
    else
        return position_in(shape.queries, i);
}

template <class S> FR_DEVICE int key_position(const S &shape, int i)
{
    if constexpr (S::IS_PLAIN)
        return i;
    else
        return position_in(shape.keys, i);
}

/* Returns the index of the first query of a head in lse and delta. */
template <class S> FR_DEVICE int64_t row_at(const S &shape, int b, int head)
{
    return ((int64_t)b * shape.n_q + head) * shape.n_queries;
}

/* ---- who sees whom ------------------------------------------------------- */

/* Does a query see a key, by their positions? */
template <class S> FR_DEVICE bool is_open(const S &shape, int query, int key)
{
    bool is_seen = !shape.is_causal || key <= query;
    if constexpr (!S::IS_PLAIN)
        is_seen = is_seen && (shape.window == 0 || !shape.is_causal ||
                              key > query - shape.window);
    return is_seen;
}

/* Rows [first, last) of one side. */
struct attn_range {
    int first, last;
};

/* Keys that any of `n` queries from `first` on sees lie in it. */
template <class S>
FR_DEVICE attn_range keys_seen(const S &shape, int first, int n)
{
    const int last = first + n < shape.n_queries ? first + n : shape.n_queries;
    attn_range out = {0, shape.n_keys};
    if (!shape.is_causal)
        return out;
    if constexpr (S::IS_PLAIN) {
        out.last = last < out.last ? last : out.last;
    } else {
        out.last = rows_before(shape.keys, shape.n_keys,
                               query_position(shape, last - 1) + 1);
        if (shape.window > 0)
            out.first =
                rows_before(shape.keys, shape.n_keys,
                            query_position(shape, first) - shape.window + 1);
    }
    return out;
}

/* The same of queries that see any of `n` keys. */
template <class S>
FR_DEVICE attn_range queries_seeing(const S &shape, int first, int n)
{
    const int last = first + n < shape.n_keys ? first + n : shape.n_keys;
    attn_range out = {0, shape.n_queries};
    if (!shape.is_causal)
        return out;
    if constexpr (S::IS_PLAIN) {
        out.first = first;
    } else {
        out.first = rows_before(shape.queries, shape.n_queries,
                                key_position(shape, first));
        if (shape.window > 0)
            out.last =
                rows_before(shape.queries, shape.n_queries,
                            key_position(shape, last - 1) + shape.window);
    }
    return out;
}

/* ---- dropped probabilities ----------------------------------------------- */

template <class S> FR_DEVICE bool is_dropped(const S &shape)
{
    if constexpr (S::IS_PLAIN)
        return false;
    else
        return shape.dropped.is_some;
}

/* Factors of one probability after the other; four neighbouring keys have the
 * words of one counter. */
struct drop_cursor {
    uint4 words;
    uint32_t group, query;
    bool has_words;

    template <class S>
    FR_DEVICE float at(const S &shape, int b, int h, int query_at, int key)
    {
        const attn_dropped &of = shape.dropped;
        if (!has_words || group != (uint32_t)key / 4 ||
            query != (uint32_t)query_at) {
            group = (uint32_t)key / 4;
            query = (uint32_t)query_at;
            has_words = true;
            words = drop_words(of.place, group, query,
                               of.first_head + (uint32_t)b * of.n_heads +
                                   (uint32_t)h);
        }
        return drop_factor(of.place, words, key);
    }
};

/* ---- by tensor cores ----------------------------------------------------- */

/* attention_mma.cu, float32 as tf32; false: not of this size or place. */
#define FR_ATTENTION_MMA(T, IS_PLAIN)                                          \
    bool attention_mma_forward(                                                \
        const attn_forward<T, attn_shape<IS_PLAIN>> &at, void *stream);        \
    bool attention_mma_backward(                                               \
        const attn_backward<T, attn_shape<IS_PLAIN>> &at, void *stream);
FR_ATTENTION_MMA(bf16, true)
FR_ATTENTION_MMA(bf16, false)
FR_ATTENTION_MMA(float, true)
FR_ATTENTION_MMA(float, false)
#undef FR_ATTENTION_MMA

/* ---- by products --------------------------------------------------------- */

/* attention_kept.cu: ATTN_FWD or ATTN_BWD with SAVE_PROBS.  FR_INPUT for what
 * has no room or no kernel. */
FR_CHECKED fr_status attention_kept(const fr_cuda_launch *launch, fr_err *err);

#endif
