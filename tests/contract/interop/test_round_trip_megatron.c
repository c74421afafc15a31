/*
 * test_round_trip_megatron.c: what is exported to Megatron-LM and read back is
 * the same plan, job and model, for random plans and all releases, but for what
 * the export says that it drops.
 */
#include "frameworks/megatron/target_megatron.h"
#include "frameworks/read/config.h"
#include "interop/export/export_list.h"
#include "tests/check.h"
#include "tests/record/export_plans.h"

#include <string.h>

static fr_err err;

static const char *const models[] = {"gpt2-1.5b", "llama-3-8b", "mixtral-8x7b",
                                     "deepseek-v3", "gpt3-175b"};

/* These fields are not in the file, or stand there as another word for the
 * same. */
static void normalise(const fr_target *target, const fr_model *model,
                      fr_plan *plan)
{
    fr_plan plain;
    fr_plan_init(&plain);
    for (int i = 0; i < FR_PLAN_ITEMS_N; i++) {
        const fr_field *field = &fr_plan_item_row(i)->field;
        if (fr_target_item(target, i).fate == FR_FATE_PREDICTED)
            fr_field_set(field, fr_field_get(field, &plain), plan);
    }
    if (plan->precision != FR_DTYPE_FP8)
        plan->execution.scaling = FR_SCALING_DELAYED;
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

/* The router, but for groups that restrict nothing. */
static void check_router(const fr_model *a, const fr_model *b)
{
    CHECK_INT(a->n_experts_per_token, b->n_experts_per_token);
    CHECK_INT(a->has_softmax_over_all, b->has_softmax_over_all);
    CHECK_INT(a->has_sigmoid_router, b->has_sigmoid_router);
    CHECK_INT(a->has_router_bias, b->has_router_bias);
    CHECK(is_near(a->routed_scale, b->routed_scale));
    CHECK_INT(a->n_expert_groups, b->n_expert_groups);
    CHECK_INT(a->n_chosen_groups, b->n_chosen_groups);
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
    if (a->model.n_experts > 0)
        check_router(&a->model, &b->model);
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

/* One of the routers that Megatron-LM and forerun both have; before core 0.11
 * only the first two. */
static void vary_router(fr_rng *rng, int version, fr_model *model)
{
    const uint64_t n = version < FR_MEGATRON_0_11 ? 2 : 5;
    const uint64_t kind = fr_rng_below(rng, n);
    if (model->n_experts == 0)
        return;
    model->has_sigmoid_router = kind > 1;
    model->has_softmax_over_all = kind == 1;
    model->has_router_bias = kind > 2;
    model->routed_scale = kind % 2 == 0 && n > 2 ? 2.385 : 1;
    model->n_expert_groups = kind == 4 ? model->n_experts / 2 : 1;
    model->n_chosen_groups = kind == 4 ? model->n_experts_per_token / 2 : 1;
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
        if (!CHECK_OK(fr_model_load(NULL, models[i % 5], &file.model, &err),
                      &err))
            break;
        if (file.model.is_rope && i % 3 == 0) {
            file.model.has_rope_scaling = true;
            file.model.rope_factor = i % 2 == 0 ? 8 : 32;
        }
        vary_router(rng, version, &file.model);
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
    const fr_target *target = (megatron())->target;
    const int newest = fr_target_newest(target);
    fr_plan_file file;

    fr_plan_file_init(&file);
    if (!CHECK_OK(fr_model_load(NULL, "llama-3-405b", &file.model, &err), &err))
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

/* A mixture of experts that Megatron-LM takes; what it asks of routers. */
static bool setup_experts(fr_plan_file *out)
{
    fr_plan_file_init(out);
    if (!CHECK_OK(fr_model_load(NULL, "mixtral-8x7b", &out->model, &err), &err))
        return false;
    out->model.has_sigmoid_router = true;
    out->plan.precision = FR_DTYPE_BF16;
    out->plan.is_flash = true;
    return true;
}

static void check_asks(const fr_plan_file *file, int version, const char *why)
{
    fr_status status =
        fr_target_check((megatron())->target, version, FR_PLAN_BITS_ALL, 0,
                        &file->plan, &file->model, &file->job, &err);
    if (why == NULL) {
        CHECK_OK(status, &err);
    } else {
        CHECK_FAILS(status, FR_INPUT, &err);
        CHECK_HAS(err.text, why);
    }
}

static void test_routers(void)
{
    const int newest = fr_target_newest((megatron())->target);
    fr_plan_file file;
    if (!setup_experts(&file))
        return;
    fr_model *model = &file.model;
    check_asks(&file, newest, NULL);
    check_asks(&file, FR_MEGATRON_0_10, "core 0.11 or later for a router");
    model->has_softmax_over_all = true;
    check_asks(&file, newest, "sigmoids whose weights add up to 1");
    model->n_experts_per_token = 1;
    check_asks(&file, newest, NULL);
    model->n_experts_per_token = 2;
    model->has_sigmoid_router = false;
    check_asks(&file, FR_MEGATRON_0_8, NULL);
    model->has_router_bias = true;
    check_asks(&file, newest, "sigmoids where a bias");
    model->has_router_bias = false;
    model->n_expert_groups = 4;
    model->n_chosen_groups = 2; /* by their best score */
    check_asks(&file, newest, NULL);
    check_asks(&file, FR_MEGATRON_0_11, "two best scores");
    model->n_chosen_groups = 1;
    check_asks(&file, newest, "n_experts_per_token / n_chosen_groups");
    fr_plan_file_release(&file);
}

/* The first file of an exporter. */
static void check_export(const char *name, const fr_plan_file *file,
                         int version, const char *has, const char *has_not)
{
    fr_export_request request = {.file = file,
                                 .plan_path = "plan.json",
                                 .version = version,
                                 .n_nodes = 1,
                                 .n_ranks_per_node = 8,
                                 .has_gpus = true};
    fr_export_files files = {0};
    int i = 0;
    while (strcmp(fr_exporter_name(i), name) != 0)
        i++;
    if (CHECK_OK(fr_export(fr_exporter_at(i), &request, &files, &err), &err)) {
        const char *text = fr_buffer_text(&files.items[0].text);
        CHECK_HAS(text, has);
        CHECK(has_not == NULL || strstr(text, has_not) == NULL);
    }
    fr_export_files_release(&files);
}

/* Megatron FSDP shards what is not made yet, where its modules can wait. */
static void test_meta_device(void)
{
    static const char flag[] = "--init-model-with-meta-device\n";
    static const char field[] = "init_model_with_meta_device=True,\n";
    static const char whole[] = "each GPU holds the";
    const int newest = fr_target_newest((megatron())->target);
    fr_plan_file file;
    if (!setup_experts(&file))
        return;
    file.plan.dp = 8;
    file.plan.zero_stage = 3;
    file.plan.is_overlap = file.plan.execution.is_grad_added_apart = true;
    check_export("megatron", &file, newest, flag, whole);
    check_export("megatron", &file, FR_MEGATRON_0_13, flag, whole);
    check_export("megatron", &file, FR_MEGATRON_0_12, whole, flag);
    check_export("megatron-bridge", &file, 0, field, whole);
    file.model.has_router_bias = true;
    check_export("megatron", &file, FR_MEGATRON_0_15, flag, whole);
    check_export("megatron", &file, FR_MEGATRON_0_14, whole, flag);
    file.model.shared_expert_ffn_hidden = 2816;
    file.model.has_shared_expert_gate = true;
    check_export("megatron", &file, newest, whole, flag);
    check_export("megatron-bridge", &file, 0, whole, field);
    file.plan.zero_stage = 1;
    check_export("megatron", &file, newest, "expert-bias", flag);
    fr_plan_file_release(&file);
}

CHECK_MAIN({"random", test_random}, {"rescaled", test_rescaled},
           {"routers", test_routers}, {"meta_device", test_meta_device})
