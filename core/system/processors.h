/*
 * processors.h: the processor time that other processes take, from Linux's
 * accounting: all of it (/proc/stat) less that of the program's own processes,
 * and the time that a hypervisor gave to other machines (steal).
 *
 * The kernel counts in ticks of 10 ms for each processor, so a short interval
 * is known to some ticks only; fr_processor_share_is_disturbed() allows for
 * that.
 */
#ifndef FR_CORE_SYSTEM_PROCESSORS_H
#define FR_CORE_SYSTEM_PROCESSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Processors, one bit each. */
#define FR_PROCESSORS_MAX 1024
typedef struct fr_processor_set {
    uint64_t words[FR_PROCESSORS_MAX / 64];
} fr_processor_set;

/* The processors that this thread may run on now; none: not known. */
void fr_processor_set_allowed(fr_processor_set *out);

/* A reading of the counters of some processors, summed. */
typedef struct fr_processor_times {
    double at_s;          /* fr_clock_s() */
    double busy_s;        /* since the machine was booted, of all processes */
    double idle_s;        /* likewise; waiting for a disk is idle */
    double steal_s;       /* likewise, not in the other two */
    double tick_s;        /* the counters' step */
    int32_t n_processors; /* of the set, that are online */
    int32_t n_runnable;   /* threads of the machine that run or wait to run */
} fr_processor_times;

/*
 * Reads the texts of /proc/stat and /proc/loadavg (NULL: n_runnable is 0);
 * sets all members of *out but at_s.  False if a line of a processor cannot be
 * read or no processor of the set has one.
 */
bool fr_processor_times_parse(const char *stat, const char *loadavg,
                              const fr_processor_set *set, double tick_s,
                              fr_processor_times *out);

/* Reads both files now. */
bool fr_processor_times_read(const fr_processor_set *set,
                             fr_processor_times *out);

/* The time that others had of some processors in an interval. */
typedef struct fr_processor_share {
    double elapsed_s; /* of the clock */
    double own_s;     /* of the program's processes */
    double others_s;  /* of all other processes */
    double steal_s;   /* of other machines */
    double tick_s;
    int32_t n_processors;
    int32_t n_runnable; /* at the end of the interval */
} fr_processor_share;

/*
 * others_s = max(0, busy - own), steal_s = max(0, steal).  False if the
 * counters do not count: busy, idle and stolen time make up less than half of
 * the time that the processors had (a kernel that only imitates the file), or
 * a processor came or went.
 */
bool fr_processor_share_between(const fr_processor_times *begin,
                                const fr_processor_times *end, double own_s,
                                fr_processor_share *out);

/* Adds an interval to a sum; a sum of zeros is empty. */
void fr_processor_share_add(fr_processor_share *sum,
                            const fr_processor_share *part);

/* Processors that others had in the mean, stolen ones included. */
double fr_processor_share_others(const fr_processor_share *share);

/*
 * Did others take time from n_wanted threads of the program, each of which
 * wants a processor?  They did if they had more than a tenth of a processor
 * beyond those that the program does not want, or if more than a tenth of a
 * processor was stolen; the error of the ticks, a tick times the root of the
 * number of processors, is deducted.
 */
bool fr_processor_share_is_disturbed(const fr_processor_share *share,
                                     int32_t n_wanted);

#endif
