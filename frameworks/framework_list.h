/*
 * framework_list.h: the one list of frameworks, in the order of help texts.
 * ENTRY names fr_framework_ENTRY, in its folder or in framework_rows.c.
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

#endif
