/*
 * export_list.h: the rows of the table of exporters, in the order of help
 * texts.  ENTRY names fr_exporter_ENTRY, in its file export_ENTRY.c.
 */
#ifndef FR_INTEROP_EXPORT_EXPORT_LIST_H
#define FR_INTEROP_EXPORT_EXPORT_LIST_H

#include "interop/export/export.h"

#define FR_EXPORTERS(ROW)                                                      \
    ROW(megatron)                                                              \
    ROW(megatron_bridge)                                                       \
    ROW(deepspeed)                                                             \
    ROW(torchtitan)                                                            \
    ROW(accelerate)                                                            \
    ROW(ddp)                                                                   \
    ROW(fsdp2)                                                                 \
    ROW(horovod)                                                               \
    ROW(ray_train)                                                             \
    ROW(tensorflow)                                                            \
    ROW(jax)                                                                   \
    ROW(torchrun)                                                              \
    ROW(mpirun)                                                                \
    ROW(slurm)                                                                 \
    ROW(forerun_slurm)                                                         \
    ROW(kubernetes)                                                            \
    ROW(skypilot)                                                              \
    ROW(nccl_csv)

#define FR_EXPORTER_ENTRY(entry) extern const fr_exporter fr_exporter_##entry;
FR_EXPORTERS(FR_EXPORTER_ENTRY)
#undef FR_EXPORTER_ENTRY
/* A program of launchers alone: its files are plan files. */
extern const fr_exporter fr_exporter_forerun;

#endif
