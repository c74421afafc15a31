/* charts.c: see charts.h. */
#include "report/document/charts.h"

#include "core/base/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- curves ------------------------------------------------------------- */

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

static void plot_points(const fr_plot *plot, canvas *c)
{
    const double first_x = plot->points[0].x;
    const double last_x = plot->points[plot->n - 1].x;
    memset(c->cell, ' ', sizeof c->cell);
    c->low_x = log(first_x);
    c->high_x = log(last_x);
    c->low_y = log(plot->points[0].y);
    c->high_y = log(plot->ideal_slope * last_x);
    for (size_t i = 0; i < plot->n; i++) {
        const double y = log(plot->points[i].y);
        c->low_y = fmin(c->low_y, y);
        c->high_y = fmax(c->high_y, y);
    }
    for (int i = 0; i < WIDTH; i++) {
        double x = exp(c->low_x + (c->high_x - c->low_x) * i / (WIDTH - 1));
        put(c, x, plot->ideal_slope * x, '.');
    }
    for (size_t i = 0; i < plot->n; i++)
        put(c, plot->points[i].x, plot->points[i].y,
            plot->points[i].is_marked ? 'K' : 'o');
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

void fr_plot_draw(const fr_plot *plot, const fr_layout *layout, fr_buffer *out)
{
    const bool is_unicode = layout == NULL || !layout->is_ascii;
    canvas c;
    char high[FR_FORMAT_MAX], low[FR_FORMAT_MAX];
    plot_points(plot, &c);
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
    fr_buffer_printf(out, "\n%8s  %-10.0f%*.0f %s\n", plot->y_title,
                     plot->points[0].x, WIDTH - 10, plot->points[plot->n - 1].x,
                     plot->x_title);
}

/* ---- lanes -------------------------------------------------------------- */

static const struct {
    const char *unicode, *ascii, *title;
} uses[FR_USE_N] = {
    [FR_USE_IDLE] = {"·", ".", "idle"},
    [FR_USE_FORWARD] = {"▒", "f", "forward"},
    [FR_USE_BACKWARD] = {"█", "b", "backward"},
    [FR_USE_OPTIMIZER] = {"◆", "o", "optimizer"},
    [FR_USE_COMMUNICATION] = {"━", "=", "communication"},
    [FR_USE_WAITING] = {"╌", "-", "waiting for another rank"},
    [FR_USE_OTHER] = {"░", "x", "other"},
};

enum { LABEL_COLUMNS = 14 }; /* rank and lane before the cells */

typedef struct picture {
    const fr_lanes *lanes;
    int n_cells;
    int64_t *busy_ps; /* of the row that is drawn: [n_cells][FR_USE_N] */
    bool is_seen[FR_USE_N];
} picture;

/* The cell's begin: end * i / n without overflow. */
static int64_t edge_ps(const picture *p, int i)
{
    const int64_t end_ps = p->lanes->end_ps;
    return end_ps / p->n_cells * i + end_ps % p->n_cells * i / p->n_cells;
}

static void paint(picture *p, const fr_lane_span *span)
{
    double frac = (double)span->begin_ps / (double)p->lanes->end_ps;
    int first = (int)(frac * p->n_cells) - 1; /* one early: rounding */
    for (int i = first < 0 ? 0 : first; i < p->n_cells; i++) {
        int64_t low_ps = edge_ps(p, i), high_ps = edge_ps(p, i + 1);
        if (low_ps >= span->end_ps)
            break;
        int64_t from = span->begin_ps > low_ps ? span->begin_ps : low_ps;
        int64_t to = span->end_ps < high_ps ? span->end_ps : high_ps;
        if (to > from)
            p->busy_ps[i * FR_USE_N + (int)span->use] += to - from;
    }
}

static fr_lane_use longest(const picture *p, int cell)
{
    const int64_t *busy_ps = p->busy_ps + cell * FR_USE_N;
    int best = FR_USE_IDLE;
    int64_t all_ps = 0;
    for (int k = 1; k < FR_USE_N; k++) {
        all_ps += busy_ps[k];
        if (busy_ps[k] > busy_ps[best])
            best = k;
    }
    /* Idle wins where the lane stood still for most of the cell. */
    return 2 * all_ps * p->n_cells < p->lanes->end_ps ? FR_USE_IDLE
                                                      : (fr_lane_use)best;
}

static void draw_row(picture *p, const fr_lane_row *row, bool is_unicode,
                     fr_buffer *out)
{
    const size_t n = (size_t)p->n_cells * FR_USE_N;
    memset(p->busy_ps, 0, n * sizeof *p->busy_ps);
    for (size_t i = 0; i < row->spans.n; i++)
        paint(p, &row->spans.items[i]);
    fr_buffer_printf(out, "%4d %-8s ", (int)row->rank, row->name);
    for (int i = 0; i < p->n_cells; i++) {
        fr_lane_use use = longest(p, i);
        p->is_seen[use] = true;
        fr_buffer_puts(out, is_unicode ? uses[use].unicode : uses[use].ascii);
    }
    fr_buffer_putc(out, '\n');
}

/* Explains the uses that were drawn; a line is as wide as the picture. */
static void draw_legend(const picture *p, bool is_unicode, fr_buffer *out)
{
    int n_free = -1; /* characters that are left of the line; -1: no line yet */
    for (int k = 0; k < FR_USE_N; k++) {
        if (!p->is_seen[k])
            continue;
        const int n = (int)strlen(" . ") + (int)strlen(uses[k].title);
        if (n > n_free) {
            fr_buffer_printf(out, "%s%*s", n_free < 0 ? "" : "\n",
                             LABEL_COLUMNS - 1, "");
            n_free = p->n_cells + 1;
        }
        fr_buffer_printf(out, " %s %s",
                         is_unicode ? uses[k].unicode : uses[k].ascii,
                         uses[k].title);
        n_free -= n;
    }
    fr_buffer_putc(out, '\n');
}

static void draw_picture(picture *p, bool is_unicode, fr_buffer *out)
{
    char time[FR_FORMAT_MAX];
    const fr_lanes *lanes = p->lanes;
    fr_buffer_printf(
        out, "rank lane     0%*s\n", p->n_cells - 1,
        fr_format_s(time, sizeof time, 1e-12 * (double)lanes->end_ps));
    for (size_t i = 0; i < lanes->n; i++)
        draw_row(p, &lanes->rows[i], is_unicode, out);
    if (lanes->n_others > 0)
        fr_buffer_printf(out, "... and %lld ranks more\n",
                         (long long)lanes->n_others);
    if (lanes->is_folded)
        fr_buffer_puts(out, "(one rank for all that do the same)\n");
    draw_legend(p, is_unicode, out);
}

void fr_lanes_draw(const fr_lanes *lanes, const fr_layout *layout,
                   fr_buffer *out)
{
    picture p = {.lanes = lanes,
                 .n_cells = (int)fr_layout_wide(layout) - LABEL_COLUMNS};
    p.busy_ps = malloc((size_t)p.n_cells * FR_USE_N * sizeof *p.busy_ps);
    if (p.busy_ps == NULL)
        out->has_failed = true;
    else
        draw_picture(&p, layout == NULL || !layout->is_ascii, out);
    free(p.busy_ps);
}
