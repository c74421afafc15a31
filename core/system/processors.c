/* processors.c: see processors.h. */
#include "core/system/processors.h"

#include "core/system/clock.h"

#include <ctype.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double slack_processors = 0.1;

void fr_processor_set_allowed(fr_processor_set *out)
{
    cpu_set_t allowed;

    *out = (fr_processor_set){{0}};
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    for (size_t i = 0; i < FR_PROCESSORS_MAX && i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &allowed))
            out->words[i / 64] |= UINT64_C(1) << (i % 64);
}

static bool is_in(const fr_processor_set *set, unsigned long i)
{
    return i < FR_PROCESSORS_MAX &&
           (set->words[i / 64] >> (i % 64) & UINT64_C(1)) != 0;
}

/*
 * A line "cpu7 user nice system idle iowait irq softirq steal guest ..." in
 * ticks (proc_stat(5)); user contains guest.  Kernels before 2.6.11 have no
 * steal.
 */
static bool add_line(const char *fields, double tick_s, fr_processor_times *out)
{
    enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, N_FIELDS };
    double ticks[N_FIELDS] = {0};
    int n = 0;

    while (n < N_FIELDS) {
        char *end;
        while (*fields == ' ')
            fields++;
        if (!isdigit((unsigned char)*fields))
            break;
        ticks[n++] = (double)strtoull(fields, &end, 10);
        fields = end;
    }
    if (n < STEAL || (*fields != ' ' && *fields != '\n' && *fields != '\0'))
        return false;
    out->busy_s += tick_s * (ticks[USER] + ticks[NICE] + ticks[SYSTEM] +
                             ticks[IRQ] + ticks[SOFTIRQ]);
    out->idle_s += tick_s * (ticks[IDLE] + ticks[IOWAIT]);
    out->steal_s += tick_s * ticks[STEAL];
    out->n_processors++;
    return true;
}

/* "0.62 0.85 0.77 3/245 4711": three threads run or wait. */
static int32_t read_runnable(const char *loadavg)
{
    char *end;

    for (int i = 0; i < 3 && loadavg != NULL; i++) {
        (void)strtod(loadavg, &end);
        loadavg = end != loadavg && *end == ' ' ? end + 1 : NULL;
    }
    if (loadavg == NULL || !isdigit((unsigned char)*loadavg))
        return 0;
    const long n = strtol(loadavg, &end, 10);
    return *end == '/' && n < INT32_MAX ? (int32_t)n : 0;
}

bool fr_processor_times_parse(const char *stat, const char *loadavg,
                              const fr_processor_set *set, double tick_s,
                              fr_processor_times *out)
{
    fr_processor_times times = {.tick_s = tick_s,
                                .n_runnable = read_runnable(loadavg)};

    for (const char *line = stat; line != NULL && *line != '\0';) {
        const char *next = strchr(line, '\n');
        char *fields;
        if (strncmp(line, "cpu", 3) == 0 && isdigit((unsigned char)line[3])) {
            const unsigned long i = strtoul(line + 3, &fields, 10);
            if (is_in(set, i) && !add_line(fields, tick_s, &times))
                return false;
        }
        line = next != NULL ? next + 1 : NULL;
    }
    if (times.n_processors == 0)
        return false;
    *out = times;
    return true;
}

/* Reads the begin of a file, and leaves out a line that does not fit. */
static bool read_begin(const char *path, char *text, size_t n_text)
{
    FILE *file = fopen(path, "r");

    if (file == NULL)
        return false;
    size_t n = fread(text, 1, n_text - 1, file);
    (void)fclose(file);
    text[n] = '\0';
    while (n == n_text - 1 && n > 0 && text[n - 1] != '\n')
        text[--n] = '\0';
    return n > 0;
}

bool fr_processor_times_read(const fr_processor_set *set,
                             fr_processor_times *out)
{
    enum { N_TEXT = 160 * (FR_PROCESSORS_MAX + 1) };
    const long n_per_s = sysconf(_SC_CLK_TCK);
    char loadavg[128];
    char *text = malloc(N_TEXT);
    fr_processor_times times;

    if (text == NULL)
        return false;
    const double at_s = fr_clock_s();
    bool is_read = n_per_s > 0 && read_begin("/proc/stat", text, N_TEXT);
    const bool has_load = read_begin("/proc/loadavg", loadavg, sizeof loadavg);
    if (is_read)
        is_read = fr_processor_times_parse(text, has_load ? loadavg : NULL, set,
                                           1.0 / (double)n_per_s, &times);
    free(text);
    if (!is_read)
        return false;
    times.at_s = at_s;
    *out = times;
    return true;
}

bool fr_processor_share_between(const fr_processor_times *begin,
                                const fr_processor_times *end, double own_s,
                                fr_processor_share *out)
{
    const double busy_s = end->busy_s - begin->busy_s;
    const double idle_s = end->idle_s - begin->idle_s;
    const double steal_s = fmax(end->steal_s - begin->steal_s, 0.0);
    const double elapsed_s = end->at_s - begin->at_s;
    const double n = (double)end->n_processors;

    if (elapsed_s <= 0.0 || end->n_processors != begin->n_processors ||
        !isfinite(own_s) || own_s < 0.0 ||
        busy_s + idle_s + steal_s + 2.0 * n * end->tick_s < 0.5 * n * elapsed_s)
        return false;
    *out = (fr_processor_share){.elapsed_s = elapsed_s,
                                .own_s = own_s,
                                .others_s = fmax(busy_s - own_s, 0.0),
                                .steal_s = steal_s,
                                .tick_s = end->tick_s,
                                .n_processors = end->n_processors,
                                .n_runnable = end->n_runnable};
    return true;
}

void fr_processor_share_add(fr_processor_share *sum,
                            const fr_processor_share *part)
{
    sum->elapsed_s += part->elapsed_s;
    sum->own_s += part->own_s;
    sum->others_s += part->others_s;
    sum->steal_s += part->steal_s;
    sum->tick_s = part->tick_s;
    if (part->n_processors > sum->n_processors)
        sum->n_processors = part->n_processors;
    if (part->n_runnable > sum->n_runnable)
        sum->n_runnable = part->n_runnable;
}

double fr_processor_share_others(const fr_processor_share *share)
{
    return share->elapsed_s > 0.0
               ? (share->others_s + share->steal_s) / share->elapsed_s
               : 0.0;
}

bool fr_processor_share_is_disturbed(const fr_processor_share *share,
                                     int32_t n_wanted)
{
    const double ticks_s = share->tick_s * sqrt((double)share->n_processors);
    const double n_free = fmax((double)(share->n_processors - n_wanted), 0.0);
    const double most_s = slack_processors * share->elapsed_s + ticks_s;

    return share->others_s - n_free * share->elapsed_s > most_s ||
           share->steal_s > most_s;
}
