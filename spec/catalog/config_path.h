/*
 * config_path.h: where configs/ is: FORERUN_CONFIGS, else beside the program
 * (configs/ in one of the four directories above it, or share/forerun/configs
 * of its prefix), else ./configs.
 */
#ifndef FR_SPEC_CATALOG_CONFIG_PATH_H
#define FR_SPEC_CATALOG_CONFIG_PATH_H

#include "core/base/err.h"

#define FR_CONFIG_PATH 4096

/*
 * Resolves what a user typed.  A path (it has a slash, ends with `extension`
 * or names an existing file) is copied as it is; a bare name becomes
 * CONFIGS/kind/name<extension>, kind e.g. "models".  FR_INPUT with the
 * nearest name when there is no such file.
 */
FR_CHECKED fr_status fr_config_resolve(const char *name_or_path,
                                       const char *kind, const char *extension,
                                       char out[FR_CONFIG_PATH], fr_err *err);

/* CONFIGS/kind, FR_INPUT when there is no configs directory. */
FR_CHECKED fr_status fr_config_dir(const char *kind, char out[FR_CONFIG_PATH],
                                   fr_err *err);

#endif
