/*
 * test_round_trip_megatron.c: what is exported to Megatron-LM and read back is
 * the same plan, job and model, for random plans and all releases, but for what
 * the export says that it drops.
 */
#include "interop/config/config.h"
#include "interop/export/export.h"
#include "tests/check.h"
#include "tests/record/export_plans.h"

#include <string.h>

static fr_err err;

static const char *const models[] = {"gpt2-1.5b", "llama-3-8b", "mixtral-8x7b",
                                     "deepseek-v3", "gpt3-175b"};

/* What the file does not hold, or holds as another word for the same. */
static void normalise(const fr_target *target, const fr_model *model,
                      fr_plan *plan)
{
    fr_plan plain;
    fr_plan_init(&plain);
    for (int i = 0; i < FR_PLAN_FIELDS_N; i++) {
        const fr_field *field = &fr_plan_fields[i].field;
        if (target->fields[i].fate == FR_FATE_PREDICTED)
            fr_field_set(field, fr_field_get(field, &plain), plan);
    }
    if (plan->precision != FR_DTYPE_FP8)
        plan->scaling = FR_SCALING_DELAYED;
    if (model->n_experts == 0)
        plan->expert_dispatch = FR_DISPATCH_ALL_TO_ALL;
    if (model->n_experts == 0 || plan->etp == plan->tp)
        plan->etp = 0; /* which is tp */
    if (plan->zero_group == plan->dp * plan->cp)
        plan->zero_group = 0;
    if (plan->zero_stage == 3)
        plan->is_gather_overlap = true;
    /* Whole elements, at least one. */
    uint64_t n_bytes = fr_dtype_bytes(plan->grad_dtype);
    if (plan->bucket_bytes > 0 && plan->bucket_bytes < n_bytes)
        plan->bucket_bytes = n_bytes;
    plan->bucket_bytes -= plan->bucket_bytes % n_bytes;
    bool is_even = true;
    fr_plan even = *plan;
    even.n_split = 0;
    for (int32_t i = 0; i < plan->n_split; i++)
        is_even = is_even &&
                  plan->layer_split[i] == fr_plan_even_layers(&even, model, i);
    if (is_even)
        plan->n_split = 0;
}

static bool is_near(double a, double b)
{
    double d = a > b ? a - b : b - a;
    return d <= 1e-9 * (a > b ? a : b);
}

static void check_same(const fr_target *target, const fr_plan_file *a,
                       const fr_plan_file *b, const char *text)
{
    char one[512], other[512];
    fr_plan plan = a->plan, back = b->plan;
    normalise(target, &a->model, &plan);
    normalise(target, &a->model, &back);
    if (!check_that(fr_plan_is_same(&plan, &back), __FILE__, __LINE__,
                    "%s: %s came back as %s", a->model.name,
                    fr_plan_describe(&plan, one, sizeof one),
                    fr_plan_describe(&back, other, sizeof other)))
        fprintf(stderr, "%s\n", text);
    CHECK_INT(a->job.global_batch, b->job.global_batch);
    CHECK_INT(a->job.seq, b->job.seq);
    CHECK_INT(a->job.n_steps, b->job.n_steps);
    CHECK_INT(a->job.warmup_steps, b->job.warmup_steps);
    CHECK_INT(a->job.seed, b->job.seed);
    CHECK_INT(a->job.optimizer, b->job.optimizer);
    CHECK_INT(a->job.lr_schedule, b->job.lr_schedule);
    CHECK(is_near(a->job.lr, b->job.lr));
    CHECK(is_near(a->job.lr_min_frac, b->job.lr_min_frac));
    CHECK(is_near(a->job.weight_decay, b->job.weight_decay));
    CHECK(is_near(a->job.clip_norm, b->job.clip_norm));
    CHECK(is_near(a->job.dropout, b->job.dropout));
    CHECK_INT(a->model.has_rope_scaling, b->model.has_rope_scaling);
    if (a->model.has_rope_scaling)
        CHECK(is_near(a->model.rope_factor, b->model.rope_factor));
    CHECK_INT(fr_model_parameters(&a->model), fr_model_parameters(&b->model));
    CHECK(is_near(fr_model_flop_per_token(&a->model, 512, true),
                  fr_model_flop_per_token(&b->model, 512, true)));
}

static void round_trip(const fr_exporter *exporter,
                       const fr_export_request *request)
{
    fr_export_files files = {0};
    fr_config config;
    if (CHECK_OK(fr_export(exporter, request, &files, &err), &err)) {
        const fr_buffer *text = &files.items[0].text;
        fr_config_request read = {.path = "megatron.sh",
                                  .text = fr_buffer_text(text),
                                  .n_text = text->n};
        if (CHECK_OK(fr_config_read(fr_config_find("megatron"), &read, &config,
                                    &err),
                     &err)) {
            check_same(exporter->target, request->file, &config.file,
                       fr_buffer_text(text));
            fr_config_release(&config);
        }
    }
    fr_export_files_release(&files);
}

static const fr_exporter *megatron(void)
{
    int i = 0;
    while (strcmp(fr_exporter_name(i), "megatron") != 0)
        i++;
    return fr_exporter_at(i);
}

static void test_random(void)
{
    enum { PLANS = 500 };
    const fr_exporter *exporter = megatron();
    fr_rng *rng;
    if (!CHECK_OK(fr_rng_create(2385, &rng, &err), &err))
        return;
    int n_versions = fr_target_newest(exporter->target) + 1, n = 0;
    for (int i = 0; i < 40 * PLANS && n < PLANS; i++) {
        fr_plan_file file;
        fr_plan_file_init(&file);
        int version = i % 2 == 0 ? n_versions - 1 : i / 2 % n_versions;
        if (!CHECK_OK(fr_model_load(models[i % 5], &file.model, &err), &err))
            break;
        if (file.model.is_rope && i % 3 == 0) {
            file.model.has_rope_scaling = true;
            file.model.rope_factor = i % 2 == 0 ? 8 : 32;
        }
        export_plans_job(rng, &file.model, &file.job);
        if (export_plans_next(rng, exporter->target, NULL, &file.model,
                              &file.job, 256, &file.plan) &&
            fr_target_check(exporter->target, version, FR_PLAN_BITS_ALL, 0,
                            &file.plan, &file.model, &file.job,
                            &err) == FR_OK) {
            int64_t world = fr_plan_world(&file.plan);
            fr_export_request request = {.file = &file,
                                         .plan_path = "plan.json",
                                         .version = version,
                                         .n_nodes = world,
                                         .n_ranks_per_node = 1,
                                         .has_gpus = true};
            round_trip(exporter, &request);
            n++;
        }
        fr_plan_file_release(&file);
    }
    CHECK_INT(n, PLANS);
    fr_rng_destroy(rng);
}

/* Megatron-LM rescales rotary positions as Llama 3 does, and not otherwise. */
static void test_rescaled(void)
{
    const fr_target *target = megatron()->target;
    const int newest = fr_target_newest(target);
    fr_plan_file file;

    fr_plan_file_init(&file);
    if (!CHECK_OK(fr_model_load("llama-3-405b", &file.model, &err), &err))
        return;
    fr_plan_init(&file.plan);
    file.plan.precision = FR_DTYPE_BF16;
    file.plan.is_flash = true;
    CHECK_OK(fr_target_check(target, newest, FR_PLAN_BITS_ALL, 0, &file.plan,
                             &file.model, &file.job, &err),
             &err);
    file.model.rope_kind = FR_ROPE_YARN;
    CHECK_FAILS(fr_target_check(target, newest, FR_PLAN_BITS_ALL, 0, &file.plan,
                                &file.model, &file.job, &err),
                FR_INPUT, &err);
    CHECK_HAS(err.text, "rescaled as Llama 3's");
    fr_plan_file_release(&file);
}

CHECK_MAIN({"random", test_random}, {"rescaled", test_rescaled})
