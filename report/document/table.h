/*
 * table.h: rows of typed cells.  Cells are appended one after the other, row by
 * row; failure is sticky.  A cell has the text that readers see and the number
 * behind it, so that text shows "2.86 s" and CSV and JSON show 2.86.
 */
#ifndef FR_REPORT_DOCUMENT_TABLE_H
#define FR_REPORT_DOCUMENT_TABLE_H

#include "core/base/arena.h"
#include "core/base/vec.h"
#include "report/document/bar.h"

#define FR_TABLE_COLUMNS 64

typedef enum fr_cell_kind {
    FR_CELL_TEXT,
    FR_CELL_NONE,   /* nothing stands there: empty, null */
    FR_CELL_ABSENT, /* the object of JSON does not have the member */
    FR_CELL_COUNT,  /* a whole number, exact up to 2^53 */
    FR_CELL_NUMBER,
    FR_CELL_S,
    FR_CELL_BYTES,
    FR_CELL_SHARE, /* of 1 */
    FR_CELL_USD,
    FR_CELL_KWH,
    FR_CELL_BOOL,
    FR_CELL_BAR /* a share that is drawn */
} fr_cell_kind;

typedef struct fr_cell {
    fr_cell_kind kind;
    const char *text; /* as readers see it */
    double number;    /* in base units; of a TEXT or NONE 0 */
} fr_cell;

typedef struct fr_column {
    /* For readers: one that begins with '>' heads a right-aligned column (the
     * '>' is not printed); NULL: readers do not see the column. */
    const char *heading;
    const char *key; /* in JSON and CSV; NULL: only readers see the column */
} fr_column;

typedef struct fr_table {
    fr_arena arena;  /* of the texts of the columns and cells */
    const char *key; /* of the array in JSON; NULL: JSON does not have it */
    int n_columns;
    int n_keys;     /* the first that readers see, which say what a row is; 1 */
    bool is_hidden; /* from readers */
    bool is_main;   /* what CSV prints; without a main table: all values */
    bool is_right[FR_TABLE_COLUMNS];
    fr_column columns[FR_TABLE_COLUMNS]; /* headings without '>' */
    fr_vec(fr_cell) cells;
    bool has_failed;
} fr_table;

/* All headings empty: no heading line. */
void fr_table_init(fr_table *table, const fr_column *columns, size_t n);
void fr_table_release(fr_table *table);

size_t fr_table_n_rows(const fr_table *table);
/* Not if it is hidden, without a heading, or records of which there are none.
 */
bool fr_table_is_for_readers(const fr_table *table);
/* NULL: the last row has no such cell. */
const fr_cell *fr_table_at(const fr_table *table, size_t row, int column);

void fr_table_text(fr_table *table, const char *text);
void fr_table_cell(fr_table *table, const char *format, ...) FR_PRINTF(2, 3);
void fr_table_count(fr_table *table, int64_t value);
/* A number of that kind, and the text that readers see. */
void fr_table_number(fr_table *table, fr_cell_kind kind, double number,
                     const char *format, ...) FR_PRINTF(4, 5);
void fr_table_s(fr_table *table, double seconds);
void fr_table_bytes(fr_table *table, double bytes);
void fr_table_usd(fr_table *table, double usd);
void fr_table_kwh(fr_table *table, double kwh);
/* "12.3 %" */
void fr_table_share(fr_table *table, double share);
/* "+12.3 %" */
void fr_table_change(fr_table *table, double share);
/* A probability: "12 %", ">99 %". */
void fr_table_likely(fr_table *table, double probability);
/* "yes" or "". */
void fr_table_bool(fr_table *table, bool value);
/* A bar of at most so many characters. */
void fr_table_bar(fr_table *table, double share, int n_cells);
/* Nothing, n times over. */
void fr_table_blank(fr_table *table, int n);
/* A text, or where it is NULL or "", nothing and no member. */
void fr_table_optional(fr_table *table, const char *text);

#endif
