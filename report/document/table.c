/* table.c: see table.h. */
#include "report/document/table.h"

#include "core/base/units.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* `text` belongs to the arena, NULL: there was no memory. */
static void push_own(fr_table *table, fr_cell_kind kind, double number,
                     const char *text)
{
    const fr_cell cell = {kind, text, number};
    if (text == NULL || fr_vec_push(&table->cells, cell) != FR_OK)
        table->has_failed = true;
}

static void push(fr_table *table, fr_cell_kind kind, double number,
                 const char *text)
{
    push_own(table, kind, number, fr_arena_strdup(&table->arena, text));
}

static void push_format(fr_table *table, fr_cell_kind kind, double number,
                        const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, format, args);
    char *text = n < 0 ? NULL : fr_arena_alloc(&table->arena, (size_t)n + 1);
    if (text != NULL)
        vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    push_own(table, kind, number, text);
}

static const char *copy(fr_table *table, const char *text)
{
    if (text == NULL)
        return NULL;
    const char *own = fr_arena_strdup(&table->arena, text);
    table->has_failed |= own == NULL;
    return own;
}

void fr_table_init(fr_table *table, const fr_column *columns, size_t n)
{
    memset(table, 0, sizeof *table);
    fr_arena_init(&table->arena);
    table->n_keys = 1;
    for (size_t i = 0; i < n && i < FR_TABLE_COLUMNS; i++) {
        const char *heading = columns[i].heading;
        table->is_right[i] = heading != NULL && heading[0] == '>';
        table->columns[i] = (fr_column){
            copy(table, heading != NULL ? heading + table->is_right[i] : NULL),
            copy(table, columns[i].key)};
        table->n_columns++;
    }
}

void fr_table_release(fr_table *table)
{
    fr_vec_release(&table->cells);
    fr_arena_release(&table->arena);
    memset(table, 0, sizeof *table);
}

size_t fr_table_n_rows(const fr_table *table)
{
    const size_t n = (size_t)table->n_columns;
    return n > 0 ? (table->cells.n + n - 1) / n : 0;
}

bool fr_table_is_for_readers(const fr_table *table)
{
    bool has_heading = false;
    for (int c = 0; c < table->n_columns; c++)
        has_heading |= table->columns[c].heading != NULL;
    return has_heading && !table->is_hidden &&
           (table->key == NULL || table->cells.n > 0);
}

const fr_cell *fr_table_at(const fr_table *table, size_t row, int column)
{
    const size_t i = row * (size_t)table->n_columns + (size_t)column;
    return i < table->cells.n ? &table->cells.items[i] : NULL;
}

/* ---- cells -------------------------------------------------------------- */

void fr_table_text(fr_table *table, const char *text)
{
    push(table, FR_CELL_TEXT, 0, text);
}

void fr_table_cell(fr_table *table, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    push_format(table, FR_CELL_TEXT, 0, format, args);
    va_end(args);
}

void fr_table_number(fr_table *table, fr_cell_kind kind, double number,
                     const char *format, ...)
{
    va_list args;
    va_start(args, format);
    push_format(table, kind, number, format, args);
    va_end(args);
}

void fr_table_count(fr_table *table, int64_t value)
{
    fr_table_number(table, FR_CELL_COUNT, (double)value, "%lld",
                    (long long)value);
}

void fr_table_s(fr_table *table, double seconds)
{
    char text[FR_FORMAT_MAX];
    push(table, FR_CELL_S, seconds, fr_format_s(text, sizeof text, seconds));
}

void fr_table_bytes(fr_table *table, double bytes)
{
    char text[FR_FORMAT_MAX];
    push(table, FR_CELL_BYTES, bytes,
         fr_format_bytes(text, sizeof text, bytes));
}

void fr_table_usd(fr_table *table, double usd)
{
    char text[FR_FORMAT_MAX];
    push(table, FR_CELL_USD, usd, fr_format_usd(text, sizeof text, usd));
}

void fr_table_kwh(fr_table *table, double kwh)
{
    char text[FR_FORMAT_MAX];
    push(table, FR_CELL_KWH, kwh, fr_format_kwh(text, sizeof text, kwh));
}

void fr_table_share(fr_table *table, double share)
{
    fr_table_number(table, FR_CELL_SHARE, share, "%.1f %%", 100 * share);
}

void fr_table_change(fr_table *table, double share)
{
    fr_table_number(table, FR_CELL_SHARE, share, "%+.1f %%", 100 * share);
}

void fr_table_likely(fr_table *table, double probability)
{
    if (probability > 0.995)
        push(table, FR_CELL_SHARE, probability, ">99 %");
    else if (probability > 0 && probability < 0.005)
        push(table, FR_CELL_SHARE, probability, "<1 %");
    else
        fr_table_number(table, FR_CELL_SHARE, probability, "%.0f %%",
                        100 * probability);
}

void fr_table_bool(fr_table *table, bool value)
{
    push(table, FR_CELL_BOOL, value, value ? "yes" : "");
}

void fr_table_bar(fr_table *table, double share, int n_cells)
{
    char text[FR_BAR_BYTES];
    push(table, FR_CELL_BAR, share, fr_bar(share, n_cells, text, sizeof text));
}

void fr_table_blank(fr_table *table, int n)
{
    for (int i = 0; i < n; i++)
        push(table, FR_CELL_NONE, 0, "");
}

void fr_table_optional(fr_table *table, const char *text)
{
    if (text != NULL && text[0] != '\0')
        push(table, FR_CELL_TEXT, 0, text);
    else
        push(table, FR_CELL_ABSENT, 0, "");
}
