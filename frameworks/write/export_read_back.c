/* export_read_back.c: see export_read_back.h. */
#include "frameworks/write/export_read_back.h"

#include "frameworks/read/config.h"

#include <stdio.h>
#include <string.h>

static fr_status read_sibling(const void *context, const char *name,
                              char **text, size_t *n_text, fr_err *err)
{
    const fr_export_files *files = context;
    for (size_t i = 0; i < files->n; i++) {
        const fr_buffer *file = &files->items[i].text;
        if (strcmp(files->items[i].name, name) != 0)
            continue;
        *text = strdup(fr_buffer_text(file));
        *n_text = file->n;
        return *text != NULL ? FR_OK : fr_fail_no_memory(err);
    }
    return fr_fail(err, FR_INPUT, "%.200s: no such file", name);
}

static fr_status put_value(const fr_field *field, const fr_plan *plan,
                           char *buf, size_t n_buf, fr_err *err)
{
    fr_buffer value;
    fr_buffer_init(&value);
    fr_plan_put_value(field, plan, &value);
    fr_status status = fr_buffer_check(&value, err);
    snprintf(buf, n_buf, "%s", fr_buffer_text(&value));
    fr_buffer_release(&value);
    return status;
}

static fr_status compare(const fr_target *target, const fr_plan_file *was,
                         const fr_plan *is, fr_read_back *out, fr_err *err)
{
    char before[64], after[64];
    const int item =
        fr_target_difference(fr_target_backend(target, &was->plan), was, is);
    out->is_same = item < 0;
    if (out->is_same) {
        snprintf(out->text, sizeof out->text, "the same plan");
        return FR_OK;
    }
    const fr_field *field = &fr_plan_item_row(item)->field;
    FR_TRY(put_value(field, &was->plan, before, sizeof before, err));
    FR_TRY(put_value(field, is, after, sizeof after, err));
    snprintf(out->text, sizeof out->text, "%s %s, not %s", field->key, after,
             before);
    return FR_OK;
}

fr_status fr_export_read_back(const fr_framework *framework,
                              const fr_export_request *request,
                              const fr_export_files *files, fr_read_back *out,
                              fr_err *err)
{
    const fr_plan_file *file = request->file;
    const fr_export_file *first = &files->items[0];
    const fr_config_request read = {.path = first->name,
                                    .text = fr_buffer_text(&first->text),
                                    .n_text = first->text.n,
                                    .model = &file->model,
                                    .world = fr_plan_world(&file->plan),
                                    .seq = file->job.seq,
                                    .read_file = read_sibling,
                                    .context = files};
    fr_config config;
    fr_err why;
    memset(out, 0, sizeof *out);
    if (framework->reader == NULL ||
        !framework->reader->looks_like(read.text, read.n_text))
        return FR_OK;
    out->is_read = true;
    fr_status status = fr_config_read(framework, &read, &config, &why);
    if (status == FR_NO_MEMORY)
        return fr_fail_no_memory(err);
    if (status != FR_OK) {
        snprintf(out->text, sizeof out->text, "refused: %.280s", why.text);
        return FR_OK;
    }
    status = compare(framework->target, file, &config.file.plan, out, err);
    fr_config_release(&config);
    return status;
}
