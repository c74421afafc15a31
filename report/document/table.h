/*
 * table.h: aligned columns for terminals.  Cells are appended one after the
 * other, row by row; failure is sticky and comes out in fr_table_finish().
 * Widths are counted in characters of UTF-8, not bytes.  No line is wider than
 * the layout of the text that the table goes to.
 */
#ifndef FR_REPORT_DOCUMENT_TABLE_H
#define FR_REPORT_DOCUMENT_TABLE_H

#include "core/base/arena.h"
#include "core/base/buffer.h"
#include "core/base/vec.h"

#define FR_TABLE_COLUMNS 24

typedef struct fr_table {
    fr_arena arena;
    int n_columns;
    int n_keys; /* the first columns, which say what a row is; 1 */
    bool is_right[FR_TABLE_COLUMNS];
    fr_vec(char *) cells;
    bool has_failed;
} fr_table;

/*
 * Headings up to NULL; one that begins with '>' heads a right-aligned column
 * (the '>' is not printed).  All empty: no heading line.
 */
void fr_table_init(fr_table *table, const char *const *headings);
void fr_table_release(fr_table *table);
void fr_table_cell(fr_table *table, const char *format, ...) FR_PRINTF(2, 3);
/* What stands in most cells: a text, seconds, bytes, nothing n times over. */
void fr_table_text(fr_table *table, const char *text);
void fr_table_s(fr_table *table, double seconds);
void fr_table_bytes(fr_table *table, double bytes);
/* A probability: "12 %", ">99 %". */
void fr_table_likely(fr_table *table, double probability);
void fr_table_blank(fr_table *table, int n);
/* Appends the table to `out`, without trailing blanks, and releases it. */
FR_CHECKED fr_status fr_table_finish(fr_table *table, fr_buffer *out,
                                     fr_err *err);

#endif
