/* compression_report.c: a row per compressor, and what to do. */
#include "report/compression_report.h"

#include "core/base/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static double gbps(const fr_break_even *answer, double factor)
{
    return factor * answer->link_Bps * 8e-9;
}

/* ---- JSON --------------------------------------------------------------- */

/* An end beyond all that was looked at is null. */
static void put_rate(const fr_break_even *answer, const char *key,
                     double factor, bool is_multiple, fr_json_writer *json)
{
    bool is_known = factor > 0 && (is_multiple || answer->link_Bps > 0);
    double value = is_multiple ? factor : gbps(answer, factor);
    fr_json_put_double(json, key, is_known ? value : NAN);
}

static void put_range(const fr_break_even *answer, const fr_rate_range *range,
                      fr_json_writer *json)
{
    fr_json_begin_object(json);
    put_rate(answer, "from_gbps", range->from, false, json);
    put_rate(answer, "to_gbps", range->to, false, json);
    put_rate(answer, "from_multiple", range->from, true, json);
    put_rate(answer, "to_multiple", range->to, true, json);
    fr_json_end_object(json);
}

/* Returns how the payloads of several ranks are combined. */
static const char *way(const fr_compression *of)
{
    return of->is_gathered ? "gathered" : "added";
}

static void put_compression(const fr_break_even *answer,
                            const fr_compression *of, fr_json_writer *json)
{
    bool is_below = of->n_pays == 1 && of->pays[0].from <= 0;
    fr_json_begin_object(json);
    fr_json_put_string(json, "name", of->name);
    fr_json_put_string(json, "payloads", way(of));
    fr_json_put_string(json, "verdict", fr_verdict_name(of->verdict));
    if (of->verdict == FR_VERDICT_ILLEGAL) {
        fr_json_put_string(json, "why", of->why);
        fr_json_end_object(json);
        return;
    }
    fr_json_put_double(json, "step_s", of->step_s);
    fr_json_put_double(json, "diff", of->diff);
    fr_json_put_u64(json, "peak_bytes", of->peak_bytes);
    fr_json_put_u64(json, "short_by_bytes", of->short_by_bytes);
    put_rate(answer, "break_even_gbps", is_below ? of->pays[0].to : 0, false,
             json);
    fr_json_open_array(json, "pays");
    for (int i = 0; i < of->n_pays; i++)
        put_range(answer, &of->pays[i], json);
    fr_json_end_array(json);
    fr_json_end_object(json);
}

static void put_data(const fr_break_even *answer, fr_json_writer *json)
{
    if (answer->n == 0) {
        fr_json_put_null(json, "compression_link");
        fr_json_put_null(json, "compression");
        return;
    }
    fr_json_open_object(json, "compression_link");
    fr_json_put_string(json, "name", fr_resource_name(answer->link));
    put_rate(answer, "gbps", 1, false, json);
    fr_json_put_double(json, "least_multiple", answer->least);
    fr_json_put_double(json, "most_multiple", answer->most);
    fr_json_put_double(json, "uncompressed_step_s", answer->plain_s);
    fr_json_end_object(json);
    fr_json_open_array(json, "compression");
    for (int i = 0; i < answer->n; i++)
        put_compression(answer, &answer->of[i], json);
    fr_json_end_array(json);
}

/* ---- text --------------------------------------------------------------- */

/* "23.5 Gb/s"; where no rate is known, "0.059 x". */
static const char *rate(const fr_break_even *answer, double factor, char *buf,
                        size_t n)
{
    double at = gbps(answer, factor);
    if (answer->link_Bps <= 0)
        snprintf(buf, n, "%.3g x", factor);
    else
        snprintf(buf, n, at >= 100 ? "%.0f Gb/s" : "%.3g Gb/s", at);
    return buf;
}

/* "below 23.5 Gb/s", "30 Gb/s to 60 Gb/s and above 800 Gb/s", "never" */
static void describe_ranges(const fr_break_even *answer,
                            const fr_compression *of, char *buf, size_t n)
{
    size_t used = 0;
    snprintf(buf, n, "never");
    for (int i = 0; i < of->n_pays && used < n; i++) {
        const fr_rate_range *at = &of->pays[i];
        char from[32], to[32];
        rate(answer, at->from, from, sizeof from);
        if (isfinite(at->to))
            rate(answer, at->to, to, sizeof to);
        used +=
            (size_t)snprintf(buf + used, n - used, "%s", i == 0 ? "" : " and ");
        if (used >= n)
            return;
        if (at->from <= 0 && !isfinite(at->to))
            used += (size_t)snprintf(buf + used, n - used, "at any rate");
        else if (at->from <= 0)
            used += (size_t)snprintf(buf + used, n - used, "below %s", to);
        else if (!isfinite(at->to))
            used += (size_t)snprintf(buf + used, n - used, "above %s", from);
        else
            used +=
                (size_t)snprintf(buf + used, n - used, "%s to %s", from, to);
    }
}

static void add_row(fr_table *table, const fr_break_even *answer,
                    const fr_compression *of)
{
    char bytes[FR_FORMAT_MAX], ranges[160];
    fr_table_text(table, of->name);
    fr_table_text(table, way(of));
    if (of->verdict == FR_VERDICT_ILLEGAL) {
        fr_table_blank(table, 3);
        fr_table_cell(table, "%.*s", (int)strcspn(of->why, ",:;"), of->why);
        return;
    }
    describe_ranges(answer, of, ranges, sizeof ranges);
    fr_table_s(table, of->step_s);
    fr_table_change(table, of->diff);
    fr_table_bytes(table, (double)of->peak_bytes);
    if (of->verdict == FR_VERDICT_TOO_LARGE)
        fr_table_cell(
            table, "%s; %s too large", ranges,
            fr_format_bytes(bytes, sizeof bytes, (double)of->short_by_bytes));
    else
        fr_table_text(table, ranges);
}

static const char *place_of(const fr_break_even *answer)
{
    bool is_net = answer->link == FR_RESOURCE_NETWORK;
    if (answer->link_Bps <= 0)
        return is_net ? "the network as it is" : "the node's links as they are";
    return is_net ? "a NIC" : "a device's link";
}

/* The fastest of those that are faster and fit. */
static const fr_compression *best_of(const fr_break_even *answer)
{
    const fr_compression *best = NULL;
    for (int i = 0; i < answer->n; i++) {
        const fr_compression *at = &answer->of[i];
        if (at->verdict == FR_VERDICT_PAYS &&
            (best == NULL || at->step_s < best->step_s))
            best = at;
    }
    return best;
}

static bool has_legal(const fr_break_even *answer)
{
    for (int i = 0; i < answer->n; i++)
        if (answer->of[i].verdict != FR_VERDICT_ILLEGAL)
            return true;
    return false;
}

static void print_advice(const fr_break_even *answer, fr_document *out)
{
    char now[32] = "the rate of these links", low[32], high[32];
    const fr_compression *best = best_of(answer);
    if (!has_legal(answer)) {
        fr_document_puts(out, "no compressor goes with this plan\n");
        return;
    }
    if (answer->link_Bps > 0)
        rate(answer, 1, now, sizeof now);
    if (best != NULL)
        fr_document_printf(
            out,
            "%s gradients make the step %.1f %% shorter at %s; "
            "they are other gradients:\nwhether the loss falls as "
            "fast is not simulated\n",
            best->name, -100 * best->diff, now);
    else if (answer->plain_fits)
        fr_document_printf(out,
                           "do not compress gradients: at %s nothing that fits "
                           "is faster\n",
                           now);
    else
        fr_document_puts(out,
                         "the plan does not fit, and no compressor makes it "
                         "fit and faster\n");
    fr_document_printf(out, "(looked at: %s to %s)\n",
                       rate(answer, answer->least, low, sizeof low),
                       rate(answer, answer->most, high, sizeof high));
}

void fr_report_compression(const fr_break_even *answer, fr_document *out)
{
    char pays[64];
    snprintf(pays, sizeof pays, "pays, by the rate of %s", place_of(answer));
    const char *const headings[] = {"gradients", "payloads", ">step", "",
                                    ">memory",   pays,       NULL};
    put_data(answer, &out->data);
    if (answer->n == 0)
        return;
    fr_table *table = fr_document_table(out, headings);
    fr_table_text(table, "not compressed");
    fr_table_blank(table, 1);
    fr_table_s(table, answer->plain_s);
    fr_table_blank(table, 3);
    for (int i = 0; i < answer->n; i++)
        add_row(table, answer, &answer->of[i]);
    print_advice(answer, out);
}
