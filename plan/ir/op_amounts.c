/*
 * op_amounts.c: flop and bytes of each operation, with the shapes and dtypes
 * that op.h gives.
 */
#include "plan/ir/op.h"

#include <stddef.h>

static uint64_t product(int64_t a, int64_t b)
{
    return (uint64_t)a * (uint64_t)b;
}

/* ---- attention's shape --------------------------------------------------- */

static uint64_t value_dim(const fr_instr *instr)
{
    return (uint64_t)(instr->dim[5] > 0 ? instr->dim[5] : instr->dim[4]);
}

static uint64_t key_rows(const fr_instr *instr)
{
    return (uint64_t)(instr->dim[6] > 0 ? instr->dim[6] : instr->dim[1]);
}

/*
 * Pairs (query, key) that are looked at: query i of n sees i keys, at most
 * `window`; T queries that are spread over n rows have T / n of the pairs.
 */
static uint64_t attention_pairs(const fr_instr *instr)
{
    const int64_t *d = instr->dim;
    const uint64_t t = (uint64_t)d[1], n = key_rows(instr);
    uint64_t window = (uint64_t)d[7], pairs;
    if (window == 0 || window > n)
        window = n;
    if (instr->flags & FR_INSTR_NONCAUSAL)
        pairs = t * window;
    else
        pairs = (window * (window + 1) / 2 + (n - window) * window) * t / n;
    return product(d[0], d[2]) * pairs;
}

static uint64_t attention_flop(const fr_instr *instr)
{
    const uint64_t pairs = attention_pairs(instr);
    const uint64_t qk = (uint64_t)instr->dim[4], v = value_dim(instr);
    if (instr->op == FR_OP_ATTN_FWD) /* two products, and the softmax */
        return pairs * (2 * qk + 2 * v + 5);
    /* Four products; one more where probabilities are remade. */
    return instr->flags & FR_INSTR_SAVE_PROBS ? pairs * (4 * qk + 4 * v + 4)
                                              : pairs * (6 * qk + 4 * v + 8);
}

/* ---- flop ---------------------------------------------------------------- */

static uint64_t planned_flop(const fr_instr *instr)
{
    const int64_t *d = instr->dim;
    switch ((fr_op)instr->op) {
    case FR_OP_CAST: /* scaled */
        return (uint64_t)d[0] * 2;
    case FR_OP_ROUTER_FWD:
    case FR_OP_ROUTER_BWD: /* softmax, and a look at each for the best */
        return product(d[0], d[1]) * 6;
    case FR_OP_UNPERMUTE: /* each copy times its weight is added */
        return product(d[0] > d[1] ? d[0] : d[1], d[2]) * 2;
    case FR_OP_GROUPED_FWD:
    case FR_OP_GROUPED_DGRAD:
    case FR_OP_GROUPED_WGRAD:
        return 2 * product(d[0], d[1]) * (uint64_t)d[2];
    case FR_OP_LAYER_FWD:
    case FR_OP_LAYER_BWD:
        return (uint64_t)instr->scalar;
    case FR_OP_DROPOUT_ADD:
        return product(d[0], d[1]) * 3;
    case FR_OP_DROPOUT_BWD:
        return product(d[0], d[1]);
    case FR_OP_ATTN_MERGE:
        return product(d[0], d[1]) * (uint64_t)d[2] * 3;
    default: /* optimizers and compressors: their descriptors know */
        return 0;
    }
}

uint64_t fr_instr_flop(const fr_instr *instr)
{
    const int64_t *d = instr->dim;
    uint64_t n01 = product(d[0], d[1]);
    switch ((fr_op)instr->op) {
    case FR_OP_EMBED_FWD:
    case FR_OP_EMBED_BWD:
        return n01 * 2;
    case FR_OP_NORM_FWD:
        return n01 * 8;
    case FR_OP_NORM_BWD:
        return n01 * 14;
    case FR_OP_LINEAR_FWD:
    case FR_OP_LINEAR_DGRAD:
    case FR_OP_LINEAR_WGRAD:
        return 2 * n01 * (uint64_t)d[2];
    case FR_OP_ROPE_FWD:
    case FR_OP_ROPE_BWD:
        return product(d[0], d[4]) * 3 * (uint64_t)(d[2] + d[3]);
    case FR_OP_ATTN_FWD:
    case FR_OP_ATTN_BWD:
        return attention_flop(instr);
    case FR_OP_GELU_FWD:
        return (uint64_t)d[0] * 12;
    case FR_OP_GELU_BWD:
        return (uint64_t)d[0] * 20;
    case FR_OP_SWIGLU_FWD:
        return n01 * 6;
    case FR_OP_SWIGLU_BWD:
        return n01 * 12;
    case FR_OP_XENT:
        return n01 * 7;
    case FR_OP_XENT_MAX:
    case FR_OP_BIAS_GRAD:
    case FR_OP_RESIDUAL_ADD:
        return n01;
    case FR_OP_XENT_SUM:
    case FR_OP_XENT_GRAD:
        return n01 * 4;
    case FR_OP_ADD:
        return (uint64_t)d[0];
    case FR_OP_GRAD_SQSUM:
        return (uint64_t)d[0] * 2;
    default:
        return planned_flop(instr);
    }
}

/* ---- bytes of operands --------------------------------------------------- */

static const uint64_t FOUR = 4; /* F32 statistics, I32 tokens */

/* Element sizes of an instruction. */
typedef struct widths {
    uint64_t product; /* operands of a matrix product */
    uint64_t stored;  /* activations, parameters */
    uint64_t grad;    /* gradients of parameters */
} widths;

static widths widths_of(const fr_instr *instr)
{
    fr_dtype dtype = (fr_dtype)instr->dtype;
    return (widths){fr_dtype_bytes(dtype),
                    fr_dtype_bytes(fr_dtype_storage(dtype)),
                    fr_dtype_bytes((fr_dtype)instr->grad_dtype)};
}

static uint64_t embed_bytes(const fr_instr *instr, int i_ref)
{
    const int64_t *d = instr->dim;
    const widths w = widths_of(instr);
    const uint64_t tokens = product(d[0], 2) * FOUR;
    const uint64_t matrix = product(d[2], d[1]);
    const uint64_t positions = product(d[3], d[1]);
    const uint64_t rows = product(d[0], d[1]) * w.stored;
    const uint64_t forward[4] = {tokens, matrix * w.stored,
                                 positions * w.stored, rows};
    const uint64_t backward[4] = {tokens, rows, matrix * w.grad,
                                  positions * w.grad};
    return instr->op == FR_OP_EMBED_FWD ? forward[i_ref] : backward[i_ref];
}

static uint64_t norm_bytes(const fr_instr *instr, int i_ref)
{
    const uint64_t r = (uint64_t)instr->dim[0], c = (uint64_t)instr->dim[1];
    const widths w = widths_of(instr);
    const uint64_t rows = r * c * w.stored, vector = c * w.stored;
    const uint64_t stats = 2 * r * FOUR;
    const uint64_t forward[5] = {rows, vector, vector, rows, stats};
    const uint64_t backward[7] = {rows, rows,       vector,    stats,
                                  rows, c * w.grad, c * w.grad};
    return instr->op == FR_OP_NORM_FWD ? forward[i_ref] : backward[i_ref];
}

/* LINEAR_* and GROUPED_*: one weight, or one of each expert. */
static uint64_t linear_bytes(const fr_instr *instr, int i_ref,
                             uint64_t n_groups)
{
    const int64_t *d = instr->dim;
    const widths w = widths_of(instr);
    const uint64_t mn = product(d[0], d[1]), mk = product(d[0], d[2]);
    const uint64_t nk = product(d[1], d[2]) * n_groups;
    const uint64_t n = (uint64_t)d[1] * n_groups;
    const uint64_t forward[4] = {mk * w.product, nk * w.product, n * w.stored,
                                 mn * w.stored};
    const uint64_t dgrad[3] = {mn * w.product, nk * w.product, mk * w.stored};
    const uint64_t wgrad[4] = {mn * w.product, mk * w.product, nk * w.grad,
                               n * w.grad};
    switch ((fr_op)instr->op) {
    case FR_OP_LINEAR_FWD:
    case FR_OP_GROUPED_FWD:
        return forward[i_ref];
    case FR_OP_LINEAR_DGRAD:
    case FR_OP_GROUPED_DGRAD:
        return dgrad[i_ref];
    default:
        return wgrad[i_ref];
    }
}

static uint64_t attention_bytes(const fr_instr *instr, int i_ref)
{
    const int64_t *d = instr->dim;
    const uint64_t width = widths_of(instr).stored;
    const uint64_t rows = product(d[0], d[1]),
                   keys = (uint64_t)d[0] * key_rows(instr);
    const uint64_t v = value_dim(instr), heads = (uint64_t)d[2];
    const uint64_t qkv = (rows * heads * (uint64_t)d[4] +
                          keys * (uint64_t)d[3] * ((uint64_t)d[4] + v)) *
                         width;
    const uint64_t o = rows * heads * v * width;
    const uint64_t scores = rows * heads * key_rows(instr);
    uint64_t kept = rows * heads * FOUR; /* lse */
    if (instr->flags & FR_INSTR_SAVE_PROBS)
        kept =
            scores * (instr->flags & FR_INSTR_DROPOUT ? 2 * width + 1 : width);
    const uint64_t forward[4] = {qkv, o, kept, scores * width};
    const uint64_t backward[6] = {o, qkv, o, kept, qkv, scores * width};
    return instr->op == FR_OP_ATTN_FWD ? forward[i_ref] : backward[i_ref];
}

static uint64_t loss_bytes(const fr_instr *instr, int i_ref)
{
    const uint64_t r = (uint64_t)instr->dim[0];
    const uint64_t logits =
        r * (uint64_t)instr->dim[1] * widths_of(instr).stored;
    const uint64_t step = sizeof(fr_step_scalars);
    const uint64_t xent[3] = {logits, 2 * r * FOUR, step};
    const uint64_t sharded[5] = {logits, 2 * r * FOUR, r * FOUR, 2 * r * FOUR,
                                 step};
    return instr->op == FR_OP_XENT ? xent[i_ref] : sharded[i_ref];
}

static uint64_t optimizer_bytes(const fr_instr *instr, int i_ref)
{
    const int64_t *d = instr->dim;
    const widths w = widths_of(instr);
    const uint64_t n = (uint64_t)d[0];
    const uint64_t step = sizeof(fr_step_scalars);
    const uint64_t update[5] = {n * w.grad, n * w.stored, (uint64_t)d[2], step,
                                (uint64_t)d[3]};
    const uint64_t square_sum[2] = {n * w.grad, step};
    return instr->op == FR_OP_GRAD_SQSUM ? square_sum[i_ref]
           : instr->op == FR_OP_CLIP     ? step
                                         : update[i_ref];
}

/* dims as in compressor.h. */
static uint64_t compressor_bytes(const fr_instr *instr, int i_ref)
{
    const int64_t *d = instr->dim;
    const uint64_t n = (uint64_t)d[0] * widths_of(instr).grad;
    const uint64_t payload = (uint64_t)d[1];
    const uint64_t encode[3] = {n, (uint64_t)d[4], payload};
    const uint64_t decode[3] = {payload * (uint64_t)d[5], (uint64_t)d[4], n};
    return instr->op == FR_OP_COMPRESS ? encode[i_ref] : decode[i_ref];
}

static uint64_t planned_bytes(const fr_instr *instr, int i_ref)
{
    const int64_t *d = instr->dim;
    const uint64_t width = widths_of(instr).stored;
    const uint64_t n0 = (uint64_t)d[0], n01 = product(d[0], d[1]);
    const uint64_t dropout_add[5] = {n01 * width, n01 * width,
                                     (uint64_t)d[1] * width, n01 * width, n01};
    const uint64_t lse = n01 * FOUR, o = n01 * (uint64_t)d[2] * width;
    switch ((fr_op)instr->op) {
    case FR_OP_CAST:
        return i_ref == 0 ? n0 * (uint64_t)instr->scalar
                          : n0 * widths_of(instr).product;
    case FR_OP_ROUTER_FWD:
    case FR_OP_ROUTER_BWD:
        return (instr->op == FR_OP_ROUTER_FWD) == (i_ref == 0)
                   ? n01 * width
                   : product(d[0], d[2]) * 2 * FOUR;
    case FR_OP_PERMUTE:
    case FR_OP_UNPERMUTE:
        return product(d[i_ref], d[2]) * width;
    case FR_OP_LAYER_FWD:
    case FR_OP_LAYER_BWD:
        return (uint64_t)(i_ref == 0 ? d[2] : i_ref == 1 ? d[1] : d[3]);
    case FR_OP_HOST_COPY:
        return n0;
    case FR_OP_DROPOUT_ADD:
        return dropout_add[i_ref];
    case FR_OP_DROPOUT_BWD:
        return i_ref == 1 ? n01 : n01 * width;
    case FR_OP_ATTN_MERGE:
        return i_ref % 2 == 0 ? o : lse;
    case FR_OP_ELEMENTWISE:
        return (uint64_t)d[2 + i_ref];
    default:
        return 0;
    }
}

static uint64_t small_bytes(const fr_instr *instr, int i_ref)
{
    const int64_t *d = instr->dim;
    const widths w = widths_of(instr);
    const uint64_t n0 = (uint64_t)d[0], n01 = product(d[0], d[1]);
    switch ((fr_op)instr->op) {
    case FR_OP_BIAS_GRAD:
        return i_ref == 0 ? n01 * w.stored : (uint64_t)d[1] * w.grad;
    case FR_OP_RESIDUAL_ADD:
        return w.stored * (i_ref == 2 ? (uint64_t)d[1] : n01);
    case FR_OP_ROPE_FWD:
    case FR_OP_ROPE_BWD:
        return w.stored * product(d[0], d[4]) * (uint64_t)(d[2] + 2 * d[3]);
    case FR_OP_GELU_FWD:
    case FR_OP_GELU_BWD:
    case FR_OP_ADD:
        return w.stored * n0;
    case FR_OP_SWIGLU_FWD:
        return w.stored * n01 * (i_ref == 0 ? 2 : 1);
    case FR_OP_SWIGLU_BWD:
        return w.stored * n01 * (i_ref == 0 ? 1 : 2);
    case FR_OP_ZERO:
    case FR_OP_COPY:
        return n0;
    case FR_OP_LOAD_TOKENS:
        return FOUR * n01 * 2;
    default:
        return planned_bytes(instr, i_ref);
    }
}

static uint64_t communication_bytes(const fr_instr *instr, int i_ref,
                                    int n_group)
{
    const uint64_t all = fr_instr_payload_bytes(instr);
    const uint64_t part = n_group > 0 ? all / (uint64_t)n_group : all;
    switch ((fr_op)instr->op) {
    case FR_OP_REDUCE_SCATTER:
        return i_ref == 0 ? all : part;
    case FR_OP_ALL_GATHER:
        return i_ref == 0 ? part : all;
    default:
        return all;
    }
}

uint64_t fr_instr_ref_bytes(const fr_instr *instr, int i_ref, int n_group)
{
    if (i_ref < 0 || i_ref >= FR_INSTR_REFS || instr->op >= FR_OP_N ||
        fr_op_access((fr_op)instr->op, i_ref) == 0 ||
        instr->ref[i_ref].space == FR_SPACE_NONE)
        return 0;
    switch ((fr_op)instr->op) {
    case FR_OP_EMBED_FWD:
    case FR_OP_EMBED_BWD:
        return embed_bytes(instr, i_ref);
    case FR_OP_NORM_FWD:
    case FR_OP_NORM_BWD:
        return norm_bytes(instr, i_ref);
    case FR_OP_LINEAR_FWD:
    case FR_OP_LINEAR_DGRAD:
    case FR_OP_LINEAR_WGRAD:
        return linear_bytes(instr, i_ref, 1);
    case FR_OP_GROUPED_FWD:
    case FR_OP_GROUPED_DGRAD:
    case FR_OP_GROUPED_WGRAD:
        return linear_bytes(instr, i_ref, (uint64_t)instr->dim[3]);
    case FR_OP_ATTN_FWD:
    case FR_OP_ATTN_BWD:
        return attention_bytes(instr, i_ref);
    case FR_OP_XENT:
    case FR_OP_XENT_MAX:
    case FR_OP_XENT_SUM:
    case FR_OP_XENT_GRAD:
        return loss_bytes(instr, i_ref);
    case FR_OP_GRAD_SQSUM:
    case FR_OP_CLIP:
    case FR_OP_OPT_NORMS:
    case FR_OP_OPT_STEP:
        return optimizer_bytes(instr, i_ref);
    case FR_OP_COMPRESS:
    case FR_OP_DECOMPRESS:
        return compressor_bytes(instr, i_ref);
    default:
        return fr_op_class_of((fr_op)instr->op) == FR_OP_CLASS_COLLECTIVE ||
                       fr_op_class_of((fr_op)instr->op) == FR_OP_CLASS_P2P
                   ? communication_bytes(instr, i_ref, n_group)
                   : small_bytes(instr, i_ref);
    }
}

/* Of a table only what is touched moves: the rows of the tokens, each row as
 * often as it is copied. */
static uint64_t touched_bytes(const fr_instr *instr, int i_ref, uint64_t bytes)
{
    const int64_t *d = instr->dim;
    const widths w = widths_of(instr);
    if (bytes > 0 && instr->op == FR_OP_EMBED_FWD && i_ref == 1)
        return product(d[0], d[1]) * w.stored;
    if (bytes > 0 && instr->op == FR_OP_EMBED_BWD && i_ref == 2)
        return product(d[0], d[1]) * w.grad;
    if (instr->op == FR_OP_PERMUTE && d[1] > d[0])
        return product(d[1], d[2]) * w.stored;
    return bytes;
}

uint64_t fr_instr_moved_bytes(const fr_instr *instr, int n_group)
{
    uint64_t sum = 0;
    if (instr->op == FR_OP_LAYER_FWD || instr->op == FR_OP_LAYER_BWD ||
        instr->op == FR_OP_ELEMENTWISE)
        return (uint64_t)instr->dim[0];
    for (int i = 0; i < FR_INSTR_REFS; i++) {
        char access = fr_op_access((fr_op)instr->op, i);
        if (access == 0)
            break;
        uint64_t bytes =
            touched_bytes(instr, i, fr_instr_ref_bytes(instr, i, n_group));
        bool is_added = access == 'w' && instr->flags & FR_INSTR_ACCUMULATE;
        bool is_temp = (instr->op == FR_OP_ATTN_FWD && i == 3) ||
                       (instr->op == FR_OP_ATTN_BWD && i == 5);
        sum += access == 'm' || is_added || is_temp ? 2 * bytes : bytes;
    }
    return sum;
}

uint64_t fr_instr_payload_bytes(const fr_instr *instr)
{
    return (uint64_t)instr->dim[0] * fr_dtype_bytes((fr_dtype)instr->dtype);
}
