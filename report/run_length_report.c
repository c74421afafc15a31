/* run_length_report.c: see run_length_report.h. */
#include "report/run_length_report.h"

#include "core/base/units.h"
#include "core/document/fields.h"

#include <math.h>
#include <stdio.h>

fr_table *fr_run_length_begin(const fr_run_counts *counts, fr_document *out)
{
    static const char *const headings[] = {
        "the run",      ">nodes", ">devices", ">time",
        ">19 of 20 by", ">cost",  ">energy",  NULL};
    static const char *const with_failures[] = {
        "the run", ">nodes", ">devices", ">time",   ">19 of 20 by",
        ">useful", ">stops", ">cost",    ">energy", NULL};
    return fr_document_table(out,
                             counts->has_failures ? with_failures : headings);
}

static void put_time(double seconds, fr_table *table)
{
    enum { DAY_S = 86400, YEAR_S = 31557600 };
    if (seconds < DAY_S || seconds >= YEAR_S)
        fr_table_s(table, seconds);
    else
        fr_table_number(table, FR_CELL_S, seconds, "%.3g days",
                        seconds / DAY_S);
}

void fr_run_length_row(const char *label, const fr_run_length *run,
                       fr_table *table)
{
    const fr_run_outlook *outlook = &run->outlook;
    fr_table_text(table, label);
    fr_table_count(table, run->n_nodes);
    fr_table_count(table, run->n_devices);
    put_time(outlook->seconds, table);
    put_time(outlook->seconds_p95, table);
    if (run->counts.has_failures) {
        fr_table_share(table, outlook->useful_frac);
        fr_table_number(table, FR_CELL_NUMBER, outlook->interruptions, "%.3g",
                        outlook->interruptions);
    }
    fr_table_usd(table, outlook->usd > 0 ? outlook->usd : NAN);
    fr_table_kwh(table, outlook->kwh > 0 ? outlook->kwh : NAN);
}

void fr_run_way_text(const char *label, const fr_run_length *run,
                     fr_document *out)
{
    const fr_run_outlook *outlook = &run->outlook;
    const double n_spot = outlook->spot_frac * (double)run->n_nodes;
    char every[FR_FORMAT_MAX];
    if (!run->counts.has_failures || outlook->checkpoint_kind == NULL)
        return;
    fr_document_printf(out, "%s: about %.3g interruptions; checkpoints %s",
                       label, outlook->interruptions, outlook->checkpoint_kind);
    if (outlook->checkpoint_every_s > 0)
        fr_document_printf(
            out, ", after each %s of steps",
            fr_format_s(every, sizeof every, outlook->checkpoint_every_s));
    if (outlook->n_spares >= 0)
        fr_document_printf(out, "; %lld spare node%s",
                           (long long)outlook->n_spares,
                           outlook->n_spares == 1 ? "" : "s");
    if (outlook->least_nodes > 0)
        fr_document_printf(out, "; continues on as few as %lld of %lld nodes",
                           (long long)outlook->least_nodes,
                           (long long)run->n_nodes);
    if (outlook->spot_frac == 1)
        fr_document_puts(out, "; all nodes spot");
    else if (outlook->spot_frac > 0)
        fr_document_printf(out, "; %.0f of %lld nodes spot", n_spot,
                           (long long)run->n_nodes);
    else
        fr_document_puts(out, "; nodes on demand");
    fr_document_puts(out, "\n");
}

void fr_run_most_text(const char *label, const fr_run_length *run,
                      fr_document *out)
{
    char usd[FR_FORMAT_MAX], kwh[FR_FORMAT_MAX];
    const fr_run_outlook *outlook = &run->outlook;
    const bool has_usd = outlook->usd > 0, has_kwh = outlook->kwh > 0;
    if (!(outlook->seconds_p95 > outlook->seconds) || !(has_usd || has_kwh))
        return;
    fr_document_printf(
        out, "%s: 19 of 20 runs%s%s%s%s%s\n", label,
        has_usd ? " cost at most " : "",
        has_usd ? fr_format_usd(usd, sizeof usd, outlook->usd_p95) : "",
        has_usd && has_kwh ? " and" : "", has_kwh ? " draw at most " : "",
        has_kwh ? fr_format_kwh(kwh, sizeof kwh, outlook->kwh_p95) : "");
}

static const char *is_without(const fr_run_counts *counts)
{
    return counts->has_failures ? "start-up, maintenance, evaluation"
                                : "failures, restarts, evaluation";
}

void fr_run_counts_text(const fr_run_counts *counts, fr_document *out)
{
    if (counts->has_failures)
        fr_document_printf(out, "with failures%s, checkpoints, restarts; ",
                           counts->is_mtbf_assumed ? " as Llama 3's" : "");
    fr_document_printf(out, "without %s", is_without(counts));
    if (counts->lacks_spot_rate)
        fr_document_puts(out,
                         "\nspot nodes stay: how often they go is not known "
                         "(--spot-every 200h)");
}

void fr_run_length_legend(const fr_run_counts *counts, fr_document *out)
{
    fr_run_counts_text(counts, out);
    if (counts->lacks_switches)
        fr_document_puts(out, "\nenergy without " FR_RUN_ENERGY_IS_WITHOUT);
    fr_document_puts(out, "\n");
}

static const fr_field outlook_fields[] = {
    FR_FIELD(fr_run_outlook, seconds),
    FR_FIELD(fr_run_outlook, seconds_p95),
    FR_FIELD(fr_run_outlook, usd),
    FR_FIELD(fr_run_outlook, usd_p95),
    FR_FIELD(fr_run_outlook, kwh),
    FR_FIELD(fr_run_outlook, kwh_p95),
    {"useful", FR_MEMBER(fr_run_outlook, useful_frac)},
    FR_FIELD(fr_run_outlook, interruptions),
    FR_FIELD(fr_run_outlook, checkpoint_kind),
    FR_FIELD(fr_run_outlook, checkpoint_every_s),
    {"spares", FR_MEMBER(fr_run_outlook, n_spares)},
    FR_FIELD(fr_run_outlook, spot_frac),
    FR_FIELD(fr_run_outlook, least_nodes),
};

static const fr_field run_fields[] = {
    {"steps", FR_MEMBER(fr_run_length, n_steps)},
    {"tokens", FR_MEMBER(fr_run_length, n_tokens)},
    {"nodes", FR_MEMBER(fr_run_length, n_nodes)},
    {"devices", FR_MEMBER(fr_run_length, n_devices)},
};

void fr_run_outlook_json(const fr_run_outlook *outlook, fr_json_writer *json)
{
    fr_run_outlook known = *outlook;
    if (!(known.usd > 0)) /* no price, no power is known */
        known.usd = known.usd_p95 = NAN;
    if (!(known.kwh > 0))
        known.kwh = known.kwh_p95 = NAN;
    fr_fields_put(FR_FIELDS(outlook_fields), &known, json);
}

void fr_run_counts_json(const fr_run_counts *counts, fr_json_writer *json)
{
    fr_json_put_string(json, "run_is_without", is_without(counts));
    fr_json_put_string(json, "run_failures",
                       !counts->has_failures     ? "none"
                       : counts->is_mtbf_assumed ? "assumed"
                                                 : "given");
    if (counts->lacks_spot_rate)
        fr_json_put_string(json, "run_spot", "as if no node went");
    if (counts->lacks_switches)
        fr_json_put_string(json, "run_energy_is_without",
                           FR_RUN_ENERGY_IS_WITHOUT);
}

void fr_report_run_length(const fr_run_length *run, fr_document *out)
{
    char label[64], tokens[FR_FORMAT_MAX];
    snprintf(label, sizeof label, "%s %s, %.0f step%s",
             fr_format_count(tokens, sizeof tokens, run->n_tokens),
             run->has_tokens ? "tokens" : "samples", ceil(run->n_steps),
             run->n_steps == 1 ? "" : "s");
    fr_document_puts(out, "\n");
    fr_run_length_row(label, run, fr_run_length_begin(&run->counts, out));
    fr_run_way_text("the run", run, out);
    fr_run_most_text("the run", run, out);
    fr_run_length_legend(&run->counts, out);
    fr_json_open_object(&out->data, "run");
    fr_fields_put(FR_FIELDS(run_fields), run, &out->data);
    fr_run_outlook_json(&run->outlook, &out->data);
    fr_json_end_object(&out->data);
    fr_run_counts_json(&run->counts, &out->data);
}
