/*
 * megatron_keys.h: the arguments of Megatron-LM's pretrain_gpt.py, a row each,
 * that its reader and its writer walk.  Megatron-Bridge's fields that have the
 * names of arguments are written from the same rows.
 *
 * The tables of the rows: of the model "shape", "latent" and "latent norms"
 * (multi-latent attention), "layers", "router", "router bias", "experts",
 * "expert layers", "tokens" (multi-token prediction); of the job "batch", "sgd"
 * or "adam", "decay", "rates", "schedule", "dropout", "data"; of the plan
 * "parallel", "stages", "context", "expert parallel", "order", "sharding",
 * "reduction", "gradients", "recompute", "offload", "memory".
 */
#ifndef FR_FRAMEWORKS_MEGATRON_MEGATRON_KEYS_H
#define FR_FRAMEWORKS_MEGATRON_MEGATRON_KEYS_H

#include "frameworks/framework_keys.h"

extern const fr_framework_keys fr_megatron_keys;

extern const fr_key_word fr_megatron_recipes[];   /* --fp8-recipe */
extern const fr_key_word fr_megatron_lr_styles[]; /* --lr-decay-style */
/* --data-parallel-sharding-strategy: the ZeRO stage of Megatron's FSDP. */
extern const fr_key_word fr_megatron_shardings[];
extern const fr_key_word fr_megatron_modules[];  /* --recompute-modules */
extern const fr_key_word fr_megatron_cp_kinds[]; /* --cp-comm-type */

#endif
