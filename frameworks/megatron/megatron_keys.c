/* megatron_keys.c: see megatron_keys.h. */
#include "frameworks/megatron/megatron_keys.h"

const fr_key_word fr_megatron_cp_kinds[] = {{FR_CP_RING, "p2p"},
                                            {FR_CP_ALL_GATHER, "all_gather"},
                                            {FR_CP_ALL_GATHER, "allgather"},
                                            {FR_CP_ALL_TO_ALL, "a2a"},
                                            {0}};

/* Scales of rows are refused (scales_no_rows). */
const fr_key_word fr_megatron_recipes[] = {{FR_SCALING_DELAYED, "delayed"},
                                           {FR_SCALING_CURRENT, "tensorwise"},
                                           {FR_SCALING_BLOCK, "mxfp8"},
                                           {FR_SCALING_BLOCK, "blockwise"},
                                           {0}};

const fr_key_word fr_megatron_lr_styles[] = {
    {FR_LR_CONSTANT, "constant"},
    {FR_LR_COSINE, "cosine"},
    {FR_LR_LINEAR, "linear"},
    {FR_LR_INVERSE_SQRT, "inverse-square-root"},
    {0}};

const fr_key_word fr_megatron_shardings[] = {{0, "no_shard"},
                                             {1, "optim"},
                                             {2, "optim_grads"},
                                             {3, "optim_grads_params"},
                                             {0}};

const fr_key_word fr_megatron_modules[] = {
    {FR_RECOMPUTE_PART_ATTENTION, "core_attn"},
    {FR_RECOMPUTE_PART_NORM, "layernorm"},
    {FR_RECOMPUTE_PART_ACTIVATION, "moe_act"},
    {FR_RECOMPUTE_PART_MLP, "mlp"},
    {FR_RECOMPUTE_PART_EXPERTS, "moe"},
    {FR_RECOMPUTE_PART_LATENT, "mla_up_proj"},
    {0}};
