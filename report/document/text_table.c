/*
 * text_table.c: see text_table.h.  Widths are found when the table is printed.
 *
 * A table that is wider than its text may be gives way in this order: texts
 * are wrapped between words, then columns move to a second table below, which
 * repeats the key columns, and last a word is cut.  Nothing is left out.  A
 * text of the last column that has nothing before it in its row (why it cannot
 * be) does not count for the width of that column: it takes what the row has.
 */
#include "report/document/text_table.h"

#include "core/base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum {
    GAP = 2,            /* blanks between columns */
    INDENT = 2,         /* of the further lines of a wrapped cell */
    LEAST_WRAPPED = 20, /* no text is wrapped to less, where it is longer */
    LEAST_BESIDE = 40   /* a text alone in its row stands beside what is before
                           it where it has so much, else below */
};

/* Columns that stand beside each other, and how wide each is. */
typedef struct block {
    int at[FR_TABLE_COLUMNS];
    size_t width[FR_TABLE_COLUMNS];
    int n;
} block;

/* The columns that are shown, in order. */
typedef struct shown {
    int at[FR_TABLE_COLUMNS];
    int n;
    bool has_alone; /* texts of the last one may be alone in their row */
} shown;

/* Widths of a column: of its longest cell, and the least it can have. */
typedef struct extent {
    size_t natural, least;
} extent;

/* ---- which columns ------------------------------------------------------ */

/* Row 0 has the headings. */
static const char *cell_at(const fr_table *table, size_t row, int column)
{
    const char *heading = table->columns[column].heading;
    const fr_cell *cell = row > 0 ? fr_table_at(table, row - 1, column) : NULL;
    if (row == 0)
        return heading != NULL ? heading : "";
    return cell != NULL ? cell->text : "";
}

static bool is_for_readers(const fr_table *table, int column)
{
    return table->columns[column].heading != NULL;
}

/* "per rank" is asked for as per-rank, per_rank or "Per Rank". */
static bool is_named(const char *heading, const char *name, size_t n)
{
    size_t i = 0;
    for (; i < n && heading[i] != '\0'; i++) {
        char a = name[i], b = heading[i];
        bool is_gap = (a == '-' || a == '_' || a == ' ') &&
                      (b == '-' || b == '_' || b == ' ');
        if (!is_gap && tolower((unsigned char)a) != tolower((unsigned char)b))
            return false;
    }
    return i == n && heading[i] == '\0';
}

static void note_headings(const fr_table *table, fr_layout *layout)
{
    for (int c = 0; c < table->n_columns; c++) {
        const char *heading = cell_at(table, 0, c);
        size_t used = strlen(layout->known);
        if (heading[0] != '\0' &&
            used + strlen(heading) + 3 < sizeof layout->known)
            snprintf(layout->known + used, sizeof layout->known - used, "%s%s",
                     used > 0 ? ", " : "", heading);
    }
}

/* The columns that are shown, in the order asked for; the keys stay.  A table
 * without any of those names is another one: it stays whole. */
static int choose_columns(const fr_table *table, fr_layout *layout, int *out)
{
    int n = 0;
    for (int c = 0; c < table->n_columns; c++)
        if (is_for_readers(table, c))
            out[n++] = c;
    if (layout == NULL || layout->columns == NULL)
        return n;
    note_headings(table, layout);
    int n_keys = table->n_keys, n_chosen = n_keys;
    int chosen[FR_TABLE_COLUMNS];
    bool is_asked = false, is_in[FR_TABLE_COLUMNS] = {false};
    for (int i = 0; i < n_keys; i++)
        chosen[i] = out[i], is_in[out[i]] = true;
    const char *at = layout->columns;
    for (int i = 0; i < FR_LAYOUT_NAMES; i++) {
        size_t n_name = strcspn(at, ",");
        for (int c = 0; c < table->n_columns; c++) {
            if (!is_for_readers(table, c) ||
                !is_named(cell_at(table, 0, c), at, n_name))
                continue;
            layout->found |= UINT32_C(1) << i;
            is_asked = true;
            if (!is_in[c])
                chosen[n_chosen++] = c, is_in[c] = true;
        }
        at += n_name;
        if (*at++ == '\0')
            break;
    }
    if (!is_asked)
        return n;
    /* Notes and reasons have no heading: what cannot be still says why. */
    for (int c = 0; c < table->n_columns; c++)
        if (!is_in[c] && is_for_readers(table, c) &&
            cell_at(table, 0, c)[0] == '\0')
            chosen[n_chosen++] = c;
    memcpy(out, chosen, (size_t)n_chosen * sizeof *out);
    return n_chosen;
}

/* ---- widths ------------------------------------------------------------- */

static size_t longest_word(const char *text)
{
    size_t longest = 0;
    while (*text != '\0') {
        size_t n = strcspn(text, " "), wide = fr_text_width(text, n);
        longest = wide > longest ? wide : longest;
        text += n + (text[n] == ' ');
    }
    return longest;
}

/* Place in the list of the first column from which on nothing but the text of
 * the last one stands in a row; -1: there is no such text, or only its own
 * column is left. */
static int alone_from(const fr_table *table, const shown *list, size_t row)
{
    const int last = list->n - 1;
    int first = last;
    if (!list->has_alone || row == 0 ||
        cell_at(table, row, list->at[last])[0] == '\0')
        return -1;
    while (first > table->n_keys &&
           cell_at(table, row, list->at[first - 1])[0] == '\0')
        first--;
    return first < last ? first : -1;
}

static void measure(const fr_table *table, const shown *list, size_t n_rows,
                    extent *out)
{
    for (int c = 0; c < table->n_columns; c++) {
        const bool is_last = c == list->at[list->n - 1];
        size_t word = 0;
        out[c] = (extent){0, 0};
        for (size_t row = 0; row < n_rows; row++) {
            if (is_last && alone_from(table, list, row) >= 0)
                continue;
            const char *text = cell_at(table, row, c);
            size_t n = fr_text_width(text, strlen(text)),
                   n_word = longest_word(text) + INDENT;
            out[c].natural = n > out[c].natural ? n : out[c].natural;
            word = n_word > word ? n_word : word;
        }
        if (word < LEAST_WRAPPED)
            word = LEAST_WRAPPED;
        out[c].least =
            table->is_right[c] || word > out[c].natural ? out[c].natural : word;
    }
}

/* Returns the width of all columns when no text is wider than `cap`. */
static size_t set_widths(const extent *extents, size_t cap, block *b)
{
    size_t sum = 0;
    for (int i = 0; i < b->n; i++) {
        const extent *e = &extents[b->at[i]];
        size_t width = cap < e->least ? e->least : cap;
        b->width[i] = width > e->natural ? e->natural : width;
        sum += b->width[i] + (i > 0 ? GAP : 0);
    }
    return sum;
}

/* The widest texts give way first, and no more than they must. */
static void fit(const extent *extents, size_t n_wide, block *b)
{
    size_t cap = n_wide;
    for (int i = 0; i < b->n; i++)
        if (extents[b->at[i]].natural > cap)
            cap = extents[b->at[i]].natural;
    size_t sum = set_widths(extents, cap, b);
    while (sum > n_wide && cap > 0)
        sum = set_widths(extents, --cap, b);
    /* Words longer than a line: cut where nothing else helps. */
    for (int i = b->n - 1; i >= 0 && sum > n_wide; i--) {
        size_t n_over = sum - n_wide;
        size_t spare =
            b->width[i] > LEAST_WRAPPED ? b->width[i] - LEAST_WRAPPED : 0;
        size_t cut = n_over < spare ? n_over : spare;
        b->width[i] -= cut;
        sum -= cut;
    }
}

/* Returns the width that the lines of a wrapped column really have. */
static size_t width_taken(const fr_table *table, size_t n_rows, int column,
                          size_t width)
{
    size_t most = 0;
    for (size_t row = 0; row < n_rows; row++) {
        const char *rest = cell_at(table, row, column);
        for (size_t indent = 0; *rest != '\0'; indent = INDENT) {
            size_t n = fr_text_take_line(rest, strlen(rest), width - indent);
            size_t wide = fr_text_width(rest, n) + indent;
            most = wide > most ? wide : most;
            rest += n;
            rest += strspn(rest, " ");
        }
    }
    return most;
}

/* ---- lines -------------------------------------------------------------- */

/* One line of a row; `rest` moves on in every cell.  False: all are empty. */
static bool print_line(const fr_table *table, const block *b, const char **rest,
                       bool is_first, fr_buffer *out)
{
    size_t due = 0; /* blanks owed before the next text */
    bool has_any = false;
    for (int i = 0; i < b->n; i++)
        has_any |= rest[i][0] != '\0';
    if (!has_any && !is_first)
        return false;
    for (int i = 0; i < b->n; i++) {
        size_t indent = is_first ? 0 : INDENT;
        size_t n =
            fr_text_take_line(rest[i], strlen(rest[i]), b->width[i] - indent);
        size_t wide = fr_text_width(rest[i], n);
        bool is_right = table->is_right[b->at[i]] && is_first;
        size_t n_pad = b->width[i] - wide;
        due += is_right ? n_pad : n > 0 ? indent : 0;
        if (n > 0) {
            fr_buffer_fill(out, ' ', due);
            fr_buffer_append(out, rest[i], n);
            due = 0;
        }
        if (!is_right)
            due += n > 0 ? n_pad - indent : n_pad;
        due += GAP;
        rest[i] += n;
        rest[i] += strspn(rest[i], " ");
    }
    fr_buffer_putc(out, '\n');
    return true;
}

static bool has_text(const fr_table *table, const block *b, size_t row,
                     int first)
{
    for (int i = first; i < b->n; i++)
        if (cell_at(table, row, b->at[i])[0] != '\0')
            return true;
    return false;
}

static void print_row(const fr_table *table, const block *b, size_t row,
                      fr_buffer *out)
{
    const char *rest[FR_TABLE_COLUMNS];
    bool is_first = true;
    for (int i = 0; i < b->n; i++)
        rest[i] = cell_at(table, row, b->at[i]);
    while (print_line(table, b, rest, is_first, out))
        is_first = false;
}

/* The cells before place i of the block, and the last column's text in all that
 * is left of the line, or below where that is little. */
static void print_alone(const fr_table *table, const block *b, int i,
                        int column, size_t row, size_t n_wide, fr_buffer *out)
{
    block beside = *b;
    size_t before = 0, keys = 0;
    bool is_wrapped = false;
    for (int k = 0; k < i; k++) {
        const char *cell = cell_at(table, row, b->at[k]);
        is_wrapped |= fr_text_width(cell, strlen(cell)) > b->width[k];
        before += b->width[k] + GAP;
        keys += k < table->n_keys ? b->width[k] + GAP : 0;
    }
    beside.n = i;
    if (!is_wrapped && before + LEAST_BESIDE <= n_wide) {
        beside.n = i + 1;
        beside.at[i] = column;
        beside.width[i] = n_wide - before;
        print_row(table, &beside, row, out);
        return;
    }
    print_row(table, &beside, row, out);
    const char *rest = cell_at(table, row, column);
    keys = keys + LEAST_BESIDE <= n_wide ? keys : INDENT;
    while (*rest != '\0') {
        size_t n = fr_text_take_line(rest, strlen(rest), n_wide - keys);
        fr_buffer_fill(out, ' ', keys);
        fr_buffer_append(out, rest, n);
        fr_buffer_putc(out, '\n');
        rest += n;
        rest += strspn(rest, " ");
    }
}

/* A table below leaves out rows without anything new.  The block has the keys
 * and the part of the list that begins at place `from`. */
static void print_block(const fr_table *table, const shown *list, int from,
                        const block *b, size_t n_rows, size_t n_wide,
                        fr_buffer *out)
{
    const bool is_below = from > table->n_keys;
    const int n_here = b->n - table->n_keys;
    size_t first = has_text(table, b, 0, 0) ? 0 : 1;
    for (size_t row = first; row < n_rows; row++) {
        const int alone = alone_from(table, list, row);
        if (alone >= from && alone < from + n_here)
            print_alone(table, b, table->n_keys + alone - from,
                        list->at[list->n - 1], row, n_wide, out);
        else if (is_below && row > 0 &&
                 (alone >= 0 || !has_text(table, b, row, table->n_keys)))
            continue;
        else
            print_row(table, b, row, out);
    }
}

/* As many of the columns from place `from` on as stand beside the keys; returns
 * how many. */
static int fill_block(const fr_table *table, const extent *extents,
                      const shown *list, int from, size_t n_wide, block *b)
{
    const int *columns = list->at + from;
    const int n = list->n > from ? list->n - from : 0;
    size_t sum = 0;
    int n_taken = 0;
    b->n = 0;
    for (int i = 0; i < table->n_keys && i < list->n; i++) {
        b->at[b->n++] = list->at[i];
        sum += extents[list->at[i]].least + GAP;
    }
    while (n_taken < n && b->n < FR_TABLE_COLUMNS) {
        const extent *e = &extents[columns[n_taken]];
        if (n_taken > 0 && sum + e->least > n_wide)
            break;
        sum += e->least + GAP;
        b->at[b->n++] = columns[n_taken++];
    }
    return n_taken;
}

static size_t sum_natural(const extent *extents, const shown *list)
{
    size_t sum = 0;
    for (int i = 0; i < list->n; i++)
        sum += extents[list->at[i]].natural + (i > 0 ? GAP : 0);
    return sum;
}

void fr_table_print(const fr_table *table, fr_layout *layout, fr_buffer *out)
{
    const size_t n_wide = fr_layout_wide(layout);
    extent extents[FR_TABLE_COLUMNS];
    shown all = {.n = 0}, list = {.n = 0};
    const size_t n_rows = 1 + fr_table_n_rows(table);
    all.n = choose_columns(table, layout, all.at);
    if (all.n == 0)
        return;
    measure(table, &all, n_rows, extents);
    /* Notes and reasons have no heading. */
    if (sum_natural(extents, &all) > n_wide &&
        cell_at(table, 0, all.at[all.n - 1])[0] == '\0') {
        all.has_alone = true;
        measure(table, &all, n_rows, extents);
    }
    /* The last stays, whose texts may all be alone. */
    for (int i = 0; i < all.n; i++)
        if (i < table->n_keys || extents[all.at[i]].natural > 0 ||
            (all.has_alone && i == all.n - 1))
            list.at[list.n++] = all.at[i];
    list.has_alone = all.has_alone;
    int at = table->n_keys;
    do {
        block b;
        int n_taken = fill_block(table, extents, &list, at, n_wide, &b);
        if (at > table->n_keys && extents[list.at[at]].natural == 0)
            break; /* nothing but texts that stand elsewhere */
        if (at > table->n_keys)
            fr_buffer_putc(out, '\n');
        fit(extents, n_wide, &b);
        for (int i = 0; i < b.n; i++)
            if (b.width[i] < extents[b.at[i]].natural)
                b.width[i] = width_taken(table, n_rows, b.at[i], b.width[i]);
        print_block(table, &list, at, &b, n_rows, n_wide, out);
        at += n_taken;
    } while (at < list.n);
}
