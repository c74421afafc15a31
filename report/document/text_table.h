/*
 * text_table.h: a table as aligned columns for terminals.  Widths are counted
 * in characters of UTF-8, not bytes.  No line is wider than the layout.
 */
#ifndef FR_REPORT_DOCUMENT_TEXT_TABLE_H
#define FR_REPORT_DOCUMENT_TEXT_TABLE_H

#include "core/base/layout.h"
#include "report/document/table.h"

/* Characters of a line of the layout, which may be NULL. */
static inline size_t fr_layout_wide(const fr_layout *layout)
{
    return layout != NULL && layout->n_wide > 0 ? (size_t)layout->n_wide
                                                : FR_LAYOUT_WIDE;
}

/* Appends the table to `out`, without trailing blanks.  The layout, which may
 * be NULL, notes which of its columns were found. */
void fr_table_print(const fr_table *table, fr_layout *layout, fr_buffer *out);

#endif
