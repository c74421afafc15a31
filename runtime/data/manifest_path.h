/* manifest_path.h: a path that a manifest names, which counts from its folder.
 */
#ifndef FR_RUNTIME_DATA_MANIFEST_PATH_H
#define FR_RUNTIME_DATA_MANIFEST_PATH_H

#include "core/document/json.h"
#include "core/system/fileio.h"

#include <stdio.h>

FR_CHECKED static inline fr_status fr_manifest_path(const char *folder,
                                                    const fr_json_value *entry,
                                                    const char *path,
                                                    char out[512], fr_err *err)
{
    const bool is_whole = path[0] == '/';
    const int n = snprintf(out, 512, "%s%s%s", is_whole ? "" : folder,
                           is_whole ? "" : "/", path);
    return n >= 0 && n < 512 ? FR_OK
                             : fr_json_fail(entry, err, "the path is too long");
}

#endif
