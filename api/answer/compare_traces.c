/* compare_traces.c: where a run lost time against its plan, by category and
 * rank. */
#include "api/answer/compare_traces.h"

#include "api/answer/answers.h"
#include "api/inputs.h"
#include "core/base/units.h"
#include "interop/trace/trace_losses.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Ranks that the table of text has; --json has all. */
enum { RANKS_SHOWN = 32 };
/* A rank is slow whose compute takes so much longer than the median's. */
static const double slow_ratio = 1.05;

/* The object that has step_s: the root, its prediction, its best plan's. */
static const fr_json_value *find_numbers(const fr_json_value *root)
{
    const fr_json_value *best = fr_json_find(root, "best");
    const fr_json_value *inner = fr_json_find(root, "prediction");
    if (fr_json_find(root, "step_s") != NULL)
        return root;
    if (inner == NULL && best != NULL)
        inner = fr_json_find(best, "prediction");
    return inner;
}

static fr_status read_prediction(const fr_json_value *root, fr_losses *out,
                                 fr_err *err)
{
    const fr_json_value *numbers = find_numbers(root), *parts;
    double step_s, parts_s[FR_PART_N];
    if (numbers == NULL)
        return fr_json_fail(root, err,
                            "holds no prediction; give a trace, a plan, or "
                            "what simulate prints with --json");
    FR_TRY(fr_json_get_double(numbers, "step_s", &step_s, err));
    FR_TRY(fr_json_get_object(numbers, "breakdown_s", &parts, err));
    for (int i = 0; i < FR_PART_N; i++)
        FR_TRY(fr_json_get_double_or(parts, fr_part_name((fr_part)i), 0,
                                     &parts_s[i], err));
    return fr_losses_of_parts(step_s, parts_s, out, err);
}

static fr_status load_predicted(const char *path, fr_losses *out, fr_err *err)
{
    fr_json *json;
    if (fr_trace_is_file(path))
        return fr_losses_load(&path, 1, true, out, err);
    FR_TRY(fr_as_input(fr_json_load(path, &json, err), err));
    fr_status status = read_prediction(fr_json_root(json), out, err);
    fr_json_destroy(json);
    return status;
}

/* ---- text --------------------------------------------------------------- */

static void add_time(fr_table *table, double time_s, bool has_sign)
{
    char text[FR_FORMAT_MAX];
    if (fabs(time_s) < 1e-9)
        fr_table_number(table, FR_CELL_S, time_s, "-");
    else
        fr_table_number(table, FR_CELL_S, time_s, "%s%s",
                        time_s < 0 ? "-"
                        : has_sign ? "+"
                                   : "",
                        fr_format_s(text, sizeof text, fabs(time_s)));
}

static void add_row(fr_table *table, const char *title, double predicted_s,
                    double measured_s, double lost_s)
{
    fr_table_text(table, title);
    add_time(table, predicted_s, false);
    add_time(table, measured_s, false);
    const double lost_here_s = measured_s - predicted_s;
    add_time(table, lost_here_s, true);
    if (lost_s != 0 && fabs(lost_here_s) > 1e-9)
        fr_table_number(table, FR_CELL_SHARE, lost_here_s / lost_s, "%.0f %%",
                        100 * lost_here_s / lost_s);
    else
        fr_table_blank(table, 1);
}

static void put_categories(const fr_losses *predicted,
                           const fr_losses *measured, fr_document *out)
{
    static const char *const headings[] = {
        "a step", ">predicted", ">measured", ">lost", ">of all lost", NULL};
    double lost_s = measured->step_s - predicted->step_s;
    /* Shares of next to nothing say nothing. */
    if (fabs(lost_s) < 0.01 * predicted->step_s)
        lost_s = 0;
    fr_table *table = fr_document_table(out, headings);
    for (int i = 0; i < FR_LOSS_N; i++)
        if (predicted->time_s[i] > 0 || measured->time_s[i] > 0)
            add_row(table, fr_loss_title((fr_loss)i), predicted->time_s[i],
                    measured->time_s[i], lost_s);
    add_row(table, "step", predicted->step_s, measured->step_s, 0);
}

static void put_ranks(const fr_losses *measured, fr_document *out)
{
    static const char *const headings[] = {
        ">rank",         ">step", ">compute", ">optimizer", ">collectives",
        ">send, bubble", ">data", ">idle",    NULL};
    fr_table *table = fr_document_table(out, headings);
    for (size_t i = 0; i < measured->n && i < RANKS_SHOWN; i++) {
        const fr_loss_rank *rank = &measured->ranks[i];
        fr_table_count(table, rank->rank);
        add_time(table, rank->step_s, false);
        for (int k = 0; k < FR_LOSS_N; k++)
            add_time(table, rank->time_s[k], false);
    }
}

/* Names the largest loss and the slow rank. */
static void put_words(const fr_losses *predicted, const fr_losses *measured,
                      const fr_slow_rank *slow, fr_document *out)
{
    int most = 0;
    char text[FR_FORMAT_MAX];
    double lost_s[FR_LOSS_N];
    for (int i = 0; i < FR_LOSS_N; i++) {
        lost_s[i] = measured->time_s[i] - predicted->time_s[i];
        most = lost_s[i] > lost_s[most] ? i : most;
    }
    if (lost_s[most] > 0)
        fr_document_printf(out, "most is lost in: %s, %s a step\n",
                           fr_loss_title((fr_loss)most),
                           fr_format_s(text, sizeof text, lost_s[most]));
    if (measured->n > 1 && slow->ratio > slow_ratio)
        fr_document_printf(
            out,
            "rank %lld is slow: its compute takes %.1f %% longer "
            "than the %s rank's%s; others wait for it\n",
            (long long)slow->rank, 100 * (slow->ratio - 1),
            measured->n == 2 ? "other" : "median",
            predicted->n > 1 ? ", against what is predicted" : "");
    else if (measured->n > 1)
        fr_document_puts(out, "no rank is slow: compute differs by less than "
                              "5 %\n");
    if (measured->is_cpu)
        fr_document_puts(out, "no kernels in the trace: operators of the CPU "
                              "stand for them\n");
}

static void print(const fr_request *request, const fr_losses *predicted,
                  const fr_losses *measured, const fr_slow_rank *slow,
                  fr_document *out)
{
    fr_document_printf(
        out, "predicted: %s\nmeasured: %s, %zu rank%s, %llu step%s%s\n\n",
        request->positional[0], request->positional[1], measured->n,
        measured->n == 1 ? "" : "s", (unsigned long long)measured->n_steps,
        measured->n_steps == 1 ? "" : "s",
        measured->steps_by == FR_STEPS_OPTIMIZER
            ? ", from one of the optimizer's to the next"
            : "");
    put_categories(predicted, measured, out);
    fr_document_puts(out, "\n");
    put_ranks(measured, out);
    if (measured->n > RANKS_SHOWN)
        fr_document_printf(out, "%d of %zu ranks; --json has all\n",
                           RANKS_SHOWN, measured->n);
    fr_document_puts(out, "\n");
    put_words(predicted, measured, slow, out);
}

/* ---- data --------------------------------------------------------------- */

static void put_times(fr_json_writer *json, double step_s,
                      const double time_s[FR_LOSS_N])
{
    fr_json_put_double(json, "step_s", step_s);
    fr_json_open_object(json, "time_s");
    for (int i = 0; i < FR_LOSS_N; i++)
        fr_json_put_double(json, fr_name_of(&fr_loss_names, i), time_s[i]);
    fr_json_end_object(json);
}

static void put_side(fr_json_writer *json, const char *key,
                     const fr_losses *losses)
{
    fr_json_open_object(json, key);
    put_times(json, losses->step_s, losses->time_s);
    fr_json_put_u64(json, "steps", losses->n_steps);
    fr_json_put_string(json, "steps_by",
                       fr_name_of(&fr_step_marks_names, (int)losses->steps_by));
    fr_json_open_array(json, "ranks");
    for (size_t i = 0; i < losses->n; i++) {
        fr_json_begin_object(json);
        fr_json_put_i64(json, "rank", losses->ranks[i].rank);
        put_times(json, losses->ranks[i].step_s, losses->ranks[i].time_s);
        fr_json_end_object(json);
    }
    fr_json_end_array(json);
    fr_json_end_object(json);
}

static void put_data(const fr_losses *predicted, const fr_losses *measured,
                     const fr_slow_rank *slow, fr_json_writer *json)
{
    put_side(json, "predicted", predicted);
    put_side(json, "measured", measured);
    fr_json_open_object(json, "lost_s");
    for (int i = 0; i < FR_LOSS_N; i++)
        fr_json_put_double(json, fr_name_of(&fr_loss_names, i),
                           measured->time_s[i] - predicted->time_s[i]);
    fr_json_end_object(json);
    fr_json_put_double(json, "step_ratio",
                       measured->step_s / predicted->step_s);
    fr_json_open_object(json, "slowest");
    fr_json_put_i64(json, "rank", slow->rank);
    fr_json_put_double(json, "ratio", slow->ratio);
    fr_json_put_bool(json, "is_slow",
                     measured->n > 1 && slow->ratio > slow_ratio);
    fr_json_end_object(json);
}

fr_status fr_compare_traces(const fr_request *request, fr_document *out,
                            fr_err *err)
{
    fr_losses predicted, measured;
    fr_slow_rank slow;
    FR_TRY(load_predicted(request->positional[0], &predicted, err));
    fr_status status = fr_losses_load(&request->positional[1],
                                      (size_t)request->n_positional - 1, false,
                                      &measured, err);
    if (status == FR_OK) {
        status = fr_losses_slowest(&predicted, &measured, &slow, err);
        if (status == FR_OK) {
            fr_document_init(out, "forerun.comparison/1");
            put_data(&predicted, &measured, &slow, &out->data);
            print(request, &predicted, &measured, &slow, out);
        }
        fr_losses_release(&measured);
    }
    fr_losses_release(&predicted);
    return status;
}
