/*
 * target_list.h: the rows of the table of targets, in the order of help texts.
 * ENTRY names fr_target_ENTRY, in its file target_ENTRY.c.
 */
#ifndef FR_PLAN_TARGET_TARGET_LIST_H
#define FR_PLAN_TARGET_TARGET_LIST_H

#include "plan/target/target.h"

#define FR_TARGETS(ROW)                                                        \
    ROW(megatron)                                                              \
    ROW(deepspeed)                                                             \
    ROW(torchtitan)                                                            \
    ROW(accelerate)                                                            \
    ROW(megatron_bridge)                                                       \
    ROW(ddp)                                                                   \
    ROW(fsdp2)                                                                 \
    ROW(horovod)                                                               \
    ROW(ray_train)                                                             \
    ROW(tensorflow)                                                            \
    ROW(jax)

#define FR_TARGET_ENTRY(entry) extern const fr_target fr_target_##entry;
FR_TARGETS(FR_TARGET_ENTRY)
#undef FR_TARGET_ENTRY
extern const fr_target fr_target_forerun;

#endif
