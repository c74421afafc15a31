/* tuning_json.c: the answer of tune as JSON. */
#include "core/document/fields.h"
#include "frameworks/framework.h"
#include "plan/decide/plan_json.h"
#include "report/prediction_report.h"
#include "report/run_length_report.h"
#include "report/tuning_report.h"

#include <math.h>

static const fr_field tuned_fields[] = {
    {"ranks", FR_MEMBER(fr_tuned, n_ranks)},
    {"nodes", FR_MEMBER(fr_tuned, n_nodes)},
    FR_FIELD(fr_tuned, global_batch),
};

static const fr_field loser_fields[] = {
    FR_FIELD(fr_tuned, why),
    FR_FIELD(fr_tuned, is_tie),
};

static void put_plan(const fr_tuned *tuned, fr_json_writer *json)
{
    fr_json_put_string(json, "name", tuned->name);
    fr_plan_json_put(tuned->plan, json);
}

static void put_members(const fr_tuning_goal *goal, const fr_tuned *tuned,
                        fr_json_writer *json)
{
    put_plan(tuned, json);
    fr_fields_put(FR_FIELDS(tuned_fields), tuned, json);
    fr_json_open_array(json, "run_by");
    for (int i = 0; fr_target_executor_name(i) != NULL; i++)
        if ((tuned->run_by >> i & 1) != 0)
            fr_json_string(json, fr_target_executor_name(i));
    fr_json_end_array(json);
    fr_json_put_double(json, "value",
                       fr_tuning_shown_value(goal, tuned->value));
    if (tuned->run.seconds > 0) {
        fr_json_open_object(json, "run");
        fr_run_outlook_json(&tuned->run, json);
        fr_json_end_object(json);
    }
    fr_json_open_object(json, "prediction");
    fr_report_prediction_json(&tuned->prediction, json);
    fr_json_end_object(json);
}

static void put_tuned(const fr_tuning_goal *goal, const fr_tuned *tuned,
                      bool is_best, fr_json_writer *json)
{
    fr_json_begin_object(json);
    put_members(goal, tuned, json);
    if (!is_best)
        fr_fields_put(FR_FIELDS(loser_fields), tuned, json);
    fr_json_end_object(json);
}

/* null: there is none. */
static void put_or_null(const fr_tuning_goal *goal, const char *key,
                        const fr_tuned *tuned, bool is_best,
                        fr_json_writer *json)
{
    fr_json_key(json, key);
    if (tuned != NULL && tuned->plan != NULL)
        put_tuned(goal, tuned, is_best, json);
    else
        fr_json_null(json);
}

static void put_list(const fr_tuning_goal *goal, const char *key,
                     const fr_tuned_list *list, fr_json_writer *json)
{
    fr_json_open_array(json, key);
    for (size_t i = 0; i < list->n; i++)
        put_tuned(goal, &list->at[i], false, json);
    fr_json_end_array(json);
}

static const fr_field space_fields[] = {
    {"plans", FR_MEMBER(fr_tuning, space.plans)},
    {"infeasible_memory", FR_MEMBER(fr_tuning, space.infeasible_memory)},
    {"pruned_by_bound", FR_MEMBER(fr_tuning, space.pruned_by_bound)},
    {"simulated", FR_MEMBER(fr_tuning, space.simulated)},
    {"illegal", FR_MEMBER(fr_tuning, space.illegal)},
};

static const fr_field reason_fields[] = {
    {"why", FR_MEMBER(fr_tuning_reason, text)},
    FR_FIELD(fr_tuning_reason, n),
};

static void put_space(const fr_tuning *t, fr_json_writer *json)
{
    fr_json_open_object(json, "space");
    fr_fields_put(FR_FIELDS(space_fields), t, json);
    fr_fields_put_array("left_out", reason_fields, t->reasons, t->n_reasons,
                        json);
    fr_json_end_object(json);
}

static void put_goal(const fr_tuning *t, fr_json_writer *json)
{
    bool has_best = t->best.plan != NULL;
    fr_json_open_object(json, "goal");
    fr_json_put_string(json, "name", t->goal.name);
    fr_json_put_string(json, "unit", t->goal.unit);
    fr_json_put_string(json, "summary", t->goal.summary);
    fr_json_put_double(json, "value",
                       has_best ? fr_tuning_shown_value(&t->goal, t->best.value)
                                : HUGE_VAL);
    fr_json_put_double(
        json, "bound",
        has_best ? fr_tuning_shown_value(&t->goal, t->certificate.bound)
                 : HUGE_VAL);
    if (t->fit_confidence > 0)
        fr_json_put_double(json, "fit_confidence", t->fit_confidence);
    if (t->goal.lr_rule[0] != '\0')
        fr_json_put_string(json, "lr_rule", t->goal.lr_rule);
    fr_json_end_object(json);
}

static const fr_field distribute_fields[] = {
    {"ranks", FR_MEMBER(fr_tuning, advised_ranks)},
    {"slots", FR_MEMBER(fr_tuning, n_slots)},
    {"why", FR_MEMBER(fr_tuning, advice)},
};

static void put_baselines(const fr_tuning *t, fr_json_writer *json)
{
    const fr_tuning_baseline *alone = &t->baselines[FR_BASELINE_DEVICE];
    put_or_null(&t->goal, "baseline",
                alone->why_not[0] == '\0' ? &alone->tuned : NULL, false, json);
    fr_json_open_array(json, "baselines");
    for (int i = 0; i < FR_BASELINE_N; i++) {
        const fr_tuning_baseline *b = &t->baselines[i];
        if (b->tuned.plan == NULL && b->why_not[0] == '\0')
            continue;
        fr_json_begin_object(json);
        fr_json_put_string(json, "what", fr_baseline_name((fr_baseline)i));
        fr_json_put_string(json, "why_not", b->why_not);
        if (b->tuned.plan != NULL) {
            put_members(&t->goal, &b->tuned, json);
            fr_fields_put(FR_FIELDS(loser_fields), &b->tuned, json);
        }
        fr_json_end_object(json);
    }
    fr_json_end_array(json);
    fr_json_key(json, "distribute");
    fr_fields_write(FR_FIELDS(distribute_fields), t, json);
}

static void put_nearest(const fr_tuning *t, fr_json_writer *json)
{
    if (t->nearest.plan == NULL)
        return;
    fr_json_open_object(json, "nearest");
    put_plan(&t->nearest, json);
    fr_json_put_u64(json, "short_by_bytes", t->short_by_bytes);
    if (t->least_short_bytes > 0)
        fr_json_put_u64(json, "least_short_bytes", t->least_short_bytes);
    fr_json_put_string(json, "broken", t->broken);
    fr_json_end_object(json);
}

static const fr_field step_fields[] = {
    {"median", FR_MEMBER(fr_tuning_measured, median_s)},
    {"p5", FR_MEMBER(fr_tuning_measured, p5_s)},
    {"p95", FR_MEMBER(fr_tuning_measured, p95_s)},
};

static void put_measured(const fr_tuning *t, fr_json_writer *json)
{
    if (t->n_measured == 0)
        return;
    fr_json_open_array(json, "measured");
    for (size_t i = 0; i < t->n_measured; i++) {
        const fr_tuning_measured *m = &t->measured[i];
        fr_json_begin_object(json);
        fr_json_put_string(json, "name", m->name);
        fr_json_put_double(json, "predicted_s", m->predicted_s);
        fr_json_put_string(json, "why_not", m->why_not);
        fr_json_key(json, "step_s");
        if (m->why_not[0] == '\0') {
            fr_fields_write(FR_FIELDS(step_fields), m, json);
            fr_json_put_double(json, "rel_err",
                               m->predicted_s / m->median_s - 1);
        } else {
            fr_json_null(json);
        }
        fr_json_put_double(json, "value", m->value);
        fr_json_put_bool(json, "is_chosen", m->is_chosen);
        fr_json_end_object(json);
    }
    fr_json_end_array(json);
}

static const fr_field correction_fields[] = {
    {"n", FR_MEMBER(fr_tuning, correction.n)},
    {"median", FR_MEMBER(fr_tuning, correction.median)},
    {"least", FR_MEMBER(fr_tuning, correction.least)},
    {"most", FR_MEMBER(fr_tuning, correction.most)},
};

/* Puts how true predictions of this model's steps were on this machine so far.
 */
static void put_correction(const fr_tuning *t, fr_json_writer *json)
{
    if (t->correction.n == 0)
        return;
    fr_json_key(json, "correction");
    fr_fields_write(FR_FIELDS(correction_fields), t, json);
}

static void put_certificate(const fr_tuning *t, fr_json_writer *json)
{
    fr_json_open_object(json, "certificate");
    fr_json_put_bool(json, "optimal_in_space", t->certificate.optimal_in_space);
    fr_json_put_double(json, "bound_s",
                       t->goal.is_step ? t->certificate.bound : HUGE_VAL);
    fr_json_put_double(json, "bound",
                       fr_tuning_shown_value(&t->goal, t->certificate.bound));
    fr_json_put_double(json, "gap", t->certificate.gap);
    fr_json_put_string(json, "of_step", "expected");
    fr_json_end_object(json);
}

void fr_report_tuning_json(const fr_tuning *t, fr_json_writer *json)
{
    put_goal(t, json);
    put_or_null(&t->goal, "best", &t->best, true, json);
    put_or_null(&t->goal, "robust", &t->robust, false, json);
    put_list(&t->goal, "alternatives", &t->alternatives, json);
    put_list(&t->goal, "layouts", &t->layouts, json);
    put_baselines(t, json);
    put_list(&t->goal, "pareto", &t->pareto, json);
    put_nearest(t, json);
    put_space(t, json);
    put_certificate(t, json);
    if (t->best.run.seconds > 0)
        fr_run_counts_json(&t->counts, json);
    put_measured(t, json);
    put_correction(t, json);
    fr_json_put_double(json, "wall_s", t->wall_s);
}
