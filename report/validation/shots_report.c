/* shots_report.c: see shots_report.h. */
#include "report/validation/shots_report.h"

#include "core/document/fields.h"

#include <math.h>
#include <stdio.h>

static const fr_field score_fields[] = {
    FR_FIELD(fr_shots_score, mape),
    FR_FIELD(fr_shots_score, bias),
    FR_FIELD(fr_shots_score, coverage_90),
    FR_FIELD(fr_shots_score, half_width_median),
};

static const fr_field macro_fields[] = {
    {"sources", FR_MEMBER(fr_shots_macro, n_sources)},
    FR_FIELD(fr_shots_macro, macro_mape),
    FR_FIELD(fr_shots_macro, macro_bias),
    FR_FIELD(fr_shots_macro, macro_coverage_90),
    FR_FIELD(fr_shots_macro, macro_half_width),
};

static void put_source(const fr_shots_source *source, int i,
                       fr_json_writer *json)
{
    if (isnan(source->score[i].mape))
        return;
    fr_json_open_object(json, source->name[0] != '\0' ? source->name : "?");
    fr_json_put_u64(json, "scored", source->n_rows);
    fr_json_put_null(json, "frozen"); /* see put_data() */
    fr_fields_put(FR_FIELDS(score_fields), &source->score[i], json);
    fr_json_end_object(json);
}

/* "development" and "frozen" split the sources in two halves once.  The keys
 * stay for one version without a value, for programs that read them. */
static void put_data(const fr_shots *shots, fr_json_writer *json)
{
    fr_json_put_i64(json, "draws", shots->n_draws);
    fr_json_put_i64(json, "seed", shots->seed);
    fr_json_open_array(json, "shots");
    for (int i = 0; i < shots->n; i++) {
        fr_json_begin_object(json);
        fr_json_put_i64(json, "k", shots->k[i]);
        fr_fields_put(FR_FIELDS(score_fields), &shots->all[i], json);
        fr_fields_put(FR_FIELDS(macro_fields), &shots->macro[i], json);
        fr_json_put_null(json, "development");
        fr_json_put_null(json, "frozen");
        fr_json_open_object(json, "by_source");
        for (size_t j = 0; j < shots->n_sources; j++)
            put_source(&shots->sources[j], i, json);
        fr_json_end_object(json);
        fr_json_end_object(json);
    }
    fr_json_end_array(json);
}

/* ---- text ---------------------------------------------------------------- */

static void add_percent(fr_table *table, double frac)
{
    if (isnan(frac))
        fr_table_number(table, FR_CELL_SHARE, frac, "-");
    else
        fr_table_share(table, frac);
}

static void add_macro(fr_table *table, int64_t k, const fr_shots_macro *m)
{
    if (m->n_sources == 0)
        return;
    fr_table_count(table, k);
    fr_table_count(table, (int64_t)m->n_sources);
    add_percent(table, m->macro_mape);
    add_percent(table, m->macro_bias);
    add_percent(table, m->macro_coverage_90);
    add_percent(table, m->macro_half_width);
}

static void print_means(const fr_shots *shots, fr_document *out)
{
    static const char *const headings[] = {
        ">rows learned", ">sources",    ">MAPE", ">bias",
        ">in interval",  ">half-width", NULL};
    fr_table *table = fr_document_table(out, headings);
    for (int i = 0; i < shots->n; i++)
        add_macro(table, shots->k[i], &shots->macro[i]);
}

static void print_sources(const fr_shots *shots, fr_document *out)
{
    char texts[FR_SHOTS_MOST][32];
    const char *headings[FR_SHOTS_MOST + 3] = {"source", ">rows"};
    for (int i = 0; i < shots->n; i++) {
        snprintf(texts[i], sizeof texts[i], ">MAPE, %lld",
                 (long long)shots->k[i]);
        headings[2 + i] = texts[i];
    }
    fr_table *table = fr_document_table(out, headings);
    for (size_t j = 0; j < shots->n_sources; j++) {
        const fr_shots_source *source = &shots->sources[j];
        fr_table_cell(table, "%.44s",
                      source->name[0] != '\0' ? source->name : "(no source)");
        fr_table_count(table, (int64_t)source->n_rows);
        for (int i = 0; i < shots->n; i++)
            add_percent(table, source->score[i].mape);
    }
}

void fr_report_shots(const fr_shots *shots, fr_document *out)
{
    if (shots->n == 0)
        return;
    put_data(shots, &out->data);
    fr_document_printf(out,
                       "\nof each source some rows learned from, the others "
                       "predicted: means over %lld draws,\nthen over "
                       "sources\n",
                       (long long)shots->n_draws);
    print_means(shots, out);
    fr_document_puts(out, "\n");
    print_sources(shots, out);
}
