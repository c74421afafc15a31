/* idle_options.c: see no_effect.h: those that a prediction finds. */
#include "api/resolve/no_effect.h"
#include "api/resolve/plan_resolve.h"

#include <stdio.h>
#include <string.h>

/* Another number of ranks is another run, stages are what --pp says, and
 * another precision gives other numbers in the same time. */
static bool is_looked_at(int item)
{
    return item > FR_PLAN_EP && item != FR_PLAN_LAYER_SPLIT &&
           item != FR_PLAN_PRECISION;
}

static bool is_same(const fr_prediction *a, const fr_prediction *b)
{
    return a->step_s == b->step_s && a->expected_step_s == b->expected_step_s &&
           a->step_s_p5 == b->step_s_p5 && a->step_s_p95 == b->step_s_p95 &&
           a->memory.peak_bytes == b->memory.peak_bytes &&
           memcmp(a->breakdown_s, b->breakdown_s, sizeof a->breakdown_s) == 0;
}

static bool takes_the_same(const fr_inputs *inputs, const fr_model *model,
                           const fr_job *job, const fr_plan *plan,
                           const fr_prediction *prediction)
{
    fr_prediction other;
    fr_err unused;
    return fr_forecast_predict(inputs, model, job, plan, &other, &unused) ==
               FR_OK &&
           is_same(prediction, &other);
}

_Static_assert(FR_PLAN_OPTIONS_N <= 64, "an option of a plan is a bit");

/* Bits of the options of a plan (their places) that are given and change
 * nothing; prediction NULL: by the plan alone. */
static uint64_t find_idle(const fr_request *request, const fr_inputs *inputs,
                          const fr_model *model, const fr_job *job,
                          const fr_plan *plan, const fr_prediction *prediction)
{
    uint64_t idle = 0;
    fr_plan usual;
    fr_plan_init_for(&inputs->cluster, &usual);
    for (int i = 0; i < FR_PLAN_OPTIONS_N; i++) {
        const int item = fr_plan_items[i];
        const fr_field *field = &fr_plan_item_row(item)->field;
        const fr_option_value *value = &request->option[FR_OPT_OF_PLAN(i)];
        fr_plan without = *plan;
        if (value->source != FR_SOURCE_FLAG || value->n_list > 0 ||
            !is_looked_at(item) || fr_field_is_same(field, plan, &usual) ||
            fr_has_no_effect(request, FR_OPT_OF_PLAN(i), job, model,
                             &inputs->cluster))
            continue;
        fr_field_set(field, fr_field_get(field, &usual), &without);
        if (fr_plan_is_same(plan, &without) ||
            (prediction != NULL &&
             takes_the_same(inputs, model, job, &without, prediction)))
            idle |= UINT64_C(1) << i;
    }
    return idle;
}

static const char takes_as_much[] =
    "the plan takes the same time and memory without";

static void note(const fr_request *request, uint64_t idle, const char *why)
{
    char names[256] = "";
    for (int i = 0; i < FR_PLAN_OPTIONS_N; i++) {
        const size_t used = strlen(names);
        if ((idle >> i & 1) != 0)
            snprintf(names + used, sizeof names - used, "%s--%s",
                     used > 0 ? ", " : "",
                     fr_option_get(FR_OPT_OF_PLAN(i)).name);
    }
    if (idle != 0)
        fr_note_ignored(request, names, why);
}

void fr_note_idle_options(const fr_request *request, const fr_inputs *inputs,
                          const fr_model *model, const fr_job *job,
                          const fr_plan *plan, const fr_prediction *prediction)
{
    note(request, find_idle(request, inputs, model, job, plan, prediction),
         takes_as_much);
}

void fr_note_idle_in_sweep(const fr_request *request, const fr_inputs *inputs,
                           const fr_sweep_case *cases, size_t n)
{
    uint64_t idle = n > 0 ? UINT64_MAX : 0;
    for (size_t i = 0; i < n; i++)
        idle &= find_idle(request, inputs, cases[i].model, &cases[i].job,
                          &cases[i].plan, NULL);
    note(request, idle, takes_as_much);
}

void fr_note_untaken_options(const fr_request *request,
                             const fr_cluster *cluster, const fr_plan *asked,
                             const fr_plan *found)
{
    uint64_t untaken = 0;
    fr_plan usual;
    fr_plan_init_for(cluster, &usual);
    for (int i = 0; i < FR_PLAN_OPTIONS_N; i++) {
        const int item = fr_plan_items[i];
        const fr_field *field = &fr_plan_item_row(item)->field;
        const fr_option_value *value = &request->option[FR_OPT_OF_PLAN(i)];
        if (value->source == FR_SOURCE_FLAG && value->n_list == 0 &&
            is_looked_at(item) && !fr_field_is_same(field, asked, found) &&
            fr_field_is_same(field, found, &usual))
            untaken |= UINT64_C(1) << i;
    }
    note(request, untaken, "the best plan has no use for it");
}
