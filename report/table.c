/* table.c: cells in an arena, widths found when printed. */
#include "report/table.h"

#include "core/base/units.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Characters of a UTF-8 text. */
static size_t width_of(const char *text)
{
    size_t n = 0;
    for (; *text != '\0'; text++)
        n += ((unsigned char)*text & 0xC0) != 0x80; /* not a continuation */
    return n;
}

void fr_table_text(fr_table *table, const char *text)
{
    char *copy = fr_arena_strdup(&table->arena, text);
    if (copy == NULL || fr_vec_push(&table->cells, copy) != FR_OK)
        table->has_failed = true;
}

void fr_table_init(fr_table *table, const char *const *headings)
{
    memset(table, 0, sizeof *table);
    fr_arena_init(&table->arena);
    for (int i = 0; headings[i] != NULL && i < FR_TABLE_COLUMNS; i++) {
        table->is_right[i] = headings[i][0] == '>';
        table->n_columns++;
        fr_table_text(table, headings[i] + table->is_right[i]);
    }
}

void fr_table_release(fr_table *table)
{
    fr_vec_release(&table->cells);
    fr_arena_release(&table->arena);
    memset(table, 0, sizeof *table);
}

void fr_table_cell(fr_table *table, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fr_table_text(table, text);
}

void fr_table_s(fr_table *table, double seconds)
{
    char text[FR_FORMAT_MAX];
    fr_table_text(table, fr_format_s(text, sizeof text, seconds));
}

void fr_table_bytes(fr_table *table, double bytes)
{
    char text[FR_FORMAT_MAX];
    fr_table_text(table, fr_format_bytes(text, sizeof text, bytes));
}

void fr_table_blank(fr_table *table, int n)
{
    for (int i = 0; i < n; i++)
        fr_table_text(table, "");
}

static void print_row(const fr_table *table, size_t first, const size_t *width,
                      fr_buffer *out)
{
    size_t due = 0; /* blanks owed before the next text */
    for (int c = 0; c < table->n_columns; c++) {
        size_t i = first + (size_t)c;
        const char *text = i < table->cells.n ? table->cells.items[i] : "";
        size_t n_pad = width[c] - width_of(text);
        if (table->is_right[c])
            due += n_pad;
        if (text[0] != '\0') {
            fr_buffer_fill(out, ' ', due);
            fr_buffer_puts(out, text);
            due = 0;
        }
        if (!table->is_right[c])
            due += n_pad;
        due += 2;
    }
    fr_buffer_putc(out, '\n');
}

fr_status fr_table_finish(fr_table *table, fr_buffer *out, fr_err *err)
{
    size_t width[FR_TABLE_COLUMNS] = {0};
    size_t n_columns = (size_t)table->n_columns;
    bool has_heading = false, has_failed = table->has_failed;
    for (size_t i = 0; i < table->cells.n && !has_failed; i++) {
        size_t n = width_of(table->cells.items[i]);
        if (n > width[i % n_columns])
            width[i % n_columns] = n;
        has_heading |= i < n_columns && n > 0;
    }
    for (size_t i = has_heading ? 0 : n_columns;
         i < table->cells.n && !has_failed; i += n_columns)
        print_row(table, i, width, out);
    fr_table_release(table);
    return has_failed ? fr_fail_no_memory(err) : fr_buffer_check(out, err);
}
