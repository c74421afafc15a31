/*
 * target_megatron_bridge.c: Megatron-Bridge (NeMo), a library that trains with
 * Megatron Core: what it can be told is what Megatron-LM's arguments say, under
 * the same names, and the rules are those of its core.
 */
#include "plan/target/target_list.h"
#include "plan/target/target_megatron_rules.h"

/* v0.6.0 (2026-08) is built on core_v0.19.0. */
static const char *const versions[] = {"0.6", NULL};

static const fr_target_rule rules[] = {{.text = NULL}};

const fr_target fr_target_megatron_bridge = {
    .name = "megatron-bridge",
    .summary = "a recipe of Megatron-Bridge (NeMo)",
    .versions = versions,
    .fields = fr_megatron_fields,
    .rules = rules,
    .base = &fr_target_megatron,
};
