/* sweep_plot.c: scaling curves; see sweep_report.h. */
#include "report/sweep_report.h"

#include <stdlib.h>

/* "gpu h100, seq 4096" */
static void print_title(const fr_sweep *sweep, size_t point, fr_document *out)
{
    bool is_first = true;
    fr_document_puts(out, "\n");
    for (int k = 0; k < sweep->n_keys; k++) {
        if (k == sweep->i_scale_key)
            continue;
        fr_document_printf(out, "%s%s %s", is_first ? "" : ", ",
                           sweep->keys[k].name,
                           fr_sweep_text_of(sweep, point, k));
        is_first = false;
    }
    if (!is_first)
        fr_document_puts(out, "\n");
}

/* NULL: there is no memory. */
static fr_plot *plot_of(const fr_sweep *sweep, const size_t *curve, size_t n)
{
    fr_plot *plot = calloc(1, sizeof *plot);
    if (plot == NULL)
        return NULL;
    plot->points = calloc(n, sizeof *plot->points);
    if (plot->points == NULL) {
        free(plot);
        return NULL;
    }
    plot->n = n;
    plot->x_title = "ranks";
    plot->y_title = sweep->has_tokens ? "tokens/s" : "";
    plot->ideal_slope = sweep->points[curve[0]].tokens_per_s_per_rank;
    for (size_t i = 0; i < n; i++) {
        const fr_sweep_point *at = &sweep->points[curve[i]];
        plot->points[i].x = (double)at->n_ranks;
        plot->points[i].y = at->tokens_per_s;
        plot->points[i].is_marked = at->is_knee;
    }
    return plot;
}

fr_status fr_report_sweep_plot(const fr_sweep *sweep, fr_document *out,
                               fr_err *err)
{
    if (sweep->i_scale_key < 0) {
        fr_document_puts(out, "\nno curve: vary nodes, ranks or dp\n");
        return FR_OK;
    }
    size_t *curve =
        malloc(sweep->keys[sweep->i_scale_key].n_values * sizeof *curve);
    if (curve == NULL)
        return fr_fail_no_memory(err);
    for (size_t n, i = 0; (n = fr_sweep_next_curve(sweep, &i, curve)) > 0;) {
        if (n < 2)
            continue;
        print_title(sweep, curve[0], out);
        fr_document_plot(out, plot_of(sweep, curve, n));
    }
    free(curve);
    return FR_OK;
}
