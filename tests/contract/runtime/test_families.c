/*
 * test_families.c: a tiny model of each family, from its Hugging Face file
 * through lowering and the interpreter: losses and gradients are those of
 * PyTorch (tests/oracle).
 */
#include "kernels/cpu/images/conv.h"
#include "kernels/cpu/kernels_cpu.h"
#include "program/lower/step/lower.h"
#include "runtime/run/interpreter.h"
#include "tests/check.h"
#include "tests/oracle/family_golden_model.h"

#include <stdlib.h>
#include <unistd.h>

/* One family on one rank. */
typedef struct family_run {
    const family_golden *golden;
    fr_program *program;
    fr_transport *transport;
    fr_data *data;
    fr_interpreter *interpreter;
    float *gradients; /* of the first step, the flat list */
} family_run;

static void note_gradients(void *context, const fr_instr_view *view)
{
    family_run *run = context;
    const float *g = view->ptr[FR_OPT_STEP_G];

    memcpy(run->gradients + view->instr->range.first, g,
           (size_t)view->instr->range.n * sizeof *g);
}

static void write_tokens(const char *path, int64_t vocab)
{
    FILE *file = fopen(path, "wb");

    for (int64_t i = 0; file != NULL && i <= FAMILY_SEQ; i++) {
        int32_t token = family_token(i, vocab);
        (void)fputc(token & 255, file);
        (void)fputc(token >> 8, file);
    }
    CHECK(file != NULL && fclose(file) == 0);
}

static fr_job make_job(const char *data_path)
{
    fr_job job;

    fr_job_init(&job);
    job.global_batch = 2; /* the file has one window: it comes twice */
    job.seq = FAMILY_SEQ;
    job.n_steps = FAMILY_STEPS;
    job.optimizer = FR_OPTIMIZER_ADAMW;
    job.lr = FAMILY_LR;
    job.beta1 = FAMILY_BETA1;
    job.beta2 = FAMILY_BETA2;
    job.optimizer_eps = FAMILY_EPS;
    job.weight_decay = FAMILY_DECAY;
    job.clip_norm = 0;
    job.warmup_steps = 0;
    job.lr_schedule = FR_LR_CONSTANT;
    snprintf(job.data, sizeof job.data, "%s", data_path);
    return job;
}

static fr_status prepare(family_run *run, bool is_fused, fr_err *err)
{
    char path[CHECK_PATH_BYTES];
    fr_model model;
    fr_plan plan;
    const char *text = run->golden->config;

    FR_TRY(fr_model_parse(run->golden->name, text, strlen(text), &model, err));
    check_tmp_path(path, "test_families.%d.bin", (int)getpid());
    const bool is_text = model.vocab > 0; /* images are made up */
    if (is_text)
        write_tokens(path, model.vocab);
    fr_job job = make_job(is_text ? path : "");
    fr_plan_init(&plan);
    plan.micro_batch = 2;
    plan.n_threads = 2;
    if (strcmp(run->golden->name, "mixtral_capped") == 0)
        plan.expert_capacity = 0.8;
    /* Recompute of the rest keeps a log-sum-exp per row. */
    if (model.kind == FR_MODEL_LAYERS)
        plan.execution.kernels = FR_KERNELS_OWN;
    plan.recompute = is_fused ? FR_RECOMPUTE_FULL : FR_RECOMPUTE_NONE;
    fr_placement placement = {.n_ranks = 1};
    fr_status status = fr_plan_check_executable(&plan, &model, &job, err);
    if (status == FR_OK)
        status = fr_lower(&model, &job, &plan, &placement, &run->program, err);
    fr_model_release(&model);
    if (status == FR_OK)
        status = fr_program_check(run->program, NULL, err);
    if (status == FR_OK)
        status = fr_data_open(&job, run->program->model.vocab, &run->data, err);
    if (status == FR_OK && run->program->model.n_mtp_layers > 0)
        fr_data_look_ahead(run->data);
    (void)unlink(path);
    return status;
}

static void fill_weights(const family_run *run)
{
    const fr_rank_program *rank = &run->program->rank_programs[0];
    float *flat =
        (float *)(void *)(run->transport->slab[0] + rank->weight_offset_bytes);

    CHECK_INT(rank->n_tensors, run->golden->n_tensors);
    for (uint32_t t = 0; t < rank->n_tensors; t++) {
        const fr_tensor *tensor = &rank->tensors[t];
        const family_tensor *golden = family_find(run->golden, tensor->name);
        check_that(golden != NULL, __FILE__, __LINE__, "%s: no tensor %s",
                   run->golden->name, tensor->name);
        if (golden == NULL || !CHECK_INT(tensor->global_rows, golden->rows) ||
            !CHECK_INT(tensor->global_cols, golden->cols))
            continue;
        for (int64_t i = 0; i < (int64_t)tensor->n; i++) {
            int64_t row = i / tensor->cols, col = i % tensor->cols;
            flat[tensor->first + (uint64_t)i] =
                row < golden->rows ? family_weight(golden, row, col) : 0.0F;
        }
    }
}

static fr_status open_run(family_run *run, fr_err *err)
{
    const fr_rank_program *rank = &run->program->rank_programs[0];
    const fr_interpreter_options options = {
        .timeout_s = 60,
        .comm_core = -1,
        .watch = {.on_gradients = note_gradients, .context = run}};

    run->gradients = calloc(rank->n_parameters, sizeof *run->gradients);
    FR_TRY(fr_transport_alone_create(60, &run->transport, err));
    FR_TRY(
        run->transport->ops->open_slab(run->transport, rank->slab_bytes, err));
    fr_kernels_cpu_set_threads(2);
    fill_weights(run);
    return fr_interpreter_create(run->program, run->transport, run->data,
                                 &options, &run->interpreter, err);
}

static void close_run(family_run *run)
{
    fr_interpreter_destroy(run->interpreter);
    fr_transport_destroy(run->transport);
    fr_data_close(run->data);
    fr_program_destroy(run->program);
    free(run->gradients);
}

/* The error of a tensor, and that of its samples relative to the largest of
 * all. */
static void check_gradients(const family_run *run)
{
    const fr_rank_program *rank = &run->program->rank_programs[0];
    double largest = 0, all = 0;

    for (int i = 0; i < run->golden->n_tensors; i++) {
        const family_tensor *t = &run->golden->tensors[i];
        largest = fmax(largest, fabs(t->samples[0].gradient));
        all += t->gradient_norm * t->gradient_norm;
    }
    for (uint32_t i = 0; i < rank->n_tensors; i++) {
        const fr_tensor *tensor = &rank->tensors[i];
        const family_tensor *t = family_find(run->golden, tensor->name);
        const float *g = run->gradients + tensor->first;
        double sum = 0;
        if (t == NULL)
            continue;
        for (uint64_t k = 0; k < tensor->n; k++)
            sum += (double)g[k] * (double)g[k];
        check_that(fabs(sqrt(sum) - t->gradient_norm) <=
                       1e-5 * t->gradient_norm + 1e-6 * sqrt(all),
                   __FILE__, __LINE__, "%s: gradient of %s: %.9g, not %.9g",
                   run->golden->name, t->name, sqrt(sum), t->gradient_norm);
        for (int k = 0; k < FAMILY_SAMPLES; k++) {
            const family_sample *s = &t->samples[k];
            double got = (double)g[s->row * tensor->cols + s->col];
            check_that(fabs(got - s->gradient) <= 1e-5 * largest, __FILE__,
                       __LINE__, "%s: gradient of %s[%d][%d]: %.9g, not %.9g",
                       run->golden->name, t->name, s->row, s->col, got,
                       s->gradient);
        }
    }
}

/* PyTorch in float32 is as far from these float64 numbers; AdamW's first
 * steps, which have the sign of a gradient however small, spread that over the
 * losses. */
static void check_family(const family_golden *golden, bool is_fused)
{
    family_run run = {.golden = golden};
    fr_err err = {0};
    double step_s;

    if (CHECK_OK(prepare(&run, is_fused, &err), &err) &&
        CHECK_OK(open_run(&run, &err), &err))
        for (int i = 0; i < FAMILY_STEPS; i++) {
            if (!CHECK_OK(fr_interpreter_step(run.interpreter, i, false,
                                              &step_s, &err),
                          &err))
                break;
            double loss = fr_interpreter_scalars(run.interpreter)->loss_sum;
            check_that(fabs(loss - golden->losses[i]) <=
                           (i == 0 ? 1e-6 : 1e-4) * golden->losses[i],
                       __FILE__, __LINE__, "%s: loss %d: %.9g, not %.9g",
                       golden->name, i, loss, golden->losses[i]);
            if (i == 0)
                check_gradients(&run);
        }
    close_run(&run);
}

static void test_families(void)
{
    const size_t n = sizeof family_goldens / sizeof *family_goldens;

    for (size_t i = 0; i < n; i++) {
        check_family(&family_goldens[i], false);
        check_family(&family_goldens[i], true);
    }
}

static void test_images(void)
{
    const size_t n = sizeof image_goldens / sizeof *image_goldens;

    if (!fr_convs_are_there())
        SKIP("oneDNN is not in this build");
    for (size_t i = 0; i < n; i++) {
        check_family(&image_goldens[i], false);
        check_family(&image_goldens[i], true);
    }
}

CHECK_MAIN({"families", test_families}, {"images", test_images})
