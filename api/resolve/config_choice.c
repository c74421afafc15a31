/* config_choice.c: see config_choice.h. */
#include "api/resolve/config_choice.h"

#include "api/inputs.h"
#include "core/system/fileio.h"

#include <stdlib.h>

/* The ranks that the file says, or else those that there are. */
static fr_status read_ranks(const fr_config_source *source,
                            fr_config_request *request, fr_config *out,
                            fr_err *err)
{
    bool is_lacking = false;
    fr_err why;
    if (request->world > 0 || source->world == 0)
        return fr_config_read(source->framework, request, out, err);
    request->lacks_world = &is_lacking;
    fr_status status = fr_config_read(source->framework, request, out, &why);
    request->lacks_world = NULL;
    if (status == FR_INPUT && is_lacking) {
        request->world = source->world;
        return fr_config_read(source->framework, request, out, err);
    }
    return status == FR_OK ? FR_OK : fr_fail(err, status, "%s", why.text);
}

fr_status fr_config_choice_read(const fr_request *request,
                                const fr_config_source *source, fr_config *out,
                                fr_err *err)
{
    const char *name =
        source->model == NULL ? fr_request_text(request, FR_OPT_MODEL) : NULL;
    fr_model model;
    fr_config_request file = {.path = source->path,
                              .text = source->text,
                              .n_text = source->n_text,
                              .configs = fr_request_configs(request),
                              .model = source->model,
                              .world = request->option[FR_OPT_RANKS].count,
                              .seq = request->option[FR_OPT_SEQ].count,
                              .settings = request->repeats,
                              .n_settings = (size_t)request->n_repeats};
    if (name != NULL) {
        FR_TRY(fr_inputs_load_model(request, name, &model, err));
        file.model = &model;
    }
    fr_status status = read_ranks(source, &file, out, err);
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

fr_status fr_config_choice_from(const fr_request *request,
                                const fr_model *model, int64_t world,
                                fr_config *out, fr_err *err)
{
    char *text;
    fr_config_source source = {.path = fr_request_text(request, FR_OPT_FROM),
                               .model = model,
                               .world = world};
    FR_TRY(fr_as_input(fr_file_read(source.path, FR_FILE_BYTES_MAX, &text,
                                    &source.n_text, err),
                       err));
    source.text = text;
    source.framework = fr_config_guess(text, source.n_text);
    fr_status status = source.framework != NULL
                           ? fr_config_choice_read(request, &source, out, err)
                           : fail_format(source.path, err);
    free(text);
    if (status == FR_OK)
        fr_request_note_lines(request, source.framework->name,
                              fr_buffer_text(&out->notes));
    return status;
}
