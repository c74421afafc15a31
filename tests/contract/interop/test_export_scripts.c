/*
 * test_export_scripts.c: 200 random plans for each training script.  What its
 * target allows is exported, with every field that the target writes somewhere
 * in the text; what it refuses has a reason, and the nearest plan is one that
 * it can have.  Python compiles all that came out.
 */
#include "interop/export/export_list.h"
#include "tests/check.h"
#include "tests/record/random_plans.h"
#include "tests/unit/small_model.h"

#include <stdlib.h>
#include <string.h>

enum { N_PLANS = 200 };

static fr_err err;

static const char *const scripts[] = {"ddp",       "fsdp2",      "horovod",
                                      "ray-train", "tensorflow", "jax"};

static const fr_exporter *find(const char *name)
{
    for (int i = 0; fr_exporter_at(i) != NULL; i++)
        if (strcmp(fr_exporter_name(i), name) == 0)
            return fr_exporter_at(i);
    return NULL;
}

/* The exported scripts, for Python to compile: the first script of each
 * program of the target as it is, and of the others the parts that depend on
 * the plan. */
typedef struct output {
    FILE *whole, *heads;
    const fr_target *seen[4];
    size_t n_seen;
} output;

/* Is a key read, or does another part of the text stand for it? */
static void check_fields(const fr_target *target, const char *text)
{
    char expression[96];
    for (int i = 0; i < FR_PLAN_ITEMS_N; i++) {
        const fr_target_field row = fr_target_item(target, i);
        const char *key = fr_plan_item_row(i)->field.key;
        if (row.fate != FR_FATE_WRITTEN || strstr(row.how, "NCCL_") != NULL)
            continue;
        snprintf(expression, sizeof expression, "PLAN[\"%s\"]", key);
        check_that(strstr(text, expression) != NULL, __FILE__, __LINE__,
                   "%s writes %s and never reads it", target->name, key);
    }
}

static bool is_new(const fr_target *target, output *out)
{
    for (size_t i = 0; i < out->n_seen; i++)
        if (out->seen[i] == target)
            return false;
    CHECK(out->n_seen < FR_LENGTH(out->seen));
    out->seen[out->n_seen++] = target;
    return true;
}

static void keep(const fr_target *target, const fr_buffer *text, output *out)
{
    const char *script = fr_buffer_text((fr_buffer *)(uintptr_t)text);
    const char *rest = strstr(script, "# ---- tokens");
    CHECK(rest != NULL);
    if (is_new(target, out)) {
        check_fields(target, script);
        CHECK_INT(fwrite(text->data, 1, text->n, out->whole), text->n);
    }
    if (rest != NULL)
        CHECK(fwrite(script, 1, (size_t)(rest - script), out->heads) > 0);
}

static void export_one(const fr_exporter *exporter, fr_plan_file *file,
                       output *out)
{
    const fr_export_request request = {
        .file = file,
        .plan_path = "plan.json",
        .version = fr_target_newest(exporter->target),
        .n_nodes = 1,
        .n_ranks_per_node = fr_plan_world(&file->plan)};
    const fr_target *target = exporter->target;
    fr_export_files files = {0};
    if (target->backend_of != NULL)
        target = target->backend_of(&file->plan);
    CHECK_OK(fr_export(exporter, &request, &files, &err), &err);
    CHECK_INT(files.n, 1);
    if (files.n == 1)
        keep(target, &files.items[0].text, out);
    fr_export_files_release(&files);
}

/* Returns whether the target has the plan; else its nearest is exported. */
static bool try_one(const fr_exporter *exporter, fr_plan_file *file,
                    int *n_nearest, output *out)
{
    const fr_target *target = exporter->target;
    fr_plan nearest;
    err.text[0] = '\0';
    fr_status status =
        fr_target_check(target, 0, FR_PLAN_BITS_ALL, 0, &file->plan,
                        &file->model, &file->job, &err);
    if (status == FR_OK) {
        export_one(exporter, file, out);
        return true;
    }
    CHECK_INT(status, FR_INPUT);
    CHECK(strncmp(err.text, target->name, strlen(target->name)) == 0);
    if (fr_target_nearest(target, 0, &file->plan, &file->model, &file->job,
                          &nearest)) {
        ++*n_nearest;
        file->plan = nearest;
        export_one(exporter, file, out);
    }
    return false;
}

static void test_script(const fr_exporter *exporter, fr_plan_file *file,
                        const char *whole_path, const char *heads_path)
{
    output out = {.whole = fopen(whole_path, "w"),
                  .heads = fopen(heads_path, "w")};
    fr_rng *rng = NULL;
    int n_legal = 0, n_allowed = 0, n_nearest = 0;
    CHECK(out.whole != NULL && out.heads != NULL);
    CHECK_OK(fr_rng_create(2385, &rng, &err), &err);
    while (n_legal < N_PLANS) {
        random_plans_next(rng, &file->model, 64, &file->plan);
        /* Half of them have no axis but dp, which most scripts have alone. */
        if (n_legal % 2 == 0) {
            file->plan.dp *= file->plan.tp * file->plan.pp * file->plan.cp;
            file->plan.tp = file->plan.pp = file->plan.cp = 1;
            file->plan.schedule = FR_SCHEDULE_1F1B;
            file->plan.vpp = 1;
            file->plan.n_split = 0;
            file->plan.is_sequence_parallel = file->plan.is_tp_overlap = false;
        }
        if (fr_plan_check_lowerable(&file->plan, &file->model, &file->job,
                                    &err) != FR_OK)
            continue;
        n_legal++;
        n_allowed += try_one(exporter, file, &n_nearest, &out);
    }
    check_that(20 * (n_allowed + n_nearest) >= 19 * n_legal, __FILE__, __LINE__,
               "%s: %d of %d plans are allowed, %d have a nearest",
               fr_exporter_name_of(exporter), n_allowed, n_legal, n_nearest);
    fr_rng_destroy(rng);
    fclose(out.whole);
    fclose(out.heads);
}

static void test_all(void)
{
    fr_plan_file file;
    fr_buffer command;
    fr_plan_file_init(&file);
    small_model(&file.model, 8, 8, 32, 512, 128);
    file.job.global_batch = 64;
    file.job.seq = 128;
    fr_buffer_init(&command);
    fr_buffer_puts(&command, "python3 -m py_compile");
    for (size_t i = 0; i < FR_LENGTH(scripts); i++) {
        char whole[CHECK_PATH_BYTES], heads[CHECK_PATH_BYTES];
        check_tmp_path(whole, "%zu_whole.py", i);
        check_tmp_path(heads, "%zu_heads.py", i);
        const fr_exporter *exporter = find(scripts[i]);
        CHECK(exporter != NULL);
        if (exporter != NULL)
            test_script(exporter, &file, whole, heads);
        fr_buffer_printf(&command, " %s %s", whole, heads);
    }
    if (system("python3 -c 0 2>/dev/null") == 0)
        CHECK_INT(system(fr_buffer_text(&command)), 0);
    fr_buffer_release(&command);
    fr_plan_file_release(&file);
}

CHECK_MAIN({"scripts", test_all})
