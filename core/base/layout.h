/*
 * layout.h: how a text for people is laid out: how wide the lines are and
 * which columns of its tables are shown.  Whoever prints the text decides
 * (a terminal, a pipe, --columns); a buffer hands it to who writes the tables.
 */
#ifndef FR_CORE_BASE_LAYOUT_H
#define FR_CORE_BASE_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

enum { FR_LAYOUT_WIDE = 100, FR_LAYOUT_NAMES = 32 };

typedef struct fr_layout {
    int n_wide;          /* characters of a line; 0: FR_LAYOUT_WIDE */
    const char *columns; /* headings with commas; NULL: all columns */
    bool is_ascii;       /* charts are drawn without other characters */
    uint32_t found;      /* bit i: some table has the i-th of them */
    char known[512];     /* headings of the tables, for messages */
} fr_layout;

#endif
