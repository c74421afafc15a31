/*
 * test_catalogue.c: every model of configs/models, made narrow and short, is
 * trained on one rank and, with the same losses, on two and four, or refused
 * for the reason that stands here.
 */
#include "core/base/minmax.h"
#include "core/numbers/rng.h"
#include "kernels/cpu/images/conv.h"
#include "spec/model/layer_ops.h"
#include "tests/check.h"
#include "tests/unit/runtime/gpu_show.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { N_STEPS = 16, N_LABELS = 7 };

static const struct {
    const char *name;
    int dp, tp, pp, zero;
} layouts[] = {
    {"alone", 1, 1, 1, 0},
    {"tp2", 1, 2, 1, 0},
    {"dp2 zero2", 2, 1, 1, 2},
    {"dp2 pp2", 2, 1, 2, 0},
};

/* The models that the runtime lacks; all others are trained. */
static const struct {
    const char *model, *reason;
} refused[] = {
    {"inception-v3", "a list of layers without their operations"},
};

/* The same model with tiny sizes; what it is made of stays. */
static void shrink(fr_model *m)
{
    const int64_t per_key = m->n_heads / m->n_kv_heads;
    m->n_kv_heads = per_key > 1 ? 2 : 4;
    m->n_heads = m->n_kv_heads * fr_min_i64(per_key, 4);
    m->head_dim = 8;
    m->hidden = 48;
    m->ffn_hidden = m->ffn_hidden > 0 ? 104 : 0;
    m->vocab = 131;
    m->max_seq = 24;
    m->n_layers = fr_min_i64(m->n_layers, 2 * m->moe_every);
    m->first_dense_layers = fr_min_i64(m->first_dense_layers, 1);
    if (m->sliding_window > 0)
        m->sliding_window = 7;
    if (m->kv_lora_rank > 0) {
        m->kv_lora_rank = 24;
        m->q_lora_rank = fr_min_i64(m->q_lora_rank, 32);
        m->qk_rope_head_dim = 6;
        m->qk_nope_head_dim = 10;
        m->v_head_dim = 8;
        m->head_dim = 16;
    }
    if (m->n_experts == 0)
        return;
    m->n_experts = fr_min_i64(m->n_experts, 6);
    m->n_experts_per_token = fr_min_i64(m->n_experts_per_token, 3);
    m->n_expert_groups = m->n_expert_groups > 1 ? 3 : 1;
    m->n_chosen_groups = m->n_expert_groups > 1 ? 2 : 1;
    m->expert_ffn_hidden = 40;
    m->shared_expert_ffn_hidden = m->shared_expert_ffn_hidden > 0 ? 56 : 0;
}

/* A list of layers on small images, whose last ones have more than one pixel
 * to normalize, with a sixteenth of the channels; a pool
 * over all of an image stays one. */
static bool shrink_list(fr_model *m)
{
    fr_err err = {0};

    if (!fr_model_has_layer_ops(m))
        return true;
    m->image_size = strcmp(m->name, "alexnet") == 0 ? 63 : 64;
    fr_image image = {m->n_channels, m->image_size};
    for (size_t i = 0; i < m->n_layer_entries; i++) {
        fr_image main = image, shortcut = image;
        for (int64_t k = 0; k < m->layers[i].n_ops; k++) {
            fr_layer_op *op = &m->layer_ops[m->layers[i].first_op + k];
            fr_image *at = op->is_shortcut ? &shortcut : &main;
            op->channels =
                op->channels > 0 ? fr_max_i64(op->channels / 16, 6) : 0;
            if (op->kind == FR_LAYER_OP_AVG_POOL)
                op->kernel = at->size;
            if (!CHECK_OK(fr_layer_op_image(op, *at, at, &err), &err))
                return false;
        }
        image = main;
    }
    m->layer_ops[m->n_layer_ops - 1].channels = N_LABELS;
    return CHECK_OK(fr_model_derive_layers(m, NULL, &err), &err);
}

/* False: the run failed, which is said. */
static bool perform(size_t i_layout, const fr_model *model, const fr_job *job,
                    const fr_plan *plan, double *loss)
{
    gpu_show show;

    gpu_show_init(&show);
    show.model = model;
    show.job = *job;
    show.plan = *plan;
    show.plan.dp = layouts[i_layout].dp;
    show.plan.tp = layouts[i_layout].tp;
    show.plan.pp = layouts[i_layout].pp;
    show.plan.zero_stage = layouts[i_layout].zero;
    show.options.is_unwatched = true;
    const bool is_ok = gpu_show_perform_well(&show);
    if (is_ok)
        memcpy(loss, show.result.loss, N_STEPS * sizeof *loss);
    gpu_show_release(&show);
    return is_ok;
}

/* As many images as a batch has, whose labels can be learnt by heart. */
static bool write_images(const fr_model *model, fr_job *job)
{
    const int64_t n_bytes =
        model->n_channels * model->image_size * model->image_size;

    if (model->kind != FR_MODEL_LAYERS)
        return true;
    check_tmp_path(job->data, "test_catalogue.%d", (int)getpid());
    FILE *file = fopen(job->data, "wb");
    if (!CHECK(file != NULL))
        return false;
    for (int64_t i = 0; i < job->global_batch; i++) {
        (void)fputc((int)(i % N_LABELS), file);
        for (int64_t k = 0; k < n_bytes; k++)
            (void)fputc(
                (int)(fr_hash_u64(1, (uint64_t)i, (uint64_t)k, 0) & 255), file);
    }
    return CHECK(fclose(file) == 0);
}

static void train(const char *name, const fr_model *model, const fr_job *job,
                  const fr_plan *plan)
{
    double alone[N_STEPS], loss[N_STEPS];

    if (!perform(0, model, job, plan, alone))
        return;
    for (size_t l = 1; l < sizeof layouts / sizeof *layouts; l++) {
        if (model->kind == FR_MODEL_LAYERS && layouts[l].tp > 1)
            continue; /* it has no heads to split */
        if (!perform(l, model, job, plan, loss))
            continue;
        for (int i = 0; i < N_STEPS; i++)
            check_that(fabs(loss[i] - alone[i]) <= 1e-4 * alone[i], __FILE__,
                       __LINE__, "%s %s: loss %d: %g, alone %g", name,
                       layouts[l].name, i, loss[i], alone[i]);
    }
    /* Deep narrow CNNs go up and down on their way. */
    double lowest = alone[N_STEPS - 1];
    for (int i = N_STEPS / 2; i < N_STEPS; i++)
        lowest = fmin(lowest, alone[i]);
    check_that(lowest < 0.95 * alone[0], __FILE__, __LINE__,
               "%s: the loss goes from %g to %g", name, alone[0], lowest);
}

static void check_model(const char *name)
{
    const char *reason = NULL;
    fr_model model;
    fr_plan plan;
    fr_job job;
    fr_err err = {0};

    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (strcmp(refused[i].model, name) == 0)
            reason = refused[i].reason;
    if (!CHECK_OK(fr_model_load(NULL, name, &model, &err), &err))
        return;
    if (model.kind != FR_MODEL_LAYERS)
        shrink(&model);
    if (!shrink_list(&model)) {
        fr_model_release(&model);
        return;
    }
    fr_plan_init(&plan);
    plan.micro_batch = 4;
    plan.n_threads = 1;
    if (model.kind == FR_MODEL_LAYERS)
        plan.execution.kernels = FR_KERNELS_OWN;
    fr_job_init(&job);
    job.global_batch = 8;
    job.seq = 24;
    job.n_steps = N_STEPS;
    job.lr = 0.004;
    job.warmup_steps = 2;
    /* Masks do not depend on the layout. */
    job.dropout = fr_model_has_layer_ops(&model) ? 0.02 : 0;
    fr_status status = fr_plan_check_executable(&plan, &model, &job, &err);
    check_that((status == FR_OK) == (reason == NULL), __FILE__, __LINE__,
               "%s: %s", name, status == FR_OK ? "not refused" : err.text);
    if (status == FR_OK && fr_model_has_layer_ops(&model) &&
        !fr_convs_are_there())
        printf("# %s: not trained, oneDNN is not in this build\n", name);
    else if (status == FR_OK && write_images(&model, &job))
        train(name, &model, &job, &plan);
    else if (reason != NULL)
        CHECK_HAS(err.text, reason);
    fr_model_release(&model);
    (void)unlink(job.data);
}

static void test_catalogue(void)
{
    DIR *folder = opendir("configs/models");
    int n = 0;

    CHECK(folder != NULL);
    for (struct dirent *entry;
         folder != NULL && (entry = readdir(folder)) != NULL;) {
        char name[128];
        const char *end = strstr(entry->d_name, ".json");
        if (end == NULL)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(end - entry->d_name),
                 entry->d_name);
        check_model(name);
        n++;
    }
    CHECK(n > 20);
    if (folder != NULL)
        (void)closedir(folder);
}

CHECK_MAIN({"catalogue", test_catalogue})
