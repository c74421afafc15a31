/* goodput_report.c: see goodput_report.h. */
#include "report/goodput/goodput_report.h"

#include "core/base/units.h"
#include "core/document/fields.h"

#include <math.h>
#include <stdio.h>

/* ---- JSON ---------------------------------------------------------------- */

static const fr_field spread_fields[] = {
    {"p5", FR_MEMBER(fr_goodput, finish_days.p5)},
    {"p50", FR_MEMBER(fr_goodput, finish_days.p50)},
    {"p95", FR_MEMBER(fr_goodput, finish_days.p95)},
    {"mean", FR_MEMBER(fr_goodput, finish_days_mean)},
};

static const fr_field goodput_fields[] = {
    FR_FIELD(fr_goodput, goodput),
    FR_FIELD(fr_goodput, goodput_p5),
    FR_FIELD(fr_goodput, goodput_p95),
    FR_FIELD(fr_goodput, goodput_standard_error),
    FR_FIELD(fr_goodput, expected_goodput),
    {"waterfall", FR_MEMBER(fr_goodput, waterfall),
     .names = &fr_run_part_names},
    FR_GROUP("finish_days", spread_fields),
    FR_FIELD(fr_goodput, interruptions),
    {"runs", FR_MEMBER(fr_goodput, n_runs)},
    {"unfinished", FR_MEMBER(fr_goodput, n_unfinished)},
};

static const fr_field sum_fields[] = {
    FR_FIELD(fr_goodput_setup, usd),
    FR_FIELD(fr_goodput_setup, kwh),
    FR_FIELD(fr_goodput_setup, kgco2e),
};

static const fr_field event_fields[] = {
    {"maintenance_s", FR_MEMBER(fr_goodput_setup, events.maintenance_s)},
    {"maintenance_every_s",
     FR_MEMBER(fr_goodput_setup, events.maintenance_every_s)},
    {"evaluation_s", FR_MEMBER(fr_goodput_setup, events.evaluation_s)},
    {"evaluation_every_steps",
     FR_MEMBER(fr_goodput_setup, events.evaluation_every_steps)},
    {"slow_s", FR_MEMBER(fr_goodput_setup, events.slow_s)},
    {"slow_factor", FR_MEMBER(fr_goodput_setup, events.slow_factor)},
    {"slow_every_s", FR_MEMBER(fr_goodput_setup, events.slow_every_s)},
    {"rack_nodes", FR_MEMBER(fr_goodput_setup, events.rack_nodes)},
    {"rack_every_s", FR_MEMBER(fr_goodput_setup, events.rack_every_s)},
};

static const fr_field setup_fields[] = {
    FR_FIELD(fr_goodput_setup, step_s),
    FR_FIELD(fr_goodput_setup, work_days),
    FR_FIELD(fr_goodput_setup, horizon_days),
    {"nodes", FR_MEMBER(fr_goodput_setup, n_nodes)},
    {"devices", FR_MEMBER(fr_goodput_setup, n_devices)},
    {"backup_workers", FR_MEMBER(fr_goodput_setup, n_backups)},
    FR_FIELD(fr_goodput_setup, device_mtbf_s),
    FR_FIELD(fr_goodput_setup, job_mtbf_s),
    FR_FIELD(fr_goodput_setup, is_mtbf_assumed),
    FR_FIELD(fr_goodput_setup, restart_s),
    FR_FIELD(fr_goodput_setup, is_restart_assumed),
    {"checkpoint_every_steps", FR_MEMBER(fr_goodput_setup, every_steps)},
    FR_FIELD(fr_goodput_setup, is_interval_best),
    FR_FIELD(fr_goodput_setup, checkpoint_bytes),
    {"checkpoint_blocked_s", FR_MEMBER(fr_goodput_setup, blocked_s)},
    {"checkpoint_drain_s", FR_MEMBER(fr_goodput_setup, drain_s)},
    FR_FIELD(fr_goodput_setup, storage_write_Bps),
    FR_FIELD(fr_goodput_setup, is_storage_assumed),
    {"spares", FR_MEMBER(fr_goodput_setup, n_spares)},
    FR_FIELD(fr_goodput_setup, repair_s),
    FR_FIELD(fr_goodput_setup, least_nodes),
    FR_FIELD(fr_goodput_setup, speed_without_one),
    FR_GROUP("meets", event_fields),
    FR_FIELD(fr_goodput_setup, is_spot),
};

static void put_data(const fr_goodput *goodput, const fr_goodput_setup *setup,
                     fr_json_writer *json)
{
    fr_goodput known = *goodput;
    if (!(known.expected_goodput > 0)) /* there is no formula for it */
        known.expected_goodput = NAN;
    fr_fields_put(FR_FIELDS(goodput_fields), &known, json);
    fr_fields_put(FR_FIELDS(sum_fields), setup, json);
    fr_json_put_string(json, "checkpoint_kind", setup->checkpoint_kind);
    fr_json_key(json, "conditions");
    fr_fields_write(FR_FIELDS(setup_fields), setup, json);
}

/* ---- text ---------------------------------------------------------------- */

static const char *or_assumed(bool is_assumed)
{
    return is_assumed ? " (assumed)" : "";
}

static void print_backups(const fr_goodput_setup *s, fr_document *out)
{
    if (s->n_backups > 0)
        fr_document_printf(out,
                           "backup workers: a step takes the first %lld of "
                           "%lld replicas; the rest of their samples is "
                           "dropped\n",
                           (long long)(s->n_replicas - s->n_backups),
                           (long long)s->n_replicas);
}

static void print_failures(const fr_goodput_setup *s, fr_document *out)
{
    char job[FR_FORMAT_MAX], device[FR_FORMAT_MAX], restart[FR_FORMAT_MAX];
    if (isinf(s->job_mtbf_s)) {
        fr_document_puts(out, "failures: none are known of such devices; give "
                              "--mtbf, or the cluster a <reliability>\n");
    } else {
        fr_document_printf(
            out, "failures: every %s, one of a device every %s hours%s\n",
            fr_format_s(job, sizeof job, s->job_mtbf_s),
            fr_format_u64(device, sizeof device,
                          (uint64_t)fmin(s->device_mtbf_s / 3600 + 0.5, 1e15)),
            s->is_mtbf_assumed
                ? " (assumed: Llama 3, 419 interruptions of 16,384 H100 in 54 "
                  "days)"
                : "");
        fr_document_printf(out, "restart: %s%s",
                           fr_format_s(restart, sizeof restart, s->restart_s),
                           or_assumed(s->is_restart_assumed));
        if (s->n_spares >= 0)
            fr_document_printf(
                out, ", %lld spare nodes, repair %s\n", (long long)s->n_spares,
                fr_format_s(restart, sizeof restart, s->repair_s));
        else
            fr_document_puts(out,
                             ", a spare node is always there (--spares)\n");
    }
}

static void print_checkpoints(const fr_goodput_setup *s, fr_document *out)
{
    char every[FR_FORMAT_MAX], bytes[FR_FORMAT_MAX], rate[FR_FORMAT_MAX];
    char blocked[FR_FORMAT_MAX], drain[FR_FORMAT_MAX];
    if (s->every_steps == 0) {
        fr_document_puts(out, "checkpoints: only at the end\n");
        return;
    }
    fr_document_printf(
        out, "checkpoints: every %lld step%s, %s%s; %s at %s%s: %s, blocks %s",
        (long long)s->every_steps, s->every_steps == 1 ? "" : "s",
        fr_format_s(every, sizeof every, (double)s->every_steps * s->step_s),
        s->is_interval_best ? " (best)" : "",
        fr_format_bytes(bytes, sizeof bytes, (double)s->checkpoint_bytes),
        fr_format_Bps(rate, sizeof rate, s->storage_write_Bps),
        or_assumed(s->is_storage_assumed), s->checkpoint_kind,
        fr_format_s(blocked, sizeof blocked, s->blocked_s));
    if (s->drain_s > 0)
        fr_document_printf(out, ", safe %s later",
                           fr_format_s(drain, sizeof drain, s->drain_s));
    fr_document_puts(out, "\n");
}

/* A line for each kind that there is. */
static void print_events(const fr_run_events *e, int64_t n_nodes,
                         fr_document *out)
{
    char first[FR_FORMAT_MAX], second[FR_FORMAT_MAX];
    if (e->rack_every_s > 0)
        fr_document_printf(
            out, "racks: %.0f nodes fail together every %s\n", e->rack_nodes,
            fr_format_s(first, sizeof first,
                        e->rack_every_s /
                            fmax((double)n_nodes / e->rack_nodes, 1)));
    if (e->slow_every_s > 0)
        fr_document_printf(
            out,
            "slow nodes: one every %s, all steps take %.3g times as long for "
            "%s\n",
            fr_format_s(first, sizeof first, e->slow_every_s / (double)n_nodes),
            e->slow_factor, fr_format_s(second, sizeof second, e->slow_s));
    if (e->maintenance_every_s > 0)
        fr_document_printf(
            out, "maintenance: %s every %s, announced\n",
            fr_format_s(first, sizeof first, e->maintenance_s),
            fr_format_s(second, sizeof second, e->maintenance_every_s));
    if (e->evaluation_every_steps > 0)
        fr_document_printf(out, "evaluation: %s every %.0f steps\n",
                           fr_format_s(first, sizeof first, e->evaluation_s),
                           e->evaluation_every_steps);
}

static void print_setup(const fr_goodput_setup *s, fr_document *out)
{
    char step[FR_FORMAT_MAX], every[FR_FORMAT_MAX], wait[FR_FORMAT_MAX];
    fr_document_printf(out, "run: %.4g days of steps of %s on %lld device%s",
                       s->work_days, fr_format_s(step, sizeof step, s->step_s),
                       (long long)s->n_devices, s->n_devices == 1 ? "" : "s");
    fr_document_printf(out, " of %lld node%s\n", (long long)s->n_nodes,
                       s->n_nodes == 1 ? "" : "s");
    print_backups(s, out);
    print_failures(s, out);
    print_events(&s->events, s->n_nodes, out);
    if (s->least_nodes > 0)
        fr_document_printf(out,
                           "elastic: planned anew for as few as %lld node%s; "
                           "without one at %.1f %% of the rate\n",
                           (long long)s->least_nodes,
                           s->least_nodes == 1 ? "" : "s",
                           100 * s->speed_without_one);
    if (s->is_spot)
        fr_document_printf(out, "spot: nodes go every %s, for %s\n",
                           fr_format_s(every, sizeof every, s->spot_mtbf_s),
                           fr_format_s(wait, sizeof wait, s->spot_wait_s));
    print_checkpoints(s, out);
}

void fr_report_waterfall(const double shares[FR_RUN_PARTS], double amount,
                         const char *unit, fr_document *out)
{
    char unit_heading[16];
    (void)snprintf(unit_heading, sizeof unit_heading, ">%s", unit);
    const char *const headings[] = {"time", ">share", unit_heading, "", NULL};
    fr_table *table = fr_document_table(out, headings);
    for (int part = 0; part < FR_RUN_PARTS; part++) {
        const double of_part = shares[part] * amount;
        if (!(shares[part] > 0))
            continue;
        fr_table_text(table, fr_name_at(&fr_run_part_names, part));
        fr_table_number(table, FR_CELL_SHARE, shares[part], "%.2f %%",
                        100 * shares[part]);
        if (isfinite(amount))
            fr_table_number(table, FR_CELL_NUMBER, of_part, "%.3g", of_part);
        else
            fr_table_number(table, FR_CELL_NUMBER, of_part, "-");
        fr_table_bar(table, shares[part], FR_BAR_CELLS);
    }
}

enum { AT_MOST = 32 + FR_FORMAT_MAX };

/* Money and energy grow with the time until the end. */
static char *at_most(double expected, double p95_factor,
                     char *(*format)(char *, size_t, double), char out[AT_MOST])
{
    char amount[FR_FORMAT_MAX];
    out[0] = '\0';
    if (isfinite(p95_factor))
        snprintf(out, AT_MOST, " (19 of 20: at most %s)",
                 format(amount, sizeof amount, expected * p95_factor));
    return out;
}

static void print_finish(const fr_goodput *g, const fr_goodput_setup *s,
                         fr_document *out)
{
    char usd[FR_FORMAT_MAX], kwh[FR_FORMAT_MAX], most[AT_MOST];
    const double p95_factor = g->finish_days.p95 / g->finish_days_mean;
    if (isinf(g->finish_days.p50))
        fr_document_puts(out, "finish: it does not; save more often, restart "
                              "faster, or take fewer nodes\n");
    else if (isinf(g->finish_days.p95))
        fr_document_printf(out,
                           "finish: after %.4g days in half of the runs, "
                           "not at all in %.3g %%\n",
                           g->finish_days.p50,
                           100.0 * (double)g->n_unfinished / (double)g->n_runs);
    else
        fr_document_printf(out,
                           "finish: after %.4g days (90 %%: %.4g to %.4g) "
                           "instead of %.4g\n",
                           g->finish_days.p50, g->finish_days.p5,
                           g->finish_days.p95, s->work_days);
    if (s->usd > 0)
        fr_document_printf(out, "cost until then: %s%s\n",
                           fr_format_usd(usd, sizeof usd, s->usd),
                           at_most(s->usd, p95_factor, fr_format_usd, most));
    if (s->kwh > 0)
        fr_document_printf(out, "energy until then: %s%s",
                           fr_format_kwh(kwh, sizeof kwh, s->kwh),
                           at_most(s->kwh, p95_factor, fr_format_kwh, most));
    if (s->kwh > 0 && s->kgco2e > 0)
        fr_document_printf(out, ", %.4g t of CO2e", s->kgco2e / 1000);
    if (s->kwh > 0)
        fr_document_puts(out, "\n");
}

void fr_report_goodput(const fr_goodput *g, const fr_goodput_setup *s,
                       fr_document *out)
{
    put_data(g, s, &out->data);
    print_setup(s, out);
    fr_document_printf(out,
                       "\ngoodput %.2f %% (90 %% of runs: %.2f to %.2f), %.4g "
                       "interruptions\n\n",
                       100 * g->goodput, 100 * g->goodput_p5,
                       100 * g->goodput_p95, g->interruptions);
    fr_report_waterfall(g->waterfall,
                        s->horizon_days > 0 ? s->horizon_days
                                            : g->finish_days_mean,
                        "days", out);
    fr_document_puts(out, "\n");
    print_finish(g, s, out);
}

static void put_days(double days, fr_table *table)
{
    if (isinf(days))
        fr_table_number(table, FR_CELL_NUMBER, days, "never");
    else
        fr_table_number(table, FR_CELL_NUMBER, days, "%.4g days", days);
}

void fr_report_goodput_changes(const fr_goodput_change *changes, size_t n,
                               fr_document *out)
{
    static const fr_column columns[] = {{"one change", "name"},
                                        {">goodput", "goodput"},
                                        {">finish", "finish_days_p50"},
                                        {">19 of 20 by", "finish_days_p95"},
                                        {">cost", "usd"}};
    if (n > 0)
        fr_document_puts(out, "\n");
    fr_table *table =
        fr_document_records(out, "changes", columns, FR_LENGTH(columns));
    for (size_t i = 0; i < n; i++) {
        const fr_goodput_change *at = &changes[i];
        fr_table_text(table, at->name);
        fr_table_number(table, FR_CELL_SHARE, at->goodput, "%.2f %%",
                        100 * at->goodput);
        put_days(at->finish_days_p50, table);
        put_days(at->finish_days_p95, table);
        if (at->usd > 0)
            fr_table_usd(table, at->usd);
        else
            fr_table_number(table, FR_CELL_USD, at->usd, "-");
    }
}
