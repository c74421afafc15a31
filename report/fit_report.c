/* fit_report.c: bytes short, the largest parts, sets of changes that fit. */
#include "report/fit_report.h"

#include "core/base/units.h"
#include "core/document/fields.h"
#include "report/document/table.h"

static const fr_field cause_fields[] = {
    FR_FIELD(fr_fit_cause, what),
    {"bytes", FR_MEMBER(fr_fit_cause, n_bytes)},
};

static const fr_field change_fields[] = {
    FR_FIELD(fr_fit_change, what),   FR_FIELD(fr_fit_change, plan),
    FR_FIELD(fr_fit_change, step_s), FR_FIELD(fr_fit_change, peak_bytes),
    FR_FIELD(fr_fit_change, p_fits),
};

void fr_report_fit_json(const fr_fit_advice *advice, fr_json_writer *json)
{
    fr_json_open_object(json, "does_not_fit");
    fr_json_put_string(json, "verdict", advice->verdict);
    fr_json_put_u64(json, "short_by_bytes", advice->short_by_bytes);
    fr_fields_put_array("causes", cause_fields, advice->causes,
                        (size_t)advice->n_causes, json);
    fr_fields_put_array("changes", change_fields, advice->changes,
                        (size_t)advice->n_changes, json);
    fr_json_put_i64(json, "left_out", advice->n_left_out);
    fr_json_end_object(json);
}

void fr_report_verdict_text(const fr_prediction *prediction, fr_buffer *out)
{
    char verdict[FR_FIT_VERDICT];
    if (!prediction->memory.fits)
        fr_buffer_printf(out, "%s\n",
                         fr_fit_verdict(prediction, verdict, sizeof verdict));
}

static fr_status print_changes(const fr_fit_advice *advice, fr_buffer *out,
                               fr_err *err)
{
    static const char *const headings[] = {"it fits with", ">step", ">memory",
                                           ">fits", NULL};
    fr_table table;
    fr_table_init(&table, headings);
    for (int i = 0; i < advice->n_changes; i++) {
        const fr_fit_change *at = &advice->changes[i];
        fr_table_text(&table, at->what);
        fr_table_s(&table, at->step_s);
        fr_table_bytes(&table, (double)at->peak_bytes);
        fr_table_likely(&table, at->p_fits);
    }
    FR_TRY(fr_table_finish(&table, out, err));
    if (advice->n_left_out > 0)
        fr_buffer_printf(out,
                         "%d further sets of changes were left out, not looked "
                         "at or too long to simulate\n",
                         advice->n_left_out);
    return FR_OK;
}

fr_status fr_report_fit_text(const fr_fit_advice *advice, fr_buffer *out,
                             fr_err *err)
{
    char lack[FR_FORMAT_MAX], bytes[FR_FORMAT_MAX];
    fr_buffer_printf(
        out, "%s too large for %s; most of it:\n",
        fr_format_bytes(lack, sizeof lack, (double)advice->short_by_bytes),
        fr_format_bytes(bytes, sizeof bytes, (double)advice->capacity_bytes));
    for (int i = 0; i < advice->n_causes; i++)
        fr_buffer_printf(out, "  %s: %s\n", advice->causes[i].what,
                         fr_format_bytes(bytes, sizeof bytes,
                                         (double)advice->causes[i].n_bytes));
    if (!advice->is_searched)
        return fr_buffer_check(out, err);
    fr_buffer_putc(out, '\n');
    if (advice->n_changes > 0)
        return print_changes(advice, out, err);
    if (advice->n_left_out > 0)
        fr_buffer_printf(out,
                         "no changes of it are known to fit: %d sets were left "
                         "out, not looked at or too long to\nsimulate; forerun "
                         "tune looks at all plans, more nodes need less of "
                         "each\n",
                         advice->n_left_out);
    else
        fr_buffer_puts(out,
                       "no set of up to three changes was found that fits: "
                       "forerun tune looks at\nall plans, more nodes need "
                       "less of each\n");
    return fr_buffer_check(out, err);
}
