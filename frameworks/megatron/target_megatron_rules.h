/*
 * target_megatron_rules.h: the rows of Megatron-LM, which Megatron-Bridge has
 * too. Private to frameworks/megatron/target_megatron*.c.
 */
#ifndef FR_FRAMEWORKS_MEGATRON_TARGET_MEGATRON_RULES_H
#define FR_FRAMEWORKS_MEGATRON_TARGET_MEGATRON_RULES_H

#include "frameworks/megatron/target_megatron.h"
#include "frameworks/target.h"

extern const fr_target_rule fr_megatron_rules[];
extern const fr_target_field fr_megatron_fields[FR_PLAN_FIELDS_N];
extern const fr_target_field fr_megatron_facts[FR_EXECUTION_FIELDS_N];

#endif
