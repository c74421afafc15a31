/*
 * tensor_role.h: what a parameter tensor is, which its id says together with
 * the layer: plain layers have 16 ids each, what larger models have in a layer
 * another 32, the ends of encoders 64.
 */
#ifndef FR_PLAN_OP_TENSOR_ROLE_H
#define FR_PLAN_OP_TENSOR_ROLE_H

#include <stdint.h>

enum {
    FR_TENSOR_ID_LAYERS = 16,
    FR_TENSOR_ID_ENDS = 1 << 23,
    FR_TENSOR_ID_MORE = 1 << 24,
    FR_TENSOR_IDS_LAYER = 16,
    FR_TENSOR_IDS_MORE = 32
};

/* The role of a layer's linear or norm is that of its weight; its bias has the
 * next number. */
typedef enum fr_tensor_role {
    FR_TENSOR_NORM1 = 0,
    FR_TENSOR_NORM2 = 2,
    FR_TENSOR_QKV = 4,
    FR_TENSOR_OUT = 6,
    FR_TENSOR_FC1 = 8,
    FR_TENSOR_FC2 = 10,
    FR_TENSOR_MORE = FR_TENSOR_IDS_LAYER, /* in the order of their ids: */
    FR_TENSOR_Q_NORM = FR_TENSOR_MORE,
    FR_TENSOR_K_NORM,
    FR_TENSOR_Q_DOWN,
    FR_TENSOR_Q_UP,
    FR_TENSOR_KV_DOWN,
    FR_TENSOR_KV_UP,
    FR_TENSOR_ROUTER,
    FR_TENSOR_SHARED_GATE,
    FR_TENSOR_SHARED_FC1,
    FR_TENSOR_SHARED_FC1_BIAS,
    FR_TENSOR_SHARED_FC2,
    FR_TENSOR_SHARED_FC2_BIAS,
    FR_TENSOR_LATER_HIDDEN_NORM,
    FR_TENSOR_LATER_EMBED_NORM,
    FR_TENSOR_LATER_NORM,
    FR_TENSOR_LATER_NORM_BIAS,
    FR_TENSOR_LATER_JOIN,
    FR_TENSOR_EXPERT_FC1,
    FR_TENSOR_EXPERT_FC1_BIAS,
    FR_TENSOR_EXPERT_FC2,
    FR_TENSOR_EXPERT_FC2_BIAS,
    FR_TENSOR_ROUTER_BIAS,
    FR_TENSOR_LAYER_END = FR_TENSOR_MORE + FR_TENSOR_IDS_MORE,
    FR_TENSOR_EMBED = FR_TENSOR_LAYER_END, /* of the model, from id 0 on */
    FR_TENSOR_POSITIONS,
    FR_TENSOR_LAST_NORM,
    FR_TENSOR_LAST_NORM_BIAS,
    FR_TENSOR_HEAD,
    FR_TENSOR_ENDS = FR_TENSOR_LAYER_END + FR_TENSOR_ID_LAYERS, /* encoders */
    FR_TENSOR_TYPES = FR_TENSOR_ENDS,
    FR_TENSOR_EMBED_NORM,
    FR_TENSOR_EMBED_NORM_BIAS,
    FR_TENSOR_PATCH,
    FR_TENSOR_PATCH_BIAS,
    FR_TENSOR_FIRST_TOKEN,
    FR_TENSOR_POOLER = FR_TENSOR_ENDS + 32,
    FR_TENSOR_POOLER_BIAS,
    FR_TENSOR_DENSE,
    FR_TENSOR_DENSE_BIAS,
    FR_TENSOR_DENSE_NORM,
    FR_TENSOR_DENSE_NORM_BIAS,
    FR_TENSOR_VOCAB_BIAS,
    FR_TENSOR_PAIR,
    FR_TENSOR_PAIR_BIAS,
    FR_TENSOR_LABELS,
    FR_TENSOR_LABELS_BIAS
} fr_tensor_role;

/* *layer is -1 where the tensor is of none. */
static inline fr_tensor_role fr_tensor_role_of(uint32_t id, int64_t *layer)
{
    *layer = -1;
    if (id < FR_TENSOR_ID_LAYERS)
        return (fr_tensor_role)(FR_TENSOR_EMBED + id);
    if (id >= FR_TENSOR_ID_ENDS && id < FR_TENSOR_ID_MORE)
        return (fr_tensor_role)(FR_TENSOR_ENDS + (id - FR_TENSOR_ID_ENDS));
    if (id < FR_TENSOR_ID_ENDS) {
        id -= FR_TENSOR_ID_LAYERS;
        *layer = id / FR_TENSOR_IDS_LAYER;
        return (fr_tensor_role)(id % FR_TENSOR_IDS_LAYER);
    }
    id -= FR_TENSOR_ID_MORE;
    *layer = id / FR_TENSOR_IDS_MORE;
    return (fr_tensor_role)(FR_TENSOR_MORE + id % FR_TENSOR_IDS_MORE);
}

#endif
