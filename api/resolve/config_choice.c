/* config_choice.c: see config_choice.h. */
#include "cli/subject/config_choice.h"

#include "cli/answer.h"
#include "cli/inputs.h"
#include "core/system/fileio.h"

#include <stdlib.h>

/* The ranks that the file says, or else those that there are. */
static fr_status read_ranks(const fr_config_source *source,
                            fr_config_request *request, fr_config *out,
                            fr_err *err)
{
    fr_err unused;
    if (request->world == 0 && source->world > 0) {
        fr_status status =
            fr_config_read(source->format, request, out, &unused);
        if (status != FR_INPUT)
            return status == FR_OK ? FR_OK
                                   : fr_fail(err, status, "%s", unused.text);
        request->world = source->world;
    }
    return fr_config_read(source->format, request, out, err);
}

static fr_status read_source(const fr_cli *cli, const fr_config_source *source,
                             fr_config *out, fr_err *err)
{
    const char *name =
        source->model == NULL ? fr_cli_text(cli, FR_OPT_MODEL) : NULL;
    fr_model model;
    fr_config_request request = {.path = source->path,
                                 .text = source->text,
                                 .n_text = source->n_text,
                                 .model = source->model,
                                 .world = cli->option[FR_OPT_RANKS].count,
                                 .seq = cli->option[FR_OPT_SEQ].count};
    if (name != NULL) {
        FR_TRY(fr_as_input(fr_model_load(name, &model, err), err));
        request.model = &model;
    }
    fr_status status = read_ranks(source, &request, out, err);
    if (name != NULL)
        fr_model_release(&model);
    return status;
}

static fr_status fail_format(const char *path, fr_err *err)
{
    fr_buffer names;
    fr_buffer_init(&names);
    for (int i = 0; fr_config_name(i) != NULL; i++)
        fr_buffer_printf(&names, "%s%s", i > 0 ? ", " : "", fr_config_name(i));
    fr_status status = fr_fail(err, FR_INPUT,
                               "%.400s:1: no configuration that is known; "
                               "known are those of %s",
                               path, fr_buffer_text(&names));
    fr_buffer_release(&names);
    return status;
}

fr_status fr_config_choice_from(const fr_cli *cli, const fr_model *model,
                                int64_t world, fr_config *out, fr_err *err)
{
    char *text;
    fr_config_source source = {
        .path = fr_cli_text(cli, FR_OPT_FROM), .model = model, .world = world};
    FR_TRY(fr_as_input(fr_file_read(source.path, FR_FILE_BYTES_MAX, &text,
                                    &source.n_text, err),
                       err));
    source.text = text;
    source.format = fr_config_guess(text, source.n_text);
    fr_status status = source.format != NULL
                           ? read_source(cli, &source, out, err)
                           : fail_format(source.path, err);
    free(text);
    if (status == FR_OK)
        fr_cli_note_lines(cli, source.format->name,
                          fr_buffer_text(&out->notes));
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
    fr_plan_json_put(&config->file.plan, json);
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
    FR_TRY(read_source(cli, source, &config, err));
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
