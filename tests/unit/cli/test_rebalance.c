/*
 * test_rebalance.c: layers of a pipeline, or samples of data-parallel ranks,
 * are moved away from a slow one where that is predicted to be faster, and back
 * where it is not measured to be.
 */
#include "cli/cli.h"
#include "cli/train/rebalance.h"
#include "cli/train/slow_news.h"
#include "core/system/fileio.h"
#include "tests/check.h"
#include "tests/unit/cli/run_line.h"

#include <stdio.h>
#include <unistd.h>

typedef struct fixture {
    char dir[CHECK_PATH_BYTES];
    fr_cli cli;
    fr_plan_file file;
    fr_rebalance rebalance;
    fr_slow_reporter reporter;
    int64_t step;
    fr_slow_kind kind; /* of what is slow, the second one */
} fixture;

static bool begin_with(fixture *f, const char *degrees)
{
    static line_outcome made;
    char line[3000], path[CHECK_PATH_BYTES + 16];
    fr_err err = {0};

    check_tmp_path(f->dir, "test_rebalance.%d", (int)getpid());
    (void)snprintf(path, sizeof path, "%s/plan.json", f->dir);
    if (!CHECK_OK(fr_dir_create(f->dir, &err), &err))
        return false;
    (void)snprintf(line, sizeof line,
                   "simulate gpt2-tiny this-machine %s --global-batch 16 "
                   "--seq 64 -q -o %s",
                   degrees, path);
    run_line(line, &made);
    const char *words[] = {path,        "--checkpoint", f->dir,       "-q",
                           "--elastic", "1:2",          "--rebalance"};
    f->cli = (fr_cli){.request.command = fr_command_find(fr_commands, "run")};
    f->step = 0;
    f->kind = FR_SLOW_STAGE;
    if (!CHECK_INT(made.exit_code, 0) ||
        !CHECK_OK(fr_cli_parse(&f->cli, 7, (char **)(uintptr_t)words, &err),
                  &err) ||
        !CHECK_OK(fr_plan_file_load(path, &f->file, &err), &err))
        return false;
    f->cli.chatter = stderr;
    f->reporter = (fr_slow_reporter){.request = &f->cli.request};
    fr_rebalance_begin(&f->rebalance, &f->cli.request, &f->file, &f->file.plan,
                       -1);
    return CHECK_OK(fr_rebalance_check(&f->cli.request, &f->file, &err), &err);
}

static bool begin(fixture *f)
{
    return begin_with(f, "--pp 2 --micro-batch 2");
}

static void end(fixture *f)
{
    char path[CHECK_PATH_BYTES + 16];

    fr_slow_news_forget(&f->cli.request);
    fr_plan_file_release(&f->file);
    (void)snprintf(path, sizeof path, "%s/plan.json", f->dir);
    (void)remove(path);
    (void)rmdir(f->dir);
}

/* So many steps of rank 0, with a stage or rank that is as much slower. */
static void report(fixture *f, int n, double step_s, double factor)
{
    for (int i = 0; i < n; i++) {
        fr_step_record record = {.step = f->step++, .step_s = step_s};
        if (factor > 1)
            record.stragglers[record.n_stragglers++] =
                (fr_straggler){.kind = f->kind, .index = 1, .factor = factor};
        fr_slow_reporter_step(&f->reporter, &record);
    }
}

/* A stage that takes 4 times as long gives layers away, once. */
static bool move(fixture *f)
{
    report(f, 16, 1.0, 1);
    if (!CHECK(!fr_rebalance_look(&f->rebalance)) ||
        !CHECK(fr_rebalance_take(&f->rebalance, f->step) == NULL))
        return false;
    report(f, 16, 2.0, 4);
    if (!CHECK(fr_rebalance_look(&f->rebalance)))
        return false;
    const fr_plan *moved = fr_rebalance_take(&f->rebalance, f->step);
    return CHECK(moved != NULL) && CHECK_INT(moved->n_split, 2) &&
           CHECK(moved->layer_split[1] < moved->layer_split[0]);
}

static void test_kept(void)
{
    fixture f;

    if (begin(&f) && move(&f)) {
        report(&f, 8, 9.0, 1); /* the first steps do not count */
        CHECK(!fr_rebalance_look(&f.rebalance));
        report(&f, 16, 1.5, 1);
        CHECK(!fr_rebalance_look(&f.rebalance));
        CHECK_INT(f.rebalance.state, FR_REBALANCE_OVER);
        CHECK(f.rebalance.plan.n_split == 2);
    }
    end(&f);
}

static void test_back(void)
{
    fixture f;

    if (begin(&f) && move(&f)) {
        report(&f, 24, 2.1, 1);
        CHECK(fr_rebalance_look(&f.rebalance));
        const fr_plan *back = fr_rebalance_take(&f.rebalance, f.step);
        CHECK(back != NULL && back->n_split == f.file.plan.n_split);
        report(&f, 24, 2.0, 4);
        CHECK(!fr_rebalance_look(&f.rebalance));
    }
    end(&f);
}

/* Replica 1 takes twice as long: it gets 5 or 6 of 16 micro-batches, and keeps
 * them while that is faster. */
static void test_samples(void)
{
    fixture f;

    if (begin_with(&f, "--dp 2 --micro-batch 1")) {
        f.kind = FR_SLOW_RANK;
        report(&f, 16, 1.0, 1);
        CHECK(!fr_rebalance_look(&f.rebalance));
        report(&f, 16, 2.0, 2);
        CHECK(fr_rebalance_look(&f.rebalance));
        const fr_plan *moved = fr_rebalance_take(&f.rebalance, f.step);
        if (CHECK(moved != NULL) && CHECK_INT(moved->n_shares, 2)) {
            CHECK_INT(moved->batch_shares[0] + moved->batch_shares[1], 16);
            CHECK(moved->batch_shares[1] == 5 || moved->batch_shares[1] == 6);
        }
        report(&f, 24, 1.4, 1);
        CHECK(!fr_rebalance_look(&f.rebalance));
        CHECK_INT(f.rebalance.state, FR_REBALANCE_OVER);
        CHECK_INT(f.rebalance.plan.n_shares, 2);
    }
    end(&f);
}

static void test_samples_back(void)
{
    fixture f;

    if (begin_with(&f, "--dp 2 --micro-batch 1 --zero 1")) {
        f.kind = FR_SLOW_RANK;
        report(&f, 16, 2.0, 2);
        CHECK(fr_rebalance_look(&f.rebalance));
        CHECK(fr_rebalance_take(&f.rebalance, f.step) != NULL);
        report(&f, 24, 2.1, 1);
        CHECK(fr_rebalance_look(&f.rebalance));
        const fr_plan *back = fr_rebalance_take(&f.rebalance, f.step);
        CHECK(back != NULL && back->n_shares == 0);
    }
    end(&f);
}

static void test_not_worth_it(void)
{
    fixture f;

    if (begin(&f)) {
        report(&f, 16, 1.0, 1.05);
        CHECK(!fr_rebalance_look(&f.rebalance));
        CHECK_INT(f.rebalance.state, FR_REBALANCE_OVER);
    }
    end(&f);
}

static void test_refused(void)
{
    fixture f;
    fr_err err = {0};

    if (begin(&f)) {
        f.file.plan.pp = 1;
        CHECK_INT(fr_rebalance_check(&f.cli.request, &f.file, &err), FR_USAGE);
        CHECK_HAS(err.text, "the plan has pp 1 and dp 1");
        f.file.plan.pp = 2;
        f.file.cluster[0] = '\0';
        CHECK_INT(fr_rebalance_check(&f.cli.request, &f.file, &err), FR_USAGE);
        CHECK_HAS(err.text, "names no cluster");
    }
    end(&f);
}

CHECK_MAIN({"kept", test_kept}, {"back", test_back}, {"samples", test_samples},
           {"samples_back", test_samples_back},
           {"not_worth_it", test_not_worth_it}, {"refused", test_refused})
