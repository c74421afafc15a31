/*
 * measured.h: what runs left behind, read by `forerun import`: files that are
 * too large for memory, unlike the descriptions that cmd_import.c reads whole.
 * A kind is a row of measured.c.
 */
#ifndef FR_CLI_MEASURED_MEASURED_H
#define FR_CLI_MEASURED_MEASURED_H

#include "api/resolve/config_choice.h"
#include "cli/cli.h"

typedef struct fr_measured_kind {
    const char *name; /* the word before FILE */
    fr_status (*import)(const fr_cli *cli, fr_err *err);
} fr_measured_kind;

/* In the order of the list, NULL past its end. */
const char *fr_measured_name(int i);
/* NULL: no such kind. */
const fr_measured_kind *fr_measured_find(const char *name);

/* positional[1...]: logs; a row of cases each. */
FR_CHECKED fr_status fr_import_runlog(const fr_cli *cli, fr_err *err);
/* positional[1]: a trace of PyTorch's profiler; a table or a profile. */
FR_CHECKED fr_status fr_import_kineto(const fr_cli *cli, fr_err *err);
FR_CHECKED fr_status fr_import_nsys(const fr_cli *cli, fr_err *err);
FR_CHECKED fr_status fr_import_chakra(const fr_cli *cli, fr_err *err);
/* positional[1]: a snapshot of PyTorch's allocator as JSON. */
FR_CHECKED fr_status fr_import_snapshot(const fr_cli *cli, fr_err *err);

/* A configuration of a framework: the plan file, or with --json what it holds.
 */
FR_CHECKED fr_status fr_import_config(const fr_cli *cli,
                                      const fr_config_source *source,
                                      fr_err *err);

#endif
