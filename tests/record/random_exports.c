/*
 * random_exports.c: files of random plans for `make check-exports`:
 * random_exports TARGET VERSION N FOLDER [MODEL...].  FOLDER/0, FOLDER/1 ...
 * are what the exporter of the target writes; plans.tsv has a line for each:
 * the number, "allowed" or "refused", the plan, and why it is refused.  N plans
 * are allowed, and at most N more are those that a rule refuses, no rule more
 * than N / 8 of them: they are written too, so that what the framework says of
 * them can be compared.
 */
#include "core/system/fileio.h"
#include "interop/export/export_list.h"
#include "tests/record/export_plans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const models[] = {"gpt2-1.5b", "llama-3-8b", "mixtral-8x7b",
                                     "deepseek-v3", "gpt3-175b"};
enum { N_MODELS = sizeof models / sizeof models[0], RANKS_PER_NODE = 8 };
enum { REASONS_MAX = 64, RULE_PART = 8 };

/* Plans that were refused for the same reason. */
typedef struct reason {
    char text[sizeof((fr_err *)NULL)->text];
    int n;
} reason;

typedef struct writer {
    const fr_exporter *exporter;
    const char *const *models;
    int n_models;
    reason reasons[REASONS_MAX];
    int n_reasons;
    int version;
    const char *folder;
    FILE *list;
    int n_most, n_allowed, n_refused;
} writer;

static const fr_exporter *find(const char *name)
{
    for (int i = 0; fr_exporter_at(i) != NULL; i++)
        if (strcmp(fr_exporter_name(i), name) == 0)
            return fr_exporter_at(i);
    return NULL;
}

static fr_status save(const writer *w, int number, const fr_export_files *files,
                      fr_err *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%d", w->folder, number);
    FR_TRY(fr_dir_create(path, err));
    for (size_t i = 0; i < files->n; i++) {
        const fr_export_file *file = &files->items[i];
        snprintf(path, sizeof path, "%s/%d/%s", w->folder, number, file->name);
        FR_TRY(fr_file_write(path, file->text.data, file->text.n, err));
    }
    return FR_OK;
}

/* Are there enough of those that are refused, or of this reason?  Values that a
 * field cannot have are written as others, and say nothing. */
static bool has_enough(writer *w, const char *why)
{
    if (w->n_refused == w->n_most || strstr(why, "cannot have") != NULL)
        return true;
    int i = 0;
    while (i < w->n_reasons && strcmp(w->reasons[i].text, why) != 0)
        i++;
    if (i == REASONS_MAX)
        return true;
    if (i == w->n_reasons)
        snprintf(w->reasons[w->n_reasons++].text, sizeof w->reasons[0].text,
                 "%s", why);
    return w->reasons[i].n++ >= (w->n_most + RULE_PART - 1) / RULE_PART;
}

static fr_status write_one(writer *w, fr_plan_file *file, fr_err *err)
{
    char name[512];
    fr_err why = {0};
    fr_export_files files = {0};
    int64_t world = fr_plan_world(&file->plan);
    fr_export_request request = {.file = file,
                                 .plan_path = "plan.json",
                                 .version = w->version,
                                 .n_nodes = world,
                                 .n_ranks_per_node = 1,
                                 .has_gpus = true};
    if (world % RANKS_PER_NODE == 0) {
        request.n_nodes = world / RANKS_PER_NODE;
        request.n_ranks_per_node = RANKS_PER_NODE;
    }
    bool is_allowed =
        fr_target_check(w->exporter->target, w->version, FR_PLAN_BITS_ALL, 0,
                        &file->plan, &file->model, &file->job, &why) == FR_OK;
    int number = w->n_allowed + w->n_refused;
    if (!is_allowed && has_enough(w, why.text))
        return FR_OK;
    *(is_allowed ? &w->n_allowed : &w->n_refused) += 1;
    fr_status status = w->exporter->write(&request, &files, err);
    if (status == FR_OK)
        status = save(w, number, &files, err);
    if (status == FR_OK)
        fprintf(w->list, "%d\t%s\t%s: %s\t%s\n", number,
                is_allowed ? "allowed" : "refused", file->model.name,
                fr_plan_describe(&file->plan, name, sizeof name), why.text);
    fr_export_files_release(&files);
    return status;
}

/* The target of the next plan: each is aimed at until it has as many as the
 * others. */
static const fr_target *next_backend(const writer *w)
{
    const fr_target *const *backends = w->exporter->target->backends;
    int n = 0;
    if (backends == NULL)
        return NULL;
    while (backends[n] != NULL)
        n++;
    return backends[w->n_allowed % n];
}

static fr_status write_all(writer *w, fr_err *err)
{
    fr_rng *rng;
    fr_status status =
        fr_rng_create(20261123 + (uint64_t)w->version, &rng, err);
    if (status != FR_OK)
        return status;
    for (int i = 0;
         status == FR_OK && w->n_allowed < w->n_most && i < 100 * w->n_most;
         i++) {
        fr_plan_file file;
        fr_plan_file_init(&file);
        status =
            fr_model_load(NULL, w->models[i % w->n_models], &file.model, err);
        if (status == FR_OK)
            export_plans_job(rng, &file.model, &file.job);
        if (status == FR_OK &&
            export_plans_next(rng, w->exporter->target, next_backend(w),
                              &file.model, &file.job, 512, &file.plan))
            status = write_one(w, &file, err);
        fr_plan_file_release(&file);
    }
    fr_rng_destroy(rng);
    return status;
}

int main(int argc, char **argv)
{
    fr_err err;
    char path[4096];
    writer w = {.exporter = argc > 4 ? find(argv[1]) : NULL,
                .models = models,
                .n_models = N_MODELS};
    if (w.exporter == NULL || w.exporter->target == NULL) {
        fprintf(stderr, "usage: random_exports TARGET VERSION N FOLDER "
                        "[MODEL...]\n");
        return 2;
    }
    w.folder = argv[4];
    w.n_most = atoi(argv[3]);
    if (argc > 5) {
        w.models = (const char *const *)argv + 5;
        w.n_models = argc - 5;
    }
    snprintf(path, sizeof path, "%s/plans.tsv", w.folder);
    w.list = fopen(path, "w");
    if (w.list == NULL) {
        fprintf(stderr, "%s cannot be written\n", path);
        return 1;
    }
    const char *version = strcmp(argv[2], "-") == 0 ? NULL : argv[2];
    fr_status status =
        fr_target_version(w.exporter->target, version, &w.version, &err);
    if (status == FR_OK)
        status = write_all(&w, &err);
    fclose(w.list);
    if (status != FR_OK)
        fprintf(stderr, "random_exports: %s\n", err.text);
    return status != FR_OK;
}
