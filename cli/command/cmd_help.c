/* cmd_help.c: forerun help [COMMAND | TERM]. */
#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/glossary.h"
#include "core/base/text.h"

#include <string.h>

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

static fr_status print_commands(const fr_cli *cli, const fr_command *only,
                                fr_err *err)
{
    fr_document answer;
    fr_buffer text;
    fr_document_init(&answer, "forerun.help/1");
    fr_json_open_array(&answer.data, "commands");
    for (const fr_command *c = cli->commands; c->name != NULL; c++)
        if (only == NULL || only == c)
            put_command(&answer.data, c);
    fr_json_end_array(&answer.data);
    fr_buffer_init(&text);
    fr_help_text(cli, only, &text);
    const fr_status status = fr_buffer_check(&text, err);
    fr_document_verbatim(&answer, fr_buffer_text(&text));
    fr_buffer_release(&text);
    return fr_answer_deliver(status, &answer, cli, err);
}

static fr_status print_term(const fr_cli *cli, const fr_term *term, fr_err *err)
{
    fr_document answer;
    fr_document_init(&answer, "forerun.term/1");
    fr_json_put_string(&answer.data, "name", term->name);
    fr_json_put_string(&answer.data, "also", term->also);
    fr_json_put_string(&answer.data, "text", term->text);
    fr_json_put_string(&answer.data, "see", term->see);
    fr_document_puts(&answer, term->name);
    for (const char *at = term->also; at != NULL && *at != '\0';) {
        int n = (int)strcspn(at, ",");
        fr_document_printf(&answer, "%s%.*s", at == term->also ? " (" : ", ", n,
                           at);
        at += n + (at[n] == ',');
    }
    fr_document_printf(&answer, "%s\n\n%s\n", term->also != NULL ? ")" : "",
                       term->text);
    if (term->see != NULL)
        fr_document_printf(&answer, "\nSee %s\n", term->see);
    return fr_answer_deliver(FR_OK, &answer, cli, err);
}

static fr_status refuse(const fr_cli *cli, const char *word, fr_err *err)
{
    const char *names[128];
    char hint[FR_HINT_MAX];
    size_t n = 0;
    for (const fr_command *c = cli->commands; c->name != NULL; c++)
        names[n++] = c->name;
    for (const fr_term *t = fr_glossary;
         t->name != NULL && n < FR_LENGTH(names); t++)
        names[n++] = t->name;
    return fr_fail(err, FR_USAGE,
                   "no command and no term '%.40s'%s ('forerun help terms' "
                   "lists the terms)",
                   word, fr_text_hint(fr_text_nearest(word, names, n), hint));
}

static fr_status print_terms(const fr_cli *cli, fr_err *err)
{
    int column = 0;
    fr_document answer;
    fr_document_init(&answer, "forerun.terms/1");
    fr_document_puts(&answer, "'forerun help TERM' explains one of these:\n");
    fr_json_open_array(&answer.data, "terms");
    for (const fr_term *t = fr_glossary; t->name != NULL; t++) {
        int n = (int)strlen(t->name) + 2;
        bool is_new_line = column == 0 || column + n > 78;
        fr_json_string(&answer.data, t->name);
        fr_document_puts(&answer, column == 0 ? "" : ",");
        fr_document_puts(&answer, is_new_line ? "\n  " : " ");
        fr_document_puts(&answer, t->name);
        column = is_new_line ? n + 2 : column + n;
    }
    fr_json_end_array(&answer.data);
    fr_document_puts(&answer, "\n");
    return fr_answer_deliver(FR_OK, &answer, cli, err);
}

FR_COMMAND_FUNCTION(help)
{
    const fr_command *command = NULL;
    const char *word =
        cli->request.n_positional > 0 ? cli->request.positional[0] : "";
    if (strcmp(word, "terms") == 0)
        return print_terms(cli, err);
    /* A word may be both: a profile, a checkpoint.  Commands come first. */
    if (cli->request.n_positional > 0 &&
        fr_command_find(cli->commands, word) == NULL &&
        fr_glossary_find(word) != NULL)
        return print_term(cli, fr_glossary_find(word), err);
    if (cli->request.n_positional > 0 &&
        fr_command_find(cli->commands, word) == NULL)
        return refuse(cli, word, err);
    if (cli->request.n_positional > 0)
        FR_TRY(fr_command_get(cli->commands, cli->request.positional[0],
                              &command, err));
    return print_commands(cli, command, err);
}
