/*
 * command.h: a row for each thing that can be asked: its name, the options that
 * it takes, and its help.
 */
#ifndef FR_API_REQUEST_COMMAND_H
#define FR_API_REQUEST_COMMAND_H

#include "api/request/options.h"
#include "core/base/err.h"

#define FR_MAX_POSITIONAL 4

/* The kind of a positional argument, for completion. */
typedef enum fr_positional_kind {
    FR_POSITIONAL_NONE,
    FR_POSITIONAL_MODEL,
    FR_POSITIONAL_CLUSTER,
    FR_POSITIONAL_FILE,
    FR_POSITIONAL_COMMAND,
    FR_POSITIONAL_WORD /* one of the command's word() */
} fr_positional_kind;

struct fr_request;
struct fr_document;

typedef struct fr_command {
    const char *name;
    /* Answers the request (answers.h); NULL: the command starts processes, or
     * is about the command line itself, and cli/ does all. */
    fr_status (*answer)(const struct fr_request *request,
                        struct fr_document *out, fr_err *err);
    const char *summary;  /* one line, lower case, no full stop */
    const char *synopsis; /* positional part of the usage line */
    int n_required, n_positional;
    fr_positional_kind positional[FR_MAX_POSITIONAL];
    const char *(*word)(int i); /* FR_POSITIONAL_WORD; NULL past the last */
    const fr_option *options;   /* FR_OPT_N at the end; COMMON is implied */
    const fr_option *usual;  /* of them, those that --help names; NULL: all */
    const char *description; /* paragraphs of the help text; may be NULL */
    const char *examples;    /* 2 or 3 lines, indented by two */
} fr_command;

/* All commands, in the order of help texts; the last row has no name
 * (commands.c). */
extern const fr_command fr_commands[];

/* The command of that name among `commands`, whose last row has no name; NULL:
 * there is none. */
const fr_command *fr_command_find(const fr_command *commands, const char *name);
/* The same; FR_USAGE with a suggestion where there is none.  "--help" and
 * "--version" are names, too. */
FR_CHECKED fr_status fr_command_get(const fr_command *commands,
                                    const char *word, const fr_command **out,
                                    fr_err *err);

/* Does the command take this option?  All take those of group COMMON. */
bool fr_command_takes(const fr_command *command, fr_option option);

/* The option of the command whose name is the first n bytes of `name`; -1: it
 * takes none of that name. */
int fr_command_find_option(const fr_command *command, const char *name,
                           size_t n);
/* FR_USAGE: the command does not take the option `word`, as it was written
 * ("--tpp=2", "tpp"); with a suggestion. */
fr_status fr_command_fail_option(const fr_command *command, const char *word,
                                 fr_err *err);

#endif
