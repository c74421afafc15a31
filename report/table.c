/* table.c: cells in an arena, widths found when printed. */
#include "report/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t fr_text_width(const char *text)
{
    size_t n = 0;
    for (; *text != '\0'; text++)
        n += ((unsigned char)*text & 0xC0) != 0x80; /* not a continuation */
    return n;
}

static void add_cell(fr_table *table, const char *text)
{
    if (table->n_cells == table->cap_cells) {
        size_t cap = table->cap_cells ? 2 * table->cap_cells : 64;
        char **cells = realloc(table->cells, cap * sizeof *cells);
        if (cells == NULL) {
            table->has_failed = true;
            return;
        }
        table->cells = cells;
        table->cap_cells = cap;
    }
    char *copy = fr_arena_strdup(&table->arena, text);
    if (copy == NULL)
        table->has_failed = true;
    else
        table->cells[table->n_cells++] = copy;
}

void fr_table_init(fr_table *table, const char *const *headings)
{
    memset(table, 0, sizeof *table);
    fr_arena_init(&table->arena);
    for (int i = 0; headings[i] != NULL && i < FR_TABLE_COLUMNS; i++) {
        table->is_right[i] = headings[i][0] == '>';
        table->n_columns++;
        add_cell(table, headings[i] + table->is_right[i]);
    }
}

void fr_table_release(fr_table *table)
{
    free(table->cells);
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
    add_cell(table, text);
}

static void print_row(const fr_table *table, size_t first, int n_indent,
                      const size_t *width, fr_buffer *out)
{
    size_t due = (size_t)n_indent; /* blanks owed before the next text */
    for (int c = 0; c < table->n_columns; c++) {
        size_t i = first + (size_t)c;
        const char *text = i < table->n_cells ? table->cells[i] : "";
        size_t n_pad = width[c] - fr_text_width(text);
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

fr_status fr_table_print(const fr_table *table, int n_indent, fr_buffer *out,
                         fr_err *err)
{
    if (table->has_failed)
        return fr_fail_no_memory(err);
    size_t width[FR_TABLE_COLUMNS] = {0};
    size_t n_columns = (size_t)table->n_columns;
    bool has_heading = false;
    for (size_t i = 0; i < table->n_cells; i++) {
        size_t n = fr_text_width(table->cells[i]);
        if (n > width[i % n_columns])
            width[i % n_columns] = n;
        has_heading |= i < n_columns && n > 0;
    }
    for (size_t i = has_heading ? 0 : n_columns; i < table->n_cells;
         i += n_columns)
        print_row(table, i, n_indent, width, out);
    return fr_buffer_check(out, err);
}
