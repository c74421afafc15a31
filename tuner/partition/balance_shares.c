/* balance_shares.c: see balance_shares.h. */
#include "tuner/partition/balance_shares.h"

#include "plan/decide/plan_shares.h"
#include "sim/bound/estimate_stages.h"

fr_status fr_balance_shares(fr_estimator *estimator, const fr_job *job,
                            const double *slowness, fr_plan *plan, fr_err *err)
{
    double pass_s[FR_PLAN_MAX_SHARES];
    plan->n_shares = 0;
    if (plan->dp == 1 || plan->dp > FR_PLAN_MAX_SHARES ||
        job->global_batch % plan->micro_batch != 0)
        return FR_OK;
    FR_TRY(fr_estimate_replicas(estimator, plan, pass_s, err));
    for (int32_t i = 0; i < plan->dp; i++) {
        pass_s[i] *= slowness != NULL ? slowness[i] : 1;
        if (!(pass_s[i] > 0))
            return FR_OK;
    }
    const double fill = (plan->pp - 1.0) / plan->vpp;
    if (!fr_plan_share_out(job->global_batch / plan->micro_batch, fill, pass_s,
                           plan))
        plan->n_shares = 0;
    return FR_OK;
}

fr_status fr_balance_shares_on(const fr_model *model, const fr_job *job,
                               const fr_cluster *cluster,
                               const fr_cost_model *costs,
                               const double *slowness, fr_plan *plan,
                               fr_err *err)
{
    fr_estimator *e = NULL;
    FR_TRY(fr_estimator_create_stages(model, job, cluster, costs, &e, err));
    fr_status status = fr_balance_shares(e, job, slowness, plan, err);
    fr_estimator_destroy(e);
    return status;
}
