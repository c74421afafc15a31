/*
 * text_table.h: a table as aligned columns for terminals.  Widths are counted
 * in characters of UTF-8, not bytes.  No line is wider than the layout.
 */
#ifndef FR_REPORT_DOCUMENT_TEXT_TABLE_H
#define FR_REPORT_DOCUMENT_TEXT_TABLE_H

#include "core/base/buffer.h"
#include "report/document/layout.h"
#include "report/document/table.h"

/* Appends the table to `out`, without trailing blanks.  The layout, which may
 * be NULL, notes which of its columns were found. */
void fr_table_print(const fr_table *table, fr_layout *layout, fr_buffer *out);

#endif
