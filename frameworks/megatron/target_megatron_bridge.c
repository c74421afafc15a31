/*
 * target_megatron_bridge.c: Megatron-Bridge (NeMo), a library that trains with
 * Megatron Core: what it can be told is what Megatron-LM's arguments say, under
 * the same names, and the rules are those of its core.
 */
#include "frameworks/framework_list.h"
#include "frameworks/megatron/target_megatron_rules.h"
#include "frameworks/target_rows.h"

/* v0.6.0 (2026-08) is built on core_v0.19.0. */
static const char *const versions[] = {"0.6", NULL};

static FR_TARGET_RULE(shards_in_usual_order)
{
    (void)model;
    (void)job;
    return plan->zero_stage < 2 || plan->rank_order == FR_RANK_ORDER_TP_DP_PP;
}

static const fr_target_rule rules[] = {
    {.text = "rank-order tp-dp-pp with sharded gradients or parameters",
     .source = "training/config.py, _validate_and_apply_megatron_fsdp_configs: "
               "\"use_tp_pp_dp_mapping is not supported with Megatron FSDP\"",
     .fields = FR_PLAN_BIT(ZERO) | FR_PLAN_BIT(RANK_ORDER),
     .holds = shards_in_usual_order},
    {.text = NULL}};

const fr_target fr_target_megatron_bridge = {
    .name = "megatron-bridge",
    .summary = "a recipe of Megatron-Bridge (NeMo)",
    .versions = versions,
    .fields = fr_megatron_fields,
    .facts = fr_megatron_facts,
    .rules = rules,
    .base = &fr_target_megatron,
};
