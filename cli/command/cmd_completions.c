/*
 * cmd_completions.c: completion scripts made from the tables: commands,
 * options, values of choices, names of models and clusters, files.
 */
#include "api/sweep/sweep_points.h"
#include "cli/answer.h"
#include "cli/cli.h"

#include <string.h>

static void put_options(const fr_command *command, fr_buffer *out)
{
    for (int i = 0; i < FR_OPT_N; i++) {
        const fr_option_row row = fr_option_get((fr_option)i);
        if (!fr_command_takes(command, (fr_option)i))
            continue;
        fr_buffer_printf(out, " --%s", row.name);
        if (row.kind == FR_OPTION_FLAG && row.group == FR_GROUP_PLAN)
            fr_buffer_printf(out, " --no-%s", row.name);
    }
}

/* Values of a choice, keys of --vary. */
static void put_choices(const fr_command *commands, const fr_option_row *row,
                        fr_buffer *out)
{
    const char *name;
    bool has_keys = row->kind == FR_OPTION_REPEATED;
    const fr_command *sweep = fr_command_find(commands, "sweep");
    for (int i = 0; (name = has_keys ? fr_sweep_key_name(sweep, i)
                                     : fr_option_choice(row, i)) != NULL;
         i++)
        fr_buffer_printf(out, "%s%s%s", i ? " " : "", name,
                         has_keys ? "=" : "");
}

/* Words after a command that are neither options nor files. */
static void put_words(const fr_command *commands, const fr_command *command,
                      fr_buffer *out)
{
    for (int i = 0; command->word != NULL && command->word(i) != NULL; i++)
        fr_buffer_printf(out, " %s", command->word(i));
    for (int i = 0; i < command->n_positional; i++) {
        if (command->positional[i] == FR_POSITIONAL_MODEL)
            fr_buffer_puts(out, " $(forerun catalog models -q 2>/dev/null | "
                                "awk 'NR > 1 {print $1}')");
        if (command->positional[i] == FR_POSITIONAL_CLUSTER)
            fr_buffer_puts(out, " $(forerun catalog clusters -q 2>/dev/null "
                                "| awk 'NR > 1 {print $1}')");
        if (command->positional[i] == FR_POSITIONAL_COMMAND)
            for (const fr_command *c = commands; c->name != NULL; c++)
                fr_buffer_printf(out, " %s", c->name);
    }
}

static void put_bash(const fr_command *commands, fr_buffer *out)
{
    fr_buffer_puts(out, "_forerun() {\n"
                        "    local word=${COMP_WORDS[COMP_CWORD]}\n"
                        "    local last=${COMP_WORDS[COMP_CWORD-1]} words=\n"
                        "    COMPREPLY=()\n"
                        "    case $last in\n");
    for (int i = 0; i < FR_OPT_N; i++) {
        const fr_option_row row = fr_option_get((fr_option)i);
        if (row.kind != FR_OPTION_CHOICE && row.kind != FR_OPTION_REPEATED)
            continue;
        fr_buffer_printf(out, "    --%s) words='", row.name);
        put_choices(commands, &row, out);
        fr_buffer_puts(out, "' ;;\n");
    }
    fr_buffer_puts(out, "    esac\n"
                        "    if [ -z \"$words\" ] && [ $COMP_CWORD -eq 1 ]; "
                        "then\n        words='");
    for (const fr_command *c = commands; c->name != NULL; c++)
        fr_buffer_printf(out, "%s ", c->name);
    fr_buffer_puts(out, "'\n    elif [ -z \"$words\" ]; then\n"
                        "        case ${COMP_WORDS[1]} in\n");
    for (const fr_command *c = commands; c->name != NULL; c++) {
        fr_buffer_printf(out, "        %s) words=\"", c->name);
        put_options(c, out);
        put_words(commands, c, out);
        fr_buffer_puts(out, "\" ;;\n");
    }
    fr_buffer_puts(out, "        esac\n    fi\n"
                        "    COMPREPLY=($(compgen -W \"$words\" -- "
                        "\"$word\"))\n}\n"
                        "complete -o default -F _forerun forerun\n");
}

static void put_fish(const fr_command *commands, fr_buffer *out)
{
    for (const fr_command *c = commands; c->name != NULL; c++)
        fr_buffer_printf(out,
                         "complete -c forerun -n __fish_use_subcommand -a %s "
                         "-d '%s'\n",
                         c->name, c->summary);
    for (const fr_command *c = commands; c->name != NULL; c++)
        for (int i = 0; i < FR_OPT_N; i++) {
            const fr_option_row row = fr_option_get((fr_option)i);
            if (!fr_command_takes(c, (fr_option)i))
                continue;
            fr_buffer_printf(out,
                             "complete -c forerun -n "
                             "'__fish_seen_subcommand_from %s' -l %s",
                             c->name, row.name);
            if (row.letter != 0)
                fr_buffer_printf(out, " -s %c", row.letter);
            if (row.kind == FR_OPTION_PATH)
                fr_buffer_puts(out, " -r");
            else if (row.kind != FR_OPTION_FLAG)
                fr_buffer_puts(out, " -x");
            if (row.names != NULL || row.kind == FR_OPTION_REPEATED) {
                fr_buffer_puts(out, " -a '");
                put_choices(commands, &row, out);
                fr_buffer_puts(out, "'");
            }
            fr_buffer_printf(out, " -d '%s'\n", row.help);
        }
}

FR_COMMAND_FUNCTION(completions)
{
    const char *shell = cli->request.positional[0];
    fr_buffer script;
    fr_buffer_init(&script);
    if (strcmp(shell, "bash") == 0) {
        put_bash(cli->commands, &script);
    } else if (strcmp(shell, "zsh") == 0) {
        fr_buffer_puts(&script, "autoload -Uz bashcompinit && bashcompinit\n");
        put_bash(cli->commands, &script);
    } else if (strcmp(shell, "fish") == 0) {
        put_fish(cli->commands, &script);
    } else {
        return fr_fail(err, FR_USAGE, "shell '%.80s': give bash, zsh or fish",
                       shell);
    }
    const fr_status status = fr_buffer_check(&script, err);
    fr_document answer;
    fr_document_init(&answer, "forerun.completions/1");
    fr_json_put_string(&answer.data, "shell", shell);
    fr_json_put_string(&answer.data, "script", fr_buffer_text(&script));
    fr_document_verbatim(&answer, fr_buffer_text(&script));
    fr_buffer_release(&script);
    return fr_answer_deliver(status, &answer, cli, err);
}
