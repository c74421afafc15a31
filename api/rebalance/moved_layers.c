/* moved_layers.c: see moved_plan.h. */
#include "api/rebalance/moved_plan.h"
#include "plan/decide/grid.h"
#include "plan/outline/stages.h"

/* Returns the factor by which a stage is slower: that of its slowest rank. */
static double factor_of(const fr_plan *plan, const fr_slow_ranks *slow,
                        int32_t stage)
{
    double factor = 1;

    for (int i = 0; i < slow->n; i++)
        if (fr_plan_coord(plan, slow->items[i].rank).pp ==
                fr_stage_holder(plan, stage) &&
            slow->items[i].factor > factor)
            factor = slow->items[i].factor;
    return factor;
}

/* One layer from the stage that takes longest to the one that does with one
 * more take shortest; false: nothing is gained. */
static bool move_one(fr_plan *plan, const fr_slow_ranks *slow)
{
    int32_t from = -1, to = -1;
    double longest = 0, shortest = 0;

    for (int32_t i = 0; i < plan->n_split; i++) {
        const double factor = factor_of(plan, slow, i);
        const double now = plan->layer_split[i] * factor;
        const double then = (plan->layer_split[i] + 1) * factor;
        if (plan->layer_split[i] > 1 && now > longest) {
            longest = now;
            from = i;
        }
        if (to < 0 || then < shortest) {
            shortest = then;
            to = i;
        }
    }
    if (from < 0 || to == from || !(shortest < longest))
        return false;
    plan->layer_split[from]--;
    plan->layer_split[to]++;
    return true;
}

static void split_as_it_is(const fr_model *model, fr_plan *plan)
{
    const int32_t n = fr_stages_of(plan);

    for (int32_t i = 0; i < n; i++)
        plan->layer_split[i] = fr_plan_stage_layers(plan, model, i);
    plan->n_split = n;
}

fr_status fr_move_layers(const fr_inputs *inputs, const fr_plan_file *file,
                         const fr_slow_ranks *slow, fr_moved *out, fr_err *err)
{
    fr_plan_file moved = *file;
    fr_moved found = {.plan = file->plan};
    const fr_slow_ranks all =
        slow->n > 0 ? *slow : fr_slow_ranks_of(inputs, &file->plan);

    if (file->plan.pp == 1 || fr_stages_of(&file->plan) > FR_PLAN_MAX_STAGES)
        return fr_fail(err, FR_INFEASIBLE,
                       "layers are moved between the stages of a pipeline, "
                       "which the plan has not");
    FR_TRY(fr_slow_ranks_predict(inputs, file, slow, &found.before_s, err));
    found.after_s = found.before_s;
    split_as_it_is(&file->model, &moved.plan);
    while (move_one(&moved.plan, &all)) {
        double step_s;
        fr_err why;
        if (fr_slow_ranks_predict(inputs, &moved, slow, &step_s, &why) != FR_OK)
            break;
        if (step_s < found.after_s) {
            found.after_s = step_s;
            found.plan = moved.plan;
        }
    }
    if (!(found.after_s < found.before_s))
        return fr_fail(err, FR_INFEASIBLE,
                       "no other split of the layers is predicted to be "
                       "faster");
    *out = found;
    return FR_OK;
}
