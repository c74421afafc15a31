/*
 * answer.h: the one JSON object that --json prints, made whole in memory
 * first, so that a failure half way prints nothing.
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

/* The same document in a file. */
FR_CHECKED fr_status fr_answer_save(const fr_document *document,
                                    const fr_renderer *renderer,
                                    const char *path, const fr_cli *cli,
                                    fr_err *err);

typedef struct fr_answer {
    fr_buffer buffer;
    fr_json_writer json;
} fr_answer;

/* Opens the object and writes its schema; borrow the writer for the rest. */
fr_json_writer *fr_answer_begin(fr_answer *answer, const char *schema);

/* Closes the object, prints it to cli->out, releases the answer. */
FR_CHECKED fr_status fr_answer_print(fr_answer *answer, const fr_cli *cli,
                                     fr_err *err);

/* Every line of a text as a string, within an array; as an array. */
void fr_answer_strings(fr_json_writer *json, const char *text);
void fr_answer_put_lines(fr_json_writer *json, const char *key,
                         const char *text);

/* A buffer for people to read: tables in it are as wide as the terminal, and
 * show what --columns asks for. */
void fr_answer_open(const fr_cli *cli, fr_buffer *out);

/* Prints the text of a buffer where `status`, with which it was made, is
 * FR_OK, and releases it; returns that status or its own.  Lines that are too
 * long are wrapped where fr_answer_open() opened it; FR_USAGE: none of its
 * tables has a column of --columns. */
FR_CHECKED fr_status fr_answer_text(fr_status status, fr_buffer *buffer,
                                    const fr_cli *cli, fr_err *err);

#endif
