/*
 * export_list.h: the rows of the table of exporters, in the order of help
 * texts.  ENTRY names fr_exporter_ENTRY, in its file export_ENTRY.c.
 */
#ifndef FR_INTEROP_EXPORT_EXPORT_LIST_H
#define FR_INTEROP_EXPORT_EXPORT_LIST_H

#include "interop/export/export.h"

#define FR_EXPORTERS(ROW)                                                      \
    ROW(deepspeed)                                                             \
    ROW(slurm)                                                                 \
    ROW(nccl_csv)

#define FR_EXPORTER_ENTRY(entry) extern const fr_exporter fr_exporter_##entry;
FR_EXPORTERS(FR_EXPORTER_ENTRY)
#undef FR_EXPORTER_ENTRY

#endif
