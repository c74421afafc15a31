/* launch_watch.c: finds out which rank is to blame, and says it in a line. */
#include "core/base/text.h"
#include "core/system/clock.h"
#include "runtime/hosts/host_probe.h"
#include "runtime/launch/launch_state.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Later reports are a consequence of the end of the run and are ignored, and so
 * are other ranks' messages after a rank has reported a failure that another
 * try would not mend.
 */
static FR_PRINTF(4, 5) void blame(fr_supervisor *sv, int kind, fr_status status,
                                  const char *format, ...)
{
    const bool is_final = kind == FR_BLAME_REPORT && kind == sv->blame &&
                          sv->blame_status == FR_FAILURE &&
                          status != FR_FAILURE;
    va_list args;

    if (sv->blame == FR_BLAME_ASKED || (kind <= sv->blame && !is_final))
        return;
    sv->blame = kind;
    sv->blame_status = status;
    va_start(args, format);
    (void)vsnprintf(sv->blame_text, sizeof sv->blame_text, format, args);
    va_end(args);
}

fr_rank_page *fr_watch_page(fr_supervisor *sv, int64_t rank)
{
    if (rank < 0 || rank >= sv->options->world)
        return NULL;
    if (sv->pages[rank] == NULL)
        sv->pages[rank] = fr_rank_page_open(sv->dir, rank, false);
    fr_rank_page *page = sv->pages[rank];
    bool is_there = page != NULL &&
                    atomic_load_explicit(&page->state, memory_order_acquire) !=
                        FR_RANK_ABSENT;
    return is_there ? page : NULL;
}

void fr_watch_describe(fr_supervisor *sv, int64_t rank, char *out, size_t n)
{
    fr_rank_page_describe(fr_watch_page(sv, rank), out, n);
}

/* The number after `key` in mpirun's notice; false when it is not there. */
static bool number_after(const char *text, const char *key, long long *out)
{
    const char *at = strstr(text, key);

    if (at == NULL)
        return false;
    at += strlen(key);
    char *end = NULL;
    *out = strtoll(at, &end, 10);
    return end != at;
}

/*
 * Open MPI 4's words: "mpirun noticed that process rank 1 with PID 77 on node
 * x exited on signal 9 (Killed)." and "mpirun detected that one or more
 * processes exited with non-zero status ... Process name: [[1,1],1] Exit
 * code: 5".
 */
static void judge_notice(fr_supervisor *sv)
{
    const char *text = sv->notice, *name = strstr(text, "on signal ");
    long long rank = -1, pid = 0, signal = 0, code = 0;
    char doing[128], why[64] = "";

    if (name != NULL && number_after(text, "process rank ", &rank) &&
        number_after(text, "on signal ", &signal)) {
        (void)number_after(text, "with PID ", &pid);
        if (sv->has_killed && signal == SIGKILL)
            return; /* the ranks that this process has ended */
        const char *open = strchr(name, '('), *close = strchr(name, ')');
        if (open != NULL && close != NULL && close > open)
            (void)snprintf(why, sizeof why, " %.*s", (int)(close - open + 1),
                           open);
        const fr_rank_page *page = fr_watch_page(sv, rank);
        if (page != NULL)
            pid = page->pid; /* mpirun says 0 for ranks of other daemons */
        fr_watch_describe(sv, rank, doing, sizeof doing);
        blame(sv, FR_BLAME_SIGNAL, FR_FAILURE,
              "rank %lld (pid %lld) was killed by signal %lld%s%s", rank, pid,
              signal, why, doing);
        return;
    }
    const char *process = strstr(text, "Process name: [[");
    if (process != NULL && number_after(text, "Exit code:", &code)) {
        const char *second = strstr(process, "],");
        rank = second != NULL ? strtoll(second + 2, NULL, 10) : -1;
        fr_watch_describe(sv, rank, doing, sizeof doing);
        blame(sv, FR_BLAME_EXIT, FR_FAILURE,
              "rank %lld ended with exit code %lld%s", rank, code, doing);
        return;
    }
    if (strstr(text, "normally, but") != NULL || text[0] == '\0')
        return; /* the preamble of the other notices */
    /* The first sentence: what follows are guesses. */
    const char *stop = strstr(text, ". ");
    blame(sv, FR_BLAME_LAUNCHER, FR_FAILURE, "mpirun: %.*s",
          (int)(stop != NULL ? stop - text : (ptrdiff_t)strlen(text)), text);
}

static bool is_ruler(const char *line)
{
    size_t n = strspn(line, "-");

    return n >= 60 && line[n] == '\0';
}

void fr_watch_line(fr_supervisor *sv, const char *line)
{
    if (is_ruler(line)) {
        if (sv->is_in_notice)
            judge_notice(sv);
        sv->is_in_notice = !sv->is_in_notice;
        sv->notice[0] = '\0';
        return;
    }
    if (!sv->is_in_notice) {
        /* A word of mpirun about notices it has left out, and about signals. */
        bool is_own =
            line[0] == '\0' ||
            (line[0] == '[' && strstr(line, " more process") != NULL) ||
            fr_text_starts(line, "mpirun: Forwarding signal") ||
            fr_text_starts(line, "mpirun: abort is already");
        if (!is_own && sv->options->on_line != NULL)
            sv->options->on_line(sv->options->context, line);
        return;
    }
    size_t n = strlen(sv->notice), room = sizeof sv->notice - n;
    const char *from = line + strspn(line, " \t");
    if (*from != '\0' && room > 1)
        (void)snprintf(sv->notice + n, room, "%s%s", n > 0 ? " " : "", from);
}

void fr_watch_signal(fr_supervisor *sv, int signal, int from)
{
    char sender[FR_SENDER_BYTES];

    sv->is_interrupted = true;
    fr_stop_describe(signal, from, sender);
    blame(sv, FR_BLAME_ASKED, FR_INTERRUPTED, "stopped by %s", sender);
}

void fr_watch_deaf(fr_supervisor *sv, double waited_s)
{
    blame(sv, FR_BLAME_HUNG, FR_FAILURE,
          "the ranks were asked to stop after a checkpoint and have not in "
          "%.0f s",
          waited_s);
}

/* Is a process of this machine stopped (state T of /proc/PID/stat)? */
static bool is_stopped(const fr_rank_page *page)
{
    char path[64], line[512] = "", host[64] = "";
    bool is_it = false;

    (void)gethostname(host, sizeof host - 1);
    if (strcmp(page->host, host) != 0)
        return false;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", page->pid);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    if (fgets(line, sizeof line, file) != NULL) {
        const char *state = strrchr(line, ')');
        is_it = state != NULL && (state[2] == 'T' || state[2] == 't');
    }
    (void)fclose(file);
    return is_it;
}

/* Returns the action that a rank that has stood still for too long should have
 * done. */
static const char *due_of(uint32_t state)
{
    return state == FR_RANK_JOINING    ? " before it joined the others"
           : state == FR_RANK_JOINED   ? " before its first step"
           : state == FR_RANK_FINISHED ? " after its last step"
                                       : "";
}

/*
 * A rank that is on its way to the others, or to its end, waits for them: the
 * one to blame is stopped, has not come at all, or, after some more time, any.
 * One that prepares its work may take as long as it likes, unless it is
 * stopped.
 */
static void watch_waiting(fr_supervisor *sv, int64_t rank,
                          const fr_rank_page *page, uint32_t state,
                          double silent_s)
{
    const double patience = 3;

    if (is_stopped(page))
        blame(sv, FR_BLAME_HUNG, FR_FAILURE,
              "rank %lld (pid %d) was stopped%s, %.0f s ago", (long long)rank,
              page->pid, due_of(state), silent_s);
    else if (state != FR_RANK_JOINED &&
             silent_s > patience * sv->options->hung_s)
        blame(sv, FR_BLAME_HUNG, FR_FAILURE,
              "rank %lld (pid %d) has waited for the other ranks for %.0f s%s",
              (long long)rank, page->pid, silent_s, due_of(state));
}

/*
 * A rank that has joined and tells nothing of what it does: it may be busy for
 * long, but the others wait for one that is stopped, within MPI and so without
 * a limit.
 */
static void watch_joined(fr_supervisor *sv, int64_t rank,
                         const fr_rank_page *page, int64_t now_ns)
{
    if (!is_stopped(page))
        sv->stopped_ns[rank] = 0;
    else if (sv->stopped_ns[rank] == 0)
        sv->stopped_ns[rank] = now_ns;
    else if ((double)(now_ns - sv->stopped_ns[rank]) * 1e-9 >
             sv->options->hung_s)
        blame(sv, FR_BLAME_HUNG, FR_FAILURE,
              "rank %lld (pid %d) was stopped before its first step, %.0f s "
              "ago",
              (long long)rank, page->pid,
              (double)(now_ns - sv->stopped_ns[rank]) * 1e-9);
}

/* A rank without a page when others have waited for it. */
static void watch_absent(fr_supervisor *sv, int64_t rank, double since_s)
{
    const double patience = 3;

    if (since_s > patience * sv->options->hung_s)
        blame(sv, FR_BLAME_HUNG, FR_FAILURE,
              "rank %lld has not begun in %.0f s", (long long)rank, since_s);
}

/* Others would wait for a rank that stands still, and say so. */
static void watch_alone(fr_supervisor *sv, const fr_rank_page *page)
{
    const double still_s = fr_rank_page_still_s(page);
    char doing[128];

    if (sv->options->world > 1 || sv->options->still_s <= 0 ||
        still_s < sv->options->still_s)
        return;
    fr_rank_page_describe(page, doing, sizeof doing);
    blame(sv, FR_BLAME_HUNG, FR_FAILURE,
          "rank 0 (pid %d) has not gone on for %.0f s%s", page->pid, still_s,
          doing);
}

static void watch_page(fr_supervisor *sv, int64_t rank, int64_t now_ns)
{
    char doing[128];
    fr_rank_page *page = fr_watch_page(sv, rank);

    if (page == NULL) {
        if (sv->options->hostfile == NULL) /* else it may be elsewhere */
            watch_absent(sv, rank, (double)(now_ns - sv->begin_ns) * 1e-9);
        return;
    }
    uint32_t state = atomic_load_explicit(&page->state, memory_order_acquire);
    if (state == FR_RANK_FAILED)
        blame(sv, FR_BLAME_REPORT, (fr_status)page->status, "%s",
              page->failure);
    if (state == FR_RANK_JOINED)
        watch_joined(sv, rank, page, now_ns);
    watch_alone(sv, page);
    double silent_s = (double)(now_ns - atomic_load(&page->beat_ns)) * 1e-9;
    if (silent_s < sv->options->hung_s)
        return;
    if (state == FR_RANK_JOINING || state == FR_RANK_JOINED ||
        state == FR_RANK_FINISHED)
        watch_waiting(sv, rank, page, state, silent_s);
    if (state != FR_RANK_RUNNING)
        return;
    fr_rank_page_describe(page, doing, sizeof doing);
    blame(sv, FR_BLAME_HUNG, FR_FAILURE,
          "rank %lld (pid %d) has shown no sign of life for %.0f s%s",
          (long long)rank, page->pid, silent_s, doing);
}

void fr_watch_hosts(fr_supervisor *sv, const char *program, double limit_s)
{
    fr_err why;

    for (int64_t rank = 0; rank < sv->options->world; rank++)
        if (fr_watch_page(sv, rank) != NULL)
            return;
    if (fr_hosts_explain(sv->options->hostfile, program, limit_s, &why) !=
        FR_OK)
        blame(sv, FR_BLAME_HUNG, FR_FAILURE, "the ranks cannot be started: %s",
              why.text);
}

int64_t fr_watch_step(fr_supervisor *sv)
{
    int64_t furthest = -1;

    for (int64_t rank = 0; rank < sv->options->world; rank++) {
        const fr_rank_page *page = fr_watch_page(sv, rank);
        const int64_t step = page != NULL ? atomic_load(&page->step) : -1;
        furthest = step > furthest ? step : furthest;
    }
    return furthest;
}

void fr_watch_pages(fr_supervisor *sv)
{
    int64_t now_ns = fr_clock_ns();

    for (int64_t rank = 0; rank < sv->options->world; rank++)
        watch_page(sv, rank, now_ns);
    fr_watch_hang(sv);
}
