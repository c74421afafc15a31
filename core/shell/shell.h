/*
 * shell.h: the commands that a shell script would start, by evaluating it: its
 * variables, arrays, functions, conditions, loops and here-documents.  No
 * program is ever started, so that the values of environment variables, of
 * arguments of the script and of $(command) are unknown unless they are given.
 *
 * An unknown value is a mark within a text (fr_shell_unknown_in).  A condition
 * that depends on one is an open branch, which is decided by the request, and
 * else not taken: its caller runs the script both ways and compares.
 */
#ifndef FR_CORE_SHELL_SHELL_H
#define FR_CORE_SHELL_SHELL_H

#include "core/base/arena.h"
#include "core/base/vec.h"

typedef struct fr_shell_word {
    const char *text;
    int line;
} fr_shell_word;

typedef fr_vec(fr_shell_word) fr_shell_words;

/* NAME=word, NAME=(words), export NAME=word: as the script leaves it. */
typedef struct fr_shell_variable {
    const char *name;
    fr_shell_words words;
    bool is_array;
} fr_shell_variable;

/* A value that only the machine or the caller of the script knows. */
typedef struct fr_shell_unknown {
    const char *name; /* of --set, "1" for $1; NULL: no variable has it */
    const char *text; /* "$TP", "$(nproc)" */
    int line;         /* where it was met first */
} fr_shell_unknown;

/* A condition that depends on an unknown value. */
typedef struct fr_shell_branch {
    uint64_t site;
    int line;
    size_t i_unknown;
    const char *example; /* a value that decides it, NULL: none is known */
    bool is_taken;
} fr_shell_branch;

/* A file that the script writes (cat >ds.json <<EOF). */
typedef struct fr_shell_file {
    const char *name, *text;
} fr_shell_file;

typedef struct fr_shell {
    fr_arena arena; /* all texts */
    fr_vec(fr_shell_variable) variables;
    /* Words of all commands, one after the other; a command ends with a word
     * whose text is NULL. */
    fr_shell_words commands;
    fr_vec(fr_shell_unknown) unknown;
    fr_vec(fr_shell_branch) branches; /* in the order of the run */
    fr_vec(fr_shell_file) files;
    size_t n_steps;     /* that the run took */
    int exit_line;      /* of the exit that ends the script, 0: none does */
    int arguments_line; /* a loop over the script's arguments, which are taken
                           as none; 0: none is there */
} fr_shell;

typedef struct fr_shell_request {
    const char *path; /* stands in messages, and is $0 */
    const char *text;
    size_t n_text;
    /* "NAME=VALUE": variables, which stay what they are whatever the script
     * assigns; "1=VALUE" and "@=VALUES": its arguments. */
    const char *const *settings;
    size_t n_settings;
    /* Whether the first n_decisions open branches are taken. */
    const bool *decisions;
    size_t n_decisions;
    /* Reads a file that the script reads (source, cat); free() the text.
     * NULL: no file is there. */
    fr_status (*read_file)(const void *context, const char *name, char **text,
                           size_t *n_text, fr_err *err);
    const void *context; /* of read_file */
} fr_shell_request;

/*
 * FR_INPUT with path:line where the script is no shell script, or takes more
 * steps, words or bytes than a launch script does.  fr_shell_release() frees,
 * after a failure too.
 */
FR_CHECKED fr_status fr_shell_run(const fr_shell_request *request,
                                  fr_shell *out, fr_err *err);
void fr_shell_release(fr_shell *shell);

/* NULL: the script does not set it. */
const fr_shell_variable *fr_shell_find(const fr_shell *shell, const char *name);
/* The text of a file that the script writes, NULL: it writes none of it. */
const char *fr_shell_find_file(const fr_shell *shell, const char *name);

/* The first unknown value in a text; NULL: all of it is known. */
const fr_shell_unknown *fr_shell_unknown_in(const fr_shell *shell,
                                            const char *text);
/* Is the whole text one unknown value? */
bool fr_shell_is_unknown(const char *text);
/* The same text with "$NAME" for its unknown values, cut to fit; returns buf.
 */
const char *fr_shell_show(const fr_shell *shell, const char *text, char *buf,
                          size_t n_buf);
/* "which the script does not set: give --set TP=8" or the like; returns buf. */
const char *fr_shell_mend(const fr_shell_unknown *unknown, const char *example,
                          char *buf, size_t n_buf);

#endif
