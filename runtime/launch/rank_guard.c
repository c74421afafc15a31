/* rank_guard.c: see rank_guard.h. */
#include "runtime/launch/rank_guard.h"

#include "runtime/launch/launch.h"
#include "runtime/launch/launch_state.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define LOOK_MS 100

struct fr_rank_guard {
    fr_rank_guard_options options;
    fr_rank_page page;
    pthread_t thread;
    int signal_fd; /* -1: no signal is awaited */
    int end_fd;
};

/* As if it had not been held back. */
static void die_of(int number)
{
    sigset_t set;

    (void)signal(number, SIG_DFL);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, number);
    (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    (void)raise(number);
}

static void take_signal(fr_rank_guard *guard)
{
    struct signalfd_siginfo info;
    char sender[FR_SENDER_BYTES], line[320];

    if (read(guard->signal_fd, &info, sizeof info) != sizeof info)
        return;
    if (atomic_load(&guard->page.stop_signal) != 0)
        die_of((int)info.ssi_signo);
    atomic_store(&guard->page.stop_signal, info.ssi_signo);
    fr_stop_describe((int)info.ssi_signo, (int)info.ssi_pid, sender);
    (void)snprintf(line, sizeof line,
                   "forerun: %s: the run ends after this step and its "
                   "checkpoint; another signal ends it without",
                   sender);
    guard->options.on_line(guard->options.context, line);
}

static void look(const fr_rank_guard *guard)
{
    const double still_s = fr_rank_page_still_s(&guard->page);
    char doing[128], why[256];

    if (still_s < guard->options.still_s)
        return;
    fr_rank_page_describe(&guard->page, doing, sizeof doing);
    (void)snprintf(why, sizeof why,
                   "rank 0 (pid %d) has not gone on for "
                   "%.0f s%s",
                   guard->page.pid, still_s, doing);
    guard->options.on_hang(guard->options.context, why);
}

static void *watch(void *context)
{
    fr_rank_guard *guard = context;
    const bool is_limited = guard->options.still_s > 0;
    struct pollfd fds[2] = {{.fd = guard->end_fd, .events = POLLIN},
                            {.fd = guard->signal_fd, .events = POLLIN}};

    for (;;) {
        (void)poll(fds, 2, is_limited ? LOOK_MS : -1);
        if (fds[0].revents != 0)
            return NULL;
        if (fds[1].revents != 0)
            take_signal(guard);
        if (is_limited)
            look(guard);
    }
}

static fr_status open_fds(fr_rank_guard *guard, fr_err *err)
{
    sigset_t held;

    guard->signal_fd = -1;
    guard->end_fd = eventfd(0, EFD_CLOEXEC);
    if (guard->end_fd < 0)
        return fr_fail(err, FR_FAILURE, "eventfd: %s", strerror(errno));
    fr_launch_held_set(&held);
    if (guard->options.is_stoppable)
        guard->signal_fd = signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK);
    if (!guard->options.is_stoppable || guard->signal_fd >= 0)
        return FR_OK;
    (void)close(guard->end_fd);
    return fr_fail(err, FR_FAILURE, "signalfd: %s", strerror(errno));
}

static void close_fds(fr_rank_guard *guard)
{
    (void)close(guard->end_fd);
    if (guard->signal_fd >= 0)
        (void)close(guard->signal_fd);
}

fr_status fr_rank_guard_create(const fr_rank_guard_options *options,
                               fr_rank_guard **out, fr_err *err)
{
    fr_rank_guard *guard;

    FR_TRY_CALLOC(guard, 1, err);
    guard->options = *options;
    fr_rank_page_init(&guard->page, 0);
    fr_status status = open_fds(guard, err);
    if (status != FR_OK) {
        free(guard);
        return status;
    }
    if (pthread_create(&guard->thread, NULL, watch, guard) != 0) {
        close_fds(guard);
        free(guard);
        return fr_fail(err, FR_FAILURE, "no thread to watch the run");
    }
    *out = guard;
    return FR_OK;
}

void fr_rank_guard_destroy(fr_rank_guard *guard)
{
    if (guard == NULL)
        return;
    (void)eventfd_write(guard->end_fd, 1);
    (void)pthread_join(guard->thread, NULL);
    close_fds(guard);
    free(guard);
}

fr_rank_page *fr_rank_guard_page(fr_rank_guard *guard)
{
    return &guard->page;
}
