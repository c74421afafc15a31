/* default_job.c: see default_job.h. */
#include "api/resolve/default_job.h"

#include "api/resolve/framework_options.h"
#include "api/resolve/plan_options.h"
#include "core/base/minmax.h"
#include "plan/decide/plan_shares.h"

/* Longer ones are trained in a phase of their own; recipes of 2024 begin with
 * 8192 (Llama 3, arXiv 2407.21783, sec. 3.4.1). */
static const int64_t most_seq = 8192;

/* The number for a pipeline of p stages: "almost negligible when M >= 4 x K"
 * (GPipe, arXiv 1811.06965, sec. 2.3). */
static const int64_t micro_batches_per_stage = 4;

/* Sequences: smaller batches are those of an experiment. */
static const int64_t least_batch = 8;

/* Samples of a rank where the model is no decoder: the default of torchvision's
 * references/classification/train.py ("images per gpu"). */
static const int64_t samples_of_rank = 32;

static bool is_gpu(const fr_cluster *cluster)
{
    return fr_cluster_device(cluster, 0)->kind == FR_DEVICE_GPU;
}

void fr_default_seq(const fr_model *model, const fr_cluster *cluster,
                    fr_job *job)
{
    if (model->max_seq <= 0)
        return;
    if (is_gpu(cluster) && model->kind != FR_MODEL_LAYERS)
        job->seq = fr_min_i64(model->max_seq, most_seq);
    else
        job->seq = fr_min_i64(model->max_seq, job->seq);
}

/* The batch of so many ranks: a sequence of a decoder for each is enough. */
static int64_t batch_of_ranks(const fr_model *model, int64_t n_ranks)
{
    return model->kind == FR_MODEL_DECODER ? fr_max_i64(n_ranks, least_batch)
                                           : n_ranks * samples_of_rank;
}

void fr_default_batch(const fr_request *request, const fr_model *model,
                      const fr_cluster *cluster, int64_t n_ranks, fr_job *job)
{
    if (is_gpu(cluster) && !fr_request_has(request, FR_OPT_GLOBAL_BATCH))
        job->global_batch = batch_of_ranks(model, n_ranks);
    fr_job_count_steps(job, model);
}

/* Ranks that the cluster has places for, as the options limit them. */
static int64_t count_places(const fr_request *request, const fr_inputs *inputs)
{
    int64_t n = fr_cluster_slots(&inputs->cluster);
    int64_t n_asked = request->option[FR_OPT_RANKS].count;
    if (inputs->ranks_per_node > 0)
        n = fr_min_i64(n, inputs->ranks_per_node *
                              fr_cluster_n_nodes(&inputs->cluster));
    return n_asked > 0 ? fr_min_i64(n, n_asked) : n;
}

static int64_t batch_of(const fr_model *model, const fr_plan *plan)
{
    if (plan->n_shares > 0)
        return fr_plan_shares_sum(plan) * plan->micro_batch;
    if (model->kind != FR_MODEL_DECODER && plan->pp == 1 &&
        samples_of_rank % plan->micro_batch == 0)
        return plan->dp * samples_of_rank;
    int64_t n_micro = plan->pp > 1 ? micro_batches_per_stage * plan->pp : 1;
    int64_t n_each = (int64_t)plan->dp * plan->micro_batch;
    n_micro = fr_max_i64(n_micro, (least_batch + n_each - 1) / n_each);
    return n_each * n_micro;
}

static void choose_plan(const fr_request *request, const fr_inputs *inputs,
                        fr_plan_file *file)
{
    fr_plan *plan = &file->plan;
    fr_job *job = &file->job;
    const bool has_batch = fr_request_has(request, FR_OPT_GLOBAL_BATCH);
    const bool has_dp =
        fr_request_has(request, FR_OPT_DP) || plan->n_shares > 0;
    fr_err why;
    if (!is_gpu(&inputs->cluster) || plan->micro_batch < 1 || plan->dp < 1)
        return;
    if (plan->n_shares > 0 && !fr_request_has(request, FR_OPT_DP))
        plan->dp = plan->n_shares;
    /* The devices that a plan leaves idle need not have it. */
    if (has_dp && !fr_request_has(request, FR_OPT_PRECISION))
        plan->precision =
            fr_default_precision(&inputs->cluster, fr_plan_world(plan));
    int64_t n_others = fr_plan_world(plan) / plan->dp;
    int64_t most = n_others > 0 ? count_places(request, inputs) / n_others : 0;
    int64_t dp = has_dp ? plan->dp : fr_max_i64(1, fr_min_i64(most, INT32_MAX));
    const int64_t least = has_dp ? dp : 1;
    for (; dp >= least; dp--) {
        plan->dp = (int32_t)dp;
        if (!has_batch)
            job->global_batch = batch_of(&file->model, plan);
        fr_request_apply_framework(request, &inputs->cluster, false, file);
        if (fr_plan_check(plan, &file->model, job, &why) == FR_OK)
            return;
    }
    /* None is legal, whatever dp: whoever checks the smallest says why. */
    plan->dp = (int32_t)least;
    fr_request_apply_framework(request, &inputs->cluster, false, file);
    if (!has_batch)
        job->global_batch = batch_of(&file->model, plan);
}

void fr_default_plan(const fr_request *request, const fr_inputs *inputs,
                     fr_plan_file *file)
{
    choose_plan(request, inputs, file);
    fr_job_count_steps(&file->job, &file->model);
}

fr_status fr_default_ranks(const fr_request *request, const fr_inputs *inputs,
                           bool is_given, fr_plan *plan, fr_err *err)
{
    const fr_cluster *cluster = &inputs->cluster;
    const int64_t asked = request->option[FR_OPT_RANKS].count;
    if (!fr_request_has(request, FR_OPT_RANKS) || plan->dp < 1)
        return FR_OK;
    const int64_t n_others = fr_plan_world(plan) / plan->dp;
    if (!is_given && !is_gpu(cluster) && !fr_request_has(request, FR_OPT_DP) &&
        n_others > 0 && asked % n_others == 0) {
        plan->dp = (int32_t)(asked / n_others);
        if (!fr_request_has(request, FR_OPT_THREADS))
            plan->n_threads = fr_default_threads(cluster, asked);
    }
    if (fr_plan_world(plan) == asked)
        return FR_OK;
    return fr_fail(err, FR_USAGE,
                   "--ranks %lld: the plan has %lld (dp %d x %lld), the "
                   "cluster places for %lld; choose --dp, or a --global-batch "
                   "that is a multiple of it",
                   (long long)asked, (long long)fr_plan_world(plan), plan->dp,
                   (long long)n_others, (long long)fr_cluster_slots(cluster));
}
