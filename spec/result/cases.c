/* cases.c: a strict CSV reader; fields are cut in place. */
#include "spec/result/cases.h"

#include "core/base/text.h"
#include "core/base/units.h"
#include "core/base/vec.h"
#include "core/system/fileio.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 256 };

static const char *const column_names[FR_CASE_COLUMN_N] = {
#define COLUMN_NAME(symbol, name) [FR_CASE_##symbol] = (name),
    FR_CASE_COLUMN_LIST(COLUMN_NAME)
#undef COLUMN_NAME
};

const char *fr_case_column_name(fr_case_column column)
{
    return (unsigned)column < FR_CASE_COLUMN_N ? column_names[column] : "?";
}

typedef struct csv {
    const char *name;
    char *at, *end;
    int line;     /* that `at` is on */
    int row_line; /* that the row began on */
    char *fields[MAX_COLUMNS];
    size_t n_fields;
} csv;

/* A quoted field: from behind its first quote to behind its last. */
static fr_status read_quoted(csv *c, char **out, fr_err *err)
{
    char *to = c->at;
    *out = to;
    for (;;) {
        if (c->at == c->end)
            return fr_fail(err, FR_INPUT,
                           "%s:%d: a quote is opened and never closed", c->name,
                           c->row_line);
        char ch = *c->at++;
        if (ch == '"') {
            if (c->at == c->end || *c->at != '"')
                break;
            c->at++;
        } else if (ch == '\n') {
            c->line++;
        }
        *to++ = ch;
    }
    if (c->at < c->end && *c->at != ',' && *c->at != '\n' && *c->at != '\r')
        return fr_fail(err, FR_INPUT,
                       "%s:%d: text behind a closing quote; quote the whole "
                       "field and double the quotes within",
                       c->name, c->line);
    *to = '\0'; /* at the latest where the closing quote was */
    return FR_OK;
}

static fr_status read_plain(csv *c, char **out, fr_err *err)
{
    *out = c->at;
    while (c->at < c->end && *c->at != ',' && *c->at != '\n' && *c->at != '\r')
        if (*c->at++ == '"')
            return fr_fail(err, FR_INPUT,
                           "%s:%d: a quote within a field; quote the whole "
                           "field and double the quotes within",
                           c->name, c->line);
    return FR_OK;
}

/* Behind a field: ',' goes on, a line's end or the file's ends the row. */
static fr_status end_field(csv *c, char *field, bool *is_last, fr_err *err)
{
    char ch = c->at < c->end ? *c->at : '\n';
    *is_last = ch != ',';
    if (c->at < c->end)
        *c->at++ = '\0'; /* the text has room for a NUL at its end */
    if (ch == '\r') {
        if (c->at < c->end && *c->at != '\n')
            return fr_fail(err, FR_INPUT,
                           "%s:%d: a carriage return that ends no line",
                           c->name, c->line);
        if (c->at < c->end)
            *c->at++ = '\0';
    }
    if (*is_last)
        c->line++;
    if (c->n_fields == MAX_COLUMNS)
        return fr_fail(err, FR_INPUT, "%s:%d: more than %d columns", c->name,
                       c->row_line, MAX_COLUMNS);
    c->fields[c->n_fields++] = fr_text_trim(field);
    return FR_OK;
}

/* False at the end of the file; blank lines are passed over. */
static fr_status read_row(csv *c, bool *has_row, fr_err *err)
{
    while (c->at < c->end && (*c->at == '\n' || *c->at == '\r'))
        c->line += *c->at++ == '\n';
    *has_row = c->at < c->end;
    c->row_line = c->line;
    c->n_fields = 0;
    for (bool is_last = !*has_row; !is_last;) {
        char *field;
        if (c->at < c->end && *c->at == '"') {
            c->at++;
            FR_TRY(read_quoted(c, &field, err));
        } else {
            FR_TRY(read_plain(c, &field, err));
        }
        FR_TRY(end_field(c, field, &is_last, err));
    }
    return FR_OK;
}

static fr_status read_header(csv *c, int column_of[MAX_COLUMNS], fr_err *err)
{
    bool has_row, is_known = false;
    bool seen[FR_CASE_COLUMN_N] = {false};
    FR_TRY(read_row(c, &has_row, err));
    if (!has_row)
        return fr_fail(err, FR_INPUT, "%s: is empty", c->name);
    for (size_t i = 0; i < c->n_fields; i++) {
        int column = fr_text_find(c->fields[i], column_names, FR_CASE_COLUMN_N);
        column_of[i] = column;
        if (column < 0)
            continue;
        is_known = true;
        if (seen[column])
            return fr_fail(err, FR_INPUT, "%s:%d: column '%s' stands twice",
                           c->name, c->row_line, column_names[column]);
        seen[column] = true;
    }
    if (!is_known)
        return fr_fail(err, FR_INPUT,
                       "%s:%d: no column is known; the first line names them: "
                       "model, gpu, num_gpus, tp, mbs, gbs, step_time_s ...",
                       c->name, c->row_line);
    return FR_OK;
}

static void fill(const csv *c, const int column_of[MAX_COLUMNS], fr_case *row)
{
    for (int i = 0; i < FR_CASE_COLUMN_N; i++)
        row->field[i] = "";
    row->file = c->name;
    row->line = c->row_line;
    for (size_t i = 0; i < c->n_fields; i++) {
        if (column_of[i] < 0)
            continue;
        row->field[column_of[i]] = c->fields[i];
        row->has_grade |= column_of[i] == FR_CASE_GRADE;
        row->has_config_complete |= column_of[i] == FR_CASE_CONFIG_COMPLETE;
    }
}

fr_status fr_cases_parse(const char *name, const char *text, size_t n_text,
                         fr_cases *out, fr_err *err)
{
    fr_vec(fr_case) rows = {0};
    fr_status status = FR_OK;
    int column_of[MAX_COLUMNS];
    size_t n_bom = n_text >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    if (memchr(text, '\0', n_text) != NULL)
        return fr_fail(err, FR_INPUT, "%s: has a NUL byte; it must be text",
                       name);
    if (fr_text_utf8_valid(text, n_text) != n_text)
        return fr_fail(err, FR_INPUT, "%s: is not valid UTF-8", name);
    char *copy = malloc(n_text - n_bom + 1);
    csv *c = calloc(1, sizeof *c);
    if (copy == NULL || c == NULL) {
        status = fr_fail_no_memory(err);
        goto out_memory;
    }
    memcpy(copy, text + n_bom, n_text - n_bom);
    copy[n_text - n_bom] = '\0';
    *c = (csv){.name = name, .at = copy, .end = copy + n_text - n_bom};
    c->line = 1;
    FR_TRY_GOTO(status, read_header(c, column_of, err), out_memory);
    size_t n_columns = c->n_fields;
    for (;;) {
        bool has_row;
        fr_case row = {0};
        FR_TRY_GOTO(status, read_row(c, &has_row, err), out_memory);
        if (!has_row)
            break;
        if (c->n_fields != n_columns) {
            status =
                fr_fail(err, FR_INPUT, "%s:%d: %zu fields, the header has %zu",
                        name, c->row_line, c->n_fields, n_columns);
            goto out_memory;
        }
        fill(c, column_of, &row);
        if (fr_vec_push(&rows, row) != FR_OK) {
            status = fr_fail_no_memory(err);
            goto out_memory;
        }
    }
    *out = (fr_cases){rows.items, rows.n, copy};
    free(c);
    return FR_OK;
out_memory:
    fr_vec_release(&rows);
    free(copy);
    free(c);
    return status;
}

fr_status fr_cases_load(const char *path, fr_cases *out, fr_err *err)
{
    char *text;
    size_t n_text;
    FR_TRY(fr_file_read(path, FR_FILE_BYTES_MAX, &text, &n_text, err));
    fr_status status = fr_cases_parse(path, text, n_text, out, err);
    free(text);
    return status;
}

void fr_cases_release(fr_cases *cases)
{
    free(cases->at);
    free(cases->text);
    memset(cases, 0, sizeof *cases);
}

fr_status fr_case_count(const fr_case *row, fr_case_column column, int64_t low,
                        int64_t *out, fr_err *err)
{
    const char *text = row->field[column];
    int64_t value;
    fr_err why;
    if (*text == '\0')
        return FR_OK;
    if (fr_parse_i64(text, &value, &why) != FR_OK || value < low ||
        value > ((int64_t)1 << 40))
        return fr_fail(err, FR_INPUT,
                       "%s:%d: %s '%.60s' is not a whole number of %lld or "
                       "more",
                       row->file, row->line, column_names[column], text,
                       (long long)low);
    *out = value;
    return FR_OK;
}

fr_status fr_case_real(const fr_case *row, fr_case_column column, double *out,
                       fr_err *err)
{
    const char *text = row->field[column];
    double value;
    fr_err why;
    if (*text == '\0')
        return FR_OK;
    if (fr_parse_double(text, &value, &why) != FR_OK || !(value > 0))
        return fr_fail(err, FR_INPUT,
                       "%s:%d: %s '%.60s' is not a number above 0", row->file,
                       row->line, column_names[column], text);
    *out = value;
    return FR_OK;
}
