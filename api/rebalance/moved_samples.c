/* moved_samples.c: see moved_plan.h. */
#include "api/rebalance/moved_plan.h"
#include "plan/decide/grid.h"
#include "plan/decide/plan_fields.h"
#include "plan/decide/plan_shares.h"
#include "tuner/partition/balance_shares.h"

#include <math.h>
#include <stdio.h>

/* Returns the factor by which a replica is slower: that of its slowest rank. */
static void list_slowness(const fr_plan *plan, const fr_slow_ranks *slow,
                          double slowness[FR_PLAN_MAX_SHARES])
{
    for (int32_t i = 0; i < plan->dp; i++)
        slowness[i] = 1;
    for (int i = 0; i < slow->n; i++) {
        const int32_t dp = fr_plan_coord(plan, slow->items[i].rank).dp;
        slowness[dp] = fmax(slowness[dp], slow->items[i].factor);
    }
}

fr_status fr_move_samples(const fr_inputs *inputs, const fr_plan_file *file,
                          const fr_slow_ranks *slow, fr_moved *out, fr_err *err)
{
    const fr_plan *plan = &file->plan;
    double slowness[FR_PLAN_MAX_SHARES];
    fr_plan_file moved = *file;
    fr_moved found;
    fr_err why;

    if (plan->dp == 1 || plan->dp > FR_PLAN_MAX_SHARES)
        return fr_fail(err, FR_INFEASIBLE,
                       "samples are moved between 2 to %d data-parallel ranks; "
                       "the plan has dp %d",
                       FR_PLAN_MAX_SHARES, plan->dp);
    list_slowness(plan, slow, slowness);
    FR_TRY(fr_balance_shares_on(&file->model, &file->job, &inputs->cluster,
                                inputs->costs, slowness, &moved.plan, err));
    if (fr_plan_is_same(plan, &moved.plan))
        return fr_fail(err, FR_INFEASIBLE,
                       "the shares of the batch are as the ranks are fast");
    if (fr_plan_check_lowerable(&moved.plan, &file->model, &file->job, &why) !=
        FR_OK)
        return fr_fail(err, FR_INFEASIBLE, "%s", why.text);
    /* Without even shares there may be no plan at all. */
    found.before_s = HUGE_VAL;
    if (fr_plan_check_lowerable(plan, &file->model, &file->job, &why) == FR_OK)
        FR_TRY(fr_slow_ranks_predict(inputs, file, slow, &found.before_s, err));
    FR_TRY(fr_slow_ranks_predict(inputs, &moved, slow, &found.after_s, err));
    if (!(found.after_s < found.before_s))
        return fr_fail(err, FR_INFEASIBLE,
                       "no other shares of the batch are predicted to be "
                       "faster");
    found.plan = moved.plan;
    *out = found;
    return FR_OK;
}

/* ---- in words ------------------------------------------------------------ */

enum { LIST_TEXT = 200 };

static void list_numbers(const fr_plan_file *file, const fr_plan *plan,
                         bool is_of_layers, char text[LIST_TEXT])
{
    const int32_t n = is_of_layers ? plan->pp * plan->vpp : plan->dp;
    int used = 0;

    for (int32_t i = 0; i < n && used < LIST_TEXT - 12; i++)
        used += snprintf(
            text + used, (size_t)(LIST_TEXT - used), "%s%lld", i > 0 ? "," : "",
            is_of_layers
                ? (long long)fr_plan_stage_layers(plan, &file->model, i)
                : (long long)fr_plan_share(plan, &file->job, i));
}

char *fr_moved_text(const fr_plan_file *file, const fr_plan *before,
                    const fr_plan *after, char text[FR_MOVED_TEXT])
{
    const bool is_of_layers = !fr_field_is_same(
        &fr_plan_fields[FR_PLAN_LAYER_SPLIT].field, before, after);
    char is[LIST_TEXT], was[LIST_TEXT];

    list_numbers(file, after, is_of_layers, is);
    list_numbers(file, before, is_of_layers, was);
    (void)snprintf(text, FR_MOVED_TEXT, "%s %s instead of %s",
                   is_of_layers ? "layers" : "micro-batches", is, was);
    return text;
}
