/* import_kernels.c: traces of profilers as a table of kernels or as a profile.
 */
#include "api/import/measured.h"
#include "api/inputs.h"
#include "core/base/text.h"
#include "core/system/fileio.h"
#include "interop/trace/trace_kernels.h"

#include <stdio.h>
#include <string.h>

enum { N_SHOWN = 20 };

static double sum_of(const fr_kernel_row *rows, size_t n)
{
    double sum_s = 0;
    for (size_t i = 0; i < n; i++)
        sum_s += rows[i].total_s;
    return sum_s;
}

static void print_rows(const fr_request *request,
                       const fr_kernel_table *kernels, fr_document *out)
{
    static const char *const headings[] = {
        ">count", ">total", ">share", ">median", "kernel", "shape", NULL};
    size_t n;
    const fr_kernel_row *rows = fr_kernel_table_rows(kernels, &n);
    const double sum_s = sum_of(rows, n);
    size_t n_shown = fr_request_has(request, FR_OPT_TOP)
                         ? (size_t)request->option[FR_OPT_TOP].count
                         : N_SHOWN;
    char name[36], shape[28];
    fr_table *table = fr_document_table(out, headings);
    n_shown = n_shown < n ? n_shown : n;
    for (size_t i = 0; i < n_shown; i++) {
        const fr_kernel_row *row = &rows[i];
        fr_text_copy_cut(name, sizeof name, row->name);
        fr_text_copy_cut(shape, sizeof shape, row->shapes);
        fr_table_count(table, (int64_t)row->n);
        fr_table_s(table, row->total_s);
        fr_table_share(table, row->total_s / sum_s);
        fr_table_s(table, fr_kernel_row_quantile_s(row, 0.5));
        fr_table_text(table, name);
        fr_table_text(table, shape);
    }
    if (n_shown < n)
        fr_document_printf(out, "%zu of %zu; -o FILE.csv has them all\n",
                           n_shown, n);
}

static void put_quoted(fr_buffer *out, const char *text)
{
    fr_buffer_putc(out, '"');
    for (; *text != '\0'; text++)
        fr_buffer_printf(out, *text == '"' ? "\"\"" : "%c", *text);
    fr_buffer_putc(out, '"');
}

static void write_csv(const fr_kernel_table *table, fr_buffer *out)
{
    size_t n;
    const fr_kernel_row *rows = fr_kernel_table_rows(table, &n);
    fr_buffer_puts(out, "name,op,shapes,types,kind,count,total_s,median_s,"
                        "min_s,max_s,in_elements,out_elements,group\n");
    for (size_t i = 0; i < n; i++) {
        const fr_kernel_row *row = &rows[i];
        const char *const texts[] = {row->name, row->op, row->shapes,
                                     row->types};
        for (size_t k = 0; k < FR_LENGTH(texts); k++) {
            put_quoted(out, texts[k]);
            fr_buffer_putc(out, ',');
        }
        fr_buffer_printf(out, "%s%s,%llu,%.9g,%.9g,%.9g,%.9g",
                         row->is_kernel ? "kernel" : "operator",
                         row->is_backward ? " of backward" : "",
                         (unsigned long long)row->n, row->total_s,
                         fr_kernel_row_quantile_s(row, 0.5), row->least_s,
                         row->most_s);
        if (row->collective[0] != '\0')
            fr_buffer_printf(out, ",%.0f,%.0f,%.0f\n", row->n_in, row->n_out,
                             row->n_group);
        else
            fr_buffer_puts(out, ",,,\n");
    }
}

static void put_data(const fr_request *request, const fr_kernel_table *kernels,
                     const fr_buffer *notes, fr_document *out)
{
    static const fr_column columns[] = {
        {NULL, "name"},    {NULL, "op"},        {NULL, "shapes"},
        {NULL, "types"},   {NULL, "is_kernel"}, {NULL, "count"},
        {NULL, "total_s"}, {NULL, "median_s"}};
    size_t n;
    const fr_kernel_row *rows = fr_kernel_table_rows(kernels, &n);
    fr_json_writer *json = &out->data;
    fr_json_put_string(json, "kind", request->positional[0]);
    fr_json_put_string(json, "device", fr_kernel_table_about(kernels)->gpu);
    if (fr_request_text(request, FR_OPT_OUTPUT) != NULL)
        fr_json_put_string(json, "output",
                           fr_request_text(request, FR_OPT_OUTPUT));
    fr_table *table =
        fr_document_records(out, "kernels", columns, FR_LENGTH(columns));
    table->is_main = true;
    for (size_t i = 0; i < n; i++) {
        fr_table_text(table, rows[i].name);
        fr_table_text(table, rows[i].op);
        fr_table_text(table, rows[i].shapes);
        fr_table_text(table, rows[i].types);
        fr_table_bool(table, rows[i].is_kernel);
        fr_table_count(table, (int64_t)rows[i].n);
        fr_table_s(table, rows[i].total_s);
        fr_table_s(table, fr_kernel_row_quantile_s(&rows[i], 0.5));
    }
    fr_document_put_lines(out, "notes", fr_buffer_text(notes));
}

/* .csv: the whole table; anything else: a profile. */
static fr_status write_output(const fr_request *request,
                              const fr_kernel_table *table, fr_buffer *notes,
                              fr_err *err)
{
    const char *output = fr_request_text(request, FR_OPT_OUTPUT);
    fr_profile profile;
    fr_buffer text;
    if (output == NULL)
        return FR_OK;
    if (fr_text_ends(output, ".csv")) {
        fr_buffer_init(&text);
        write_csv(table, &text);
        return fr_file_write_buffer(output, &text, err);
    }
    FR_TRY(fr_kernel_table_profile(table, request->positional[1], &profile,
                                   notes, err));
    fr_status status = fr_profile_save(&profile, output, err);
    fr_profile_release(&profile);
    return status;
}

/* Chrome JSON is a stream; other kinds have a reader for the whole file. */
static fr_status load_table(const char *path, fr_trace_reader_fn read,
                            fr_kernel_table **out, fr_err *err)
{
    fr_infile *file;
    if (read != NULL)
        return fr_kernel_table_load(path, read, out, err);
    FR_TRY(fr_infile_open(path, &file, err));
    fr_status status = fr_kernel_table_read(file, out, err);
    fr_infile_close(file);
    return status;
}

static fr_status import_with(const fr_request *request, fr_trace_reader_fn read,
                             fr_document *out, fr_err *err)
{
    fr_kernel_table *table;
    fr_buffer notes;
    if (request->n_positional > 2)
        return fr_fail(err, FR_USAGE, "'%.200s' is one file too many",
                       request->positional[2]);
    FR_TRY(fr_as_input(load_table(request->positional[1], read, &table, err),
                       err));
    fr_buffer_init(&notes);
    fr_status status = write_output(request, table, &notes, err);
    if (status == FR_OK)
        fr_request_note_lines(request, request->positional[0],
                              fr_buffer_text(&notes));
    fr_document_init(out, "forerun.import/1");
    put_data(request, table, &notes, out);
    if (fr_request_text(request, FR_OPT_OUTPUT) == NULL)
        print_rows(request, table, out);
    fr_buffer_release(&notes);
    fr_kernel_table_destroy(table);
    return status;
}

fr_status fr_import_kineto(const fr_request *request, fr_document *out,
                           fr_err *err)
{
    return import_with(request, NULL, out, err);
}

fr_status fr_import_nsys(const fr_request *request, fr_document *out,
                         fr_err *err)
{
    return import_with(request, fr_nsys_read, out, err);
}

fr_status fr_import_chakra(const fr_request *request, fr_document *out,
                           fr_err *err)
{
    return import_with(request, fr_chakra_read, out, err);
}
