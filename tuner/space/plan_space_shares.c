/* plan_space_shares.c: the axis of a batch's shares of data-parallel ranks. */
#include "plan/decide/plan_shares.h"
#include "tuner/partition/balance_layers.h"
#include "tuner/partition/balance_shares.h"
#include "tuner/space/plan_space_lists.h"

bool fr_has_uneven_shares(const fr_plan_space_request *request)
{
    return request->balance != NULL &&
           !fr_is_pinned(request, FR_PLAN_BATCH_SHARES) &&
           fr_cluster_is_unlike(request->cluster);
}

/* Sets those that suit unlike ranks; none where even ones do.  What cannot be
 * priced has no other ones, and is met again where the plan is. */
static void set_balanced(const fr_plan_space_request *request, fr_plan *plan)
{
    fr_err ignored;
    fr_estimator *e = NULL;
    plan->n_shares = 0;
    if (plan->dp > 1 && plan->ep == 1 && fr_has_uneven_shares(request))
        e = fr_balance_estimator(request);
    if (e != NULL &&
        fr_balance_shares(e, request->job, NULL, plan, &ignored) != FR_OK)
        plan->n_shares = 0;
}

/* Even (0), and on a cluster of unlike nodes those that suit them (1). */
void fr_list_shares(const fr_plan_space_request *request, const fr_plan *plan,
                    fr_plan_space_values *values)
{
    fr_plan balanced = *plan;
    fr_push_value(values, 0);
    set_balanced(request, &balanced);
    if (balanced.n_shares > 0)
        fr_push_value(values, 1);
}

void fr_set_shares(const fr_plan_space_request *request, fr_plan *plan,
                   int64_t value)
{
    if (fr_is_pinned(request, FR_PLAN_BATCH_SHARES)) {
        plan->n_shares = request->base.n_shares;
        return; /* the base plan has them */
    }
    plan->n_shares = 0;
    if (value > 0)
        set_balanced(request, plan);
}

int64_t fr_micro_batch_of_shares(const fr_plan_space_request *request)
{
    const int64_t n = fr_plan_shares_sum(&request->base);
    return n > 0 && request->job->global_batch >= n
               ? request->job->global_batch / n
               : 1;
}
