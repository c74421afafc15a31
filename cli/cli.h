/*
 * cli.h: a command is one row (commands.c) and one file (cmd_NAME.c).
 *
 * A command gets its parsed arguments and two streams: `out` for the answer,
 * `chatter` for everything else.  It returns a status; main prints the error
 * text and turns the status into the exit code of err.h.
 */
#ifndef FR_CLI_CLI_H
#define FR_CLI_CLI_H

#include "api/request/request.h"
#include "core/base/buffer.h"
#include "report/document/layout.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct fr_cli {
    fr_request request;
    const fr_command *commands; /* all of them, NULL name at the end */
    int argc; /* as main got them: run starts itself again under mpirun */
    char **argv;
    FILE *out, *chatter;
    bool is_help_whole; /* --help=all */
    fr_layout *layout;  /* of the answer as text; NULL: the default one */
} fr_cli;

static inline bool fr_cli_has(const fr_cli *cli, fr_option option)
{
    return fr_request_has(&cli->request, option);
}

static inline bool fr_cli_on(const fr_cli *cli, fr_option option)
{
    return fr_request_on(&cli->request, option);
}

static inline const char *fr_cli_text(const fr_cli *cli, fr_option option)
{
    return fr_request_text(&cli->request, option);
}

/*
 * Fills `cli` from the words after the command's name and from FORERUN_*
 * (flags win).  FR_USAGE with a suggestion for anything unknown.
 */
FR_CHECKED fr_status fr_cli_parse(fr_cli *cli, int n_words, char **words,
                                  fr_err *err);

/* Help of one command, or of the program (command NULL).  --help=all names
 * all options of a command, --help those that matter most. */
void fr_help_text(const fr_cli *cli, const fr_command *command, fr_buffer *out);

/* One chatter line on stderr unless --quiet. */
void fr_cli_note(const fr_cli *cli, const char *format, ...) FR_PRINTF(2, 3);
/*
 * A line that the next note or status line is written over, for terminals;
 * unless --quiet.  A rank writes it as a line that begins with a carriage
 * return, which its supervisor draws.
 */
void fr_cli_status(const fr_cli *cli, const char *format, ...) FR_PRINTF(2, 3);
void fr_cli_status_end(const fr_cli *cli);

/* The whole program; returns the exit code. */
int fr_cli_main(const fr_command *commands, int argc, char **argv, FILE *out,
                FILE *chatter);

#define FR_COMMAND_FUNCTION(name)                                              \
    fr_status fr_cmd_##name(const fr_cli *cli, fr_err *err)

FR_COMMAND_FUNCTION(calibrate);
FR_COMMAND_FUNCTION(run);
FR_COMMAND_FUNCTION(checkpoint);
FR_COMMAND_FUNCTION(doctor);
FR_COMMAND_FUNCTION(report);
FR_COMMAND_FUNCTION(help);
FR_COMMAND_FUNCTION(version);
FR_COMMAND_FUNCTION(completions);

#endif
