/* test_targets.c: every target says what becomes of every field, every rule
 * has a source, and the nearest plan is one that the target can have. */
#include "frameworks/framework.h"
#include "frameworks/write/export.h"
#include "tests/check.h"
#include "tests/unit/small_model.h"

#include <string.h>

static fr_err err;

static void test_fates(void)
{
    for (int t = 0; fr_target_at(t) != NULL; t++) {
        const fr_target *target = fr_target_at(t);
        for (int i = 0; i < FR_PLAN_ITEMS_N; i++) {
            const fr_target_field row = fr_target_item(target, i);
            check_that(row.fate != FR_FATE_UNSAID && row.how != NULL, __FILE__,
                       __LINE__, "%s says nothing of %s", target->name,
                       fr_plan_item_row(i)->field.key);
        }
        for (const fr_target_rule *r = target->rules; r->text != NULL; r++)
            check_that(r->source != NULL && r->source[0] != '\0' &&
                           r->holds != NULL,
                       __FILE__, __LINE__, "%s: no source of \"%s\"",
                       target->name, r->text);
    }
}

/* A framework and what is written for it have one name, and no name means two
 * frameworks. */
static void test_names(void)
{
    for (int i = 0; i < fr_n_frameworks; i++) {
        const fr_framework *at = fr_frameworks[i];
        CHECK(fr_framework_named(at->name) == at);
        for (size_t k = 0; k < FR_LENGTH(at->aliases); k++)
            CHECK(at->aliases[k] == NULL ||
                  fr_framework_named(at->aliases[k]) == at);
        CHECK(at->target == NULL || strcmp(at->target->name, at->name) == 0);
        CHECK((at->facts != NULL) == (fr_framework_find(at->name) == at));
        CHECK(at->target == NULL || at->facts != NULL);
    }
}

/* The plan decides what a name for several frameworks means. */
static void test_chosen(void)
{
    const fr_framework *pytorch = fr_framework_named("pytorch");
    fr_plan plan;
    fr_plan_init(&plan);
    if (!CHECK(pytorch != NULL))
        return;
    CHECK_STR(fr_framework_chosen(pytorch, &plan)->name, "ddp");
    plan.zero_stage = 3;
    CHECK_STR(fr_framework_chosen(pytorch, &plan)->name, "fsdp2");
    CHECK_STR(pytorch->target->backend_of(&plan)->name, "fsdp2");
    const fr_framework *ddp = fr_framework_named("ddp");
    CHECK(fr_framework_chosen(ddp, &plan) == ddp);
}

/* No backend of a target has a value that the table of the target refuses; each
 * backend says what becomes of every field. */
static void test_backends(void)
{
    int n = 0;
    for (int t = 0; fr_target_at(t) != NULL; t++) {
        const fr_target *target = fr_target_at(t);
        if (target->backends == NULL)
            continue;
        for (int b = 0; target->backends[b] != NULL; b++, n++)
            for (int i = 0; i < FR_PLAN_ITEMS_N; i++) {
                const fr_target *backend = target->backends[b];
                const fr_target_field of = fr_target_item(target, i);
                const fr_target_field row = fr_target_item(backend, i);
                const char *key = fr_plan_item_row(i)->field.key;
                check_that(row.fate != FR_FATE_UNSAID && row.how != NULL,
                           __FILE__, __LINE__, "%s says nothing of %s",
                           backend->name, key);
                check_that(of.fate != FR_FATE_REFUSED ||
                               row.fate == FR_FATE_REFUSED,
                           __FILE__, __LINE__, "%s has %s, %s refuses it",
                           backend->name, key, target->name);
            }
    }
    CHECK(n > 0);
}

/* Plans that no target has as they are: each comes to one that it has. */
static void test_nearest(void)
{
    fr_model model;
    fr_job job;
    fr_plan plan, out;
    fr_job_init(&job);
    small_model(&model, 8, 8, 32, 512, 128);
    /* Llama's form, which all targets have. */
    model.activation = FR_ACTIVATION_SILU;
    model.is_gated_mlp = model.is_rms_norm = model.is_rope = true;
    job.global_batch = 64;
    job.seq = 128;
    fr_plan_init(&plan);
    plan.dp = 4;
    plan.pp = 2;
    plan.schedule = FR_SCHEDULE_ZB_H1;
    plan.zero_stage = 2;
    plan.is_overlap = false;
    for (int t = 0; fr_target_at(t) != NULL; t++) {
        const fr_target *target = fr_target_at(t);
        int version = fr_target_newest(target);
        CHECK_FAILS(fr_target_check(target, version, FR_PLAN_BITS_ALL, 0, &plan,
                                    &model, &job, &err),
                    FR_INPUT, &err);
        CHECK(fr_target_nearest(target, version, &plan, &model, &job, &out));
        CHECK_OK(fr_target_check(target, version, FR_PLAN_BITS_ALL, 0, &out,
                                 &model, &job, &err),
                 &err);
        CHECK_OK(fr_plan_check(&out, &model, &job, &err), &err);
        CHECK_INT(fr_plan_world(&out), 8);
    }
    fr_model_release(&model);
}

/* A fact of which a target says nothing is the framework's own; one that it
 * refuses is named where it is asked for, and mended. */
static void test_facts(void)
{
    const fr_target *target = NULL;
    fr_model model;
    fr_job job;
    fr_plan plan, out;
    for (int t = 0; fr_target_at(t) != NULL; t++)
        if (strcmp(fr_target_name(t), "tensorflow") == 0)
            target = fr_target_at(t);
    if (!CHECK(target != NULL))
        return;
    fr_job_init(&job);
    small_model(&model, 8, 8, 32, 512, 128);
    fr_plan_init(&plan);
    plan.is_overlap = false;
    job.seq = 128;
    CHECK(fr_target_item(target, FR_FACT(NORM_FUSED)).fate ==
          FR_FATE_PREDICTED);
    CHECK_OK(fr_target_check(target, 0, FR_PLAN_BITS_ALL, 0, &plan, &model,
                             &job, &err),
             &err);
    plan.execution.cuda_graphs = FR_CUDA_GRAPHS_FULL;
    CHECK_FAILS(fr_target_check(target, 0, FR_PLAN_BITS_ALL, 0, &plan, &model,
                                &job, &err),
                FR_INPUT, &err);
    CHECK_HAS(err.text, "cannot have cuda_graphs full");
    CHECK(fr_target_nearest(target, 0, &plan, &model, &job, &out));
    CHECK_INT(out.execution.cuda_graphs, FR_CUDA_GRAPHS_NONE);
    fr_model_release(&model);
}

/* A writer belongs to one row, whose target it checks plans by. */
static void test_writers(void)
{
    for (int i = 0; i < fr_n_frameworks; i++) {
        const fr_framework *row = fr_frameworks[i];
        CHECK(row->writer == NULL || row->writer->target == row->target);
        CHECK(row->writer == NULL || strcmp(row->name, row->target->name) == 0);
        for (int k = 0; k < i; k++)
            CHECK(row->writer == NULL ||
                  fr_frameworks[k]->writer != row->writer);
    }
}

CHECK_MAIN({"writers", test_writers}, {"names", test_names},
           {"chosen", test_chosen}, {"fates", test_fates},
           {"backends", test_backends}, {"facts", test_facts},
           {"nearest", test_nearest})
