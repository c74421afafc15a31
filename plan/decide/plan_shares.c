/* plan_shares.c: see plan_shares.h. */
#include "plan/decide/plan_shares.h"

#include "plan/decide/plan_refuse.h"

#include <math.h>

int64_t fr_plan_shares_sum(const fr_plan *plan)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < plan->n_shares; i++)
        sum += plan->batch_shares[i];
    return sum;
}

/* The most of a plan's shares; 0 if they do not come to the global batch. */
static int64_t largest_share(const fr_plan *plan, const fr_job *job)
{
    int64_t most = 0;
    for (int32_t i = 0; i < plan->n_shares; i++) {
        if (plan->batch_shares[i] < 1)
            return 0;
        most = plan->batch_shares[i] > most ? plan->batch_shares[i] : most;
    }
    bool is_whole =
        plan->n_shares == plan->dp &&
        job->global_batch % plan->micro_batch == 0 &&
        fr_plan_shares_sum(plan) == job->global_batch / plan->micro_batch;
    return is_whole ? most : 0;
}

int64_t fr_plan_micro_batches(const fr_plan *plan, const fr_job *job)
{
    int64_t per_round = plan->micro_batch * plan->dp;
    if (per_round < 1)
        return 0;
    if (plan->n_shares > 0)
        return largest_share(plan, job);
    if (job->global_batch % per_round != 0)
        return 0;
    return job->global_batch / per_round;
}

int64_t fr_plan_share(const fr_plan *plan, const fr_job *job, int32_t dp)
{
    return plan->n_shares > 0 ? plan->batch_shares[dp]
                              : fr_plan_micro_batches(plan, job);
}

int64_t fr_plan_least_share(const fr_plan *plan, const fr_job *job)
{
    int64_t least = fr_plan_share(plan, job, 0);
    for (int32_t i = 1; i < plan->n_shares; i++)
        if (plan->batch_shares[i] < least)
            least = plan->batch_shares[i];
    return least;
}

int64_t fr_plan_first_micro(const fr_plan *plan, const fr_job *job, int32_t dp)
{
    int64_t n = 0;
    if (plan->n_shares == 0)
        return dp * fr_plan_micro_batches(plan, job);
    for (int32_t i = 0; i < dp; i++)
        n += plan->batch_shares[i];
    return n;
}

/* ---- classes ------------------------------------------------------------- */

/* The class of a rank (of none: 0), and how many there are. */
static int32_t find_class(const fr_plan *plan, int32_t dp, int32_t *n_classes)
{
    int32_t known[FR_PLAN_MAX_SHARES], n = 0, found = 0;
    for (int32_t i = 0; i < plan->n_shares; i++) {
        int32_t k = 0;
        while (k < n && known[k] != plan->batch_shares[i])
            k++;
        if (k == n)
            known[n++] = plan->batch_shares[i];
        if (i == dp)
            found = k;
    }
    *n_classes = n > 0 ? n : 1;
    return found;
}

int32_t fr_plan_share_class(const fr_plan *plan, int32_t dp)
{
    int32_t n_classes;
    return find_class(plan, dp, &n_classes);
}

int32_t fr_plan_n_share_classes(const fr_plan *plan)
{
    int32_t n_classes;
    (void)find_class(plan, -1, &n_classes);
    return n_classes;
}

/* ---- checks -------------------------------------------------------------- */

fr_status fr_plan_shares_refuse(const fr_plan *plan, const fr_job *job,
                                fr_err *err)
{
    if (plan->n_shares != plan->dp)
        return fr_fail(err, FR_INPUT,
                       "batch_shares has %d entries for dp %d; give the "
                       "micro-batches of each data-parallel rank",
                       plan->n_shares, plan->dp);
    for (int32_t i = 0; i < plan->n_shares; i++) {
        if (plan->batch_shares[i] < 1)
            return fr_fail(err, FR_INPUT,
                           "batch_shares: data-parallel rank %d has %d "
                           "micro-batches; give at least 1",
                           i, plan->batch_shares[i]);
    }
    return fr_fail(
        err, FR_INPUT,
        "batch_shares add up to %lld micro-batches of %lld "
        "sequence%s, global_batch is %lld; make them equal",
        (long long)fr_plan_shares_sum(plan), (long long)plan->micro_batch,
        plan->micro_batch > 1 ? "s" : "", (long long)job->global_batch);
}

/* Ranks that meet in each micro-batch need as many of them. */
fr_status fr_plan_shares_check_lowerable(const fr_plan *plan, fr_err *err)
{
    if (plan->n_shares == 0)
        return FR_OK;
    if (plan->zero_stage == 3 || (plan->zero_stage == 2 && plan->pp == 1))
        return fr_plan_refuse(err,
                              "uneven shares of a batch where ZeRO meets in "
                              "every micro-batch",
                              "choose zero 0 or 1 (2 with a pipeline), or even "
                              "shares");
    if (plan->ep > 1)
        return fr_plan_refuse(err,
                              "uneven shares of a batch where experts meet in "
                              "every micro-batch",
                              "choose ep 1, or even shares");
    return FR_OK;
}

/* ---- sharing out --------------------------------------------------------- */

/*
 * Deals the micro-batches that each rank gets in any case, and returns their
 * number.  If micro-batches were divisible, all ranks would end after T = (n +
 * dp fill) / sum(1 / pass), and no rank ends a whole micro-batch before that.
 */
static int64_t deal_most(int64_t n, double fill, const double *pass_s,
                         fr_plan *plan)
{
    double per_s = 0;
    int64_t sum = 0;
    for (int32_t i = 0; i < plan->dp; i++)
        per_s += 1 / pass_s[i];
    const double end_s = ((double)n + plan->dp * fill) / per_s;
    for (int32_t i = 0; i < plan->dp; i++) {
        const double share = floor(end_s / pass_s[i] - fill - 1);
        plan->batch_shares[i] = share > 1 ? (int32_t)share : 1;
        sum += plan->batch_shares[i];
    }
    if (sum <= n)
        return sum;
    for (int32_t i = 0; i < plan->dp; i++)
        plan->batch_shares[i] = 1;
    return plan->dp;
}

/* Each of the rest goes to who would have it done first: then who ends last
 * cannot give one away without another one ending as late. */
bool fr_plan_share_out(int64_t n, double fill, const double *pass_s,
                       fr_plan *plan)
{
    bool is_even = true;
    if (plan->dp > FR_PLAN_MAX_SHARES || n < plan->dp || n > INT32_MAX)
        return false;
    for (int64_t dealt = deal_most(n, fill, pass_s, plan); dealt < n; dealt++) {
        int32_t to = 0;
        double first_s = HUGE_VAL;
        for (int32_t i = 0; i < plan->dp; i++) {
            double end_s = (plan->batch_shares[i] + 1 + fill) * pass_s[i];
            if (end_s < first_s) {
                first_s = end_s;
                to = i;
            }
        }
        plan->batch_shares[to]++;
    }
    for (int32_t i = 1; i < plan->dp; i++)
        is_even = is_even && plan->batch_shares[i] == plan->batch_shares[0];
    plan->n_shares = is_even ? 0 : plan->dp;
    return true;
}
