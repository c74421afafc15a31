/*
 * op_special.c: amounts of operations that are no product of dimensions.
 */
#include "plan/op/op_table.h"
#include "spec/model/layer_ops.h"

const op_special op_special_plain = {.flop = NULL};

static uint64_t product(int64_t a, int64_t b)
{
    return (uint64_t)a * (uint64_t)b;
}

static uint64_t stored_bytes(const fr_instr *instr)
{
    return op_element_bytes(instr, OP_ELEMENT_STORED);
}

/* ---- attention ---------------------------------------------------------- */

static uint64_t value_dim(const fr_attention_dims *d)
{
    return (uint64_t)(d->v_dim > 0 ? d->v_dim : d->head_dim);
}

static uint64_t key_rows(const fr_attention_dims *d)
{
    return (uint64_t)(d->key_rows > 0 ? d->key_rows : d->seq);
}

/*
 * Pairs (query, key) that are looked at: query i of n sees i keys, at most
 * `window`; T queries that are spread over n rows have T / n of the pairs.
 */
static uint64_t attention_pairs(const fr_instr *instr)
{
    const fr_attention_dims *d = &instr->attention;
    const uint64_t t = (uint64_t)d->seq, n = key_rows(d);
    uint64_t window = (uint64_t)d->window, pairs;
    if (window == 0 || window > n)
        window = n;
    if (instr->flags & FR_INSTR_NONCAUSAL)
        pairs = t * window;
    else
        pairs = (window * (window + 1) / 2 + (n - window) * window) * t / n;
    return product(d->batch, d->q_heads) * pairs;
}

static uint64_t attention_flop(const fr_instr *instr)
{
    const uint64_t pairs = attention_pairs(instr);
    const uint64_t qk = (uint64_t)instr->attention.head_dim;
    const uint64_t v = value_dim(&instr->attention);
    if (instr->op == FR_OP_ATTN_FWD) /* two products, and the softmax */
        return pairs * (2 * qk + 2 * v + 5);
    /* Four products; one more where probabilities are computed again. */
    return instr->flags & FR_INSTR_SAVE_PROBS ? pairs * (4 * qk + 4 * v + 4)
                                              : pairs * (6 * qk + 4 * v + 8);
}

static bool has_other_keys(const fr_instr *instr)
{
    int i = instr->op == FR_OP_ATTN_FWD ? FR_ATTN_FWD_KEYS : FR_ATTN_BWD_KEYS;
    return instr->ref[i].space != FR_SPACE_NONE;
}

/* Does it keep a mask, and what it left, beside the probabilities?  Kernels
 * that write scores apart do; ours draw the mask again. */
static bool keeps_mask(const fr_instr *instr)
{
    int i = instr->op == FR_OP_ATTN_FWD ? FR_ATTN_FWD_TEMP : FR_ATTN_BWD_TEMP;
    return instr->flags & FR_INSTR_DROPOUT &&
           instr->ref[i].space != FR_SPACE_NONE;
}

static uint64_t attention_bytes(const fr_instr *instr, int i_ref)
{
    const fr_attention_dims *d = &instr->attention;
    const uint64_t width = stored_bytes(instr);
    const uint64_t rows = product(d->batch, d->seq),
                   keys = (uint64_t)d->batch * key_rows(d);
    const uint64_t v = value_dim(d), heads = (uint64_t)d->q_heads;
    const uint64_t per_key =
        (uint64_t)d->kv_heads * ((uint64_t)d->head_dim + v) * width;
    const uint64_t other = rows * per_key; /* of another rank, all of it */
    const uint64_t qkv = rows * heads * (uint64_t)d->head_dim * width +
                         (has_other_keys(instr) ? 0 : keys * per_key);
    const uint64_t o = rows * heads * v * width;
    const uint64_t scores = rows * heads * key_rows(d);
    uint64_t kept =
        rows * heads * op_element_bytes(instr, OP_ELEMENT_F32); /* lse */
    if (instr->flags & FR_INSTR_SAVE_PROBS)
        kept = scores * (keeps_mask(instr) ? 2 * width + 1 : width);
    const uint64_t forward[FR_ATTN_FWD_N_REFS] = {
        [FR_ATTN_FWD_QKV] = qkv,    [FR_ATTN_FWD_O] = o,
        [FR_ATTN_FWD_KEPT] = kept,  [FR_ATTN_FWD_TEMP] = scores * width,
        [FR_ATTN_FWD_KEYS] = other,
    };
    const uint64_t backward[FR_ATTN_BWD_N_REFS] = {
        [FR_ATTN_BWD_DO] = o,       [FR_ATTN_BWD_QKV] = qkv,
        [FR_ATTN_BWD_O] = o,        [FR_ATTN_BWD_KEPT] = kept,
        [FR_ATTN_BWD_DQKV] = qkv,   [FR_ATTN_BWD_TEMP] = scores * width,
        [FR_ATTN_BWD_KEYS] = other, [FR_ATTN_BWD_DKEYS] = other,
    };
    return instr->op == FR_OP_ATTN_FWD ? forward[i_ref] : backward[i_ref];
}

/* Half of another rank's keys are read, or all of them by half of the
 * queries. */
static uint64_t attention_touched(const fr_instr *instr, int i_ref,
                                  uint64_t bytes)
{
    int first =
        instr->op == FR_OP_ATTN_FWD ? FR_ATTN_FWD_KEYS : FR_ATTN_BWD_KEYS;
    return i_ref >= first ? bytes / 2 : bytes;
}

/* Sums of exponentials are float32. */
static fr_dtype attention_dtype(const fr_instr *instr, int i_ref)
{
    int kept =
        instr->op == FR_OP_ATTN_FWD ? FR_ATTN_FWD_KEPT : FR_ATTN_BWD_KEPT;
    bool is_lse = i_ref == kept && !(instr->flags & FR_INSTR_SAVE_PROBS);
    return is_lse ? FR_DTYPE_F32 : fr_dtype_storage((fr_dtype)instr->dtype);
}

const op_special op_special_attention = {.flop = attention_flop,
                                         .ref_bytes = attention_bytes,
                                         .ref_dtype = attention_dtype,
                                         .touched_bytes = attention_touched};

/* ---- the others --------------------------------------------------------- */

static int64_t rotated(const fr_rope_dims *d)
{
    return d->rotated > 0 ? d->rotated : d->head_dim;
}

static uint64_t rope_flop(const fr_instr *instr)
{
    const fr_rope_dims *d = &instr->rope;
    return product(d->rows, rotated(d)) * 3 *
           (uint64_t)(d->q_heads + d->kv_heads);
}

static uint64_t rope_bytes(const fr_instr *instr, int i_ref)
{
    const fr_rope_dims *d = &instr->rope;
    (void)i_ref;
    return stored_bytes(instr) * product(d->rows, d->head_dim) *
           (uint64_t)(d->q_heads + 2 * d->kv_heads);
}

static uint64_t rope_touched(const fr_instr *instr, int i_ref, uint64_t bytes)
{
    const fr_rope_dims *d = &instr->rope;
    (void)i_ref;
    return bytes / (uint64_t)d->head_dim * (uint64_t)rotated(d);
}

const op_special op_special_rope = {
    .flop = rope_flop, .ref_bytes = rope_bytes, .touched_bytes = rope_touched};

static uint64_t head_norm_bytes(const fr_instr *instr, int i_ref)
{
    const fr_head_norm_dims *d = &instr->head_norm;
    (void)i_ref;
    return stored_bytes(instr) * product(d->rows, d->row_heads) *
           (uint64_t)d->head_dim;
}

/* In qkv only the heads that are normed are touched. */
static uint64_t head_norm_touched(const fr_instr *instr, int i_ref,
                                  uint64_t bytes)
{
    const fr_head_norm_dims *d = &instr->head_norm;
    return i_ref == FR_HEAD_NORM_FWD_QKV
               ? bytes / (uint64_t)d->row_heads * (uint64_t)d->n_heads
               : bytes;
}

const op_special op_special_head_norm = {.ref_bytes = head_norm_bytes,
                                         .touched_bytes = head_norm_touched};

/* Only the rotated part of the queries is touched. */
static uint64_t latent_touched(const fr_instr *instr, int i_ref, uint64_t bytes)
{
    const fr_latent_dims *d = &instr->latent;
    return i_ref == FR_LATENT_FWD_Q
               ? bytes / (uint64_t)d->head_dim * (uint64_t)d->rotated
               : bytes;
}

const op_special op_special_latent = {.touched_bytes = latent_touched};

/* Only the rows of the tokens move in the tables, and only the rows of a share
 * of a sequence in the positions. */
static uint64_t embed_touched(const fr_instr *instr, int i_ref, uint64_t bytes)
{
    const uint64_t n = product(instr->embed.rows, instr->embed.cols);
    bool is_positions =
        i_ref ==
        (instr->op == FR_OP_EMBED_FWD ? FR_EMBED_FWD_WPE : FR_EMBED_BWD_DWPE);
    if (is_positions && instr->embed.n_shares > 1)
        return bytes / (uint64_t)instr->embed.n_shares;
    if (bytes > 0 && instr->op == FR_OP_EMBED_FWD && i_ref == FR_EMBED_FWD_WTE)
        return n * stored_bytes(instr);
    if (bytes > 0 && instr->op == FR_OP_EMBED_BWD && i_ref == FR_EMBED_BWD_DWTE)
        return n * op_element_bytes(instr, OP_ELEMENT_GRAD);
    return bytes;
}

const op_special op_special_embed = {.touched_bytes = embed_touched};

static uint64_t cast_bytes(const fr_instr *instr, int i_ref)
{
    (void)i_ref;
    return (uint64_t)instr->vector.n * (uint64_t)instr->scalar;
}

static fr_dtype cast_dtype(const fr_instr *instr, int i_ref)
{
    (void)i_ref;
    return instr->scalar >= 4.0 ? FR_DTYPE_F32 : FR_DTYPE_BF16;
}

const op_special op_special_cast = {.ref_bytes = cast_bytes,
                                    .ref_dtype = cast_dtype};

/* Each row is read as often as it is copied. */
static uint64_t permute_touched(const fr_instr *instr, int i_ref,
                                uint64_t bytes)
{
    const fr_permute_dims *d = &instr->permute;
    return i_ref <= FR_PERMUTE_DST && d->rows_out > d->rows_in
               ? product(d->rows_out, d->cols) * stored_bytes(instr)
               : bytes;
}

const op_special op_special_permute = {.touched_bytes = permute_touched};

/* Only existing rows are touched, not all the room for rows. */
static uint64_t grouped_touched(const fr_instr *instr, int i_ref,
                                uint64_t bytes)
{
    const fr_grouped_dims *d = &instr->grouped;
    const uint64_t room = product(d->n_runs, d->run_rows);
    bool is_weight = instr->op == FR_OP_GROUPED_WGRAD
                         ? i_ref >= FR_GROUPED_WGRAD_DW
                         : i_ref == FR_GROUPED_FWD_W;
    if (is_weight || room == (uint64_t)d->m || room == 0)
        return bytes;
    return (uint64_t)((double)bytes * (double)d->m / (double)room);
}

const op_special op_special_grouped = {.touched_bytes = grouped_touched};

/* Each copy times its weight is added. */
static uint64_t unpermute_flop(const fr_instr *instr)
{
    const fr_permute_dims *d = &instr->permute;
    return product(d->rows_in > d->rows_out ? d->rows_in : d->rows_out,
                   d->cols) *
           2;
}

const op_special op_special_unpermute = {.flop = unpermute_flop};

static uint64_t layer_flop(const fr_instr *instr)
{
    return (uint64_t)instr->scalar;
}

static uint64_t layer_moved(const fr_instr *instr)
{
    return (uint64_t)instr->layer.moved_bytes;
}

const op_special op_special_layer = {.flop = layer_flop,
                                     .moved_bytes = layer_moved};

static uint64_t elementwise_moved(const fr_instr *instr)
{
    return (uint64_t)instr->elementwise.moved_bytes;
}

const op_special op_special_elementwise = {.moved_bytes = elementwise_moved};

/* ---- images ------------------------------------------------------------- */

static uint64_t conv_made(const fr_conv_dims *d)
{
    const int64_t side =
        fr_window_size(d->size, d->kernel, d->stride, d->padding);
    return product(d->batch, d->out) * product(side, side);
}

static uint64_t conv_weight(const fr_conv_dims *d)
{
    return product(d->out, d->in / d->groups) * product(d->kernel, d->kernel);
}

static uint64_t conv_flop(const fr_instr *instr)
{
    const fr_conv_dims *d = &instr->conv;
    return 2 * conv_made(d) / (uint64_t)d->out * conv_weight(d);
}

static uint64_t conv_bytes(const fr_instr *instr, int i_ref)
{
    const fr_conv_dims *d = &instr->conv;
    const uint64_t width = stored_bytes(instr);
    const uint64_t x =
        width * product(d->batch, d->in) * product(d->size, d->size);
    const uint64_t w = width * conv_weight(d), y = width * conv_made(d);
    if (instr->op == FR_OP_CONV_WGRAD)
        return i_ref == FR_CONV_WGRAD_DY ? y
               : i_ref == FR_CONV_WGRAD_X
                   ? x
                   : conv_weight(d) * op_element_bytes(instr, OP_ELEMENT_GRAD);
    if (i_ref == FR_CONV_FWD_W)
        return w;
    bool is_x = (i_ref == FR_CONV_FWD_X) == (instr->op == FR_OP_CONV_FWD);
    return is_x ? x : y;
}

static fr_dtype conv_dtype(const fr_instr *instr, int i_ref)
{
    return instr->op == FR_OP_CONV_WGRAD && i_ref == FR_CONV_WGRAD_DW
               ? (fr_dtype)instr->grad_dtype
               : fr_dtype_storage((fr_dtype)instr->dtype);
}

const op_special op_special_conv = {
    .flop = conv_flop, .ref_bytes = conv_bytes, .ref_dtype = conv_dtype};

/* X and DX, Y and DY, INDEX have the same places. */
static uint64_t pool_bytes(const fr_instr *instr, int i_ref)
{
    const fr_pool_dims *d = &instr->pool;
    const int64_t side =
        i_ref == FR_POOL_FWD_X
            ? d->size
            : fr_window_size(d->size, d->kernel, d->stride, d->padding);
    const uint64_t n = product(d->batch, d->channels) * product(side, side);
    return i_ref == FR_POOL_FWD_INDEX ? n : n * stored_bytes(instr);
}

static fr_dtype pool_dtype(const fr_instr *instr, int i_ref)
{
    return i_ref == FR_POOL_FWD_INDEX
               ? FR_DTYPE_U8
               : fr_dtype_storage((fr_dtype)instr->dtype);
}

static uint64_t pool_flop(const fr_instr *instr)
{
    const fr_pool_dims *d = &instr->pool;
    const int64_t side =
        fr_window_size(d->size, d->kernel, d->stride, d->padding);
    return product(d->batch, d->channels) * product(side, side) *
           product(d->kernel, d->kernel);
}

const op_special op_special_pool = {
    .flop = pool_flop, .ref_bytes = pool_bytes, .ref_dtype = pool_dtype};
