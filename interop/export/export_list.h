/*
 * export_list.h: the names of --to: the frameworks with a writer, in the order
 * of their list, then what belongs to none: the launchers and nccl-csv.  ROW
 * names fr_exporter_ROW, in its file export_ROW.c.
 */
#ifndef FR_INTEROP_EXPORT_EXPORT_LIST_H
#define FR_INTEROP_EXPORT_EXPORT_LIST_H

#include "frameworks/write/export.h"

#define FR_LAUNCHERS(ROW)                                                      \
    ROW(torchrun)                                                              \
    ROW(mpirun)                                                                \
    ROW(slurm)                                                                 \
    ROW(forerun_slurm)                                                         \
    ROW(kubernetes)                                                            \
    ROW(skypilot)                                                              \
    ROW(nccl_csv)

#define FR_LAUNCHER_ENTRY(entry) extern const fr_exporter fr_exporter_##entry;
FR_LAUNCHERS(FR_LAUNCHER_ENTRY)
#undef FR_LAUNCHER_ENTRY

/* Exporter i and its name, NULL past the last. */
const fr_exporter *fr_exporter_at(int i);
const char *fr_exporter_name(int i);
extern const fr_names fr_exporter_names; /* with other names of frameworks */
/* By value i of fr_exporter_names: what a name for several frameworks means is
 * decided by the plan. */
const fr_exporter *fr_exporter_chosen(int i, const fr_plan *plan);
/* By any name of --to, or forerun; NULL: none has it. */
const fr_exporter *fr_exporter_find(const char *name, const fr_plan *plan);

#endif
