/*
 * answer.h: the end of each command: its document on stdout, in the format that
 * was asked for, and in a file.  A document is rendered whole first, so that a
 * failure half way prints nothing.
 */
#ifndef FR_CLI_ANSWER_H
#define FR_CLI_ANSWER_H

#include "cli/cli.h"
#include "core/document/json.h"
#include "report/document/renderer.h"

/*
 * Prints the document as --format says and writes that of --report, where
 * `status`, with which it was built, is FR_OK; releases it; returns that status
 * or its own.  FR_USAGE: no table of a text has a column of --columns.
 */
FR_CHECKED fr_status fr_answer_deliver(fr_status status, fr_document *document,
                                       const fr_cli *cli, fr_err *err);

/* Prints a file that is no answer of ours, such as a trace, and releases it.
 * FR_USAGE: it is asked for in another format. */
FR_CHECKED fr_status fr_answer_file(fr_status status, fr_buffer *text,
                                    const fr_cli *cli, fr_err *err);

#endif
