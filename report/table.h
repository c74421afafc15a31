/*
 * table.h: aligned columns for terminals.  Cells are appended one after the
 * other, row by row; failure is sticky and comes out in fr_table_print().
 * Widths are counted in characters of UTF-8, not bytes.
 */
#ifndef FR_REPORT_TABLE_H
#define FR_REPORT_TABLE_H

#include "core/base/arena.h"
#include "core/base/buffer.h"

#define FR_TABLE_COLUMNS 24

typedef struct fr_table {
    fr_arena arena;
    int n_columns;
    bool is_right[FR_TABLE_COLUMNS];
    char **cells;
    size_t n_cells, cap_cells;
    bool has_failed;
} fr_table;

/*
 * Headings up to NULL; one that begins with '>' heads a right-aligned column
 * (the '>' is not printed).  All empty: no heading line.
 */
void fr_table_init(fr_table *table, const char *const *headings);
void fr_table_release(fr_table *table);
void fr_table_cell(fr_table *table, const char *format, ...) FR_PRINTF(2, 3);
/* Appends the table, each line indented, without trailing blanks. */
FR_CHECKED fr_status fr_table_print(const fr_table *table, int n_indent,
                                    fr_buffer *out, fr_err *err);

/* Characters of a UTF-8 text. */
size_t fr_text_width(const char *text);

#endif
