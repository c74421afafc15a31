/* import_log.c: logs of training runs as rows of measured cases. */
#include "api/import/measured.h"
#include "api/inputs.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "core/system/fileio.h"
#include "frameworks/log/runlog.h"
#include "spec/catalog/catalog.h"

#include <stdio.h>
#include <string.h>

enum { LOGS_MAX = FR_MAX_POSITIONAL - 1 };

static void put_option(const fr_request *request, fr_option option,
                       fr_case_column column, fr_runlog *log)
{
    if (fr_request_has(request, option))
        fr_text_copy_cut(log->field[column], FR_RUNLOG_FIELD,
                         fr_request_text(request, option));
}

/* Options go before what the log says: the user knows the run. */
static fr_status put_options(const fr_request *request, const char *path,
                             fr_runlog *log, fr_err *err)
{
    const char *gpu = fr_request_text(request, FR_OPT_GPU);
    const char *name = fr_path_name(path);
    size_t n = strcspn(name, ".");
    fr_text_copy_cut(log->field[FR_CASE_ID], FR_RUNLOG_FIELD, name);
    if (n > 0 && n < FR_RUNLOG_FIELD)
        log->field[FR_CASE_ID][n < strlen(log->field[FR_CASE_ID])
                                   ? n
                                   : strlen(log->field[FR_CASE_ID])] = '\0';
    if (gpu != NULL && fr_catalog_device_find(gpu) == NULL)
        return fr_fail(err, FR_USAGE,
                       "--gpu '%.60s' is not in the catalogue (forerun catalog "
                       "devices)",
                       gpu);
    put_option(request, FR_OPT_GPU, FR_CASE_GPU, log);
    put_option(request, FR_OPT_MODEL, FR_CASE_MODEL, log);
    put_option(request, FR_OPT_RANKS, FR_CASE_NUM_GPUS, log);
    put_option(request, FR_OPT_SEQ, FR_CASE_SEQ, log);
    return FR_OK;
}

static fr_status read_log(const fr_request *request, const char *path,
                          fr_runlog *out, fr_err *err)
{
    fr_infile *stream;
    FR_TRY(fr_as_input(fr_infile_open(path, &stream, err), err));
    fr_status status = fr_runlog_read(stream, out, err);
    fr_infile_close(stream);
    if (status != FR_OK)
        return status;
    status = put_options(request, path, out, err);
    if (status == FR_OK) {
        fr_runlog_note_missing(out);
        status = fr_buffer_check(&out->notes, err);
    }
    if (status != FR_OK)
        fr_runlog_release(out);
    return status;
}

static void note(const fr_request *request, const char *path,
                 const fr_runlog *log)
{
    const fr_runlog_steps *steps = &log->steps;
    char line[256], median[FR_FORMAT_MAX], low[FR_FORMAT_MAX],
        high[FR_FORMAT_MAX];
    if (steps->median_s > 0)
        snprintf(line, sizeof line,
                 "%llu lines of steps, the first %llu left out; median %s (5 "
                 "to 95 %%: %s to %s)",
                 (unsigned long long)steps->n_lines,
                 (unsigned long long)steps->n_first,
                 fr_format_s(median, sizeof median, steps->median_s),
                 fr_format_s(low, sizeof low, steps->p5_s),
                 fr_format_s(high, sizeof high, steps->p95_s));
    else
        snprintf(line, sizeof line,
                 "%llu lines of steps without a time; their rate stands in "
                 "the row",
                 (unsigned long long)steps->n_lines);
    fr_request_note_lines(request, fr_path_name(path), line);
    fr_request_note_lines(request, fr_path_name(path),
                          fr_buffer_text(&log->notes));
}

static void put_data(const fr_request *request, const fr_runlog *logs, size_t n,
                     fr_document *out)
{
    fr_json_writer *json = &out->data;
    fr_json_put_string(json, "kind", "log");
    if (fr_request_text(request, FR_OPT_OUTPUT) != NULL)
        fr_json_put_string(json, "output",
                           fr_request_text(request, FR_OPT_OUTPUT));
    fr_json_open_array(json, "runs");
    for (size_t i = 0; i < n; i++) {
        const fr_runlog_steps *steps = &logs[i].steps;
        fr_json_begin_object(json);
        fr_json_put_string(json, "format", logs[i].format);
        fr_json_put_u64(json, "step_lines", steps->n_lines);
        fr_json_put_u64(json, "left_out", steps->n_first);
        fr_json_put_u64(json, "outliers", steps->n_outliers);
        fr_json_open_object(json, "step_s");
        fr_json_put_double(json, "median", steps->median_s);
        fr_json_put_double(json, "p5", steps->p5_s);
        fr_json_put_double(json, "p95", steps->p95_s);
        fr_json_end_object(json);
        fr_json_open_object(json, "columns");
        for (int c = 0; c < FR_CASE_COLUMN_N; c++)
            if (logs[i].field[c][0] != '\0')
                fr_json_put_string(json, fr_case_column_name((fr_case_column)c),
                                   logs[i].field[c]);
        fr_json_end_object(json);
        fr_document_put_lines(out, "notes", fr_buffer_text(&logs[i].notes));
        fr_json_end_object(json);
    }
    fr_json_end_array(json);
}

static fr_status print(const fr_request *request, const fr_runlog *logs,
                       size_t n, fr_document *out, fr_err *err)
{
    const char *output = fr_request_text(request, FR_OPT_OUTPUT);
    fr_buffer text;
    fr_buffer_init(&text);
    fr_runlog_write(logs, n, &text);
    fr_status status = fr_buffer_check(&text, err);
    if (status == FR_OK && output != NULL)
        status = fr_file_write(output, text.data, text.n, err);
    for (size_t i = 0; status == FR_OK && i < n; i++)
        note(request, request->positional[i + 1], &logs[i]);
    fr_document_init(out, "forerun.import/1");
    put_data(request, logs, n, out);
    if (output == NULL)
        fr_document_verbatim(out, fr_buffer_text(&text));
    fr_buffer_release(&text);
    return status;
}

fr_status fr_import_runlog(const fr_request *request, fr_document *out,
                           fr_err *err)
{
    fr_runlog *logs;
    size_t n = 0;
    fr_status status = FR_OK;
    FR_TRY_CALLOC(logs, LOGS_MAX, err);
    for (int i = 1; i < request->n_positional && status == FR_OK; i++) {
        status = read_log(request, request->positional[i], &logs[n], err);
        n += status == FR_OK;
    }
    if (status == FR_OK)
        status = print(request, logs, n, out, err);
    for (size_t i = 0; i < n; i++)
        fr_runlog_release(&logs[i]);
    free(logs);
    return status;
}
