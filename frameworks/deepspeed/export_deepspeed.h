/*
 * export_deepspeed.h: ds_config.json, for its exporter and for others whose
 * program trains with DeepSpeed.
 */
#ifndef FR_FRAMEWORKS_DEEPSPEED_EXPORT_DEEPSPEED_H
#define FR_FRAMEWORKS_DEEPSPEED_EXPORT_DEEPSPEED_H

#include "frameworks/write/export.h"

/* ds_config.json at the end of *out. */
FR_CHECKED fr_status fr_deepspeed_add_config(const fr_plan_file *plan,
                                             fr_export_files *out, fr_err *err);
/* Comments of a shell script: what a size in elements cannot hold of one in
 * bytes. */
void fr_deepspeed_put_rounded(const fr_plan_file *file, fr_buffer *out);

#endif
