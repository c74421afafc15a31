/* plan_resolve.c: the layers of a plan, lowest first. */
#include "api/resolve/plan_resolve.h"

#include "api/resolve/config_choice.h"
#include "api/resolve/default_job.h"
#include "api/resolve/fitting_plan.h"
#include "api/resolve/framework_options.h"
#include "api/resolve/no_effect.h"
#include "api/resolve/plan_balance.h"
#include "api/resolve/plan_options.h"
#include "spec/model/layer_ops.h"

#include <stdlib.h>
#include <string.h>

typedef struct resolver {
    const fr_request *request;
    const fr_plan_question *question;
    fr_plan_choice *out;
    int64_t n_ranks_placed; /* of a plan file, before the options */
} resolver;

static bool is_gpu(const resolver *r)
{
    return fr_cluster_device(r->question->cluster, 0)->kind == FR_DEVICE_GPU;
}

/* ---- model, defaults, file ----------------------------------------------- */

static fr_status take_model(resolver *r, fr_err *err)
{
    fr_plan_file *file = &r->out->file;
    if (r->question->model != NULL) {
        file->model = *r->question->model;
        r->out->is_model_borrowed = true;
    }
    return r->question->model_word != NULL
               ? fr_inputs_load_model(r->request, r->question->model_word,
                                      &file->model, err)
               : FR_OK;
}

void fr_plan_init_for(const fr_cluster *cluster, fr_plan *plan)
{
    fr_plan_init(plan);
    if (fr_cluster_device(cluster, 0)->kind != FR_DEVICE_GPU)
        return;
    plan->is_flash = true;
    plan->precision = fr_default_precision(cluster, INT64_MAX);
}

static bool is_model_named(const resolver *r)
{
    return r->question->model != NULL || r->question->model_word != NULL;
}

/* Takes what a file says, but keeps the model that is named. */
static void take_file(resolver *r, fr_plan_file *from)
{
    fr_plan_file *file = &r->out->file;
    if (is_model_named(r)) {
        fr_model_release(&from->model);
        from->model = file->model;
    }
    *file = *from; /* handed over */
    r->n_ranks_placed = fr_plan_world(&file->plan);
}

static fr_status take_plan_file(resolver *r, fr_err *err)
{
    fr_plan_file from;
    FR_TRY(fr_inputs_load_plan(r->request, r->question->plan_path, "CLUSTER",
                               &from, err));
    take_file(r, &from);
    return FR_OK;
}

static fr_status take_config(resolver *r, fr_err *err)
{
    fr_config config;
    FR_TRY(fr_config_choice_from(
        r->request, is_model_named(r) ? &r->out->file.model : NULL,
        fr_cluster_slots(r->question->cluster), &config, err));
    fr_buffer_release(&config.notes);
    take_file(r, &config.file);
    return FR_OK;
}

static fr_status lay_defaults_or_file(resolver *r, fr_err *err)
{
    const bool is_from = fr_request_has(r->request, FR_OPT_FROM);
    const bool is_file = r->question->plan_path != NULL;
    fr_plan_file *file = &r->out->file;
    r->out->is_given = is_file || is_from;
    if (is_file && is_from)
        return fr_fail(err, FR_USAGE, "a PLAN and --from: give one of them");
    if (is_file)
        return take_plan_file(r, err);
    if (is_from)
        return take_config(r, err);
    fr_plan_init_for(r->question->cluster, &file->plan);
    fr_default_seq(&file->model, r->question->cluster, &file->job);
    return FR_OK;
}

/* ---- options, and what they imply ---------------------------------------- */

static fr_status lay_job_options(resolver *r, fr_err *err)
{
    fr_plan_file *file = &r->out->file;
    FR_TRY(fr_request_apply_job(r->request, &file->model, &file->job, err));
    if (!r->out->is_given)
        fr_note_long_seq(r->request, &file->model, &file->job);
    return FR_OK;
}

static fr_status lay_plan_options(resolver *r, fr_err *err)
{
    return fr_request_apply_plan(r->request, &r->out->file.plan, &r->out->pins,
                                 err);
}

/* On CPUs our own kernels compute in 16 bits, with fused attention, and they
 * alone compute convolutions. */
static fr_status lay_own_kernels(resolver *r, fr_err *err)
{
    fr_plan *plan = &r->out->file.plan;
    const bool is_narrow = plan->precision == FR_DTYPE_BF16;
    (void)err;
    if (is_gpu(r) ||
        (!is_narrow && !fr_model_has_layer_ops(&r->out->file.model)))
        return FR_OK;
    if (!fr_request_has(r->request, FR_OPT_KERNELS))
        plan->execution.kernels = FR_KERNELS_OWN;
    if (is_narrow && !fr_request_has(r->request, FR_OPT_FLASH_ATTENTION))
        plan->is_flash = true;
    return FR_OK;
}

static fr_status lay_framework(resolver *r, fr_err *err)
{
    (void)err;
    fr_request_apply_framework(r->request, r->question->cluster,
                               r->out->is_given, &r->out->file);
    return FR_OK;
}

static fr_status lay_threads(resolver *r, fr_err *err)
{
    fr_plan *plan = &r->out->file.plan;
    (void)err;
    if (r->question->plan_path == NULL &&
        !fr_request_has(r->request, FR_OPT_THREADS))
        plan->n_threads =
            fr_default_threads(r->question->cluster, fr_plan_world(plan));
    return FR_OK;
}

static fr_status report_notes(resolver *r, fr_err *err)
{
    const fr_plan_file *file = &r->out->file;
    (void)err;
    if (r->question->is_quiet)
        return FR_OK;
    if (file->plan.n_channels > 0 && is_gpu(r))
        fr_request_note(r->request,
                        "nccl-channels %d is priced by the multiprocessors "
                        "that it takes, not by the rate that it reaches: "
                        "NCCL's model has none of a channel",
                        file->plan.n_channels);
    fr_note_no_effect(r->request, &file->job, &file->model,
                      r->question->cluster);
    return FR_OK;
}

/* ---- sizes that nobody gave ---------------------------------------------- */

static fr_status lay_sizes(resolver *r, fr_err *err)
{
    (void)err;
    if (r->out->is_given)
        return FR_OK;
    if (r->question->purpose == FR_PLAN_TO_SEARCH)
        fr_default_batch(r->request, &r->out->file.model, r->question->cluster,
                         r->question->n_ranks_max, &r->out->file.job);
    else
        fr_default_plan(r->request, r->question->inputs, &r->out->file);
    return FR_OK;
}

static fr_status choose_what_fits(resolver *r, fr_err *err)
{
    if (r->out->is_given || r->question->purpose != FR_PLAN_TO_PREDICT)
        return FR_OK;
    return fr_fitting_plan(r->request, r->question->inputs, r->out->pins,
                           r->question->is_quiet, &r->out->file, err);
}

static fr_status check_ranks(resolver *r, fr_err *err)
{
    return r->question->purpose == FR_PLAN_TO_PREDICT
               ? fr_default_ranks(r->request, r->question->inputs,
                                  r->out->is_given, &r->out->file.plan, err)
               : FR_OK;
}

static fr_status balance(resolver *r, fr_err *err)
{
    fr_plan_file *file = &r->out->file;
    return r->question->purpose == FR_PLAN_TO_PREDICT
               ? fr_plan_balance(r->request, r->question->inputs, &file->model,
                                 &file->job, &file->plan, err)
               : FR_OK;
}

/* A placement of ranks holds for the number of ranks that it was made for. */
static fr_status drop_old_placement(resolver *r, fr_err *err)
{
    fr_plan_file *file = &r->out->file;
    (void)err;
    if (fr_plan_world(&file->plan) != r->n_ranks_placed) {
        free(file->node_of_rank);
        file->node_of_rank = NULL;
    }
    return FR_OK;
}

/* ---- all of them --------------------------------------------------------- */

static fr_status (*const layers[])(resolver *r, fr_err *err) = {
    take_model,         lay_defaults_or_file, lay_job_options, lay_plan_options,
    lay_own_kernels,    lay_framework,        lay_threads,     report_notes,
    lay_sizes,          choose_what_fits,     check_ranks,     balance,
    drop_old_placement,
};

fr_status fr_plan_resolve(const fr_request *request,
                          const fr_plan_question *question, fr_plan_choice *out,
                          fr_err *err)
{
    resolver r = {.request = request, .question = question, .out = out};
    memset(out, 0, sizeof *out);
    fr_plan_file_init(&out->file);
    for (size_t i = 0; i < FR_LENGTH(layers); i++)
        FR_TRY(layers[i](&r, err));
    return FR_OK;
}
