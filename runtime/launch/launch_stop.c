/* launch_stop.c: asks the ranks to stop after a checkpoint, and waits as long
 * as that may take. */
#include "core/system/clock.h"
#include "runtime/launch/launch_state.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEND_S 1.0 /* between two signals by way of mpirun */
#define STEPS 3.0  /* as long as the longest so far, one may take */

void fr_stop_describe(int signal, int from, char out[FR_SENDER_BYTES])
{
    char path[64], name[64] = "";

    if (from <= 0) {
        (void)snprintf(out, FR_SENDER_BYTES, "%s",
                       signal == SIGINT
                           ? "Ctrl-C"
                           : "the kernel, as its terminal went away");
        return;
    }
    (void)snprintf(path, sizeof path, "/proc/%d/comm", from);
    FILE *file = fopen(path, "r");
    if (file != NULL) {
        if (fgets(name, sizeof name, file) != NULL)
            name[strcspn(name, "\n")] = '\0';
        (void)fclose(file);
    }
    (void)snprintf(out, FR_SENDER_BYTES, "SIG%s from pid %d%s%s%s",
                   sigabbrev_np(signal), from, name[0] != '\0' ? " (" : "",
                   name, name[0] != '\0' ? ")" : "");
}

bool fr_stop_is_of_user(const fr_supervisor *sv)
{
    return sv->is_interrupted || (sv->stop.signal != 0 && !sv->stop.is_own);
}

/* The times of all ranks that have a page. */
typedef struct rank_times {
    int64_t n_seen, n_in_step, longest_ns;
} rank_times;

static rank_times look_at_ranks(fr_supervisor *sv)
{
    rank_times all = {0};

    for (int64_t rank = 0; rank < sv->options->world; rank++) {
        fr_rank_page *page = fr_watch_page(sv, rank);
        if (page == NULL)
            continue;
        const int64_t longest_ns = atomic_load(&page->longest_ns);
        atomic_store(&page->stop_signal, (uint32_t)sv->stop.signal);
        all.n_seen++;
        all.n_in_step += atomic_load(&page->is_in_step) != 0;
        if (longest_ns > all.longest_ns)
            all.longest_ns = longest_ns;
    }
    return all;
}

/*
 * Seconds within steps: who saves may take as long as that takes.  0: no
 * limit, as nobody knows how long a step takes before one has ended.
 */
static double limit_s(const fr_supervisor *sv, const rank_times *ranks)
{
    if (ranks->n_seen > 0 && ranks->longest_ns == 0)
        return 0;
    return sv->options->hung_s + STEPS * 1e-9 * (double)ranks->longest_ns;
}

static void tell(const fr_supervisor *sv, double most_s)
{
    char sender[FR_SENDER_BYTES], line[320], limit[64] = "";

    if (sv->options->on_line == NULL)
        return;
    fr_stop_describe(sv->stop.signal, sv->stop.by, sender);
    if (most_s > 0)
        (void)snprintf(limit, sizeof limit, ", or %.0f s more within steps,",
                       most_s);
    (void)snprintf(line, sizeof line,
                   "forerun: %s: the run ends after this step and its "
                   "checkpoint; another signal%s ends it without",
                   sender, limit);
    sv->options->on_line(sv->options->context, line);
}

void fr_stop_ask(fr_supervisor *sv, int signal, int by, bool is_own)
{
    sv->stop = (fr_stop_request){.signal = signal,
                                 .by = by,
                                 .is_own = is_own,
                                 .looked_s = fr_clock_s(),
                                 .sent_s = sv->stop.sent_s};
    const rank_times ranks = look_at_ranks(sv);
    if (!is_own)
        tell(sv, limit_s(sv, &ranks));
}

/* Has mpirun begun to hand signals on?  It would die of one before. */
static bool is_caught(pid_t pid, int signal)
{
    char path[64], line[256];
    unsigned long long caught = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "SigCgt:", 7) == 0)
            caught = strtoull(line + 7, NULL, 16);
    (void)fclose(file);
    return (caught >> (signal - 1) & 1) != 0;
}

/*
 * Ranks of other machines have no page here, but get SIGUSR1 from mpirun
 * (SIGTERM would end them).  One that has just begun would die of it.
 */
static void send_signal(fr_supervisor *sv, double now_s)
{
    const bool have_begun =
        now_s - 1e-9 * (double)sv->begin_ns > sv->options->hung_s;

    if (!have_begun || now_s - sv->stop.sent_s < SEND_S ||
        !is_caught(sv->mpirun, SIGUSR1))
        return;
    (void)kill(sv->mpirun, SIGUSR1);
    sv->stop.sent_s = now_s;
}

void fr_stop_look(fr_supervisor *sv)
{
    const double now_s = fr_clock_s();

    if (sv->stop.signal == 0)
        return;
    const rank_times ranks = look_at_ranks(sv);
    if (ranks.n_seen == 0)
        send_signal(sv, now_s);
    if (ranks.n_in_step > 0 || (ranks.n_seen == 0 && sv->stop.sent_s > 0))
        sv->stop.step_s += now_s - sv->stop.looked_s;
    sv->stop.looked_s = now_s;
    const double most_s = limit_s(sv, &ranks);
    if (most_s <= 0 || sv->stop.step_s <= most_s)
        return;
    if (sv->stop.is_own)
        fr_watch_deaf(sv, sv->stop.step_s);
    else
        fr_watch_signal(sv, sv->stop.signal, sv->stop.by);
}
