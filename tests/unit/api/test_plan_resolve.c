/*
 * test_plan_resolve.c: which layer of a plan wins, field by field: defaults, a
 * plan file, a framework, options; the sizes that nobody gave; and the
 * placement of a plan file's ranks, which holds for its number of ranks alone.
 */
#include "api/resolve/plan_resolve.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

typedef struct fixture {
    fr_request request;
    fr_inputs inputs;
    fr_plan_choice choice;
    fr_err err;
} fixture;

static void setup(fixture *f, const char *cluster)
{
    memset(f, 0, sizeof *f);
    fr_request_init(&f->request, fr_command_find(fr_commands, "simulate"),
                    NULL);
    CHECK_OK(fr_inputs_load(&f->request, cluster, &f->inputs, &f->err),
             &f->err);
}

static void put(fixture *f, const char *name, const char *text)
{
    CHECK_OK(fr_request_put(&f->request, name, text, &f->err), &f->err);
}

/* The plan of the request; path NULL: no plan file. */
static fr_status resolve(fixture *f, const char *path)
{
    const fr_plan_question question = {.purpose = FR_PLAN_TO_PREDICT,
                                       .model_word =
                                           path == NULL ? "gpt2-124m" : NULL,
                                       .plan_path = path,
                                       .cluster = &f->inputs.cluster,
                                       .inputs = &f->inputs};
    fr_plan_choice_release(&f->choice);
    return fr_plan_resolve(&f->request, &question, &f->choice, &f->err);
}

static void teardown(fixture *f)
{
    fr_plan_choice_release(&f->choice);
    fr_inputs_release(&f->inputs);
}

/* Sixteen GPUs train in bf16 with fused attention, a sequence each, and the
 * model's own positions. */
static void test_defaults(void)
{
    fixture f;
    setup(&f, "dgx-h100:2");
    if (CHECK_OK(resolve(&f, NULL), &f.err)) {
        const fr_plan_file *file = &f.choice.file;
        CHECK_INT(file->plan.precision, FR_DTYPE_BF16);
        CHECK(file->plan.is_flash && file->plan.is_overlap);
        CHECK_INT(file->plan.dp, 16);
        CHECK_INT(file->job.global_batch, 16);
        CHECK_INT(file->job.seq, 1024);
        CHECK_STR(file->framework, "");
        CHECK(!f.choice.is_given);
        CHECK(f.choice.pins == 0);
    }
    teardown(&f);
}

/* Megatron-LM of 2021 reduces after backward and has no fused attention; an
 * option that says otherwise wins. */
static void test_framework_and_options(void)
{
    fixture f;
    setup(&f, "dgx-h100:2");
    put(&f, "framework", "megatron-2021");
    put(&f, "tp", "2");
    if (CHECK_OK(resolve(&f, NULL), &f.err)) {
        const fr_plan_file *file = &f.choice.file;
        CHECK_STR(file->framework, "megatron-2021");
        CHECK(!file->plan.is_overlap && !file->plan.is_flash);
        CHECK(file->plan.execution.is_p2p_sync);
        CHECK_INT(file->plan.execution.kernels, FR_KERNELS_FUSED);
        CHECK_INT(file->model.vocab, 50432); /* 50257 in units of 128 x 2 */
        CHECK_NEAR(file->job.dropout, 0.1, 0);
        CHECK_INT(file->plan.dp, 8);
    }
    put(&f, "overlap", "1");
    put(&f, "flash-attention", "1");
    put(&f, "dropout", "0.2385");
    put(&f, "kernels", "eager");
    put(&f, "dp", "4");
    if (CHECK_OK(resolve(&f, NULL), &f.err)) {
        const fr_plan_file *file = &f.choice.file;
        CHECK(file->plan.is_overlap && file->plan.is_flash);
        CHECK_INT(file->plan.execution.kernels, FR_KERNELS_EAGER);
        CHECK_NEAR(file->job.dropout, 0.2385, 0);
        CHECK_INT(file->plan.dp, 4);
    }
    teardown(&f);
}

/* A file wins over defaults, an option over the file; --framework is asked for
 * by the request, so that it wins over the file as well. */
static void test_file(void)
{
    char path[CHECK_PATH_BYTES];
    fr_prediction prediction = {.step_s = 2.385};
    fixture f;
    check_tmp_path(path, "plan.json");
    setup(&f, "dgx-h100:2");
    put(&f, "tp", "4");
    put(&f, "zero", "1");
    put(&f, "global-batch", "96");
    put(&f, "seq", "333");
    put(&f, "overlap", "0");
    if (CHECK_OK(resolve(&f, NULL), &f.err))
        CHECK_OK(fr_plan_choice_save(&f.choice, &f.inputs, &prediction, path,
                                     &f.err),
                 &f.err);
    teardown(&f);
    setup(&f, "dgx-h100:2");
    if (CHECK_OK(resolve(&f, path), &f.err)) {
        const fr_plan_file *file = &f.choice.file;
        CHECK(f.choice.is_given);
        CHECK_INT(file->plan.tp, 4);
        CHECK_INT(file->plan.dp, 4);
        CHECK_INT(file->plan.zero_stage, 1);
        CHECK(!file->plan.is_overlap);
        CHECK_INT(file->job.global_batch, 96);
        CHECK_INT(file->job.seq, 333);
        CHECK_NEAR(file->prediction.step_s, 2.385, 0);
        CHECK(file->node_of_rank != NULL);
    }
    put(&f, "dp", "2");
    put(&f, "seq", "512");
    put(&f, "framework", "torchtitan");
    if (CHECK_OK(resolve(&f, path), &f.err)) {
        const fr_plan_file *file = &f.choice.file;
        CHECK_INT(file->plan.dp, 2);
        CHECK_INT(file->plan.tp, 4);
        CHECK_INT(file->job.seq, 512);
        CHECK_INT(file->job.global_batch, 96);
        CHECK(file->plan.is_overlap);
        CHECK(file->node_of_rank == NULL); /* it was of sixteen ranks */
    }
    teardown(&f);
    CHECK(remove(path) == 0);
}

/* A number of ranks that the plan cannot have is refused with both numbers. */
static void test_ranks(void)
{
    fixture f;
    setup(&f, "dgx-h100:2");
    put(&f, "tp", "2");
    put(&f, "dp", "3");
    put(&f, "ranks", "16");
    CHECK_FAILS(resolve(&f, NULL), FR_USAGE, &f.err);
    CHECK_HAS(f.err.text, "--ranks 16");
    CHECK_HAS(f.err.text, "has 6");
    teardown(&f);
}

CHECK_MAIN({"defaults", test_defaults},
           {"framework and options", test_framework_and_options},
           {"file", test_file}, {"ranks", test_ranks})
