/* import_config.c: `import FORMAT FILE` of a framework's configuration: the
 * plan file, or with --json what it holds. */
#include "api/import/measured.h"
#include "api/resolve/config_choice.h"

#include <string.h>

static void put_data(const fr_request *request, const fr_config_source *source,
                     const fr_config *config, fr_document *out)
{
    fr_json_writer *json = &out->data;
    char name[512];
    fr_json_put_string(json, "kind", source->framework->name);
    fr_json_put_string(json, "model", config->file.model.name);
    fr_json_put_i64(json, "ranks", fr_plan_world(&config->file.plan));
    fr_json_put_string(json, "name",
                       fr_plan_describe(&config->file.plan, name, sizeof name));
    fr_plan_json_put(&config->file.plan, json);
    fr_json_key(json, "job");
    fr_job_json_write(&config->file.job, json);
    if (fr_request_text(request, FR_OPT_OUTPUT) != NULL)
        fr_json_put_string(json, "output",
                           fr_request_text(request, FR_OPT_OUTPUT));
    fr_document_put_lines(out, "assumed", fr_buffer_text(&config->notes));
}

static fr_status put_file(const fr_config *config, fr_document *out,
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
        fr_document_verbatim(out, fr_buffer_text(&text));
    fr_buffer_release(&text);
    return status;
}

/* Do notes name options that import does not take? */
static bool proposes_options(const char *notes)
{
    static const char *const marks[] = {"give --micro-batch",
                                        "give --recompute", "say otherwise"};
    for (size_t i = 0; i < FR_LENGTH(marks); i++)
        if (strstr(notes, marks[i]) != NULL)
            return true;
    return false;
}

fr_status fr_import_config(const fr_request *request,
                           const fr_config_source *source, fr_document *out,
                           fr_err *err)
{
    const char *output = fr_request_text(request, FR_OPT_OUTPUT);
    fr_config config;
    FR_TRY(fr_config_choice_read(request, source, &config, err));
    fr_status status = FR_OK;
    if (output != NULL)
        status = fr_plan_file_save(&config.file, output, err);
    if (status == FR_OK)
        fr_request_note_lines(request, source->framework->name,
                              fr_buffer_text(&config.notes));
    if (status == FR_OK && proposes_options(fr_buffer_text(&config.notes)))
        fr_request_note(request,
                        "options other than --model, --ranks and --seq are of "
                        "simulate, tune and explain, which read the plan");
    fr_document_init(out, "forerun.import/1");
    put_data(request, source, &config, out);
    if (status == FR_OK && output == NULL)
        status = put_file(&config, out, err);
    fr_config_release(&config);
    return status;
}
