/* rank_times_report.c: see rank_times_report.h. */
#include "report/run/rank_times_report.h"

#include "core/base/units.h"
#include "plan/decide/grid.h"

#include <math.h>
#include <stdio.h>

void fr_report_rank_times_json(const fr_run_report *r, fr_json_writer *json)
{
    if (r->compute_s == NULL) {
        fr_json_put_null(json, "stragglers");
        fr_json_put_null(json, "ranks");
        fr_json_put_null(json, "monitoring_s");
        return;
    }
    fr_json_put_double(json, "monitoring_s", r->monitoring_s);
    fr_json_open_array(json, "stragglers");
    for (size_t i = 0; i < r->n_stragglers; i++) {
        const fr_straggler *at = &r->stragglers[i];
        fr_json_begin_object(json);
        fr_json_put_string(json, "kind", fr_name_of(&fr_slow_names, at->kind));
        fr_json_put_i64(json, "index", at->index);
        if (at->kind == FR_SLOW_LINK)
            fr_json_put_string(json, "part", fr_part_name(at->part));
        fr_json_put_i64(json, "rank", at->rank);
        fr_json_put_i64(json, "ranks", at->n_ranks);
        fr_json_put_double(json, "factor", at->factor);
        fr_json_put_double(json, "lost_s", at->lost_s);
        fr_json_put_i64(json, "first_step", at->first_step);
        if (at->last_step >= 0)
            fr_json_put_i64(json, "last_step", at->last_step);
        else
            fr_json_put_null(json, "last_step");
        fr_json_end_object(json);
    }
    fr_json_end_array(json);
    fr_json_open_array(json, "ranks");
    for (int64_t rank = 0; rank < r->world_size; rank++) {
        const fr_coord at = fr_plan_coord(r->grid, rank);
        fr_json_begin_object(json);
        fr_json_put_i64(json, "rank", rank);
        fr_json_put_i64(json, "dp", at.dp);
        fr_json_put_i64(json, "pp", at.pp);
        fr_json_put_i64(json, "tp", at.tp);
        fr_json_put_double(json, "compute_s", r->compute_s[rank]);
        fr_json_put_double(json, "wait_s", r->wait_s[rank]);
        fr_json_end_object(json);
    }
    fr_json_end_array(json);
}

/* The longest of the ranks at (dp, pp). */
static double longest_s(const fr_run_report *r, int32_t dp, int32_t pp)
{
    double longest = 0;

    for (int32_t cp = 0; cp < r->grid->cp; cp++)
        for (int32_t tp = 0; tp < r->grid->tp; tp++) {
            const fr_coord at = {.tp = tp, .cp = cp, .dp = dp, .pp = pp};
            longest = fmax(longest, r->compute_s[fr_plan_rank(r->grid, at)]);
        }
    return longest;
}

static const char *shade(double quotient)
{
    return quotient < 1.05  ? "·"
           : quotient < 1.2 ? "░"
           : quotient < 1.5 ? "▒"
           : quotient < 2   ? "▓"
                            : "█";
}

/* Against the fastest of all: stages have different work, which shows too. */
static void print_map(const fr_run_report *r, fr_document *out)
{
    enum { MOST_NUMBERS = 12, MOST_SHADES = 80 };
    const int64_t n_dp = r->grid->dp, n_pp = r->grid->pp;
    double fastest = INFINITY;
    fr_buffer text;

    for (int64_t i = 0; i < n_dp * n_pp; i++)
        fastest = fmin(fastest,
                       longest_s(r, (int32_t)(i % n_dp), (int32_t)(i / n_dp)));
    if (!(fastest > 0) || n_dp > MOST_SHADES)
        return;
    fr_document_puts(out, "\n");
    fr_buffer_init(&text);
    fr_buffer_puts(&text, "compute against the fastest, dp across");
    fr_buffer_puts(&text, n_pp > 1 ? ", pipeline stages down\n" : "\n");
    for (int32_t pp = 0; pp < n_pp; pp++) {
        fr_buffer_printf(&text, "%4d ", pp);
        for (int32_t dp = 0; dp < n_dp; dp++) {
            const double quotient = longest_s(r, dp, pp) / fastest;
            if (n_dp > MOST_NUMBERS)
                fr_buffer_puts(&text, shade(quotient));
            else
                fr_buffer_printf(&text, " %5.2f", quotient);
        }
        fr_buffer_puts(&text, "\n");
    }
    if (n_dp > MOST_NUMBERS)
        fr_buffer_puts(&text, "      · to 1.05, ░ to 1.2, ▒ to 1.5, ▓ to 2, █ "
                              "beyond\n");
    out->has_failed |= text.has_failed;
    fr_document_verbatim(out, fr_buffer_text(&text));
    fr_buffer_release(&text);
}

void fr_report_rank_times_text(const fr_run_report *r, fr_document *out)
{
    enum { SMALL_WORLD = 4 };
    char text[160], lost[FR_FORMAT_MAX], until[48];

    if (r->compute_s == NULL)
        return;
    for (size_t i = 0; i < r->n_stragglers; i++) {
        const fr_straggler *at = &r->stragglers[i];
        until[0] = '\0';
        if (at->last_step >= 0)
            (void)snprintf(until, sizeof until, " to about %lld",
                           (long long)at->last_step);
        fr_document_printf(out, "%s%s, from about step %lld%s: %s a step\n",
                           i == 0 ? "\n" : "",
                           fr_straggler_text(at, text, sizeof text),
                           (long long)at->first_step, until,
                           fr_format_s(lost, sizeof lost, at->lost_s));
    }
    if (r->world_size >= SMALL_WORLD ||
        (r->n_stragglers > 0 && r->world_size > 1))
        print_map(r, out);
}
