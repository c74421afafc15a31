/* cli.c: from the words of the command line to an exit code. */
#include "cli/command.h"
#include "core/base/text.h"
#include "core/base/units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

enum { LEAST_COLUMNS = 40 };

const fr_command *fr_command_find(const fr_command *commands, const char *name)
{
    for (const fr_command *c = commands; c->name != NULL; c++)
        if (!strcmp(c->name, name))
            return c;
    return NULL;
}

bool fr_command_takes(const fr_command *command, fr_option option)
{
    if (option == FR_OPT_HELP || option == FR_OPT_JSON ||
        option == FR_OPT_QUIET)
        return true;
    for (const fr_option *o = command->options; *o != FR_OPT_N; o++)
        if (*o == option)
            return true;
    return false;
}

#define MAX_COMMANDS 32

fr_status fr_command_get(const fr_command *commands, const char *word,
                         const fr_command **out, fr_err *err)
{
    if (!strcmp(word, "--help") || !strcmp(word, "--help=all") ||
        !strcmp(word, "-h"))
        word = "help";
    if (!strcmp(word, "--version") || !strcmp(word, "-V"))
        word = "version";
    const fr_command *command = fr_command_find(commands, word);
    if (command == NULL) {
        const char *names[MAX_COMMANDS];
        size_t n = 0;
        for (; n < MAX_COMMANDS && commands[n].name != NULL; n++)
            names[n] = commands[n].name;
        const char *near = fr_text_nearest(word, names, n);
        return fr_fail(err, FR_USAGE, "unknown %s '%.80s'%s%s%s",
                       word[0] == '-' ? "option" : "command", word,
                       near ? "; did you mean '" : "", near != NULL ? near : "",
                       near ? "'?" : "");
    }
    *out = command;
    return FR_OK;
}

/* COLUMNS, the terminal, else FR_LAYOUT_WIDE: a pipe has no width. */
static int terminal_columns(FILE *out)
{
    struct winsize size = {0};
    const char *columns = getenv("COLUMNS");
    int64_t n = 0;
    fr_err unused;
    if (columns == NULL || fr_parse_i64(columns, &n, &unused) != FR_OK)
        n = 0;
    if (n <= 0 && ioctl(fileno(out), TIOCGWINSZ, &size) == 0)
        n = size.ws_col;
    if (n <= 0)
        n = FR_LAYOUT_WIDE;
    return n < LEAST_COLUMNS ? LEAST_COLUMNS : n > 1000 ? 1000 : (int)n;
}

/* --columns 120 or --columns step,memory. */
static fr_status apply_columns(const fr_cli *cli, fr_err *err)
{
    const char *text = fr_cli_text(cli, FR_OPT_COLUMNS);
    int64_t n;
    fr_err unused;
    if (text == NULL)
        return FR_OK;
    if (fr_cli_on(cli, FR_OPT_JSON))
        fr_cli_note(cli, "forerun: --columns has no effect with --json");
    if (fr_parse_i64(text, &n, &unused) != FR_OK) {
        cli->layout->columns = text;
        return FR_OK;
    }
    if (n < LEAST_COLUMNS || n > 1000)
        return fr_fail(err, FR_USAGE,
                       "--columns %.40s: a width must be %d to 1000", text,
                       LEAST_COLUMNS);
    cli->layout->n_wide = (int)n;
    return FR_OK;
}

static fr_status run_command(fr_cli *cli, fr_err *err)
{
    if (cli->argc < 2)
        return fr_fail(err, FR_USAGE, "which command?");
    FR_TRY(fr_command_get(cli->commands, cli->argv[1], &cli->command, err));
    FR_TRY(fr_cli_parse(cli, cli->argc - 2, cli->argv + 2, err));
    if (fr_cli_on(cli, FR_OPT_HELP)) {
        fr_help_print(cli, cli->command);
        return FR_OK;
    }
    *cli->layout = (fr_layout){.n_wide = terminal_columns(cli->out)};
    FR_TRY(apply_columns(cli, err));
    return cli->command->run(cli, err);
}

/* A full disk must not look like success. */
static fr_status flush_answer(FILE *out, fr_err *err)
{
    errno = 0;
    if (fflush(out) != 0 || ferror(out))
        return fr_fail(err, FR_IO, "standard output: %s",
                       errno != 0 ? strerror(errno) : "write failed");
    return FR_OK;
}

int fr_cli_main(const fr_command *commands, int argc, char **argv, FILE *out,
                FILE *chatter)
{
    fr_layout layout = {0};
    fr_cli cli = {.layout = &layout,
                  .commands = commands,
                  .argc = argc,
                  .argv = argv,
                  .out = out,
                  .chatter = chatter};
    fr_err err = {FR_OK, ""};
    fr_status status = run_command(&cli, &err);
    if (status == FR_OK)
        status = flush_answer(out, &err);
    else
        fflush(out);
    if (status != FR_OK && err.text[0] != '\0')
        fprintf(chatter, "forerun: %s\n", err.text);
    if (status == FR_USAGE)
        fprintf(chatter, "Try 'forerun %s%s--help'.\n",
                cli.command != NULL ? cli.command->name : "",
                cli.command != NULL ? " " : "");
    return fr_status_exit_code(status);
}
