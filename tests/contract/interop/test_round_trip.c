/*
 * test_round_trip.c: for each format that is both written and read, plans and
 * jobs that its target can have come back as they were, but for what only a
 * prediction knows, what stands in the environment, and what the export says
 * that its file does not hold.
 */
#include "frameworks/framework_plan.h"
#include "frameworks/read/config.h"
#include "interop/export/export_list.h"
#include "plan/decide/plan_fields.h"
#include "spec/model/job_fields.h"
#include "tests/check.h"
#include "tests/contract/interop/target_plans.h"
#include "tests/record/export_plans.h"

#include <math.h>

enum { N_PLANS = 200 };

static const fr_exporter *exporter_of(const fr_target *target)
{
    const fr_exporter *exporter;
    for (int i = 0; (exporter = fr_exporter_at(i)) != NULL; i++)
        if (exporter->target == target)
            return exporter;
    return NULL;
}

/* A rate that is not multiplied by what it is multiplied with, or a moment that
 * the optimizer has not. */
static bool is_idle_of_job(fr_job_field_id id, const fr_job *job)
{
    return id == FR_JOB_TOKENS || /* the steps have them */
           (id == FR_JOB_LR_MIN_FRAC && job->lr_schedule == FR_LR_CONSTANT) ||
           (id == FR_JOB_BETA2 && job->optimizer == FR_OPTIMIZER_SGD);
}

/* The export names a field in words, or as an argument of the training script,
 * if its file has no key for it. */
static bool is_said(const fr_export_files *files, fr_job_field_id id)
{
    static const struct {
        fr_job_field_id id;
        const char *words;
    } said[] = {{FR_JOB_STEPS, " steps of sequences"},
                {FR_JOB_STEPS, "--max_steps "},
                {FR_JOB_SEED, "seed "},
                {FR_JOB_OPTIMIZER, "# optimizer "},
                {FR_JOB_LR_SCHEDULE, "# lr_schedule "},
                {FR_JOB_LR_SCHEDULE, "the learning rate falls"},
                {FR_JOB_LR_SCHEDULE, "--lr_scheduler_type "},
                {FR_JOB_WARMUP, "the learning rate falls"},
                {FR_JOB_WARMUP, "--warmup_steps "},
                {FR_JOB_WARMUP, "DeepSpeed warms up over"},
                {FR_JOB_LR_MIN_FRAC, "learning rate ends at"},
                {FR_JOB_LR_MIN_FRAC, "learning rate that ends at"},
                {FR_JOB_DROPOUT, "dropout "}};
    for (size_t i = 0; i < files->n; i++)
        for (size_t k = 0; k < FR_LENGTH(said); k++)
            if (said[k].id == id &&
                memmem(files->items[i].text.data, files->items[i].text.n,
                       said[k].words, strlen(said[k].words)) != NULL)
                return true;
    return false;
}

/* Accelerate's YAML has no job: it stands in the arguments of the script. */
static bool check_job(const fr_target *target, const fr_export_files *files,
                      const fr_job *was, const fr_job *is)
{
    bool is_ok = true;
    for (int i = 0; i < FR_JOB_FIELDS_N; i++) {
        const fr_field *field = &fr_job_fields[i];
        const fr_job_field_id id = (fr_job_field_id)i;
        if (field->kind == FR_FIELD_TEXT || is_idle_of_job(id, was))
            continue;
        const double a = fr_field_get(field, was), b = fr_field_get(field, is);
        if (fabs(a - b) > 1e-9 * fabs(a) && !is_said(files, id))
            is_ok = check_that(false, __FILE__, __LINE__,
                               "%s: %s %.9g came back as %.9g", target->name,
                               field->key, a, b);
    }
    return is_ok;
}

/* Files that the one that is read names are found in its folder. */
static void save_beside(const fr_export_files *files,
                        char path[CHECK_PATH_BYTES])
{
    check_tmp_path(path, "%s", files->items[0].name);
    for (size_t i = 1; i < files->n; i++) {
        char other[CHECK_PATH_BYTES];
        const fr_buffer *text = &files->items[i].text;
        check_tmp_path(other, "%s", files->items[i].name);
        FILE *file = fopen(other, "w");
        CHECK(file != NULL && fwrite(text->data, 1, text->n, file) == text->n &&
              fclose(file) == 0);
    }
}

static bool check_plan(const fr_framework *framework, const fr_target *target,
                       const fr_exporter *exporter, int version,
                       const fr_plan_file *file)
{
    char name[512];
    fr_err err = {0};
    fr_config back;
    int where;
    fr_export_files files = {0};
    const int64_t world = fr_plan_world(&file->plan);
    fr_export_request request = {.file = file,
                                 .plan_path = "plan.json",
                                 .version = version,
                                 .n_nodes = 1,
                                 .n_ranks_per_node = world,
                                 .has_gpus = true,
                                 .time_limit_s = 7200,
                                 .checkpoint_dir = "kept \"here\"",
                                 .checkpoint_every = 2385};
    fr_plan_describe(&file->plan, name, sizeof name);
    bool is_ok = CHECK_OK(fr_export(exporter, &request, &files, &err), &err);
    if (is_ok && strstr(files.items[0].name, ".py") != NULL) {
        fr_export_files_release(&files);
        return true; /* a program, which is not read back */
    }
    if (is_ok) {
        char path[CHECK_PATH_BYTES];
        save_beside(&files, path);
        const fr_config_request read = {.path = path,
                                        .text = files.items[0].text.data,
                                        .n_text = files.items[0].text.n,
                                        .model = &file->model,
                                        .world = world,
                                        .seq = file->job.seq};
        CHECK(fr_config_guess(read.text, read.n_text) == framework);
        is_ok = CHECK_OK(fr_config_read(framework, &read, &back, &err), &err);
    }
    if (is_ok) {
        where = fr_target_difference(target, file, &back.file.plan);
        is_ok = where < 0;
        CHECK(is_ok);
        if (!is_ok)
            printf("# %s of: %s\n", fr_plan_item_row(where)->field.key, name);
        if (!fr_target_is_elsewhere(target, FR_PLAN_MICRO_BATCH))
            is_ok &= check_job(target, &files, &file->job, &back.file.job);
        fr_config_release(&back);
    } else {
        printf("# %s: %s\n", name, err.text);
    }
    fr_export_files_release(&files);
    return is_ok;
}

/* A job that the target can have beside the plan, where one of some draws is.
 */
static void draw_job(fr_rng *rng, const fr_target *target, int version,
                     fr_plan_file *file)
{
    fr_err unused;
    fr_job job;
    for (int i = 0; i < 20; i++) {
        export_plans_job(rng, &file->model, &job);
        job.global_batch = file->job.global_batch;
        job.seq = file->job.seq;
        job.tokens = job.n_steps * job.global_batch * job.seq;
        if (fr_target_check(target, version, FR_PLAN_BITS_ALL, 0, &file->plan,
                            &file->model, &job, &unused) == FR_OK) {
            file->job = job;
            return;
        }
    }
}

/* One that this backend runs, where the target has several. */
static bool draw_plan(fr_rng *rng, const fr_framework *framework,
                      const fr_target *target, int version, fr_plan_file *file)
{
    const fr_target *whole = framework->target;
    fr_err unused;
    for (int i = 0; i < 1000; i++) {
        if (!target_plans_next(rng, target, version, file))
            return false;
        if (target == whole ||
            (whole->backend_of(&file->plan) == target &&
             fr_target_check(whole, version, FR_PLAN_BITS_ALL, 0, &file->plan,
                             &file->model, &file->job, &unused) == FR_OK))
            return true;
    }
    return false;
}

static void check_target(const fr_framework *framework, const fr_target *target,
                         int version, bool has_experts)
{
    const fr_exporter *exporter = exporter_of(framework->target);
    fr_rng *rng;
    fr_err err = {0};
    fr_plan_file file;
    if (exporter == NULL || !CHECK_OK(fr_rng_create(2385, &rng, &err), &err))
        return;
    target_plans_setup(has_experts, &file);
    const int n_wanted = (int)check_slice_of(N_PLANS);
    int n = 0;
    while (n < n_wanted && draw_plan(rng, framework, target, version, &file)) {
        fr_framework_run_plan(framework, 0, &file.plan);
        draw_job(rng, framework->target, version, &file);
        if (!check_plan(framework, target, exporter, version, &file))
            break;
        n++;
    }
    /* Megatron-LM of Accelerate has no experts. */
    CHECK(n == n_wanted ||
          (n == 0 && has_experts && target != framework->target));
    printf("# %s %s: %d plans of a model %s experts come back\n", target->name,
           framework->target->versions[version], n,
           has_experts ? "with" : "without");
    fr_plan_file_release(&file);
    fr_rng_destroy(rng);
}

static void check_format(const fr_framework *framework, int version,
                         bool has_experts)
{
    const fr_target *const *backends = framework->target->backends;
    if (backends == NULL)
        check_target(framework, framework->target, version, has_experts);
    for (int i = 0; backends != NULL && backends[i] != NULL; i++)
        check_target(framework, backends[i], version, has_experts);
}

static void test_every_format(void)
{
    const char *name;
    for (int i = 0; (name = fr_config_name(i)) != NULL; i++) {
        const fr_framework *framework = fr_config_find(name);
        if (framework->target == NULL)
            continue; /* its files are read and not written */
        const int newest = fr_target_newest(framework->target);
        for (int version = 0; version <= newest; version++) {
            check_format(framework, version, false);
            check_format(framework, version, true);
        }
    }
}

CHECK_MAIN({"every_format", test_every_format})
