/*
 * Copies of a run's state in the memory of its hosts: ranks are threads, a host
 * is a folder that the ranks on it share.  Whatever goes away, what is loaded
 * is the newest step of which a good copy of everything is left, else what is
 * on the disk, on any layout.
 */
#include "core/base/hash.h"
#include "core/system/fileio.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/tensor_slices.h"
#include "runtime/replica/replica_store.h"
#include "tests/check.h"
#include "tests/unit/rank_threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ON_DISK = 2, FIRST = 3, SECOND = 6 };

typedef struct show {
    const int *host_of_rank;
    bool is_loading;
    int64_t loaded[RANK_THREADS_MAX];
    bool is_from_memory[RANK_THREADS_MAX];
    int n_wrong[RANK_THREADS_MAX]; /* elements */
    double last_loss;
} show;

/* ---- what each element of each tensor is -------------------------------- */

static void put_element(unsigned char *at, const fr_tensor_slice *slice,
                        int64_t row, int64_t col, int64_t step)
{
    const uint64_t key[] = {slice->tensor, slice->what, (uint64_t)row,
                            (uint64_t)col, (uint64_t)step};
    const uint64_t value = fr_hash_bytes(key, sizeof key, 2385);

    memcpy(at, &value, slice->element_bytes);
}

/* Fills what a rank holds, or counts what is other than it should be. */
static int walk(const fr_tensor_slices *held, unsigned char *slab, int64_t step,
                bool is_checked)
{
    unsigned char expected[8];
    int n_wrong = 0;

    for (size_t i = 0; i < held->n; i++) {
        const fr_tensor_slice *slice = &held->items[i];
        unsigned char *at = slab + slice->at_bytes;
        for (int64_t row = 0; row < slice->n_rows; row++)
            for (int64_t col = 0; col < slice->n_cols; col++) {
                put_element(is_checked ? expected : at, slice, slice->row + row,
                            slice->col + col, step);
                n_wrong += is_checked &&
                           memcmp(expected, at, slice->element_bytes) != 0;
                at += slice->element_bytes;
            }
    }
    return n_wrong;
}

/* ---- ranks -------------------------------------------------------------- */

static fr_status save(fr_checkpoints *checkpoints, const fr_state *state,
                      const fr_tensor_slices *held, unsigned char *slab,
                      fr_err *err)
{
    const double loss[] = {6.5, 5.5, 4.5, 3.5, 2.5, 1.5};
    fr_replicas *replicas = fr_checkpoints_replicas(checkpoints);

    (void)walk(held, slab, ON_DISK, false);
    FR_TRY(fr_checkpoints_save(checkpoints, state, ON_DISK, loss, err));
    (void)walk(held, slab, FIRST, false);
    FR_TRY(fr_replicas_save(replicas, state, FIRST, loss, err));
    (void)walk(held, slab, SECOND, false); /* the copy is not touched */
    FR_TRY(fr_replicas_save(replicas, state, SECOND, loss, err));
    return fr_replicas_finish(replicas, err);
}

static fr_status load(show *s, int64_t rank, fr_checkpoints *checkpoints,
                      const fr_state *state, const fr_tensor_slices *held,
                      unsigned char *slab, fr_err *err)
{
    double *loss = NULL;
    fr_buffer notes;

    fr_buffer_init(&notes);
    fr_status status = fr_checkpoints_load(checkpoints, state, &s->loaded[rank],
                                           &loss, &notes, err);
    s->is_from_memory[rank] = fr_checkpoints_is_from_memory(checkpoints);
    s->n_wrong[rank] = walk(held, slab, s->loaded[rank], true);
    if (rank == 0 && loss != NULL && s->loaded[0] > 0)
        s->last_loss = loss[s->loaded[0] - 1];
    fr_buffer_release(&notes);
    free(loss);
    return status;
}

static fr_status perform(void *context, const fr_program *program, int64_t rank,
                         fr_transport *transport, fr_err *err)
{
    show *s = context;
    char dir[CHECK_PATH_BYTES], memory[CHECK_PATH_BYTES + 32];
    fr_checkpoints *checkpoints = NULL;
    fr_tensor_slices held = {0};

    check_tmp_path(dir, "checkpoints");
    (void)snprintf(memory, sizeof memory, "%s-host-%d", dir,
                   s->host_of_rank[rank]);
    const fr_checkpoint_options options = {.dir = dir,
                                           .is_resumed = s->is_loading,
                                           .is_replicated = true,
                                           .replica_dir = memory};
    const fr_rank_program *own = fr_program_of_rank(program, rank);
    unsigned char *slab = calloc(1, own->slab_bytes);
    const fr_state state = fr_state_of_memory(slab);
    fr_status status = slab != NULL ? FR_OK : fr_fail_no_memory(err);

    if (status == FR_OK)
        status = fr_tensor_slices_held(program, rank, &held, err);
    if (status == FR_OK)
        status = fr_checkpoints_open(&options, program, transport, &checkpoints,
                                     err);
    if (status == FR_OK)
        status = s->is_loading
                     ? load(s, rank, checkpoints, &state, &held, slab, err)
                     : save(checkpoints, &state, &held, slab, err);
    fr_checkpoints_close(checkpoints);
    fr_vec_release(&held);
    free(slab);
    return status;
}

static bool play_all(show *s, const fr_plan *plan, const int *host_of_rank,
                     bool is_loading)
{
    int32_t node_of_rank[RANK_THREADS_MAX];
    rank_threads ranks;
    fr_job job;

    *s = (show){.host_of_rank = host_of_rank, .is_loading = is_loading};
    fr_job_init(&job);
    job.global_batch = 8;
    job.seq = 16;
    job.n_steps = 12;
    for (int64_t i = 0; i < fr_plan_world(plan); i++)
        node_of_rank[i] = host_of_rank[i] != host_of_rank[0];
    return rank_threads_play(plan, &job, node_of_rank, perform, s, &ranks) &&
           rank_threads_are_well(plan, &ranks);
}

static fr_plan plan_of(int dp, int tp, int pp, int zero)
{
    fr_plan plan;

    fr_plan_init(&plan);
    plan.micro_batch = 2;
    plan.n_threads = 1;
    plan.dp = dp;
    plan.tp = tp;
    plan.pp = pp;
    plan.zero_stage = zero;
    return plan;
}

/* ---- what goes away ----------------------------------------------------- */

static void host_path(int host, char path[FR_REPLICA_PATH])
{
    char dir[CHECK_PATH_BYTES], memory[CHECK_PATH_BYTES + 32];
    fr_err err = {0};

    check_tmp_path(dir, "checkpoints");
    (void)snprintf(memory, sizeof memory, "%s-host-%d", dir, host);
    (void)CHECK_OK(fr_replica_run_path(memory, dir, path, &err), &err);
}

static void lose_host(int host)
{
    char path[FR_REPLICA_PATH];

    host_path(host, path);
    fr_dir_remove(path);
}

/* Turns a byte of a file in a store over. */
static void damage(int host, int store, const char *name)
{
    char path[FR_REPLICA_PATH], file[FR_CHECKPOINT_PATH];

    host_path(host, path);
    (void)snprintf(file, sizeof file, "%s/store-%d/step-%d/%s", path, store,
                   SECOND, name);
    FILE *f = fopen(file, "r+b");
    if (!CHECK(f != NULL))
        return;
    (void)fseek(f, -41, SEEK_END);
    const int c = fgetc(f);
    (void)fseek(f, -41, SEEK_END);
    (void)fputc(c ^ 0x40, f);
    (void)fclose(f);
}

static void check_loaded(const fr_plan *plan, const int *host_of_rank,
                         int64_t step, bool is_from_memory)
{
    show s;

    if (!play_all(&s, plan, host_of_rank, true))
        return;
    for (int64_t i = 0; i < fr_plan_world(plan); i++) {
        CHECK_INT(s.loaded[i], step);
        CHECK_INT(s.n_wrong[i], 0);
        CHECK(s.is_from_memory[i] == is_from_memory);
    }
    CHECK_NEAR(s.last_loss, 7.5 - (double)step, 1e-12);
}

static void begin(const fr_plan *plan, const int *host_of_rank)
{
    char dir[CHECK_PATH_BYTES];
    show s;

    check_tmp_path(dir, "checkpoints");
    fr_dir_remove(dir);
    (void)play_all(&s, plan, host_of_rank, false);
}

static const int two_hosts[] = {0, 0, 1, 1}, new_host[] = {2, 2, 1, 1};

static void test_all_are_there(void)
{
    const fr_plan plan = plan_of(2, 2, 1, 0);

    begin(&plan, two_hosts);
    check_loaded(&plan, two_hosts, SECOND, true);
}

/* Its ranks start elsewhere; all that they need is sent to them. */
static void test_a_host_is_lost(void)
{
    const fr_plan plan = plan_of(4, 1, 1, 3);

    begin(&plan, two_hosts);
    lose_host(0);
    check_loaded(&plan, new_host, SECOND, true);
}

static void test_fewer_go_on(void)
{
    const fr_plan plan = plan_of(2, 2, 1, 1), fewer = plan_of(1, 1, 2, 0),
                  alone = plan_of(1, 1, 1, 0);

    begin(&plan, two_hosts);
    lose_host(0);
    check_loaded(&fewer, two_hosts + 2, SECOND, true);
    check_loaded(&alone, two_hosts + 2, SECOND, true);
}

/* Rank 1's copy is with rank 3, on the other host. */
static void test_damage(void)
{
    const fr_plan plan = plan_of(2, 1, 2, 0);

    begin(&plan, two_hosts);
    damage(0, 1, "rank-1");
    check_loaded(&plan, two_hosts, SECOND, true);
    begin(&plan, two_hosts);
    damage(0, 1, "rank-1");
    damage(1, 3, "rank-1");
    check_loaded(&plan, two_hosts, FIRST, true);
}

static void test_all_are_gone(void)
{
    const fr_plan plan = plan_of(2, 2, 1, 0);

    begin(&plan, two_hosts);
    lose_host(0);
    lose_host(1);
    check_loaded(&plan, two_hosts, ON_DISK, false);
}

/* Other ranks' steps do not mix with those of the ranks that go on. */
static void test_stale_steps_go(void)
{
    const fr_plan plan = plan_of(2, 2, 1, 0);
    char path[FR_REPLICA_PATH];

    begin(&plan, two_hosts);
    damage(0, 0, "rank-0");
    damage(1, 2, "rank-0");
    check_loaded(&plan, two_hosts, FIRST, true);
    host_path(0, path);
    CHECK_INT(fr_replica_newest(path, INT64_MAX), FIRST);
}

CHECK_MAIN({"all_are_there", test_all_are_there},
           {"a_host_is_lost", test_a_host_is_lost},
           {"fewer_go_on", test_fewer_go_on}, {"damage", test_damage},
           {"all_are_gone", test_all_are_gone},
           {"stale_steps_go", test_stale_steps_go})
