/*
 * config_path.h: where configs/ is: the folder that the caller names, else near
 * the program (configs/ in one of the four directories above it, or
 * share/forerun/configs of its prefix), else ./configs.
 *
 * The parameter `configs` of each function that resolves names is the folder,
 * NULL where the caller names none.
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
FR_CHECKED fr_status fr_config_resolve(const char *configs,
                                       const char *name_or_path,
                                       const char *kind, const char *extension,
                                       char out[FR_CONFIG_PATH], fr_err *err);

/* CONFIGS/kind, FR_INPUT when there is no such directory. */
FR_CHECKED fr_status fr_config_dir(const char *configs, const char *kind,
                                   char out[FR_CONFIG_PATH], fr_err *err);

#endif
