/*
 * config_script.h: configurations that stand in a shell script, which is
 * evaluated (core/shell) and never run.  A condition that depends on what the
 * script does not set is tried both ways: where the plan is the same, it does
 * not matter; else the script is refused and the message names the value.
 */
#ifndef FR_FRAMEWORKS_READ_CONFIG_SCRIPT_H
#define FR_FRAMEWORKS_READ_CONFIG_SCRIPT_H

#include "core/shell/shell.h"
#include "frameworks/read/config.h"

/* The end that a script reached on one way. */
typedef enum fr_script_end {
    FR_SCRIPT_NOTHING,   /* no arguments of a training */
    FR_SCRIPT_VARIABLES, /* variables have arguments, but no command */
    FR_SCRIPT_COMMAND    /* a command starts a training */
} fr_script_end;

typedef struct fr_script_branch {
    uint64_t site;
    bool is_taken;
    char why[320]; /* "12: the plan depends on $X, ..." */
} fr_script_branch;

/* One way through a script. */
typedef struct fr_script_way {
    const bool *decisions; /* of the first open branches */
    size_t n_decisions;
    size_t n_steps;                    /* that the evaluation took */
    fr_script_end end;                 /* the reader sets it */
    fr_vec(fr_script_branch) branches; /* all that the way met */
} fr_script_way;

/* Evaluates the script one way.  fr_shell_release() frees, after a failure too.
 */
FR_CHECKED fr_status fr_config_run_script(const fr_config_request *request,
                                          fr_script_way *way, fr_shell *out,
                                          fr_err *err);

/* Reads a file that a script names: as the script names it, or in the folder of
 * the script.  free() the text. */
FR_CHECKED fr_status fr_config_read_named(const fr_config_request *request,
                                          const char *name, char **text,
                                          size_t *n_text, fr_err *err);

/* A reader of one way; it calls fr_config_run_script(). */
typedef fr_status (*fr_script_read_fn)(const fr_config_request *request,
                                       fr_script_way *way, fr_config *out,
                                       fr_err *err);

/* Reads a script all ways that matter into *out, whose parts are ready for one.
 * FR_INPUT where the plan depends on what nobody says. */
FR_CHECKED fr_status fr_config_read_script(const fr_config_request *request,
                                           fr_script_read_fn read,
                                           fr_config *out, fr_err *err);

#endif
