/*
 * launch_hang.c: while ranks stand still: what each is at, since when, and for
 * whom it waits.  Said long before the limits that end the run.
 */
#include "core/base/text.h"
#include "core/system/clock.h"
#include "runtime/launch/launch_state.h"

#include <stdio.h>

#define STILL_S 10.0 /* at most, before it is said */
#define MOST_LINES 16

static double still_s(const fr_rank_page *page, int64_t now_ns)
{
    return 1e-9 * (double)(now_ns - atomic_load(&page->since_ns));
}

static bool is_running(fr_rank_page *page)
{
    return page != NULL && atomic_load(&page->step) >= 0 &&
           atomic_load_explicit(&page->state, memory_order_acquire) ==
               FR_RANK_RUNNING;
}

static void say(const fr_supervisor *sv, const char *line)
{
    if (sv->options->on_line != NULL)
        sv->options->on_line(sv->options->context, line);
}

/* Lists ranks that wait for no other rank first, because they delay the
 * others. */
static void list(fr_supervisor *sv, int64_t now_ns, bool is_waiting,
                 int *n_lines)
{
    char doing[128], line[256], whom[48];

    for (int64_t rank = 0; rank < sv->options->world; rank++) {
        fr_rank_page *page = fr_watch_page(sv, rank);
        if (!is_running(page))
            continue;
        const int32_t peer = atomic_load(&page->waits_for);
        if ((peer >= 0) != is_waiting || ++*n_lines > MOST_LINES)
            continue;
        whom[0] = '\0';
        if (peer >= 0)
            (void)snprintf(whom, sizeof whom, ", waits for rank %d", peer);
        fr_watch_describe(sv, rank, doing, sizeof doing);
        (void)snprintf(line, sizeof line, "forerun:   rank %lld%s for %.0f s%s",
                       (long long)rank, doing[0] == ',' ? doing + 1 : doing,
                       still_s(page, now_ns), whom);
        say(sv, line);
    }
}

void fr_watch_hang(fr_supervisor *sv)
{
    const int64_t now_ns = fr_clock_ns();
    double limit_s = sv->options->hung_s / 2, least_s = 1e9;
    int64_t n_running = 0, n_waiting = 0;
    int n_lines = 0;
    char line[128];

    if (limit_s > STILL_S)
        limit_s = STILL_S;
    for (int64_t rank = 0; rank < sv->options->world; rank++) {
        fr_rank_page *page = fr_watch_page(sv, rank);
        if (!is_running(page))
            continue;
        const double s = still_s(page, now_ns);
        least_s = s < least_s ? s : least_s;
        n_waiting += atomic_load(&page->waits_for) >= 0;
        n_running++;
    }
    if (n_running == 0 || n_waiting == 0 || least_s < limit_s) {
        sv->is_still = false;
        return;
    }
    if (sv->is_still)
        return;
    sv->is_still = true;
    (void)snprintf(line, sizeof line,
                   "forerun: no rank has gone on for %.0f s:", least_s);
    say(sv, line);
    list(sv, now_ns, false, &n_lines);
    list(sv, now_ns, true, &n_lines);
    if (n_lines <= MOST_LINES)
        return;
    (void)snprintf(line, sizeof line, "forerun:   and %d others",
                   n_lines - MOST_LINES);
    say(sv, line);
}
