/* sweep_plot.c: scaling curves on doubly logarithmic axes. */
#include "core/base/units.h"
#include "report/sweep_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 56, HEIGHT = 12 };

typedef struct canvas {
    char cell[HEIGHT][WIDTH];
    double low_x, high_x, low_y, high_y; /* logarithms */
} canvas;

static int place(double value, double low, double high, int n_cells)
{
    double part = high > low ? (log(value) - low) / (high - low) : 0;
    return (int)lround(part * (n_cells - 1));
}

static void put(canvas *c, double x, double y, char mark)
{
    int column = place(x, c->low_x, c->high_x, WIDTH);
    int row = HEIGHT - 1 - place(y, c->low_y, c->high_y, HEIGHT);
    if (row >= 0 && row < HEIGHT)
        c->cell[row][column] = mark;
}

static void draw(const fr_sweep *sweep, const size_t *curve, size_t n,
                 canvas *c)
{
    const fr_sweep_point *base = &sweep->points[curve[0]];
    const fr_sweep_point *last = &sweep->points[curve[n - 1]];
    double ideal_per_rank = base->tokens_per_s_per_rank;
    memset(c->cell, ' ', sizeof c->cell);
    c->low_x = log((double)base->n_ranks);
    c->high_x = log((double)last->n_ranks);
    c->low_y = log(base->tokens_per_s);
    c->high_y = log(ideal_per_rank * (double)last->n_ranks);
    for (size_t i = 0; i < n; i++) {
        double y = log(sweep->points[curve[i]].tokens_per_s);
        c->low_y = fmin(c->low_y, y);
        c->high_y = fmax(c->high_y, y);
    }
    for (int i = 0; i < WIDTH; i++) {
        double x = exp(c->low_x + (c->high_x - c->low_x) * i / (WIDTH - 1));
        put(c, x, ideal_per_rank * x, '.');
    }
    for (size_t i = 0; i < n; i++) {
        const fr_sweep_point *at = &sweep->points[curve[i]];
        put(c, (double)at->n_ranks, at->tokens_per_s, at->is_knee ? 'K' : 'o');
    }
}

static void put_cell(char mark, bool is_unicode, fr_buffer *out)
{
    if (is_unicode && mark == 'o')
        fr_buffer_puts(out, "●");
    else if (is_unicode && mark == '.')
        fr_buffer_puts(out, "·");
    else
        fr_buffer_putc(out, mark);
}

static void print(const fr_sweep *sweep, const size_t *curve, size_t n,
                  bool is_unicode, fr_buffer *out)
{
    canvas c;
    char high[FR_FORMAT_MAX], low[FR_FORMAT_MAX];
    draw(sweep, curve, n, &c);
    fr_format_count(high, sizeof high, exp(c.high_y));
    fr_format_count(low, sizeof low, exp(c.low_y));
    for (int row = 0; row < HEIGHT; row++) {
        int n_used = WIDTH;
        while (n_used > 0 && c.cell[row][n_used - 1] == ' ')
            n_used--;
        fr_buffer_printf(out, "%8s %s",
                         row == 0            ? high
                         : row == HEIGHT - 1 ? low
                                             : "",
                         is_unicode ? "│" : "|");
        for (int i = 0; i < n_used; i++)
            put_cell(c.cell[row][i], is_unicode, out);
        fr_buffer_putc(out, '\n');
    }
    fr_buffer_printf(out, "%8s %s", "", is_unicode ? "└" : "+");
    for (int i = 0; i < WIDTH; i++)
        fr_buffer_puts(out, is_unicode ? "─" : "-");
    fr_buffer_printf(out, "\n%8s  %-10lld%*lld ranks\n",
                     sweep->has_tokens ? "tokens/s" : "",
                     (long long)sweep->points[curve[0]].n_ranks, WIDTH - 10,
                     (long long)sweep->points[curve[n - 1]].n_ranks);
}

/* "gpu h100, seq 4096" */
static void print_title(const fr_sweep *sweep, size_t point, fr_buffer *out)
{
    bool is_first = true;
    fr_buffer_putc(out, '\n');
    for (int k = 0; k < sweep->n_keys; k++) {
        if (k == sweep->i_scale_key)
            continue;
        fr_buffer_printf(out, "%s%s %s", is_first ? "" : ", ",
                         sweep->keys[k].name,
                         fr_sweep_text_of(sweep, point, k));
        is_first = false;
    }
    if (!is_first)
        fr_buffer_putc(out, '\n');
}

fr_status fr_report_sweep_plot(const fr_sweep *sweep, bool is_unicode,
                               fr_buffer *out, fr_err *err)
{
    if (sweep->i_scale_key < 0) {
        fr_buffer_puts(out, "\nno curve: vary nodes, ranks or dp\n");
        return fr_buffer_check(out, err);
    }
    size_t *curve =
        malloc(sweep->keys[sweep->i_scale_key].n_values * sizeof *curve);
    if (curve == NULL)
        return fr_fail_no_memory(err);
    for (size_t n, i = 0; (n = fr_sweep_next_curve(sweep, &i, curve)) > 0;) {
        if (n < 2)
            continue;
        print_title(sweep, curve[0], out);
        print(sweep, curve, n, is_unicode, out);
    }
    free(curve);
    return fr_buffer_check(out, err);
}
