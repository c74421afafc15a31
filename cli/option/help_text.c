/* help_text.c: the help of the program and of each command, from the tables. */
#include "cli/cli.h"

#include <string.h>

#define HELP_COLUMN 32 /* where the explanation of an option begins */
#define HELP_WIDTH 80

/* Prints text from column `column` on, broken between words. */
static void print_wrapped(fr_buffer *out, const char *text, int column)
{
    int at = column;
    while (*text != '\0') {
        int n_word = (int)strcspn(text, " ");
        if (at > column && at + 1 + n_word > HELP_WIDTH) {
            fr_buffer_printf(out, "\n%*s", column, "");
            at = column;
        } else if (at > column) {
            fr_buffer_putc(out, ' ');
            at++;
        }
        fr_buffer_printf(out, "%.*s", n_word, text);
        at += n_word;
        text += n_word;
        text += strspn(text, " ");
    }
    fr_buffer_putc(out, '\n');
}

static void describe_choice(const fr_option_row *row, char *buf, size_t n_buf)
{
    snprintf(buf, n_buf, "%s", row->help);
    if (row->names == NULL)
        return;
    const char *name;
    for (int i = 0; (name = fr_option_choice(row, i)) != NULL; i++) {
        size_t used = strlen(buf);
        if (used + strlen(name) + 3 > n_buf)
            return;
        snprintf(buf + used, n_buf - used, "%s%s", i ? ", " : ": ", name);
    }
}

static void print_option(fr_buffer *out, const fr_option_row *row)
{
    char left[64], right[512];
    const char *dash =
        row->kind == FR_OPTION_FLAG && row->group == FR_GROUP_PLAN ? "[no-]"
                                                                   : "";
    int n;
    if (row->letter != 0)
        n = snprintf(left, sizeof left, "  -%c, --%s%s", row->letter, dash,
                     row->name);
    else
        n = snprintf(left, sizeof left, "      --%s%s", dash, row->name);
    if (row->metavar != NULL)
        n += snprintf(left + n, sizeof left - (size_t)n, " %s", row->metavar);
    fr_buffer_puts(out, left);
    if (n + 2 > HELP_COLUMN)
        fr_buffer_printf(out, "\n%*s", HELP_COLUMN, "");
    else
        fr_buffer_printf(out, "%*s", HELP_COLUMN - n, "");
    describe_choice(row, right, sizeof right);
    print_wrapped(out, right, HELP_COLUMN);
}

/* Is it one of those that matter most?  Common options are, but for formats. */
static bool is_usual(const fr_command *command, fr_option option)
{
    const bool is_format = option == FR_OPT_CSV || option == FR_OPT_FORMAT ||
                           option == FR_OPT_REPORT;
    if (command->usual == NULL ||
        (!is_format && fr_option_get(option).group == FR_GROUP_COMMON))
        return true;
    for (const fr_option *o = command->usual; *o != FR_OPT_N; o++)
        if (*o == option)
            return true;
    return false;
}

/* Returns how many were left out. */
static int print_group(fr_buffer *out, const fr_command *command,
                       fr_option_group group, bool is_whole)
{
    int n_left_out = 0;
    bool has_title = false;
    for (int i = 0; i < FR_OPT_N; i++) {
        const fr_option_row row = fr_option_get((fr_option)i);
        if (row.group != group || !fr_command_takes(command, (fr_option)i))
            continue;
        if (!is_whole && !is_usual(command, (fr_option)i)) {
            n_left_out++;
            continue;
        }
        if (!has_title)
            fr_buffer_printf(out, "\n%s:\n", fr_option_group_title(group));
        has_title = true;
        print_option(out, &row);
    }
    return n_left_out;
}

static void print_command(fr_buffer *out, const fr_command *command,
                          bool is_whole)
{
    int n_left_out = 0;
    bool has_options = command->options[0] != FR_OPT_N;
    fr_buffer_printf(out, "forerun %s: %s\n\nUsage: forerun %s%s%s%s\n",
                     command->name, command->summary, command->name,
                     command->synopsis[0] != '\0' ? " " : "", command->synopsis,
                     has_options ? " [options]" : "");
    if (command->description != NULL)
        fr_buffer_printf(out, "\n%s\n", command->description);
    for (int group = 0; group < FR_GROUP_N; group++)
        n_left_out +=
            print_group(out, command, (fr_option_group)group, is_whole);
    if (n_left_out > 0)
        fr_buffer_printf(out, "\n'forerun %s --help=all' has %d more.\n",
                         command->name, n_left_out);
    fr_buffer_printf(out, "\nExamples:\n%s\n", command->examples);
}

static void print_program(fr_buffer *out, const fr_command *commands)
{
    fr_buffer_puts(
        out, "forerun: know your training run before you launch it\n\n"
             "Usage: forerun COMMAND [arguments] [options]\n\nCommands:\n");
    for (const fr_command *c = commands; c->name != NULL; c++)
        fr_buffer_printf(out, "  %-12s %s\n", c->name, c->summary);
    fr_buffer_puts(
        out, "\n'forerun COMMAND --help' explains a command.  Every option can "
             "be given as an\nenvironment variable: --micro-batch 2 is "
             "FORERUN_MICRO_BATCH=2; flags win.\n\nExamples:\n"
             "  forerun calibrate gpt2-demo -o machine.json\n"
             "  forerun tune gpt2-demo this-machine -p machine.json "
             "-o plan.json\n"
             "  forerun run plan.json --steps 50 --trace trace.json\n");
}

void fr_help_text(const fr_cli *cli, const fr_command *command, fr_buffer *out)
{
    if (command != NULL)
        print_command(out, command, cli->is_help_whole);
    else
        print_program(out, cli->commands);
}
