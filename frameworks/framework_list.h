/*
 * framework_list.h: the one list of frameworks, in the order of help texts.
 * ENTRY names fr_framework_ENTRY, in its folder.
 */
#ifndef FR_FRAMEWORKS_FRAMEWORK_LIST_H
#define FR_FRAMEWORKS_FRAMEWORK_LIST_H

#include "frameworks/framework.h"

#define FR_FRAMEWORKS(ROW)                                                     \
    ROW(forerun)                                                               \
    ROW(megatron)                                                              \
    ROW(megatron_2021)                                                         \
    ROW(megatron_bridge)                                                       \
    ROW(nemo)                                                                  \
    ROW(primus)                                                                \
    ROW(gpt_neox)                                                              \
    ROW(deepspeed)                                                             \
    ROW(megatron_deepspeed_2021)                                               \
    ROW(bigscience)                                                            \
    ROW(torchtitan)                                                            \
    ROW(ddp)                                                                   \
    ROW(fsdp2)                                                                 \
    ROW(pytorch)                                                               \
    ROW(accelerate)                                                            \
    ROW(llm_foundry)                                                           \
    ROW(composer)                                                              \
    ROW(nanotron)                                                              \
    ROW(olmo_core)                                                             \
    ROW(horovod)                                                               \
    ROW(ray_train)                                                             \
    ROW(tensorflow)                                                            \
    ROW(jax)                                                                   \
    ROW(grace)

#define FR_FRAMEWORK_ENTRY(entry)                                              \
    extern const fr_framework fr_framework_##entry;
FR_FRAMEWORKS(FR_FRAMEWORK_ENTRY)
#undef FR_FRAMEWORK_ENTRY

/* Targets that several files name. */
extern const fr_target fr_target_forerun, fr_target_megatron,
    fr_target_megatron_bridge, fr_target_deepspeed, fr_target_torchtitan,
    fr_target_accelerate, fr_target_ddp, fr_target_fsdp2, fr_target_pytorch,
    fr_target_horovod, fr_target_ray_train, fr_target_tensorflow, fr_target_jax;

/* Readers, writers and formats of logs, each in the folder of its framework. */
extern const struct fr_config_format fr_config_megatron, fr_config_deepspeed,
    fr_config_torchtitan, fr_config_accelerate, fr_config_nemo,
    fr_config_megatron_bridge, fr_config_gpt_neox, fr_config_nanotron,
    fr_config_llm_foundry, fr_config_primus, fr_config_olmo_core;
extern const struct fr_exporter fr_exporter_forerun, fr_exporter_megatron,
    fr_exporter_megatron_bridge, fr_exporter_deepspeed, fr_exporter_torchtitan,
    fr_exporter_accelerate, fr_exporter_ddp, fr_exporter_fsdp2,
    fr_exporter_horovod, fr_exporter_ray_train, fr_exporter_tensorflow,
    fr_exporter_jax;
extern const struct fr_runlog_format fr_runlog_megatron, fr_runlog_deepspeed,
    fr_runlog_deepspeed_pipe, fr_runlog_titan, fr_runlog_titan_words,
    fr_runlog_nemo, fr_runlog_nanotron, fr_runlog_foundry,
    fr_runlog_deepspeed_flops, fr_runlog_trainer, fr_runlog_lightning,
    fr_runlog_torchtune;

#endif
