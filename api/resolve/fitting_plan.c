/* fitting_plan.c: see fitting_plan.h. */
#include "api/resolve/fitting_plan.h"

#include "api/resolve/framework_options.h"
#include "api/resolve/goal_options.h"
#include "api/resolve/plan_options.h"
#include "tuner/search/tune_quick.h"

/* A search over plans of more layers takes longer than a first answer may. */
static const int64_t most_layers = 1024;
/* Divisors of a rank's share of the batch that are looked at, and predictions
 * of them. */
enum { MOST_DIVISOR = 1 << 20, MOST_TRIED = 32 };

static bool is_gpu(const fr_inputs *inputs)
{
    return inputs->has_cluster && inputs->costs != NULL &&
           fr_cluster_is_all_gpu(&inputs->cluster);
}

/* ---- the whole plan ------------------------------------------------------ */

static fr_plan_space_request space_of(const fr_request *request,
                                      const fr_inputs *inputs,
                                      const fr_plan_file *file)
{
    const fr_target *target = fr_request_executor(request, &inputs->cluster);
    return (fr_plan_space_request){
        .model = &file->model,
        .job = &file->job,
        .cluster = &inputs->cluster,
        .base = file->plan,
        .world = request->option[FR_OPT_RANKS].count,
        .target = target,
        .target_version = target != NULL ? fr_target_newest(target) : 0,
        .fit_confidence = fr_request_fit_confidence(request),
        .log = fr_request_log(request)};
}

static fr_status choose_plan(const fr_request *request, const fr_inputs *inputs,
                             bool is_quiet, fr_plan_file *file, fr_err *err)
{
    const fr_plan_space_request space = space_of(request, inputs, file);
    fr_quick found;
    fr_err why;
    const fr_status status = fr_tune_quick(
        &space, inputs->costs, fr_request_threads(request), &found, &why);
    if (fr_status_ends_all(status))
        return fr_fail(err, status, "%s", why.text);
    if (status != FR_OK || !found.has_plan)
        return FR_OK;
    file->plan = found.plan;
    if (!is_quiet)
        fr_request_note(request, "no plan was given: this is the best plan of "
                                 "a quick search; forerun tune searches all");
    return FR_OK;
}

/* ---- its micro-batch ----------------------------------------------------- */

/* Sets *fits to whether the plan is legal and its prediction fits. */
static fr_status predict(const fr_inputs *inputs, const fr_plan_file *file,
                         const fr_plan *plan, bool *fits, fr_err *err)
{
    fr_prediction prediction;
    fr_err why;
    *fits = false;
    if (fr_plan_check(plan, &file->model, &file->job, &why) != FR_OK)
        return FR_OK;
    const fr_status status = fr_forecast_predict(
        inputs, &file->model, &file->job, plan, &prediction, &why);
    if (fr_status_ends_all(status))
        return fr_fail(err, status, "%s", why.text);
    *fits = status == FR_OK && prediction.memory.fits;
    return FR_OK;
}

static fr_status choose_micro_batch(const fr_inputs *inputs, fr_plan_file *file,
                                    fr_err *err)
{
    const fr_plan *plan = &file->plan;
    if (plan->dp < 1 || file->job.global_batch % plan->dp != 0)
        return FR_OK;
    const int64_t share = file->job.global_batch / plan->dp;
    int n_tried = 0;
    for (int64_t n = 1; n <= share && n <= MOST_DIVISOR && n_tried < MOST_TRIED;
         n++) {
        bool fits;
        fr_plan larger = *plan;
        if (share % n != 0)
            continue;
        n_tried++;
        larger.micro_batch = share / n;
        FR_TRY(predict(inputs, file, &larger, &fits, err));
        if (fits) {
            file->plan = larger;
            break;
        }
    }
    return FR_OK;
}

fr_status fr_fitting_plan(const fr_request *request, const fr_inputs *inputs,
                          uint64_t pins, bool is_quiet, fr_plan_file *file,
                          fr_err *err)
{
    const fr_plan *plan = &file->plan;
    if (!is_gpu(inputs) || file->model.n_layers > most_layers)
        return FR_OK;
    if (pins == 0 && plan->n_shares == 0 && plan->n_split == 0)
        return choose_plan(request, inputs, is_quiet, file, err);
    if (file->model.kind == FR_MODEL_DECODER || plan->pp > 1 ||
        plan->n_shares > 0 || fr_request_has(request, FR_OPT_MICRO_BATCH))
        return FR_OK;
    return choose_micro_batch(inputs, file, err);
}
