/*
 * framework_primus.c: Primus of AMD over Megatron-LM, and what it does unless
 * told otherwise: it executes as Megatron Core does (AMD-AGI/Primus at
 * fd1eeabb, primus/backends/megatron).  Its presets, which a configuration
 * names, have the distributed optimizer and sequence parallelism on
 * (primus/configs/modules/megatron/pre_trainer.yaml,
 * models/megatron/language_model.yaml).
 */
#include "frameworks/framework_list.h"

static const fr_framework_facts facts = {
    .is_overlap = true,
    .is_gather_overlap = true,
    .is_vocab_padded = true,
    .has_megatron_buckets = true,
    .is_p2p_sync = true,
    .has_sequence_parallel = true,
};

const fr_framework fr_framework_primus = {
    .name = "primus",
    .summary = "Primus of AMD over Megatron-LM",
    .facts = &facts,
    .checks = &fr_target_megatron,
    .reader = &fr_config_primus,
};
