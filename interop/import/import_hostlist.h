/*
 * import_hostlist.h: Slurm's lists of names, "tux[0-3,12],rack[01-02]n[1-4]".
 */
#ifndef FR_INTEROP_IMPORT_IMPORT_HOSTLIST_H
#define FR_INTEROP_IMPORT_IMPORT_HOSTLIST_H

#include "core/base/arena.h"
#include "interop/import/import_parts.h"

enum { FR_HOSTLIST_NAME = 256 }; /* bytes of a name, with its NUL */

typedef fr_vec(const char *) fr_hostlist;

/* Appends the names (in the arena), at most 65,536; FR_INPUT "name:line:
 * ...".  The caller releases *out. */
FR_CHECKED fr_status fr_hostlist_expand(const fr_import_text *in, int line,
                                        const char *text, fr_arena *arena,
                                        fr_hostlist *out, fr_err *err);

#endif
