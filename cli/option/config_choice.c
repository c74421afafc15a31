/* config_choice.c: see config_choice.h. */
#include "cli/option/config_choice.h"

#include "cli/answer.h"
#include "cli/inputs.h"

fr_status fr_config_choice_read(const fr_cli *cli,
                                const fr_config_source *source, fr_config *out,
                                fr_err *err)
{
    const char *name =
        source->model != NULL ? source->model : fr_cli_text(cli, FR_OPT_MODEL);
    fr_model model;
    fr_config_request request = {.path = source->path,
                                 .text = source->text,
                                 .n_text = source->n_text,
                                 .model = name != NULL ? &model : NULL,
                                 .world = source->world > 0
                                              ? source->world
                                              : cli->option[FR_OPT_RANKS].count,
                                 .seq = cli->option[FR_OPT_SEQ].count};
    if (name != NULL)
        FR_TRY(fr_as_input(fr_model_load(name, &model, err), err));
    fr_status status = fr_config_read(source->format, &request, out, err);
    if (name != NULL)
        fr_model_release(&model);
    return status;
}

static fr_status print_json(const fr_cli *cli, const fr_config_source *source,
                            const fr_config *config, fr_err *err)
{
    char name[512];
    fr_answer answer;
    fr_json_writer *json = fr_answer_begin(&answer, "forerun.import/1");
    fr_json_put_string(json, "kind", source->format->name);
    fr_json_put_string(json, "model", config->file.model.name);
    fr_json_put_i64(json, "ranks", fr_plan_world(&config->file.plan));
    fr_json_put_string(json, "name",
                       fr_plan_describe(&config->file.plan, name, sizeof name));
    fr_json_key(json, "plan");
    fr_plan_json_write(&config->file.plan, json);
    fr_json_key(json, "job");
    fr_job_json_write(&config->file.job, json);
    if (fr_cli_text(cli, FR_OPT_OUTPUT) != NULL)
        fr_json_put_string(json, "output", fr_cli_text(cli, FR_OPT_OUTPUT));
    fr_answer_put_lines(json, "assumed", fr_buffer_text(&config->notes));
    return fr_answer_print(&answer, cli, err);
}

static fr_status print_file(const fr_cli *cli, const fr_config *config,
                            fr_err *err)
{
    fr_json_writer json;
    fr_buffer text;
    fr_buffer_init(&text);
    fr_json_writer_init(&json, &text);
    fr_plan_file_write(&config->file, &json);
    fr_buffer_putc(&text, '\n');
    fr_status status = fr_buffer_check(&text, err);
    if (status == FR_OK)
        fwrite(text.data, 1, text.n, cli->out);
    fr_buffer_release(&text);
    return status;
}

fr_status fr_config_choice_print(const fr_cli *cli,
                                 const fr_config_source *source, fr_err *err)
{
    const char *output = fr_cli_text(cli, FR_OPT_OUTPUT);
    fr_config config;
    FR_TRY(fr_config_choice_read(cli, source, &config, err));
    fr_status status = FR_OK;
    if (output != NULL)
        status = fr_plan_file_save(&config.file, output, err);
    if (status == FR_OK)
        fr_cli_note_lines(cli, source->format->name,
                          fr_buffer_text(&config.notes));
    if (status == FR_OK && fr_cli_on(cli, FR_OPT_JSON))
        status = print_json(cli, source, &config, err);
    else if (status == FR_OK && output == NULL)
        status = print_file(cli, &config, err);
    fr_config_release(&config);
    return status;
}
