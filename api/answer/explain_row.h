/*
 * explain_row.h: `validate --explain-row ID`: how the cells of a row are read.
 */
#ifndef FR_CLI_MEASURED_EXPLAIN_ROW_H
#define FR_CLI_MEASURED_EXPLAIN_ROW_H

#include "cli/cli.h"
#include "interop/case/case.h"

/* Of the row of that name among rows[n]; FR_INPUT: there is none, or it is not
 * understood. */
FR_CHECKED fr_status fr_cli_explain_row(const fr_cli *cli, const fr_case *rows,
                                        size_t n, fr_err *err);

#endif
