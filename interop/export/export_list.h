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

/* Exporter i and its name, NULL past the last. */
const fr_exporter *fr_exporter_at(int i);
const char *fr_exporter_name(int i);
extern const fr_names fr_exporter_names; /* with other names of frameworks */
/* That of a framework, forerun's own runtime among them; NULL: it has none. */
const fr_exporter *fr_exporter_of(const fr_framework *framework);
/* By value i of fr_exporter_names: what a name for several frameworks means is
 * decided by the plan. */
const fr_exporter *fr_exporter_chosen(int i, const fr_plan *plan);
/* By any name of --to; NULL: none has it. */
const fr_exporter *fr_exporter_find(const char *name, const fr_plan *plan);

#endif
