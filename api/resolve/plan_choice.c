/* plan_choice.c: defaults < plan file < environment < flags. */
#include "api/resolve/plan_choice.h"

#include "api/rebalance/moved_plan.h"
#include "api/resolve/config_choice.h"
#include "api/resolve/default_job.h"
#include "api/resolve/framework_options.h"
#include "api/resolve/no_effect.h"
#include "api/resolve/plan_options.h"
#include "core/base/text.h"
#include "plan/decide/grid.h"
#include "plan/decide/plan_json.h"
#include "program/lower/framework/framework_plan.h"
#include "spec/model/layer_ops.h"
#include "tuner/partition/balance_layers.h"

#include <stdlib.h>
#include <string.h>

/* The plan and job of a file; its model too, where none is named. */
static fr_status take_file(const char *path, bool is_model_named,
                           fr_plan_choice *out, fr_err *err)
{
    fr_plan_file file;
    FR_TRY(fr_as_input(fr_plan_file_load(path, &file, err), err));
    fr_status status = FR_OK;
    if (!is_model_named) {
        status = fr_model_copy(&file.model, &out->model, err);
        out->has_model = status == FR_OK;
    }
    out->plan = file.plan;
    out->job = file.job;
    memcpy(out->framework, file.framework, sizeof out->framework);
    fr_text_copy_cut(out->cluster, sizeof out->cluster, file.cluster);
    out->cluster_hash = file.cluster_hash;
    fr_plan_file_release(&file);
    return status;
}

/* The same of what a framework runs today (--from). */
static fr_status take_config(const fr_request *request,
                             const fr_cluster *cluster, bool is_model_named,
                             fr_plan_choice *out, fr_err *err)
{
    fr_config config;
    FR_TRY(fr_config_choice_from(request, is_model_named ? &out->model : NULL,
                                 fr_cluster_slots(cluster), &config, err));
    fr_status status = FR_OK;
    if (!is_model_named) {
        status = fr_model_copy(&config.file.model, &out->model, err);
        out->has_model = status == FR_OK;
    }
    out->plan = config.file.plan;
    out->job = config.file.job;
    fr_config_release(&config);
    return status;
}

/* GPUs train in 16 bits with fused attention, where they have that. */
void fr_plan_choice_usual(const fr_cluster *cluster, fr_plan *plan)
{
    fr_plan_init(plan);
    if (fr_cluster_device(cluster, 0)->kind != FR_DEVICE_GPU)
        return;
    plan->is_flash = true;
    plan->precision = fr_default_precision(cluster, INT64_MAX);
}

/* On CPUs 16 bits are the runtime's own kernels', which fuse attention, and so
 * are convolutions. */
static void choose_own(const fr_request *request, const fr_cluster *cluster,
                       fr_plan_choice *choice)
{
    const fr_device_type *device = fr_cluster_device(cluster, 0);
    fr_plan *plan = &choice->plan;
    const bool is_narrow = plan->precision == FR_DTYPE_BF16;
    if (device->kind == FR_DEVICE_GPU ||
        (!is_narrow && !fr_model_has_layer_ops(&choice->model)))
        return;
    if (!fr_request_has(request, FR_OPT_KERNELS))
        plan->execution.kernels = FR_KERNELS_OWN;
    if (is_narrow && !fr_request_has(request, FR_OPT_FLASH_ATTENTION))
        plan->is_flash = true;
}

void fr_plan_choice_apply_framework(const fr_request *request,
                                    const fr_cluster *cluster,
                                    fr_plan_choice *choice)
{
    const fr_framework *framework = fr_request_framework(request, cluster);
    if (framework != NULL)
        fr_text_copy_cut(choice->framework, sizeof choice->framework,
                         framework->name);
    fr_request_apply_framework(request, cluster, &choice->plan, &choice->job,
                               &choice->model);
    /* A plan file has them already, but for what is the model's. */
    framework = fr_framework_find(choice->framework);
    if (framework != NULL)
        choice->model.vocab =
            fr_framework_vocab(framework, &choice->plan, &choice->model);
}

/* Job and plan as nobody said anything of them. */
static fr_status take_usual(const fr_request *request,
                            const fr_cluster *cluster, fr_plan_choice *choice,
                            fr_err *err)
{
    FR_TRY(fr_request_make_job(request, &choice->model, &choice->job, err));
    fr_default_seq(request, &choice->model, cluster, &choice->job);
    fr_plan_choice_usual(cluster, &choice->plan);
    return FR_OK;
}

static fr_status make(const fr_request *request, bool is_model_named,
                      const char *plan_path, const fr_cluster *cluster,
                      fr_plan_choice *choice, fr_err *err)
{
    bool is_from = fr_request_has(request, FR_OPT_FROM);
    choice->is_given = plan_path != NULL || is_from;
    if (plan_path != NULL && is_from)
        return fr_fail(err, FR_USAGE, "a PLAN and --from: give one of them");
    if (plan_path != NULL)
        FR_TRY(take_file(plan_path, is_model_named, choice, err));
    else if (is_from)
        FR_TRY(take_config(request, cluster, is_model_named, choice, err));
    else
        FR_TRY(take_usual(request, cluster, choice, err));
    if (choice->is_given)
        FR_TRY(
            fr_request_apply_job(request, &choice->model, &choice->job, err));
    FR_TRY(fr_request_apply_plan(request, &choice->plan, &choice->pins, err));
    choose_own(request, cluster, choice);
    fr_plan_choice_apply_framework(request, cluster, choice);
    if (plan_path == NULL && !fr_request_has(request, FR_OPT_THREADS))
        choice->plan.n_threads =
            fr_default_threads(cluster, fr_plan_world(&choice->plan));
    return FR_OK;
}

fr_status fr_plan_choice_make(const fr_request *request, const char *plan_path,
                              const fr_cluster *cluster, fr_plan_choice *choice,
                              fr_err *err)
{
    return make(request, true, plan_path, cluster, choice, err);
}

void fr_plan_choice_note(const fr_request *request, const fr_cluster *cluster,
                         const fr_plan *plan)
{
    if (plan->n_channels > 0 &&
        fr_cluster_device(cluster, 0)->kind == FR_DEVICE_GPU)
        fr_request_note(
            request,
            "nccl-channels %d is priced by the "
            "multiprocessors that it takes, not by the rate that it "
            "reaches: NCCL's model has none of a channel",
            plan->n_channels);
}

fr_status fr_plan_choice_load(const fr_request *request, const char *model,
                              const char *plan_path, const fr_inputs *inputs,
                              fr_plan_choice *out, fr_err *err)
{
    memset(out, 0, sizeof *out);
    if (model != NULL) {
        FR_TRY(fr_as_input(fr_model_load(model, &out->model, err), err));
        out->has_model = true;
    }
    FR_TRY(make(request, model != NULL, plan_path, &inputs->cluster, out, err));
    fr_plan_choice_note(request, &inputs->cluster, &out->plan);
    fr_note_no_effect(request, &out->job, &out->model, &inputs->cluster);
    return FR_OK;
}

/* fr_move_layers() or fr_move_samples(). */
typedef fr_status (*mover)(const fr_inputs *inputs, const fr_plan_file *file,
                           const fr_slow_ranks *slow, fr_moved *out,
                           fr_err *err);

/* Moves work away from ranks that the cluster knows to be slow, where the
 * prediction of it is faster. */
static fr_status move_work(mover move, const fr_inputs *inputs,
                           const fr_model *model, const fr_job *job,
                           fr_plan *plan, fr_err *err)
{
    const fr_plan_file file = {.model = *model, .job = *job, .plan = *plan};
    const fr_slow_ranks beside = {0};
    fr_moved moved;
    fr_err why;
    const fr_status status = move(inputs, &file, &beside, &moved, &why);

    if (status == FR_OK)
        *plan = moved.plan;
    else if (status != FR_INFEASIBLE)
        return fr_fail(err, status, "%s", why.text);
    return FR_OK;
}

/* The faster of two plans by their predictions; what cannot be predicted is
 * none. */
static const fr_plan *faster_of(const fr_inputs *inputs, const fr_model *model,
                                const fr_job *job, const fr_plan *a,
                                const fr_plan *b)
{
    fr_prediction of_a, of_b;
    fr_err why;
    if (fr_forecast_predict(inputs, model, job, b, &of_b, &why) != FR_OK)
        return a;
    if (fr_forecast_predict(inputs, model, job, a, &of_a, &why) != FR_OK)
        return b;
    if (of_a.memory.fits != of_b.memory.fits)
        return of_a.memory.fits ? a : b;
    return of_b.step_s < of_a.step_s ? b : a;
}

/* What a stage takes is one of its devices' type, and one of how slow some of
 * them are: layers are moved from the even split and from the balanced one. */
static fr_status split_beside_slow(const fr_inputs *inputs,
                                   const fr_model *model, const fr_job *job,
                                   fr_plan *plan, fr_err *err)
{
    fr_plan balanced = *plan, moved = *plan;
    fr_err why;
    const fr_status status = fr_balance_plan(model, job, &inputs->cluster,
                                             inputs->costs, &balanced, &why);
    if (status != FR_OK && status != FR_INFEASIBLE)
        return fr_fail(err, status, "%s", why.text);
    FR_TRY(move_work(fr_move_layers, inputs, model, job, &moved, err));
    if (status == FR_OK && balanced.n_split > 0) {
        FR_TRY(move_work(fr_move_layers, inputs, model, job, &balanced, err));
        *plan = *faster_of(inputs, model, job, &moved, &balanced);
    } else {
        *plan = moved;
    }
    return FR_OK;
}

static fr_status balance_layers(const fr_request *request,
                                const fr_inputs *inputs, const fr_model *model,
                                const fr_job *job, fr_plan *plan, fr_err *err)
{
    if (!fr_request_is_split_auto(request))
        return FR_OK;
    if (inputs->cluster.n_slow > 0 && plan->pp > 1)
        FR_TRY(split_beside_slow(inputs, model, job, plan, err));
    else
        FR_TRY(fr_balance_plan(model, job, &inputs->cluster, inputs->costs,
                               plan, err));
    if (plan->n_split == 0 && plan->pp > 1)
        fr_request_note(request, "--layer-split auto: no split of the layers "
                                 "is predicted to be faster than the even one");
    return FR_OK;
}

fr_status fr_plan_choice_balance(const fr_request *request,
                                 const fr_inputs *inputs, const fr_model *model,
                                 const fr_job *job, fr_plan *plan, fr_err *err)
{
    FR_TRY(balance_layers(request, inputs, model, job, plan, err));
    return fr_request_are_shares_auto(request)
               ? move_work(fr_move_samples, inputs, model, job, plan, err)
               : FR_OK;
}

void fr_plan_choice_release(fr_plan_choice *choice)
{
    if (choice->has_model)
        fr_model_release(&choice->model);
    memset(choice, 0, sizeof *choice);
}

static fr_status place_ranks(const fr_plan *plan, const fr_inputs *inputs,
                             int32_t **out, fr_err *err)
{
    int64_t n_ranks = fr_plan_world(plan);
    int32_t *node_of_rank = malloc((size_t)n_ranks * sizeof *node_of_rank);
    if (node_of_rank == NULL)
        return fr_fail_no_memory(err);
    fr_status status =
        fr_cluster_place(&inputs->cluster, n_ranks, plan->n_threads,
                         inputs->ranks_per_node, node_of_rank, err);
    if (status == FR_OK)
        *out = node_of_rank;
    else
        free(node_of_rank);
    return status;
}

/* The data file by its full path: the plan may be run from elsewhere. */
static void make_data_absolute(fr_job *job)
{
    char *path = job->data[0] != '\0' ? realpath(job->data, NULL) : NULL;
    if (path != NULL)
        (void)fr_text_copy(job->data, sizeof job->data, path);
    free(path);
}

fr_status fr_plan_choice_save(const fr_plan_choice *choice,
                              const fr_inputs *inputs,
                              const fr_prediction *prediction, const char *path,
                              fr_err *err)
{
    fr_plan_file file;
    fr_plan_file_init(&file);
    file.plan = choice->plan;
    file.job = choice->job;
    memcpy(file.framework, choice->framework, sizeof file.framework);
    make_data_absolute(&file.job);
    fr_text_copy_cut(file.cluster, sizeof file.cluster, inputs->cluster_word);
    file.cluster_hash = fr_cluster_hash(&inputs->cluster);
    if (fr_cluster_is_all_gpu(&inputs->cluster))
        fr_text_copy_cut(file.backend, sizeof file.backend, "cuda");
    if (inputs->has_profile)
        file.profile_hash = fr_profile_hash(&inputs->profile);
    file.has_prediction = true;
    file.prediction = *prediction;
    fr_status status = fr_model_copy(&choice->model, &file.model, err);
    if (status == FR_OK)
        status = place_ranks(&file.plan, inputs, &file.node_of_rank, err);
    if (status == FR_OK)
        status = fr_plan_file_save(&file, path, err);
    fr_plan_file_release(&file);
    return status;
}
