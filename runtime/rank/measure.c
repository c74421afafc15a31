/* measure.c: memory and cores, from /proc and the scheduler. */
#include "runtime/rank/measure.h"

#include "core/base/hash.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* "VmHWM:    123 kB" of a file in /proc; 0 when it is not there. */
static uint64_t proc_kb(const char *path, const char *key)
{
    char line[256];
    unsigned long long kb = 0;
    FILE *file = fopen(path, "r");

    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL) {
        size_t n = strlen(key);
        if (strncmp(line, key, n) == 0 && line[n] == ':') {
            kb = strtoull(line + n + 1, NULL, 10);
            break;
        }
    }
    (void)fclose(file);
    return kb;
}

static fr_status resident_bytes(void *window, uint64_t n_bytes, uint64_t *out,
                                fr_err *err)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t before = (uintptr_t)window % page;
    unsigned char *begin = (unsigned char *)window - before;
    uint64_t n_pages = (before + n_bytes + page - 1) / page;
    unsigned char *is_there = malloc(n_pages ? n_pages : 1);
    uint64_t n = 0;

    if (is_there == NULL)
        return fr_fail_no_memory(err);
    if (mincore(begin, n_pages * page, is_there) != 0) {
        free(is_there);
        return fr_fail(err, FR_FAILURE, "mincore failed on the slab");
    }
    for (uint64_t i = 0; i < n_pages; i++)
        n += is_there[i] & 1U;
    free(is_there);
    *out = n * page;
    return FR_OK;
}

fr_status fr_measure_peak(void *window, uint64_t n_bytes, uint64_t *peak_bytes,
                          fr_err *err)
{
    uint64_t own = 0;

    if (window != NULL)
        FR_TRY(resident_bytes(window, n_bytes, &own, err));
    uint64_t peak = proc_kb("/proc/self/status", "VmHWM");
    /* The kernel's running counters lag a little behind; the walk does not. */
    uint64_t now = proc_kb("/proc/self/smaps_rollup", "Rss");
    peak = now > peak ? now : peak;
    if (peak == 0)
        return fr_fail(err, FR_FAILURE, "no VmHWM in /proc/self/status");
    uint64_t shared =
        window != NULL ? proc_kb("/proc/self/status", "RssShmem") : 0;
    *peak_bytes = (peak > shared ? peak - shared : 0) * 1024 + own;
    return FR_OK;
}

uint64_t fr_measure_resident(void)
{
    unsigned long long n_all = 0, n_resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (file == NULL)
        return 0;
    int n = fscanf(file, "%llu %llu", &n_all, &n_resident);
    (void)fclose(file);
    return n == 2 ? n_resident * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

void fr_measure_reset_peak(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "w");

    if (file == NULL)
        return;
    (void)fputs("5", file);
    (void)fclose(file);
}

void fr_cores_assign(int64_t n_local, int64_t i_local, int n_threads,
                     fr_cores *out)
{
    cpu_set_t allowed;
    int cores[CPU_SETSIZE], n_cores = 0;
    const char *pin = getenv("FORERUN_PIN");

    *out = (fr_cores){.comm = -1, .is_core_shared = true};
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    for (int core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET((size_t)core, &allowed))
            cores[n_cores++] = core;
    out->is_crowded = n_local * n_threads > n_cores;
    out->is_core_shared = n_local * (n_threads + 1) > n_cores;
    if (out->is_crowded || (pin != NULL && strcmp(pin, "0") == 0) ||
        n_threads > (int)(sizeof out->main / sizeof out->main[0]))
        return;
    out->n_main = n_threads;
    for (int i = 0; i < n_threads; i++)
        out->main[i] = cores[i_local * n_threads + i];
    if (!out->is_core_shared)
        out->comm = cores[n_local * n_threads + i_local];
}

void fr_cores_pin(const fr_cores *cores, fr_core_mask *previous)
{
    cpu_set_t set;

    *previous = (fr_core_mask){0};
    if (cores->n_main == 0 || sched_getaffinity(0, sizeof set, &set) != 0)
        return;
    memcpy(previous->words, &set,
           sizeof set < sizeof previous->words ? sizeof set
                                               : sizeof previous->words);
    CPU_ZERO(&set);
    for (int i = 0; i < cores->n_main; i++)
        CPU_SET((size_t)cores->main[i], &set);
    previous->is_set = sched_setaffinity(0, sizeof set, &set) == 0;
}

void fr_cores_restore(const fr_core_mask *previous)
{
    cpu_set_t set;

    if (!previous->is_set)
        return;
    CPU_ZERO(&set);
    memcpy(&set, previous->words,
           sizeof set < sizeof previous->words ? sizeof set
                                               : sizeof previous->words);
    (void)sched_setaffinity(0, sizeof set, &set);
}

uint64_t fr_measure_machine(char host[64])
{
    char boot_id[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");

    if (file != NULL) {
        size_t n = fread(boot_id, 1, sizeof boot_id - 1, file);
        boot_id[n] = '\0';
        (void)fclose(file);
    }
    if (host != NULL && gethostname(host, 64) != 0)
        host[0] = '\0';
    if (host != NULL)
        host[63] = '\0';
    return fr_hash_text(boot_id, 0);
}
