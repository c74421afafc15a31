/*
 * config_list.h: the rows of the table of configurations, in the order of help
 * texts.  ENTRY names fr_config_ENTRY, in its file config_ENTRY.c.
 */
#ifndef FR_INTEROP_CONFIG_CONFIG_LIST_H
#define FR_INTEROP_CONFIG_CONFIG_LIST_H

#include "interop/config/config.h"

#define FR_CONFIGS(ROW)                                                        \
    ROW(megatron)                                                              \
    ROW(deepspeed)                                                             \
    ROW(torchtitan)                                                            \
    ROW(accelerate)

#define FR_CONFIG_ENTRY(entry) extern const fr_config_format fr_config_##entry;
FR_CONFIGS(FR_CONFIG_ENTRY)
#undef FR_CONFIG_ENTRY

#endif
