/* cli_main.c: from the words of the command line to an exit code. */
#include "calibrate/fingerprint.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/measured/measure_plans.h"
#include "core/base/units.h"
#include "report/document/renderer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

enum { LEAST_COLUMNS = 40 };

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

/* By LC_ALL, LC_CTYPE, LANG. */
static bool is_utf8_terminal(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (int i = 0; i < 3; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && value[0] != '\0')
            return strcasestr(value, "utf") != NULL;
    }
    return true;
}

/* Finds the --format that the options of one source ask for; --json and --csv
 * are aliases.  NULL: none. */
static fr_status find_format(const fr_cli *cli, fr_option_source source,
                             const char **out, fr_err *err)
{
    static const fr_option options[] = {FR_OPT_CSV, FR_OPT_JSON, FR_OPT_FORMAT};
    const char *first = NULL, *option_name = NULL;
    for (size_t i = 0; i < FR_LENGTH(options); i++) {
        const fr_option_value *value = &cli->request.option[options[i]];
        const bool is_alias = options[i] != FR_OPT_FORMAT;
        if (value->source != source || (is_alias && !value->is_on))
            continue;
        const char *name = fr_option_get(options[i]).name;
        const char *format =
            is_alias ? name : fr_name_at(&fr_renderer_names, (int)value->count);
        if (first != NULL && strcmp(first, format) != 0)
            return fr_fail(err, FR_USAGE, "--%s or --%s%s%s, not both",
                           option_name, name, is_alias ? "" : " ",
                           is_alias ? "" : format);
        first = format;
        option_name = name;
    }
    *out = first;
    return FR_OK;
}

/* Flags come before the environment.  Afterwards --format, --json and --csv
 * agree. */
static fr_status apply_format(fr_cli *cli, fr_err *err)
{
    const char *format = NULL, *path = fr_cli_text(cli, FR_OPT_REPORT);
    const fr_renderer *unused;
    FR_TRY(find_format(cli, FR_SOURCE_FLAG, &format, err));
    if (format == NULL)
        FR_TRY(find_format(cli, FR_SOURCE_ENV, &format, err));
    if (format != NULL)
        FR_TRY(fr_request_set(&cli->request, FR_OPT_FORMAT, format, err));
    cli->request.option[FR_OPT_JSON].is_on =
        format != NULL && strcmp(format, "json") == 0;
    cli->request.option[FR_OPT_CSV].is_on =
        format != NULL && strcmp(format, "csv") == 0;
    return path != NULL ? fr_renderer_of_file(path, &unused, err) : FR_OK;
}

/* --columns 120 or --columns step,memory. */
static fr_status apply_columns(const fr_cli *cli, fr_err *err)
{
    const char *text = fr_cli_text(cli, FR_OPT_COLUMNS);
    int64_t n;
    fr_err unused;
    if (text == NULL)
        return FR_OK;
    if (fr_cli_on(cli, FR_OPT_JSON) || fr_cli_on(cli, FR_OPT_CSV))
        fr_cli_note(cli, "forerun: --columns has no effect with --%s",
                    fr_cli_on(cli, FR_OPT_JSON) ? "json" : "csv");
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

/* Commands that start processes, or are about the command line itself. */
static const struct {
    const char *name;
    fr_status (*run)(const fr_cli *cli, fr_err *err);
} own_commands[] = {
    {"calibrate", fr_cmd_calibrate},   {"run", fr_cmd_run},
    {"checkpoint", fr_cmd_checkpoint}, {"doctor", fr_cmd_doctor},
    {"report", fr_cmd_report},         {"help", fr_cmd_help},
    {"version", fr_cmd_version},       {"completions", fr_cmd_completions},
};

/* The answer of a command of api/, which may be shown although it fails. */
static fr_status deliver_answer(const fr_cli *cli, fr_err *err)
{
    fr_document answer = {0};
    const fr_status status =
        cli->request.command->answer(&cli->request, &answer, err);
    if (status == FR_OK || !answer.has_answer)
        return fr_answer_deliver(status, &answer, cli, err);
    const fr_err why = *err;
    FR_TRY(fr_answer_deliver(FR_OK, &answer, cli, err));
    *err = why;
    return status;
}

static fr_status run_command(fr_cli *cli, fr_err *err)
{
    const fr_command *command;
    if (cli->argc < 2)
        return fr_fail(err, FR_USAGE, "which command?");
    FR_TRY(fr_command_get(cli->commands, cli->argv[1], &command, err));
    fr_request_init(&cli->request, command, cli->request.session);
    FR_TRY(fr_cli_parse(cli, cli->argc - 2, cli->argv + 2, err));
    if (fr_cli_on(cli, FR_OPT_HELP)) {
        fr_buffer text;
        fr_buffer_init(&text);
        fr_help_text(cli, cli->request.command, &text);
        fputs(fr_buffer_text(&text), cli->out);
        const fr_status status = fr_buffer_check(&text, err);
        fr_buffer_release(&text);
        return status;
    }
    *cli->layout = (fr_layout){.n_wide = terminal_columns(cli->out),
                               .is_ascii = !is_utf8_terminal()};
    FR_TRY(apply_format(cli, err));
    FR_TRY(apply_columns(cli, err));
    if (command->answer != NULL)
        return deliver_answer(cli, err);
    size_t i = 0;
    while (i < FR_LENGTH(own_commands) &&
           strcmp(own_commands[i].name, command->name) != 0)
        i++;
    assert(i < FR_LENGTH(own_commands));
    return own_commands[i].run(cli, err);
}

/* The folder that replaces configs/ near the program; NULL: none does. */
static const char *find_configs(void)
{
    const char *folder = getenv("FORERUN_CONFIGS");
    return folder != NULL && folder[0] != '\0' ? folder : NULL;
}

/* A note of api/. */
static void print_note(void *context, const char *text)
{
    fr_cli_note(context, "forerun: %s", text);
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
    fr_log log;
    fr_log_init_stream(&log, chatter);
    const fr_session session = {.note = print_note,
                                .context = &cli,
                                .configs = find_configs(),
                                .log = &log,
                                .measurer = &fr_local_measurer,
                                .describe_machine = fr_fingerprint_detect};
    cli.request.session = &session;
    fr_status status = run_command(&cli, &err);
    if (status == FR_OK)
        status = flush_answer(out, &err);
    else
        fflush(out);
    if (status != FR_OK && err.text[0] != '\0')
        fprintf(chatter, "forerun: %s\n", err.text);
    if (status == FR_USAGE)
        fprintf(chatter, "Try 'forerun %s%s--help'.\n",
                cli.request.command != NULL ? cli.request.command->name : "",
                cli.request.command != NULL ? " " : "");
    return fr_status_exit_code(status);
}
