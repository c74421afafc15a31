/*
 * One run at a time writes a directory of checkpoints: who comes second is told
 * of the first, whose lock goes with its process.
 */
#include "core/system/fileio.h"
#include "runtime/checkpoint/checkpoint_lock.h"
#include "tests/check.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *scratch_dir(void)
{
    static char dir[CHECK_PATH_BYTES];
    fr_err err = {0};

    check_tmp_path(dir, "test_checkpoint_lock.%d", (int)getpid());
    CHECK_OK(fr_dir_create(dir, &err), &err);
    return dir;
}

static void test_second_is_refused(void)
{
    const char *dir = scratch_dir();
    char owner[64];
    int first = -1, second = -2;
    fr_err err = {0};

    CHECK(!fr_checkpoint_is_locked(dir));
    CHECK_OK(fr_checkpoint_lock(dir, 0, &first, &err), &err);
    CHECK(first >= 0);
    CHECK(fr_checkpoint_is_locked(dir));
    CHECK_FAILS(fr_checkpoint_lock(dir, 0.01, &second, &err), FR_INPUT, &err);
    (void)snprintf(owner, sizeof owner, ": process %d on ", (int)getpid());
    CHECK_HAS(err.text, owner);
    CHECK_HAS(err.text, "is using it; wait until it has ended");
    CHECK_INT(second, -2);
    CHECK(fr_checkpoint_is_locked(dir)); /* looking has not let it go */
    fr_checkpoint_unlock(first);
    CHECK(!fr_checkpoint_is_locked(dir));
    CHECK_OK(fr_checkpoint_lock(dir, 0, &second, &err), &err);
    fr_checkpoint_unlock(second);
    fr_dir_remove(dir);
}

/* Holds the lock until it is killed. */
static void hold(const char *dir, int tell)
{
    int lock = -1;
    fr_err err = {0};
    const char answer =
        fr_checkpoint_lock(dir, 0, &lock, &err) == FR_OK ? 'y' : 'n';

    (void)!write(tell, &answer, 1);
    for (;;)
        (void)pause();
}

static void test_killed_run_lets_go(void)
{
    const char *dir = scratch_dir();
    int ends[2], lock = -1;
    char answer = '?';
    fr_err err = {0};

    CHECK_INT(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0)
        hold(dir, ends[1]);
    CHECK_INT(read(ends[0], &answer, 1), 1);
    CHECK_INT(answer, 'y');
    CHECK(fr_checkpoint_is_locked(dir));
    CHECK_FAILS(fr_checkpoint_lock(dir, 0, &lock, &err), FR_INPUT, &err);
    /* It is still dying as its successor asks. */
    CHECK_INT(kill(child, SIGKILL), 0);
    CHECK_OK(fr_checkpoint_lock(dir, 60, &lock, &err), &err);
    fr_checkpoint_unlock(lock);
    CHECK_INT(waitpid(child, NULL, 0), child);
    (void)close(ends[0]);
    (void)close(ends[1]);
    fr_dir_remove(dir);
}

static void test_no_directory(void)
{
    int lock = -1;
    fr_err err = {0};

    CHECK(!fr_checkpoint_is_locked("/nowhere/at/all"));
    CHECK_FAILS(fr_checkpoint_lock("/nowhere/at/all", 0, &lock, &err), FR_IO,
                &err);
    fr_checkpoint_unlock(lock);
}

CHECK_MAIN({"second_is_refused", test_second_is_refused},
           {"killed_run_lets_go", test_killed_run_lets_go},
           {"no_directory", test_no_directory})
