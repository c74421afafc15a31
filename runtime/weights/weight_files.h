/*
 * weight_files.h: the safetensors files of a model: one, or the shards that
 * model.safetensors.index.json names.
 */
#ifndef FR_RUNTIME_WEIGHTS_WEIGHT_FILES_H
#define FR_RUNTIME_WEIGHTS_WEIGHT_FILES_H

#include "core/base/vec.h"
#include "runtime/weights/safetensors.h"

#define FR_WEIGHT_FILE "model.safetensors"
#define FR_WEIGHT_INDEX "model.safetensors.index.json"

enum { FR_WEIGHT_PATH = 1024 };

typedef struct fr_weight_files {
    fr_vec(fr_safetensors) all;
} fr_weight_files;

/*
 * `path`: a directory that holds either, a safetensors file, or an index.
 * FR_IO when there is none, FR_INPUT with the file and what is wrong with it.
 */
FR_CHECKED fr_status fr_weight_files_open(const char *path,
                                          fr_weight_files *out, fr_err *err);
void fr_weight_files_close(fr_weight_files *files);

/* NULL when no file has it; *out the file that does. */
const fr_safetensor *fr_weight_files_find(const fr_weight_files *files,
                                          const char *name,
                                          const fr_safetensors **out);

#endif
