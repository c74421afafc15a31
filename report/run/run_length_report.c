/* run_length_report.c: see run_length_report.h. */
#include "report/run/run_length_report.h"

#include "core/base/units.h"
#include "core/document/fields.h"

#include <stdio.h>

void fr_run_length_begin(fr_table *table)
{
    static const char *const headings[] = {
        "the run", ">nodes", ">devices", ">time", ">cost", ">energy", NULL};
    fr_table_init(table, headings);
}

void fr_run_length_row(const char *label, const fr_run_length *run,
                       fr_table *table)
{
    char usd[FR_FORMAT_MAX] = "-", kwh[FR_FORMAT_MAX] = "-";
    enum { DAY_S = 86400, YEAR_S = 31557600 };
    if (run->usd > 0)
        fr_format_usd(usd, sizeof usd, run->usd);
    if (run->kwh > 0)
        fr_format_kwh(kwh, sizeof kwh, run->kwh);
    fr_table_text(table, label);
    fr_table_cell(table, "%lld", (long long)run->n_nodes);
    fr_table_cell(table, "%lld", (long long)run->n_devices);
    if (run->seconds < DAY_S || run->seconds >= YEAR_S)
        fr_table_s(table, run->seconds);
    else
        fr_table_cell(table, "%.3g days", run->seconds / DAY_S);
    fr_table_text(table, usd);
    fr_table_text(table, kwh);
}

void fr_run_length_legend(bool has_no_switches, fr_buffer *out)
{
    fr_buffer_puts(out, "without " FR_RUN_IS_WITHOUT);
    if (has_no_switches)
        fr_buffer_puts(out, "; energy without " FR_RUN_ENERGY_IS_WITHOUT);
    fr_buffer_putc(out, '\n');
}

fr_status fr_report_run_length_text(const fr_run_length *run, fr_buffer *out,
                                    fr_err *err)
{
    char label[64], tokens[FR_FORMAT_MAX];
    fr_table table;
    snprintf(label, sizeof label, "%s tokens, %.0f steps",
             fr_format_count(tokens, sizeof tokens, run->n_tokens),
             run->n_steps);
    fr_run_length_begin(&table);
    fr_run_length_row(label, run, &table);
    fr_buffer_putc(out, '\n');
    FR_TRY(fr_table_finish(&table, out, err));
    fr_run_length_legend(run->has_no_switches, out);
    return fr_buffer_check(out, err);
}

static const fr_field run_fields[] = {
    {"steps", FR_MEMBER(fr_run_length, n_steps)},
    {"tokens", FR_MEMBER(fr_run_length, n_tokens)},
    FR_FIELD(fr_run_length, seconds),
    {"nodes", FR_MEMBER(fr_run_length, n_nodes)},
    {"devices", FR_MEMBER(fr_run_length, n_devices)},
    FR_FIELD(fr_run_length, usd),
    FR_FIELD(fr_run_length, kwh),
};

void fr_report_run_length_json(const fr_run_length *run, fr_json_writer *json)
{
    fr_json_key(json, "run");
    fr_fields_write(FR_FIELDS(run_fields), run, json);
    fr_json_put_string(json, "run_is_without", FR_RUN_IS_WITHOUT);
    if (run->has_no_switches)
        fr_json_put_string(json, "run_energy_is_without",
                           FR_RUN_ENERGY_IS_WITHOUT);
}
