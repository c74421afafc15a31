/* others.c: see others.h. */
#include "runtime/watch/others.h"

#include "core/system/clock.h"
#include "runtime/rank/measure.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct fr_others {
    bool is_reader;
    fr_processor_set set;
    pid_t *pids; /* of the ranks of this machine */
    int32_t n_pids;
    bool has_begin; /* both members below are known */
    fr_processor_times begin;
    double begin_own_s;
    double begin_s; /* of the interval, known or not */
};

typedef struct rank_process {
    uint64_t machine;
    int64_t pid;
    fr_processor_set set;
} rank_process;

static void unite(fr_processor_set *set, const fr_processor_set *with)
{
    for (size_t i = 0; i < FR_LENGTH(set->words); i++)
        set->words[i] |= with->words[i];
}

static fr_status find_processes(fr_transport *transport,
                                const fr_processor_set *set, fr_others *others,
                                fr_err *err)
{
    const rank_process mine = {fr_measure_machine(NULL), (int64_t)getpid(),
                               *set};
    rank_process *all = NULL;
    bool is_first = true;

    FR_TRY_CALLOC(all, (size_t)transport->world, err);
    fr_status status =
        fr_transport_all_gather(transport, &mine, sizeof mine, all, err);
    if (status == FR_OK) {
        others->pids = calloc((size_t)transport->world, sizeof *others->pids);
        if (others->pids == NULL)
            status = fr_fail_no_memory(err);
    }
    for (int64_t i = 0; status == FR_OK && i < transport->world; i++) {
        if (all[i].machine != mine.machine)
            continue;
        is_first = is_first && i >= transport->rank;
        unite(&others->set, &all[i].set);
        /* Ranks may be threads of one process. */
        bool is_new = true;
        for (int32_t k = 0; k < others->n_pids; k++)
            is_new = is_new && others->pids[k] != (pid_t)all[i].pid;
        if (is_new)
            others->pids[others->n_pids++] = (pid_t)all[i].pid;
    }
    others->is_reader = is_first;
    free(all);
    return status;
}

fr_status fr_others_create(fr_transport *transport, const fr_processor_set *set,
                           fr_others **out, fr_err *err)
{
    fr_others *others = calloc(1, sizeof *others);

    if (others == NULL)
        return fr_fail_no_memory(err);
    fr_status status = find_processes(transport, set, others, err);
    if (status != FR_OK) {
        fr_others_destroy(others);
        return status;
    }
    fr_others_begin(others);
    *out = others;
    return FR_OK;
}

void fr_others_destroy(fr_others *others)
{
    if (others == NULL)
        return;
    free(others->pids);
    free(others);
}

/* The processor time of all ranks of this machine; clock_getcpuclockid(3). */
static bool read_own(const fr_others *others, double *out_s)
{
    double sum_s = 0.0;

    for (int32_t i = 0; i < others->n_pids; i++) {
        clockid_t clock;
        struct timespec t;
        if (clock_getcpuclockid(others->pids[i], &clock) != 0 ||
            clock_gettime(clock, &t) != 0)
            return false;
        sum_s += (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    }
    *out_s = sum_s;
    return true;
}

static bool read_now(const fr_others *others, fr_processor_times *times,
                     double *own_s)
{
    return fr_processor_times_read(&others->set, times) &&
           read_own(others, own_s);
}

void fr_others_begin(fr_others *others)
{
    if (!others->is_reader)
        return;
    others->has_begin = read_now(others, &others->begin, &others->begin_own_s);
    others->begin_s = others->has_begin ? others->begin.at_s : fr_clock_s();
}

double fr_others_elapsed_s(const fr_others *others)
{
    return others->is_reader ? fr_clock_s() - others->begin_s : -1.0;
}

bool fr_others_end(fr_others *others, fr_processor_share *out)
{
    fr_processor_times end;
    double own_s;

    if (!others->is_reader)
        return false;
    const bool is_known =
        read_now(others, &end, &own_s) && others->has_begin &&
        fr_processor_share_between(&others->begin, &end,
                                   own_s - others->begin_own_s, out);
    fr_others_begin(others);
    return is_known;
}

int32_t fr_others_n_ranks(const fr_others *others)
{
    return others->n_pids;
}
