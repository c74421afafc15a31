/*
 * A rank that nobody supervises: who asks it to stop is heard, a second signal
 * ends it, and so does an operation that never ends.
 */
#include "core/system/clock.h"
#include "plan/op/op.h"
#include "runtime/launch/launch.h"
#include "runtime/launch/rank_guard.h"
#include "tests/check.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HUNG = 77, HEARD_NOTHING, NO_GUARD };

static void ignore_line(void *context, const char *line)
{
    (void)context;
    (void)line;
}

static void say_why(void *context, const char *why)
{
    const int *to = context;
    ssize_t ignored = write(*to, why, strlen(why));

    (void)ignored;
    _exit(HUNG);
}

static int wait_status_of(pid_t child)
{
    int status = 0;

    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return status;
}

static void test_hang(void)
{
    char why[256] = "";
    int ends[2];

    if (!CHECK(pipe(ends) == 0))
        return;
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        const fr_rank_guard_options options = {.still_s = 0.2,
                                               .on_line = ignore_line,
                                               .on_hang = say_why,
                                               .context = &ends[1]};
        fr_rank_guard *guard = NULL;
        fr_err err = {0};
        if (fr_rank_guard_create(&options, &guard, &err) != FR_OK)
            _exit(NO_GUARD);
        fr_rank_page *page = fr_rank_guard_page(guard);
        fr_sleep_s(0.5); /* it may prepare its work for as long as it likes */
        atomic_store(&page->step, 3);
        atomic_store(&page->op, FR_OP_ZERO);
        atomic_store(&page->since_ns, fr_clock_ns());
        atomic_store(&page->is_in_step, 1);
        for (;;)
            (void)pause();
    }
    (void)close(ends[1]);
    const int status = wait_status_of(child);
    CHECK(WIFEXITED(status));
    CHECK_INT(WEXITSTATUS(status), HUNG);
    CHECK(read(ends[0], why, sizeof why - 1) > 0);
    CHECK_HAS(why, "has not gone on for ");
    CHECK_HAS(why, "at step 3 in zero");
    (void)close(ends[0]);
}

static void test_signals(void)
{
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        const fr_rank_guard_options options = {
            .is_stoppable = true, .on_line = ignore_line, .on_hang = say_why};
        fr_rank_guard *guard = NULL;
        fr_err err = {0};
        fr_launch_hold_signals();
        (void)kill(getpid(), SIGTERM); /* before there is a guard */
        if (fr_rank_guard_create(&options, &guard, &err) != FR_OK)
            _exit(NO_GUARD);
        fr_rank_page *page = fr_rank_guard_page(guard);
        while (atomic_load(&page->stop_signal) != SIGTERM)
            fr_sleep_s(0.01);
        (void)kill(getpid(), SIGTERM);
        for (;;)
            (void)pause();
    }
    const int status = wait_status_of(child);
    CHECK(WIFSIGNALED(status));
    CHECK_INT(WTERMSIG(status), SIGTERM);
}

/* A run ignores the signals that it was started to ignore. */
static void test_ignored(void)
{
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        (void)signal(SIGTERM, SIG_IGN);
        fr_launch_hold_signals();
        (void)kill(getpid(), SIGTERM);
        _exit(fr_launch_held_signal() == 0 ? HEARD_NOTHING : 0);
    }
    const int status = wait_status_of(child);
    CHECK(WIFEXITED(status));
    CHECK_INT(WEXITSTATUS(status), HEARD_NOTHING);
}

static void test_end(void)
{
    const fr_rank_guard_options options = {
        .is_stoppable = true, .on_line = ignore_line, .on_hang = say_why};
    fr_rank_guard *guard = NULL;
    fr_err err = {0};

    if (!CHECK_OK(fr_rank_guard_create(&options, &guard, &err), &err))
        return;
    fr_rank_guard_destroy(guard);
    fr_rank_guard_destroy(NULL);
}

int main(int argc, char **argv)
{
    static const check_test tests[] = {{"hang", test_hang},
                                       {"signals", test_signals},
                                       {"ignored", test_ignored},
                                       {"end", test_end}};

    return check_run(tests, sizeof tests / sizeof *tests, argc, argv);
}
