/* detect_hwloc.c: see detect.h.  The only file that knows hwloc. */
#include "core/base/text.h"
#include "spec/cluster/detect.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef FR_HAVE_HWLOC
#include <hwloc.h>

static void detect_topology(fr_machine *out)
{
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0)
        return;
    if (hwloc_topology_load(topology) != 0)
        goto out_topology;
    /* By default only what the process may use is in the topology. */
    int n_cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
    int n_packages = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE);
    if (n_cores > 0)
        out->n_cores = n_cores;
    if (n_packages > 0)
        out->n_sockets = n_packages;
    static const hwloc_obj_type_t caches[] = {
        HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L2CACHE};
    for (size_t i = 0; i < FR_LENGTH(caches); i++) {
        hwloc_obj_t cache = hwloc_get_obj_by_type(topology, caches[i], 0);
        if (cache != NULL && cache->attr != NULL &&
            cache->attr->cache.size > 0) {
            out->llc_bytes = cache->attr->cache.size;
            break;
        }
    }
out_topology:
    hwloc_topology_destroy(topology);
}
#else
static void detect_topology(fr_machine *out)
{
    static const int caches[] = {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE,
                                 _SC_LEVEL2_CACHE_SIZE};
    for (size_t i = 0; i < FR_LENGTH(caches); i++) {
        long n_bytes = sysconf(caches[i]);
        if (n_bytes > 0) {
            out->llc_bytes = (uint64_t)n_bytes;
            break;
        }
    }
}
#endif

/* Processors of the affinity mask whose core was not seen before. */
static int32_t count_allowed_cores(void)
{
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return 0;
    int32_t n = 0;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        char path[128];
        size_t first = cpu;
        if (!CPU_ISSET(cpu, &allowed))
            continue;
        snprintf(path, sizeof path,
                 "/sys/devices/system/cpu/cpu%zu/topology/"
                 "thread_siblings_list",
                 cpu);
        FILE *file = fopen(path, "r");
        if (file != NULL) {
            if (fscanf(file, "%zu", &first) != 1)
                first = cpu;
            fclose(file);
        }
        /* Counted with its first sibling, or alone if that is not allowed. */
        bool is_counted_elsewhere =
            first != cpu && first < CPU_SETSIZE && CPU_ISSET(first, &allowed);
        n += !is_counted_elsewhere;
    }
    return n;
}

/* "max 100000" or "200000 100000": cores of a control group's quota. */
static int32_t read_cpu_quota(void)
{
    long long quota, period;
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "r");
    if (file == NULL)
        return 0;
    bool has_quota =
        fscanf(file, "%lld %lld", &quota, &period) == 2 && period > 0;
    fclose(file);
    if (!has_quota || quota <= 0 || quota / period > INT_MAX)
        return 0;
    return quota < period ? 1 : (int32_t)(quota / period);
}

static uint64_t read_memory_limit(void)
{
    unsigned long long n_bytes;
    FILE *file = fopen("/sys/fs/cgroup/memory.max", "r");
    if (file == NULL)
        return 0;
    bool has_limit = fscanf(file, "%llu", &n_bytes) == 1;
    fclose(file);
    return has_limit ? n_bytes : 0;
}

static void detect_memory(fr_machine *out)
{
    long n_pages = sysconf(_SC_PHYS_PAGES);
    long page_bytes = sysconf(_SC_PAGESIZE);
    if (n_pages > 0 && page_bytes > 0)
        out->memory_bytes = (uint64_t)n_pages * (uint64_t)page_bytes;
    uint64_t limit = read_memory_limit();
    if (limit > 0 && limit < out->memory_bytes)
        out->memory_bytes = limit;
}

/* The facts that the first processor reports. */
typedef struct cpu_facts {
    double mhz;
    long family;
    bool has_avx512, has_avx2, has_asimd, is_intel;
} cpu_facts;

static bool has_word(const char *line, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = line; (at = strstr(at, word)); at += n)
        if (at[-1] == ' ' && (at[n] == ' ' || at[n] == '\n' || !at[n]))
            return true;
    return false;
}

static void read_cpu_line(char *line, cpu_facts *facts, fr_machine *out)
{
    char *colon = strchr(line, ':');
    if (colon == NULL)
        return;
    if (fr_text_starts(line, "model name"))
        fr_text_copy_cut(out->cpu, sizeof out->cpu, fr_text_trim(colon + 1));
    else if (fr_text_starts(line, "vendor_id"))
        facts->is_intel = strstr(colon, "GenuineIntel") != NULL;
    else if (fr_text_starts(line, "cpu family"))
        facts->family = strtol(colon + 1, NULL, 10);
    else if (fr_text_starts(line, "cpu MHz"))
        facts->mhz = strtod(colon + 1, NULL);
    else if (fr_text_starts(line, "flags") ||
             fr_text_starts(line, "Features")) {
        facts->has_avx512 = has_word(colon, "avx512f");
        facts->has_avx2 = has_word(colon, "avx2") && has_word(colon, "fma");
        facts->has_asimd = has_word(colon, "asimd");
    }
}

/*
 * Single-precision operations per core and cycle: two fused multiply-adds on
 * 16 lanes (AVX-512 of Intel's servers, and of AMD from Zen 5 on, which is
 * family 26), on 8 (AVX2; AMD before it runs AVX-512 at that rate), on 4
 * (NEON); two plain operations on 4 (SSE2).
 */
static double flop_per_cycle(const cpu_facts *facts)
{
    enum { FAMILY_OF_ZEN_5 = 26 };
    bool is_wide = facts->is_intel || facts->family >= FAMILY_OF_ZEN_5;
    if (facts->has_avx512 && is_wide)
        return 64.0;
    if (facts->has_avx512 || facts->has_avx2)
        return 32.0;
    return facts->has_asimd ? 16.0 : 8.0;
}

static void detect_cpu(fr_machine *out)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char *line = NULL;
    size_t n = 0;
    cpu_facts facts = {0};
    if (file == NULL)
        return;
    /* One processor's paragraph is enough. */
    while (getline(&line, &n, file) > 0 && line[0] != '\n')
        read_cpu_line(line, &facts, out);
    free(line);
    fclose(file);
    out->peak_fp32_flops =
        facts.mhz * 1e6 * flop_per_cycle(&facts) * out->n_cores;
}

void fr_machine_detect(fr_machine *out)
{
    memset(out, 0, sizeof *out);
    out->n_cores = count_allowed_cores();
    out->n_sockets = 1;
    detect_topology(out);
    int32_t quota = read_cpu_quota();
    if (quota > 0 && quota < out->n_cores)
        out->n_cores = quota;
    if (out->n_cores < 1)
        out->n_cores = 1;
    detect_memory(out);
    detect_cpu(out);
}
