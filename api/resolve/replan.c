/* replan.c: see replan.h. */
#include "api/resolve/replan.h"

#include "api/inputs.h"
#include "api/resolve/framework_options.h"
#include "api/resolve/goal_options.h"
#include "tuner/answer/tune.h"

#define BUDGET_S 0.3

static fr_status check(const fr_replan_site *site, const fr_plan_file *file,
                       const fr_plan *plan, fr_err *err)
{
    return site->is_gpu
               ? fr_plan_check_executable_gpu(plan, &file->model, &file->job,
                                              err)
               : fr_plan_check_executable(plan, &file->model, &file->job, err);
}

static fr_status search(const fr_replan_site *site, const fr_inputs *inputs,
                        const fr_plan_file *from, int64_t n_ranks,
                        fr_plan_file *out, fr_err *err)
{
    const fr_target *target =
        fr_request_executor(site->request, &inputs->cluster);
    const fr_tune_options options = {
        .space = {.model = &from->model,
                  .job = &from->job,
                  .cluster = &inputs->cluster,
                  .base = from->plan,
                  .world = n_ranks,
                  .target = target,
                  .target_version =
                      target != NULL ? fr_target_newest(target) : 0,
                  .fit_confidence = fr_request_fit_confidence(site->request)},
        .is_best_only = true,
        .budget_s = BUDGET_S,
    };
    fr_tuning tuning;

    fr_tuning_init(&tuning);
    fr_status status = fr_tune(&options, inputs->costs, &tuning, err);
    if (status == FR_OK && tuning.best.plan == NULL)
        status = fr_fail(err, FR_INFEASIBLE, "no plan fits");
    if (status == FR_OK)
        status = check(site, from, tuning.best.plan, err);
    if (status == FR_OK) {
        out->plan = *tuning.best.plan;
        out->prediction = tuning.best.prediction;
        out->has_prediction = true;
    }
    fr_tuning_release(&tuning);
    return status;
}

/* On the cluster of the plan, whose only node has as many places as are left,
 * as the user's ranks share its cores. */
static fr_status tuned(const fr_replan_site *site, const fr_plan_file *from,
                       int64_t n_ranks, fr_plan_file *out, fr_err *err)
{
    fr_request quiet = *site->request;
    fr_inputs inputs = {0};

    if (from->cluster[0] == '\0')
        return fr_fail(err, FR_INFEASIBLE, "the plan names no cluster");
    quiet.option[FR_OPT_QUIET].is_on = true;
    FR_TRY(fr_inputs_load(&quiet, from->cluster, &inputs, err));
    if (fr_cluster_n_nodes(&inputs.cluster) == 1 &&
        fr_cluster_slots(&inputs.cluster) < n_ranks) {
        fr_inputs_release(&inputs);
        return fr_fail(err, FR_INFEASIBLE, "the cluster has fewer places");
    }
    fr_status status = search(site, &inputs, from, n_ranks, out, err);
    fr_inputs_release(&inputs);
    return status;
}

/* The same plan over more or fewer data-parallel ranks, which take as many
 * sequences at once as divide their part of the batch. */
static fr_status resized(const fr_replan_site *site, const fr_plan_file *from,
                         const fr_plan *base, int64_t n_ranks, fr_plan *out,
                         fr_err *err)
{
    const int64_t n_others = fr_plan_world(base) / base->dp;
    fr_plan plan = *base;

    if (n_ranks % n_others != 0)
        return fr_fail(err, FR_INFEASIBLE, "%lld ranks are not whole replicas",
                       (long long)n_ranks);
    plan.dp = (int32_t)(n_ranks / n_others);
    plan.n_shares = 0;
    if (plan.zero_group > plan.dp || plan.dp % (plan.zero_group + 1) != 0)
        plan.zero_group = 0;
    if (plan.dp == 1)
        plan.zero_stage = 0;
    if (plan.dp % plan.ep != 0)
        plan.ep = 1;
    const int64_t n_sequences = from->job.global_batch / plan.dp;
    while (plan.micro_batch > 1 && n_sequences % plan.micro_batch != 0)
        plan.micro_batch--;
    FR_TRY(check(site, from, &plan, err));
    *out = plan;
    return FR_OK;
}

static fr_status resized_or_alone(const fr_replan_site *site,
                                  const fr_plan_file *from, int64_t n_ranks,
                                  fr_plan_file *out, fr_err *err)
{
    fr_plan alone;

    if (resized(site, from, &from->plan, n_ranks, &out->plan, err) == FR_OK)
        return FR_OK;
    fr_plan_init(&alone);
    alone.n_threads = from->plan.n_threads;
    alone.micro_batch = from->plan.micro_batch;
    alone.precision = from->plan.precision;
    alone.grad_dtype = from->plan.grad_dtype;
    alone.execution.kernels = from->plan.execution.kernels;
    alone.is_flash = from->plan.is_flash;
    return resized(site, from, &alone, n_ranks, &out->plan, err);
}

/* A plan that does not fit the machines would end the run again. */
static bool can_start(const fr_replan_site *site, const fr_plan_file *file,
                      fr_status found, fr_err *why)
{
    return found == FR_OK && site->check_fit(site->context, file, why) == FR_OK;
}

fr_status fr_replan(const fr_replan_site *site, const fr_plan_file *from,
                    int64_t n_places, int64_t least, fr_plan_file *out,
                    fr_err *err)
{
    fr_plan_file file = *from;
    fr_err why = {0};

    file.node_of_rank = NULL;
    file.has_prediction = false;
    bool is_found =
        can_start(site, &file, tuned(site, from, n_places, &file, &why), &why);
    for (int64_t n = n_places; !is_found && n >= least; n--) {
        file.has_prediction = false;
        is_found = can_start(
            site, &file, resized_or_alone(site, from, n, &file, &why), &why);
    }
    if (!is_found)
        return fr_fail(err, FR_INFEASIBLE,
                       "no plan of %lld to %lld ranks trains this job: %s",
                       (long long)least, (long long)n_places, why.text);
    *out = file;
    return FR_OK;
}
