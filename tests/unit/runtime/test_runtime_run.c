/*
 * Whole runs of small models over threads of this process: resuming gives the
 * same bits, damaged checkpoints are refused, a failing rank takes the others
 * along with its name, timelines are whole.
 */
#include "core/system/fileio.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/checkpoint_lock.h"
#include "runtime/run/run.h"
#include "tests/check.h"
#include "tests/unit/rank_threads.h"

#include <stdlib.h>
#include <unistd.h>

/* One run of all ranks; results of rank 0, errors of each. */
typedef struct show {
    fr_plan plan;
    fr_job job;
    fr_run_options options;
    const int32_t *node_of_rank;
    int64_t failing_rank; /* its data file is missing; -1: none */
    fr_timeline timeline;
    fr_run_result result;
    rank_threads ranks;
} show;

static void show_init(show *s)
{
    memset(s, 0, sizeof *s);
    fr_plan_init(&s->plan);
    s->plan.micro_batch = 2;
    s->plan.n_threads = 1;
    fr_job_init(&s->job);
    s->job.global_batch = 8;
    s->job.seq = 16;
    s->job.n_steps = 12;
    s->job.seed = 555;
    s->job.lr = 0.003;
    s->job.clip_norm = 1;
    fr_run_options_init(&s->options);
    s->options.timeout_s = 20;
    s->failing_rank = -1;
    fr_timeline_init(&s->timeline);
}

static void show_release(show *s)
{
    fr_timeline_release(&s->timeline);
    fr_run_result_release(&s->result);
}

static fr_status play(void *context, const fr_program *program, int64_t rank,
                      fr_transport *transport, fr_err *err)
{
    show *s = context;
    fr_program own = *program; /* its job may differ, see failing_rank */
    fr_run_result result = {0};

    if (rank == s->failing_rank)
        (void)snprintf(own.job.data, sizeof own.job.data, "/nowhere/text");
    fr_status status =
        fr_run_over(transport, &own, &s->options,
                    rank == 0 ? &s->timeline : NULL, &result, err);
    if (rank == 0)
        s->result = result;
    else
        fr_run_result_release(&result);
    return status;
}

static bool perform(show *s)
{
    return rank_threads_play(&s->plan, &s->job, s->node_of_rank, play, s,
                             &s->ranks);
}

static bool perform_well(show *s)
{
    return perform(s) && rank_threads_are_well(&s->plan, &s->ranks);
}

static const char *scratch_dir(void)
{
    static char dir[CHECK_PATH_BYTES];

    check_tmp_path(dir, "test_runtime_run.%d", (int)getpid());
    return dir;
}

static void remove_scratch(void)
{
    char command[CHECK_PATH_BYTES + 64];

    (void)snprintf(command, sizeof command, "rm -rf '%s'", scratch_dir());
    CHECK(system(command) == 0);
}

static void check_resume(const fr_plan *plan, fr_optimizer_kind optimizer)
{
    show whole, first, second;

    show_init(&whole);
    show_init(&first);
    show_init(&second);
    whole.plan = first.plan = second.plan = *plan;
    whole.job.optimizer = first.job.optimizer = second.job.optimizer =
        optimizer;
    first.options.n_steps = 5;
    second.options.n_steps = 12;
    first.options.checkpoint_dir = second.options.checkpoint_dir =
        scratch_dir();
    second.options.is_resumed = true;
    if (perform_well(&whole) && perform_well(&first) && perform_well(&second)) {
        CHECK_INT(second.result.resumed_from_step, 5);
        CHECK_INT(second.result.n_steps, 7);
        CHECK(memcmp(whole.result.loss, first.result.loss,
                     5 * sizeof(double)) == 0);
        CHECK(memcmp(whole.result.loss + 5, second.result.loss,
                     7 * sizeof(double)) == 0);
    }
    show_release(&whole);
    show_release(&first);
    show_release(&second);
    remove_scratch();
}

static void test_resume(void)
{
    fr_plan plan;
    show s;

    show_init(&s);
    plan = s.plan;
    check_resume(&plan, FR_OPTIMIZER_ADAMW);
    plan.dp = 2;
    plan.zero_stage = 1;
    check_resume(&plan, FR_OPTIMIZER_LAMB);
    plan.zero_stage = 0;
    plan.compressor = FR_COMPRESSOR_POWERSGD;
    plan.compressor_rank = 2;
    plan.has_error_feedback = true;
    check_resume(&plan, FR_OPTIMIZER_SGD);
    plan = s.plan;
    plan.tp = 2;
    plan.pp = 2;
    check_resume(&plan, FR_OPTIMIZER_ADAMW);
}

static void test_checkpoints_are_pruned(void)
{
    show s;
    char path[CHECK_PATH_BYTES + 64];

    show_init(&s);
    s.options.checkpoint_dir = scratch_dir();
    s.options.checkpoint_every = 3;
    if (perform_well(&s))
        for (int step = 3; step <= 12; step += 3) {
            (void)snprintf(path, sizeof path, "%s/step-%d/manifest.json",
                           scratch_dir(), step);
            CHECK_INT(fr_file_exists(path), step >= 9);
        }
    show_release(&s);
    remove_scratch();
}

/* Runs again from the checkpoint and wants to be refused. */
static void check_refused(const show *like, const char *needle)
{
    show s;

    show_init(&s);
    s.job = like->job;
    s.options.checkpoint_dir = scratch_dir();
    s.options.is_resumed = true;
    if (perform(&s)) {
        CHECK_INT(s.ranks.status[0], FR_INPUT);
        CHECK_HAS(s.ranks.err[0].text, needle);
    }
    show_release(&s);
}

static void test_bad_checkpoints(void)
{
    show s, other;
    char path[CHECK_PATH_BYTES + 64];

    show_init(&s);
    s.options.checkpoint_dir = scratch_dir();
    if (!perform_well(&s))
        return;
    show_init(&other);
    other.job.seed = 556;
    check_refused(&other, "made with another job");
    (void)snprintf(path, sizeof path, "%s/step-12/rank-0", scratch_dir());
    FILE *file = fopen(path, "r+b");
    if (CHECK(file != NULL)) {
        CHECK(fseek(file, 3001, SEEK_SET) == 0);
        int byte = fgetc(file);
        CHECK(fseek(file, 3001, SEEK_SET) == 0);
        CHECK(fputc(byte ^ 4, file) != EOF);
        CHECK(fclose(file) == 0);
    }
    check_refused(&s, "damaged");
    CHECK(truncate(path, 2000) == 0);
    check_refused(&s, "cut off");
    show_release(&s);
    remove_scratch();
}

/* The messages that rank 0 got. */
static char told[2000];

static void note(void *context, const char *line)
{
    (void)context;
    size_t used = strlen(told);
    (void)snprintf(told + used, sizeof told - used, "%s\n", line);
}

static void write_text(const char *name, const char *text)
{
    char path[CHECK_PATH_BYTES + 64];
    fr_err err = {0};

    (void)snprintf(path, sizeof path, "%s/%s", scratch_dir(), name);
    CHECK_OK(fr_file_write(path, text, strlen(text), &err), &err);
}

/* Trains with checkpoints at 3, 6, 9 and 12, of which 9 and 12 stay. */
static void leave_checkpoints(const char *data)
{
    show s;

    show_init(&s);
    s.plan.dp = 2;
    s.options.checkpoint_dir = scratch_dir();
    s.options.checkpoint_every = 3;
    (void)snprintf(s.job.data, sizeof s.job.data, "%s", data);
    CHECK(perform_well(&s));
    show_release(&s);
}

/* Resumes up to `n_steps`; where it began, -1: refused with `needle`. */
static int64_t resume_to(int64_t n_steps, const char *data, const char *needle)
{
    show s;
    int64_t from = -1;

    told[0] = '\0';
    show_init(&s);
    s.plan.dp = 2;
    s.options.checkpoint_dir = scratch_dir();
    s.options.is_resumed = true;
    s.options.n_steps = n_steps;
    s.options.on_note = note;
    (void)snprintf(s.job.data, sizeof s.job.data, "%s", data);
    if (perform(&s) && s.ranks.status[0] == FR_OK)
        from = s.result.resumed_from_step;
    else
        CHECK_INT(s.ranks.status[0], FR_INPUT);
    CHECK_HAS(from < 0 ? s.ranks.err[0].text : told, needle);
    show_release(&s);
    return from;
}

static void test_resume_below_the_checkpoint(void)
{
    leave_checkpoints("");
    CHECK_INT(resume_to(5, "", "of step 12, the run ends at step 5"), -1);
    CHECK_INT(resume_to(12, "", ""), 12); /* nothing is left to do */
    remove_scratch();
}

/* A damaged checkpoint is named, and the one before it taken. */
static void test_fall_back(void)
{
    static const char *const manifests[] = {
        "{\"n_steps_done\": -3, \"rank_hashes\": []}",
        "{\"n_steps_done\": 0, \"rank_hashes\": []}", "{", ""};

    for (size_t i = 0; i < FR_LENGTH(manifests); i++) {
        leave_checkpoints("");
        write_text("step-12/manifest.json", manifests[i]);
        CHECK_INT(resume_to(14, "", "step-12 is passed over"), 9);
        write_text("step-14/rank-0", "");
        write_text("step-14/manifest.json", "");
        write_text("step-9/rank-0", "");
        CHECK_INT(resume_to(14, "", "no checkpoint in it is whole"), -1);
        remove_scratch();
    }
}

/* Neither of the two that stay is damaged: step 14 falls back to step 9,
 * whatever became of step 12. */
static void test_prune_keeps_whole(void)
{
    static const char *const files[] = {"step-12/rank-0",
                                        "step-12/manifest.json"};
    char path[CHECK_PATH_BYTES + 64];

    for (size_t i = 0; i < FR_LENGTH(files); i++) {
        leave_checkpoints("");
        write_text(files[i], "cut");
        CHECK_INT(resume_to(14, "", "step-12 is passed over"), 9);
        (void)snprintf(path, sizeof path, "%s/step-9/manifest.json",
                       scratch_dir());
        CHECK(fr_file_exists(path));
        (void)snprintf(path, sizeof path, "%s/step-12", scratch_dir());
        CHECK(!fr_file_exists(path));
        write_text("step-14/rank-0", "");
        CHECK_INT(resume_to(15, "", "step-14 is passed over"), 9);
        remove_scratch();
    }
}

static void test_latest_is_missing(void)
{
    static const char *const texts[] = {"", "step-x\n", "step--4\n",
                                        "../etc/passwd\n"};

    for (size_t i = 0; i < FR_LENGTH(texts); i++) {
        leave_checkpoints("");
        write_text("latest", texts[i]);
        CHECK_INT(resume_to(14, "", "latest is missing or names no"), 12);
        remove_scratch();
    }
    leave_checkpoints("");
    write_text("latest", "step-9\n"); /* back by hand */
    CHECK_INT(resume_to(14, "", ""), 9);
    remove_scratch();
    CHECK_INT(resume_to(14, "", "holds no checkpoint: starting at step 0"), 0);
    remove_scratch();
}

/* A checkpoint in the middle of which a run was killed never was one. */
static void test_unfinished_alone(void)
{
    char path[CHECK_PATH_BYTES + 64];
    fr_err err = {0};

    CHECK_OK(fr_dir_create(scratch_dir(), &err), &err);
    (void)snprintf(path, sizeof path, "%s/step-9", scratch_dir());
    CHECK_OK(fr_dir_create(path, &err), &err);
    write_text("step-9/rank-0", "cut");
    CHECK_INT(resume_to(14, "", "step-9 is passed over"), 0);
    remove_scratch();
}

/* A rank that cannot write its file: the files of the others take no room, and
 * training continues without the checkpoint. */
static void test_failed_checkpoint(void)
{
    for (int is_async = 0; is_async < 2; is_async++) {
        char path[CHECK_PATH_BYTES + 64];
        fr_err err = {0};
        show s;

        (void)snprintf(path, sizeof path, "%s/step-3/rank-1/in-the-way",
                       scratch_dir());
        CHECK_OK(fr_dir_create(path, &err), &err);
        show_init(&s);
        s.plan.dp = 2;
        s.options.checkpoint_dir = scratch_dir();
        s.options.checkpoint_every = 3;
        s.options.is_checkpoint_async = is_async;
        s.options.is_resumed = true;
        if (perform(&s)) {
            CHECK_INT(s.ranks.status[0], FR_OK);
            CHECK_INT(s.ranks.status[1], FR_OK);
            CHECK_STR(s.result.unsaved, ""); /* the next ones found room */
            CHECK_INT(s.result.n_steps, 12);
        }
        show_release(&s);
        (void)snprintf(path, sizeof path, "%s/step-3/rank-0", scratch_dir());
        CHECK(!fr_file_exists(path));
        remove_scratch();
    }
}

/* A run that is not resumed leaves other runs' checkpoints alone. */
static void test_fresh_run_into_old_checkpoints(void)
{
    show s;

    leave_checkpoints("");
    show_init(&s);
    s.plan.dp = 2;
    s.options.checkpoint_dir = scratch_dir();
    if (perform(&s)) {
        CHECK_INT(s.ranks.status[0], FR_INPUT);
        CHECK_HAS(s.ranks.err[0].text,
                  "there is a checkpoint of step 12 in it");
    }
    show_release(&s);
    CHECK_INT(resume_to(14, "", ""), 12);
    remove_scratch();
}

/* Two runs would each take the other's checkpoints for its own old ones. */
static void test_directory_in_use(void)
{
    show s;
    int lock = -1;
    fr_err err = {0};

    leave_checkpoints("");
    CHECK_OK(fr_checkpoint_lock(scratch_dir(), 0, &lock, &err), &err);
    show_init(&s);
    s.plan.dp = 2;
    s.options.checkpoint_dir = scratch_dir();
    s.options.is_resumed = true;
    CHECK(perform(&s) && s.ranks.status[0] == FR_INPUT);
    CHECK_HAS(s.ranks.err[1].text, "is using it");
    show_release(&s);
    fr_checkpoint_unlock(lock);
    CHECK_INT(resume_to(14, "", ""), 12);
    remove_scratch();
}

/* Before the first step, so that nothing is lost. */
static void test_directory_that_cannot_be_written(void)
{
    show s;
    char path[CHECK_PATH_BYTES];

    check_tmp_path(path, "test_runtime_run.%d.file", (int)getpid());
    fr_err err = {0};
    CHECK_OK(fr_file_write(path, "", 0, &err), &err);
    show_init(&s);
    s.options.checkpoint_dir = path;
    if (perform(&s)) {
        CHECK(s.ranks.status[0] != FR_OK);
        CHECK_HAS(s.ranks.err[0].text, path);
        CHECK(s.result.loss == NULL);
    }
    show_release(&s);
    (void)remove(path);
}

static void test_changed_data(void)
{
    char path[CHECK_PATH_BYTES], text[600];
    fr_err err = {0};

    check_tmp_path(path, "test_runtime_run.%d.bin", (int)getpid());
    memset(text, 7, sizeof text);
    for (size_t i = 1; i < sizeof text; i += 2)
        text[i] = 0;
    CHECK_OK(fr_file_write(path, text, sizeof text, &err), &err);
    leave_checkpoints(path);
    text[400] = 8;
    CHECK_OK(fr_file_write(path, text, sizeof text, &err), &err);
    CHECK_INT(resume_to(14, path, "made with other data"), -1);
    text[400] = 7;
    CHECK_OK(fr_file_write(path, text, sizeof text, &err), &err);
    CHECK_INT(resume_to(14, path, ""), 12);
    (void)remove(path);
    remove_scratch();
}

/* The manifest stays the same, and what it names does not. */
static void test_changed_data_behind_a_manifest(void)
{
    char path[CHECK_PATH_BYTES + 64], text[901], command[2 * CHECK_PATH_BYTES];
    fr_err err = {0};

    CHECK_OK(fr_dir_create(scratch_dir(), &err), &err);
    (void)snprintf(path, sizeof path, "%s/all.json", scratch_dir());
    write_text("all.json", "{\"schema\": \"forerun.tokens/1\", \"files\": "
                           "[{\"path\": \"part.txt\", \"tokens\": 900}]}");
    memset(text, 7, 900);
    text[900] = '\0';
    write_text("part.txt", text);
    leave_checkpoints(path);
    text[400] = 8;
    write_text("part.txt", text);
    CHECK_INT(resume_to(14, path, "made with other data"), -1);
    /* An older forerun looked at the manifest alone, which is said. */
    (void)snprintf(command, sizeof command,
                   "sed -i -E 's/\"files_hash\": *\"[0-9a-f]+\",//' "
                   "'%s'/step-*/manifest.json",
                   scratch_dir());
    CHECK_INT(system(command), 0);
    CHECK_INT(resume_to(14, path, "are still the same is not known"), 12);
    remove_scratch();
}

/* No checkpoint yet: resuming begins at the beginning. */
static void test_nothing_to_resume(void)
{
    show s;

    show_init(&s);
    s.options.checkpoint_dir = scratch_dir();
    s.options.is_resumed = true;
    if (perform_well(&s)) {
        CHECK_INT(s.result.resumed_from_step, 0);
        CHECK_INT(s.result.n_steps, 12);
    }
    show_release(&s);
    remove_scratch();
}

static void test_failing_rank(void)
{
    show s;

    show_init(&s);
    s.plan.dp = 4;
    s.failing_rank = 2;
    if (perform(&s)) {
        for (int i = 0; i < 4; i++)
            CHECK_INT(s.ranks.status[i], FR_IO);
        CHECK_HAS(s.ranks.err[2].text, "/nowhere/text");
        CHECK_HAS(s.ranks.err[0].text, "rank 2: /nowhere/text");
    }
    show_release(&s);
}

/* Spans of a lane follow each other, lie in the step, and none is missing. */
static void test_timeline(void)
{
    static const int32_t nodes[] = {0, 0, 1, 1};
    show s;
    int64_t end[RANK_THREADS_MAX][FR_LANE_N] = {{0}};
    size_t n_of_rank[RANK_THREADS_MAX] = {0};

    show_init(&s);
    s.plan.dp = 2;
    s.plan.pp = 2;
    s.node_of_rank = nodes; /* messages and shared memory */
    s.options.trace_steps = 1;
    if (perform_well(&s)) {
        const fr_timeline *t = &s.timeline;
        int64_t limit_ps = (int64_t)(s.result.step_s[11] * 1e12) + 1000000000;
        CHECK_INT(t->n_ranks, 4);
        CHECK_INT(s.result.n_nodes, 2);
        for (size_t i = 0; i < t->n; i++) {
            const fr_span *span = &t->at[i];
            CHECK_INT(span->step, 11);
            CHECK(span->begin_ps >= end[span->rank][span->lane]);
            CHECK(span->end_ps >= span->begin_ps);
            CHECK(span->end_ps <= limit_ps);
            end[span->rank][span->lane] = span->end_ps;
            n_of_rank[span->rank]++;
        }
        CHECK(n_of_rank[0] > 50);
        CHECK_INT(n_of_rank[1] > 50, 1);
    }
    show_release(&s);
}

/* A rank that never comes: the others say whom they waited for. */
static void wait_for_nobody(fr_loopback *hub)
{
    fr_transport *transport = NULL;
    fr_err err = {0};
    unsigned char *all = NULL;
    uint64_t first[3];
    int64_t word = 1;
    if (!CHECK_OK(fr_transport_loopback_create(hub, 0, 0.3, &transport, &err),
                  &err))
        return;
    CHECK_FAILS(
        fr_transport_gather(transport, &word, sizeof word, &all, first, &err),
        FR_FAILURE, &err);
    CHECK_HAS(err.text, "rank 0:");
    CHECK_HAS(err.text, "for rank 1");
    fr_transport_destroy(transport);
}

static void test_time_limit(void)
{
    fr_loopback *hub = NULL;
    fr_err err = {0};
    if (CHECK_OK(fr_loopback_create(2, NULL, &hub, &err), &err))
        wait_for_nobody(hub);
    fr_loopback_destroy(hub);
}

CHECK_MAIN({"resume", test_resume},
           {"checkpoints_are_pruned", test_checkpoints_are_pruned},
           {"prune_keeps_whole", test_prune_keeps_whole},
           {"bad_checkpoints", test_bad_checkpoints},
           {"resume_below_the_checkpoint", test_resume_below_the_checkpoint},
           {"fall_back", test_fall_back},
           {"latest_is_missing", test_latest_is_missing},
           {"unfinished_alone", test_unfinished_alone},
           {"fresh_run_into_old", test_fresh_run_into_old_checkpoints},
           {"failed_checkpoint", test_failed_checkpoint},
           {"directory_in_use", test_directory_in_use},
           {"directory_not_writable", test_directory_that_cannot_be_written},
           {"changed_data", test_changed_data},
           {"changed_data_behind_a_manifest",
            test_changed_data_behind_a_manifest},
           {"nothing_to_resume", test_nothing_to_resume},
           {"failing_rank", test_failing_rank}, {"timeline", test_timeline},
           {"time_limit", test_time_limit})
