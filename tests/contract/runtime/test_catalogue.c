/*
 * test_catalogue.c: every model of configs/models, made narrow and short, is
 * trained, or refused for the reason that stands here.
 */
#include "core/numbers/minmax.h"
#include "plan/lower/step/lower.h"
#include "runtime/run/run.h"
#include "tests/check.h"

#include <dirent.h>
#include <stdlib.h>

enum { N_STEPS = 12 };

/* What the runtime lacks; all others are trained. */
static const struct {
    const char *model, *reason;
} refused[] = {
    {"alexnet", "a plain list of layers"},
    {"bert-large", "with a pooler"},
    {"deepseek-v3", "layers that predict later tokens"},
    {"inception-v3", "a plain list of layers"},
    {"resnet-101", "a plain list of layers"},
    {"resnet-152", "a plain list of layers"},
    {"resnet-18", "a plain list of layers"},
    {"resnet-18-cifar", "a plain list of layers"},
    {"resnet-50", "a plain list of layers"},
    {"vgg-16", "a plain list of layers"},
};

/* The same model with tiny sizes; what it is made of stays. */
static void shrink(fr_model *m)
{
    const int64_t per_key = m->n_heads / m->n_kv_heads;
    m->n_kv_heads = per_key > 4 ? 1 : 4 / per_key;
    m->n_heads = m->n_kv_heads * (per_key > 4 ? 4 : per_key);
    m->head_dim = 8;
    m->hidden = 48;
    m->ffn_hidden = m->ffn_hidden > 0 ? 104 : 0;
    m->vocab = 131;
    m->max_seq = 24;
    m->n_layers = fr_min_i64(m->n_layers, 2 * m->moe_every);
    m->first_dense_layers = fr_min_i64(m->first_dense_layers, 1);
    if (m->sliding_window > 0)
        m->sliding_window = 7;
    if (m->n_experts == 0)
        return;
    m->n_experts = fr_min_i64(m->n_experts, 6);
    m->n_experts_per_token = fr_min_i64(m->n_experts_per_token, 3);
    m->expert_ffn_hidden = 40;
    m->shared_expert_ffn_hidden = m->shared_expert_ffn_hidden > 0 ? 56 : 0;
}

static void train(const char *name, const fr_model *model, const fr_job *job,
                  const fr_plan *plan)
{
    const fr_placement placement = {.n_ranks = 1};
    fr_program *program = NULL;
    fr_run_options options;
    fr_run_result result = {0};
    fr_err err = {0};

    fr_run_options_init(&options);
    if (CHECK_OK(fr_lower(model, job, plan, &placement, &program, &err),
                 &err) &&
        CHECK_OK(fr_run(program, &options, NULL, &result, &err), &err))
        check_that(result.loss[N_STEPS - 1] < 0.95 * result.loss[0], __FILE__,
                   __LINE__, "%s: the loss goes from %g to %g", name,
                   result.loss[0], result.loss[N_STEPS - 1]);
    fr_run_result_release(&result);
    fr_program_destroy(program);
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
    if (!CHECK_OK(fr_model_load(name, &model, &err), &err))
        return;
    if (model.kind != FR_MODEL_LAYERS)
        shrink(&model);
    fr_plan_init(&plan);
    plan.micro_batch = 4;
    plan.n_threads = 2;
    fr_job_init(&job);
    job.global_batch = 8;
    job.seq = 24;
    job.n_steps = N_STEPS;
    job.lr = 0.004;
    job.warmup_steps = 2;
    fr_status status = fr_plan_check_executable(&plan, &model, &job, &err);
    check_that((status == FR_OK) == (reason == NULL), __FILE__, __LINE__,
               "%s: %s", name, status == FR_OK ? "not refused" : err.text);
    if (status == FR_OK)
        train(name, &model, &job, &plan);
    else if (reason != NULL)
        CHECK_HAS(err.text, reason);
    fr_model_release(&model);
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
