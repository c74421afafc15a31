/*
 * layout.h: how a document is laid out for people: how wide the lines are and
 * which columns of its tables are shown.  The caller decides (a terminal, a
 * pipe, --columns), and reads from it what was found.
 */
#ifndef FR_REPORT_DOCUMENT_LAYOUT_H
#define FR_REPORT_DOCUMENT_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FR_LAYOUT_WIDE = 100, FR_LAYOUT_NAMES = 32 };

typedef struct fr_layout {
    int n_wide;          /* characters of a line; 0: FR_LAYOUT_WIDE */
    const char *columns; /* headings with commas; NULL: all columns */
    bool is_ascii;       /* charts are drawn without other characters */
    uint32_t found;      /* bit i: some table has the i-th of them */
    char known[512];     /* headings of the tables, for messages */
} fr_layout;

/* Characters of a line of the layout; NULL is the default one. */
static inline size_t fr_layout_wide(const fr_layout *layout)
{
    return layout != NULL && layout->n_wide > 0 ? (size_t)layout->n_wide
                                                : FR_LAYOUT_WIDE;
}

#endif
