/*
 * command.h: a command is one row (commands.c) and one file (cmd_NAME.c).
 *
 * A command gets its parsed arguments and two streams: `out` for the answer,
 * `chatter` for everything else.  It returns a status; main prints the error
 * text and turns the status into the exit code of err.h.
 */
#ifndef FR_CLI_COMMAND_H
#define FR_CLI_COMMAND_H

#include "cli/option/options.h"
#include "core/base/err.h"
#include "core/base/layout.h"

#include <stdbool.h>
#include <stdio.h>

#define FR_MAX_POSITIONAL 4
#define FR_MAX_REPEATS 16
#define FR_MAX_COMMAND_OPTIONS 80
#define FR_MAX_LIST 16

/* What a positional argument is: for completion. */
typedef enum fr_positional_kind {
    FR_POSITIONAL_NONE,
    FR_POSITIONAL_MODEL,
    FR_POSITIONAL_CLUSTER,
    FR_POSITIONAL_FILE,
    FR_POSITIONAL_COMMAND,
    FR_POSITIONAL_WORD /* one of the command's word() */
} fr_positional_kind;

typedef enum fr_option_source {
    FR_SOURCE_UNSET,
    FR_SOURCE_ENV,
    FR_SOURCE_FLAG
} fr_option_source;

typedef struct fr_option_value {
    fr_option_source source;
    const char *text; /* TEXT, PATH and for messages; borrowed */
    bool is_on;       /* FLAG */
    int64_t count;    /* COUNT; CHOICE: its index */
    double real;
    uint64_t n_bytes;
    int n_list; /* of a list "2,4,8", else 0; count or n_bytes is the first */
    int64_t list[FR_MAX_LIST];
} fr_option_value;

struct fr_command;

typedef struct fr_cli {
    const struct fr_command *commands; /* all of them, NULL name at the end */
    const struct fr_command *command;
    fr_option_value option[FR_OPT_N];
    const char *positional[FR_MAX_POSITIONAL];
    int n_positional;
    const char *repeats[FR_MAX_REPEATS]; /* values of the REPEATED option */
    int n_repeats;
    int argc; /* as main got them: run starts itself again under mpirun */
    char **argv;
    FILE *out, *chatter;
    bool is_help_whole; /* --help=all */
    fr_layout *layout;  /* of the answer as text; NULL: the usual one */
} fr_cli;

typedef struct fr_command {
    const char *name;
    fr_status (*run)(const fr_cli *cli, fr_err *err);
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

/*
 * The table.  It stands on top: main() hands it over, so that what commands
 * share need not see the commands.
 */
extern const fr_command fr_commands[];
/* NULL: unknown. */
const fr_command *fr_command_find(const fr_command *commands, const char *name);
/* The same, and FR_USAGE with a suggestion. */
FR_CHECKED fr_status fr_command_get(const fr_command *commands,
                                    const char *word, const fr_command **out,
                                    fr_err *err);

static inline bool fr_cli_has(const fr_cli *cli, fr_option option)
{
    return cli->option[option].source != FR_SOURCE_UNSET;
}

static inline bool fr_cli_on(const fr_cli *cli, fr_option option)
{
    return cli->option[option].is_on;
}

/* The text of a TEXT or PATH option, NULL when it was not given. */
static inline const char *fr_cli_text(const fr_cli *cli, fr_option option)
{
    return cli->option[option].text;
}

/* Does the command take this option?  HELP, JSON and QUIET: always. */
bool fr_command_takes(const fr_command *command, fr_option option);

/*
 * Fills `cli` from the words after the command's name and from FORERUN_*
 * (flags win).  FR_USAGE with a suggestion for anything unknown.
 */
FR_CHECKED fr_status fr_cli_parse(fr_cli *cli, int n_words, char **words,
                                  fr_err *err);

/*
 * Gives an option of the command another value, as if it had been on the
 * command line: "--tp 8".  The text is borrowed.  FR_USAGE: it cannot be read.
 */
FR_CHECKED fr_status fr_cli_set(fr_cli *cli, fr_option option, const char *text,
                                fr_err *err);

/* Help of one command, or of the program (command NULL).  --help=all names
 * all options of a command, --help those that matter most. */
void fr_help_print(const fr_cli *cli, const fr_command *command);

/* One chatter line on stderr unless --quiet. */
void fr_cli_note(const fr_cli *cli, const char *format, ...) FR_PRINTF(2, 3);
/*
 * A line that the next note or status line is written over, for terminals;
 * unless --quiet.  A rank writes it as a line that begins with a carriage
 * return, which its supervisor draws.
 */
void fr_cli_status(const fr_cli *cli, const char *format, ...) FR_PRINTF(2, 3);
void fr_cli_status_end(const fr_cli *cli);
/* Every line of the text, after the topic where there is one. */
void fr_cli_note_lines(const fr_cli *cli, const char *topic, const char *text);

/* The whole program; returns the exit code. */
int fr_cli_main(const fr_command *commands, int argc, char **argv, FILE *out,
                FILE *chatter);

/* What import reads: kind i, NULL past the last. */
const char *fr_import_word(int i);

#define FR_COMMAND_FUNCTION(name)                                              \
    fr_status fr_cmd_##name(const fr_cli *cli, fr_err *err)

FR_COMMAND_FUNCTION(calibrate);
FR_COMMAND_FUNCTION(simulate);
FR_COMMAND_FUNCTION(tune);
FR_COMMAND_FUNCTION(run);
FR_COMMAND_FUNCTION(checkpoint);
FR_COMMAND_FUNCTION(sweep);
FR_COMMAND_FUNCTION(explain);
FR_COMMAND_FUNCTION(goodput);
FR_COMMAND_FUNCTION(compare);
FR_COMMAND_FUNCTION(collective);
FR_COMMAND_FUNCTION(flows);
FR_COMMAND_FUNCTION(validate);
FR_COMMAND_FUNCTION(catalog);
FR_COMMAND_FUNCTION(doctor);
FR_COMMAND_FUNCTION(import);
FR_COMMAND_FUNCTION(export);
FR_COMMAND_FUNCTION(report);
FR_COMMAND_FUNCTION(help);
FR_COMMAND_FUNCTION(version);
FR_COMMAND_FUNCTION(completions);

#endif
