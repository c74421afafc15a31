/*
 * framework_llm_foundry.c: LLM Foundry and Composer, and what they do unless
 * told otherwise.
 *
 * Sources, read in 2025 and 2026:
 *   composer    FSDP: mixed_precision DEFAULT reduces in f32
 *   llm-foundry setup.py of 2023: flash-attn 1.0.x and xentropy-cuda-lib, of
 *               which MPT's loss_fn fused_crossentropy is made;
 *               use_train_metrics is on unless told otherwise
 *               (models/mpt/modeling_mpt.py): LanguageCrossEntropy and
 *               LanguagePerplexity, each a cross entropy of its own
 * Their checkpoints are reentrant (activation_checkpointing_reentrant), which
 * run to the end.
 */
#include "frameworks/framework_list.h"

static const fr_framework_facts of_foundry = {
    .is_overlap = true,
    .is_gather_overlap = true,
    .kernels = FR_KERNELS_EAGER,
    .flash_kind = FR_FLASH_1,
    .is_loss_fused = true,
    .n_loss_metrics = 2,
};

const fr_framework fr_framework_llm_foundry = {
    .name = "llm-foundry",
    .summary = "LLM Foundry of MosaicML, 2023",
    .aliases = {"foundry"},
    .facts = &of_foundry,
    .reader = &fr_config_llm_foundry,
    .logs = {&fr_runlog_foundry},
};

static const fr_framework_facts of_composer = {
    .is_overlap = true,
    .is_gather_overlap = true,
    .kernels = FR_KERNELS_EAGER,
    .flash_kind = FR_FLASH_2,
};

const fr_framework fr_framework_composer = {
    .name = "composer",
    .summary = "Composer of MosaicML",
    .facts = &of_composer,
};
