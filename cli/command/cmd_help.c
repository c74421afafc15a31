/* cmd_help.c: forerun help [COMMAND]. */
#include "cli/answer.h"
#include "cli/command.h"
#include "core/base/text.h"

static void put_command(fr_json_writer *json, const fr_command *command)
{
    fr_json_begin_object(json);
    fr_json_put_string(json, "name", command->name);
    fr_json_put_string(json, "summary", command->summary);
    fr_json_put_string(json, "arguments", command->synopsis);
    fr_json_open_array(json, "options");
    for (int i = 0; i < FR_OPT_N; i++) {
        if (!fr_command_takes(command, (fr_option)i))
            continue;
        const fr_option_row row = fr_option_get((fr_option)i);
        fr_json_begin_object(json);
        fr_json_put_string(json, "name", row.name);
        fr_json_put_string(json, "value", row.metavar);
        fr_json_put_string(json, "help", row.help);
        fr_json_end_object(json);
    }
    fr_json_end_array(json);
    fr_json_end_object(json);
}

static fr_status print_json(const fr_cli *cli, const fr_command *only,
                            fr_err *err)
{
    fr_answer answer;
    fr_json_writer *json = fr_answer_begin(&answer, "forerun.help/1");
    fr_json_open_array(json, "commands");
    for (const fr_command *c = cli->commands; c->name != NULL; c++)
        if (only == NULL || only == c)
            put_command(json, c);
    fr_json_end_array(json);
    return fr_answer_print(&answer, cli, err);
}

FR_COMMAND_FUNCTION(help)
{
    const fr_command *command = NULL;
    if (cli->n_positional > 0)
        FR_TRY(
            fr_command_get(cli->commands, cli->positional[0], &command, err));
    if (fr_cli_on(cli, FR_OPT_JSON))
        return print_json(cli, command, err);
    fr_help_print(cli, command);
    return FR_OK;
}
