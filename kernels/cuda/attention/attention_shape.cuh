/*
 * attention_shape.cuh: what the kernels of an attention instruction are told:
 * which rows its operands have, where its keys begin, what is dropped.  For
 * attention.cu and attention_kept.cu only.
 */
#ifndef FR_KERNELS_CUDA_ATTENTION_ATTENTION_SHAPE_CUH
#define FR_KERNELS_CUDA_ATTENTION_ATTENTION_SHAPE_CUH

#include "kernels/cuda/attention/attention.cuh"

extern "C" {
#include "spec/model/rope.h"
}

/* Sets the rows of the sequence that the operands have, as attention_blas.c
 * does. */
template <bool IS_PLAIN>
static void set_rows(const fr_kernel_call *call, attn_shape<IS_PLAIN> *shape)
{
    const fr_instr *instr = call->instr;
    const fr_attention_dims *dim = &instr->attention;
    const fr_sequence_share share = call->share;
    shape->queries = {share, false, dim->seq};
    shape->keys = shape->queries;
    if (instr->axis != FR_AXIS_CP)
        return;
    if (instr->peer > 0) {
        shape->keys.share.i = (share.i - instr->peer + share.n) % share.n;
        shape->is_causal = true; /* half of the pairs, whichever they are */
        shape->n_keys = (int)dim->seq;
    } else if (dim->key_rows > dim->seq) {
        shape->keys.has_all = true;
    } else {
        shape->queries.len = fr_sequence_share_len(share, dim->seq);
        shape->queries.has_all = true;
        shape->keys = shape->queries;
    }
}

static inline bool has_dropout(const fr_kernel_call *call)
{
    return call->instr->flags & FR_INSTR_DROPOUT && call->dropout > 0;
}

static inline attn_dropped dropped_of(const fr_cuda_launch *launch)
{
    enum { PLACE_PROBABILITIES = 3 };
    const fr_kernel_call *call = &launch->call;
    if (!has_dropout(call))
        return {};
    const int64_t n_heads = call->model->n_heads;
    return {
        true, drop_place_of(launch, PLACE_PROBABILITIES, call->dropout),
        (uint32_t)(call->first_sequence * n_heads + fr_kernel_first_head(call)),
        (uint32_t)n_heads};
}

/* Is the order of the rows all that has to be known of them? */
static inline bool is_plain(const fr_kernel_call *call)
{
    const fr_instr *instr = call->instr;
    return (instr->axis != FR_AXIS_CP || call->share.n <= 1) &&
           instr->attention.window == 0 && !has_dropout(call);
}

template <bool IS_PLAIN>
static attn_shape<IS_PLAIN> shape_of(const fr_cuda_launch *launch)
{
    const fr_kernel_call *call = &launch->call;
    const fr_instr *instr = call->instr;
    const fr_attention_dims *dim = &instr->attention;
    const int64_t v_dim = dim->v_dim > 0 ? dim->v_dim : dim->head_dim;
    const int64_t q = dim->q_heads * dim->head_dim;
    const int64_t kv = dim->kv_heads * (dim->head_dim + v_dim);
    const bool is_apart = instr->flags & FR_INSTR_KEYS_APART;
    attn_shape<IS_PLAIN> shape = {
        (int)dim->batch,
        (int)dim->q_heads,
        (int)dim->kv_heads,
        (int)dim->head_dim,
        (int)v_dim,
        (int)(dim->q_heads / dim->kv_heads),
        (int)dim->seq,
        (int)(dim->key_rows > 0 ? dim->key_rows : dim->seq),
        is_apart ? q : q + kv,
        is_apart ? kv : q + kv,
        dim->q_heads * v_dim,
        (float)fr_rope_score_scale(call->model, dim->head_dim),
        !(instr->flags & FR_INSTR_NONCAUSAL),
        (int)dim->window,
        {},
        {},
        dropped_of(launch)};
    set_rows(call, &shape);
    return shape;
}

/* Elements of the first operand from its begin to the first key. */
static inline int64_t first_key(const fr_instr *instr)
{
    const fr_attention_dims *dim = &instr->attention;
    const int64_t q = dim->q_heads * dim->head_dim;
    return instr->flags & FR_INSTR_KEYS_APART ? dim->batch * dim->seq * q : q;
}

#endif
