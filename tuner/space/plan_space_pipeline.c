/* plan_space_pipeline.c: axes that decide who has which layers, and when. */
#include "plan/schedule/schedule.h"
#include "tuner/partition/balance_layers.h"
#include "tuner/space/plan_space_lists.h"

#include <string.h>

/* Virtual stages are tried where all get the same number of layers.  Combined
 * 1F1B needs chunks, so with it 2, 4, 8 ... are tried in any case. */
void fr_list_vpp(const fr_plan_space_request *request, const fr_plan *plan,
                 fr_plan_space_values *values)
{
    fr_plan_space_values all = {0};
    if (fr_push_given(request, FR_SPACE_AXIS_VPP, &all)) {
        for (int i = 0; i < all.n; i++)
            if (plan->pp > 1 || all.at[i] == 1)
                fr_push_value(values, all.at[i]);
        return;
    }
    bool is_combined = plan->is_ep_overlap && plan->pp > 1;
    if (!is_combined)
        fr_push_value(values, 1);
    int64_t n_layers = request->model->n_layers;
    for (int64_t v = 2; plan->pp > 1 && v * plan->pp <= n_layers; v++)
        if (n_layers % (v * plan->pp) == 0)
            fr_push_value(values, v);
    for (int64_t v = 2; is_combined && v * plan->pp <= n_layers; v *= 2)
        fr_push_new(v, values);
}

/* The usual schedule comes first, then every other one that the plan fits.
 * Without a pipeline, or with one micro-batch, all are the same. */
void fr_list_schedule(const fr_plan_space_request *request, const fr_plan *plan,
                      fr_plan_space_values *values)
{
    fr_plan_space_values all = {0};
    int64_t m = fr_plan_micro_batches(plan, request->job);
    bool is_given =
        plan->pp > 1 && fr_push_given(request, FR_SPACE_AXIS_SCHEDULE, &all);
    if (is_given) {
        for (int i = 0; i < all.n; i++)
            if (fr_schedule_has_chunks(fr_schedules[all.at[i]]) ==
                (plan->vpp > 1))
                fr_push_value(values, all.at[i]);
        return;
    }
    const fr_schedule_kind usual = fr_schedule_usual(plan->vpp);
    fr_push_value(values, (int64_t)usual);
    if (plan->pp == 1 || m <= 1)
        return;
    for (int i = 0; i < fr_n_schedules; i++) {
        const fr_schedule *schedule = fr_schedules[i];
        if (i != (int)usual &&
            fr_schedule_fits(schedule, plan->pp, m, plan->vpp))
            fr_push_value(values, i);
    }
}

/*
 * Uneven splits pay because the first stage has the embedding and the last
 * one the head.  Value 0 is the even split; others take `a` layers from the
 * first and `b` from the last stage, and spread them over the stages between
 * (two stages: over the other one); coded as 1 + (a + 8) * 17 + (b + 8).
 * GPUs: at most two layers.  Values -1, -2, ... are the balanced splits of
 * balance_layers.h.
 */
enum { SPLIT_MOVE = 8, SPLIT_RADIX = 2 * SPLIT_MOVE + 1, SPLIT_MANY = 3 };

static int64_t split_code(int64_t a, int64_t b)
{
    return 1 + (a + SPLIT_MOVE) * SPLIT_RADIX + b + SPLIT_MOVE;
}

void fr_list_split_moves(const fr_plan_space_request *request,
                         const fr_plan *plan, fr_plan_space_values *values)
{
    bool is_gpu = fr_is_gpu_space(request);
    int64_t move = is_gpu ? 2 : SPLIT_MOVE, many = is_gpu ? 2 : SPLIT_MANY;
    fr_push_value(values, 0);
    if (plan->pp == 1 || plan->vpp > 1)
        return;
    int64_t base = request->model->n_layers / plan->pp;
    int64_t n_first = fr_plan_even_layers(plan, request->model, 0);
    int64_t n_last = fr_plan_even_layers(plan, request->model, plan->pp - 1);
    if (plan->pp == 2) {
        for (int64_t a = -move; a <= move; a++)
            if (a != 0 && n_first - a >= 1 && n_last + a >= 1)
                fr_push_value(values, split_code(a, -a));
        return;
    }
    for (int64_t a = 0; a <= many; a++)
        for (int64_t b = 0; b <= many; b++)
            if (a + b > 0 && a < base && b < base)
                fr_push_value(values, split_code(a, b));
}

void fr_list_split(const fr_plan_space_request *request, const fr_plan *plan,
                   fr_plan_space_values *values)
{
    if (plan->pp == 1 || fr_is_pinned(request, FR_PLAN_LAYER_SPLIT)) {
        fr_push_value(values, 0);
        return;
    }
    fr_list_split_moves(request, plan, values);
    const fr_balanced *balanced = fr_balance_find(request, plan);
    for (int i = 0; i < balanced->n; i++)
        fr_push_value(values, -1 - i);
}

void fr_split_moved(const fr_plan_space_request *request, const fr_plan *plan,
                    int64_t code, int32_t *split)
{
    const int32_t last = plan->pp * plan->vpp - 1;
    for (int32_t i = 0; i <= last; i++)
        split[i] = fr_plan_even_layers(plan, request->model, i);
    if (code == 0)
        return;
    int64_t a = (code - 1) / SPLIT_RADIX - SPLIT_MOVE;
    int64_t b = (code - 1) % SPLIT_RADIX - SPLIT_MOVE;
    split[0] -= (int32_t)a;
    split[last] -= (int32_t)b;
    int64_t n_over = last > 1 ? a + b : 0;
    for (int32_t i = 0; n_over > 0; i = (i + 1) % (last - 1), n_over--)
        split[1 + i]++;
}

void fr_set_split(const fr_plan_space_request *request, fr_plan *plan,
                  int64_t value)
{
    if (fr_is_pinned(request, FR_PLAN_LAYER_SPLIT)) {
        plan->n_split = request->base.n_split;
        return; /* the base plan has the layers */
    }
    plan->n_split = 0;
    if (value == 0)
        return;
    const int32_t n = plan->pp * plan->vpp;
    if (value > 0) {
        fr_split_moved(request, plan, value, plan->layer_split);
    } else {
        const fr_balanced *balanced = fr_balance_find(request, plan);
        if (-1 - value >= balanced->n)
            return; /* out of memory, which fr_balance_status() reports */
        memcpy(plan->layer_split, balanced->at[-1 - value],
               (size_t)n * sizeof *plan->layer_split);
    }
    plan->n_split = n;
}

/* Full recompute is of all layers of a chunk (0), or of one to three
 * quarters of them. */
void fr_list_recompute_layers(const fr_plan_space_request *request,
                              const fr_plan *plan, fr_plan_space_values *values)
{
    if (plan->recompute != FR_RECOMPUTE_FULL) {
        fr_push_value(values, 0);
        return;
    }
    if (fr_push_given(request, FR_SPACE_AXIS_RECOMPUTE_LAYERS, values))
        return;
    fr_push_value(values, 0);
    int64_t n_stages = (int64_t)plan->pp * plan->vpp, last = 0;
    int64_t n = (request->model->n_layers + n_stages - 1) / n_stages;
    for (int64_t q = 1; q < 4; q++) {
        int64_t n_recomputed = q * n / 4;
        if (n_recomputed > last)
            fr_push_value(values, n_recomputed);
        last = n_recomputed;
    }
}
