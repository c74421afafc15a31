/*
 * megatron_keys.h: words of Megatron-LM's arguments, one table for each
 * argument that is an enum: its reader and the writers of arguments and of
 * Megatron-Bridge's recipes share them.
 */
#ifndef FR_FRAMEWORKS_MEGATRON_MEGATRON_KEYS_H
#define FR_FRAMEWORKS_MEGATRON_MEGATRON_KEYS_H

#include "frameworks/framework_keys.h"

extern const fr_key_word fr_megatron_cp_kinds[];  /* --cp-comm-type */
extern const fr_key_word fr_megatron_recipes[];   /* --fp8-recipe */
extern const fr_key_word fr_megatron_lr_styles[]; /* --lr-decay-style */
/* --data-parallel-sharding-strategy: the ZeRO stage of Megatron's FSDP. */
extern const fr_key_word fr_megatron_shardings[];
extern const fr_key_word fr_megatron_modules[]; /* --recompute-modules */

#endif
