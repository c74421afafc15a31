/*
 * spawn_self.h: this program, and it again as a process of its own that is
 * waited for.
 */
#ifndef FR_CLI_SPAWN_SELF_H
#define FR_CLI_SPAWN_SELF_H

#include "core/base/err.h"

/*
 * argv[0] is filled in, NULL ends it; stdout and stderr go to those files.
 * *code: its exit status, -1 where a signal ended it.
 */
FR_CHECKED fr_status fr_spawn_self(char **argv, const char *out_path,
                                   const char *chatter_path, int *code,
                                   fr_err *err);

/* Finds the path of this program; false: it does not find itself. */
bool fr_self_find(char *buf, size_t n_buf);

/* The last line of what it said, without the program's name. */
void fr_spawn_reason(const char *chatter_path, char *buf, size_t n_buf);

#endif
