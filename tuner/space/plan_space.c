/* plan_space.c: the walk over the table of axes, one decision level after
 * the other. */
#include "core/system/clock.h"
#include "plan/schedule/schedule.h"
#include "tuner/space/plan_space_lists.h"

#include <stdlib.h>
#include <string.h>

typedef struct walk {
    const fr_plan_space_request *request;
    fr_decision_level level;
    fr_illegal_fn on_illegal;
    void *context;
    double until_s; /* of fr_clock_s(); 0: there is no end */
    fr_plan_space_choices *out;
    fr_err *err;
} walk;

/* Gives the axes of a level values that cannot make a plan illegal, so that the
 * levels before it can be checked alone. */
static void set_neutral(fr_decision_level level, fr_plan *plan)
{
    fr_plan plain;
    fr_plan_init(&plain);
    if (level == FR_DECISION_PIPELINE) {
        /* Combined 1F1B in a pipeline needs chunks: two are the fewest. */
        bool is_combined = plan->is_ep_overlap && plan->pp > 1;
        plan->vpp = is_combined ? 2 : 1;
        plan->schedule = fr_schedule_usual(plan->vpp);
        plan->n_split = 0;
        plan->recompute_layers = 0;
    }
    if (level == FR_DECISION_GRADIENTS) {
        plan->zero_stage = 0;
        plan->zero_group = 0;
        plan->is_optimizer_offloaded = false;
        plan->compressor = FR_COMPRESSOR_NONE;
        plan->is_overlap = plain.is_overlap;
        plan->bucket_bytes = plain.bucket_bytes;
    }
}

/* The fields that a level decides; what is no axis is known from the first. */
static uint64_t fields_of(fr_decision_level level)
{
    uint64_t fields = 0, later = 0;
    for (int i = 0; i < FR_SPACE_AXIS_N; i++) {
        if (fr_space_axis_fields[i] == FR_PLAN_FIELDS_N)
            continue;
        uint64_t bit = UINT64_C(1) << fr_space_axis_fields[i];
        if (fr_plan_space_axes[i].level == level)
            fields |= bit;
        else
            later |= bit;
    }
    return level == FR_DECISION_LAYERS ? FR_PLAN_BITS_ALL & ~later : fields;
}

static fr_status add(const walk *w, const fr_plan_space_choice *choice,
                     const fr_plan *plan)
{
    const fr_plan_space_request *request = w->request;
    fr_plan asked = *plan;
    fr_err why;
    /* EP overlap, which changes what is neutral, is known only here. */
    if (w->level == FR_DECISION_LAYERS)
        set_neutral(FR_DECISION_PIPELINE, &asked);
    fr_status status =
        fr_plan_check_lowerable(&asked, request->model, request->job, &why);
    if (status == FR_OK && request->target != NULL)
        status = fr_target_check(
            request->target, request->target_version, fields_of(w->level),
            w->level == FR_DECISION_LAYERS ? 0 : fields_of(FR_DECISION_LAYERS),
            &asked, request->model, request->job, &why);
    if (status == FR_NO_MEMORY)
        return fr_fail_no_memory(w->err);
    if (status != FR_OK) {
        if (w->on_illegal != NULL)
            w->on_illegal(w->context, why.text);
        return FR_OK;
    }
    if (fr_vec_push(w->out, *choice) != FR_OK)
        return fr_fail_no_memory(w->err);
    return FR_OK;
}

/* The search gets some more time if it has found no legal plan yet. */
static bool is_late(const walk *w)
{
    static const double grace_s = 0.25;
    if (!(w->until_s > 0))
        return false;
    return fr_clock_s() >= w->until_s + (w->out->n > 0 ? 0 : grace_s);
}

/* The caller is asked once for the few hundred choices below this axis. */
static const int ask_at = FR_SPACE_AXIS_MICRO_BATCH;

static fr_status visit(const walk *w, fr_plan_space_choice *choice,
                       const fr_plan *plan, int i_axis)
{
    while (i_axis < FR_SPACE_AXIS_N &&
           fr_plan_space_axes[i_axis].level != w->level)
        i_axis++;
    if (i_axis == FR_SPACE_AXIS_N)
        return add(w, choice, plan);
    const fr_plan_space_axis_row *axis = &fr_plan_space_axes[i_axis];
    fr_plan_space_values values;
    if (i_axis == ask_at)
        FR_TRY(fr_log_check(w->request->log, w->err));
    values.n = 0;
    axis->list(w->request, plan, &values);
    bool is_backward = i_axis == FR_SPACE_AXIS_WORLD && w->until_s > 0;
    for (int k = 0; k < values.n && !is_late(w); k++) {
        const int i = is_backward ? values.n - 1 - k : k;
        fr_plan next = *plan;
        fr_set_axis(w->request, (fr_plan_space_axis)i_axis, values.at[i],
                    &next);
        choice->candidate.choice[i_axis] = (uint8_t)i;
        choice->value[i_axis] = values.at[i];
        FR_TRY(visit(w, choice, &next, i_axis + 1));
    }
    return FR_OK;
}

static fr_status list_level(const walk *w, const fr_plan *plan)
{
    fr_plan_space_choice choice;
    fr_plan start = *plan;
    memset(&choice, 0, sizeof choice);
    for (int i = FR_DECISION_PIPELINE; i < FR_DECISION_N; i++)
        if (i != (int)w->level)
            set_neutral((fr_decision_level)i, &start);
    return visit(w, &choice, &start, 0);
}

fr_status fr_plan_space_list(const fr_plan_space_request *request,
                             fr_decision_level level, const fr_plan *plan,
                             fr_illegal_fn on_illegal, void *context,
                             fr_plan_space_choices *out, fr_err *err)
{
    const walk w = {.request = request,
                    .level = level,
                    .on_illegal = on_illegal,
                    .context = context,
                    .out = out,
                    .err = err};
    return list_level(&w, plan);
}

fr_status fr_plan_space_list_until(const fr_plan_space_request *request,
                                   double until_s, fr_illegal_fn on_illegal,
                                   void *context, fr_plan_space_choices *out,
                                   bool *is_cut, fr_err *err)
{
    const walk w = {
        request, FR_DECISION_LAYERS, on_illegal, context, until_s, out, err};
    FR_TRY(list_level(&w, &request->base));
    *is_cut = is_late(&w);
    return FR_OK;
}

void fr_plan_space_set(const fr_plan_space_request *request,
                       fr_decision_level level,
                       const fr_plan_space_choice *choice, fr_plan *plan)
{
    for (int a = 0; a < FR_SPACE_AXIS_N; a++)
        if (fr_plan_space_axes[a].level == level)
            fr_set_axis(request, (fr_plan_space_axis)a, choice->value[a], plan);
}

void fr_plan_space_change(const fr_plan_space_request *request,
                          fr_decision_level level,
                          const fr_plan_space_choice *from,
                          const fr_plan_space_choice *to, fr_plan *plan)
{
    for (int a = 0; a < FR_SPACE_AXIS_N; a++) {
        const fr_plan_space_axis_row *row = &fr_plan_space_axes[a];
        if (row->level == level &&
            (from->value[a] != to->value[a] || row->set != NULL))
            fr_set_axis(request, (fr_plan_space_axis)a, to->value[a], plan);
    }
}

void fr_candidate_join(const fr_candidate *layers, const fr_candidate *pipeline,
                       const fr_candidate *gradients, fr_candidate *out)
{
    for (size_t i = 0; i < FR_CANDIDATE_WORDS; i++)
        out->words[i] =
            layers->words[i] | pipeline->words[i] | gradients->words[i];
}

int fr_candidate_compare(const fr_candidate *a, const fr_candidate *b)
{
    return memcmp(a->choice, b->choice, sizeof a->choice);
}

/* ---- all of it ----------------------------------------------------------- */

typedef struct builder {
    fr_plan_space *space;
    fr_illegal_fn on_illegal;
    void *context;
    fr_plan_space_choices of[FR_DECISION_N];
} builder;

static void count_illegal(void *context, const char *reason)
{
    builder *b = context;
    b->space->n_illegal++;
    if (b->on_illegal != NULL)
        b->on_illegal(b->context, reason);
}

static fr_status add_plans(builder *b, const fr_candidate *layers, fr_err *err)
{
    fr_plan_space *space = b->space;
    const fr_plan_space_choices *pipelines = &b->of[FR_DECISION_PIPELINE];
    const fr_plan_space_choices *gradients = &b->of[FR_DECISION_GRADIENTS];
    size_t n = pipelines->n * gradients->n;
    if (fr_vec_reserve(&space->plans, n) != FR_OK)
        return fr_fail_no_memory(err);
    for (size_t p = 0; p < pipelines->n; p++)
        for (size_t g = 0; g < gradients->n; g++)
            fr_candidate_join(layers, &pipelines->items[p].candidate,
                              &gradients->items[g].candidate,
                              &space->plans.items[space->plans.n++]);
    return FR_OK;
}

static fr_status add_levels(builder *b, fr_err *err)
{
    const fr_plan_space_request *request = &b->space->request;
    fr_plan_space_choices *layers = &b->of[FR_DECISION_LAYERS];
    FR_TRY(fr_plan_space_list(request, FR_DECISION_LAYERS, &request->base,
                              count_illegal, b, layers, err));
    for (size_t i = 0; i < layers->n; i++) {
        fr_plan plan = request->base;
        fr_plan_space_set(request, FR_DECISION_LAYERS, &layers->items[i],
                          &plan);
        for (int k = FR_DECISION_PIPELINE; k < FR_DECISION_N; k++) {
            b->of[k].n = 0;
            FR_TRY(fr_plan_space_list(request, (fr_decision_level)k, &plan,
                                      count_illegal, b, &b->of[k], err));
        }
        FR_TRY(add_plans(b, &layers->items[i].candidate, err));
    }
    return FR_OK;
}

fr_status fr_plan_space_create(const fr_plan_space_request *request,
                               fr_illegal_fn on_illegal, void *context,
                               fr_plan_space *out, fr_err *err)
{
    fr_plan_space space = {.request = *request};
    builder b = {.space = &space, .on_illegal = on_illegal, .context = context};
    fr_status status = add_levels(&b, err);
    for (int k = 0; k < FR_DECISION_N; k++)
        fr_vec_release(&b.of[k]);
    if (status != FR_OK) {
        fr_plan_space_release(&space);
        return status;
    }
    *out = space;
    return FR_OK;
}

void fr_plan_space_release(fr_plan_space *space)
{
    fr_vec_release(&space->plans);
}

void fr_plan_space_plan(const fr_plan_space_request *request,
                        const fr_candidate *candidate, fr_plan *out)
{
    fr_plan plan = request->base;
    for (int i = FR_DECISION_PIPELINE; i < FR_DECISION_N; i++)
        set_neutral((fr_decision_level)i, &plan);
    for (int a = 0; a < FR_SPACE_AXIS_N; a++) {
        fr_plan_space_values values;
        values.n = 0;
        fr_plan_space_axes[a].list(request, &plan, &values);
        fr_set_axis(request, (fr_plan_space_axis)a,
                    values.at[candidate->choice[a]], &plan);
    }
    *out = plan;
}
