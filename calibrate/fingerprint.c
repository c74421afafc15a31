/* fingerprint.c: see fingerprint.h. */
#include "calibrate/fingerprint.h"

#include "calibrate/versions.h"
#include "core/base/text.h"
#include "core/base/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static void read_cpu_name(char *out, size_t n)
{
    char line[512];
    FILE *file = fopen("/proc/cpuinfo", "r");

    if (file == NULL)
        return;
    while (fgets(line, sizeof line, file) != NULL) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon != NULL) {
            fr_text_copy_cut(out, n, fr_text_trim(colon + 1));
            break;
        }
    }
    fclose(file);
}

static bool read_line(const char *path, char *out, size_t n)
{
    FILE *file = fopen(path, "r");
    bool is_read;

    if (file == NULL)
        return false;
    is_read = fgets(out, (int)n, file) != NULL;
    fclose(file);
    return is_read;
}

/* "1024K" and "32M" as the kernel writes cache sizes. */
static uint64_t parse_cache_size(const char *text)
{
    char *end;
    uint64_t n = strtoull(text, &end, 10);

    return *end == 'K' ? n << 10 : *end == 'M' ? n << 20 : n;
}

static void read_caches(uint64_t *l2_bytes, uint64_t *llc_bytes)
{
    int64_t deepest = 0, depth;
    fr_err err;

    for (int i = 0; i < 8; i++) {
        char path[128], level[16], type[32], size[32];
        const char *dir = "/sys/devices/system/cpu/cpu0/cache/index";
        snprintf(path, sizeof path, "%s%d/level", dir, i);
        if (!read_line(path, level, sizeof level))
            break;
        snprintf(path, sizeof path, "%s%d/type", dir, i);
        if (!read_line(path, type, sizeof type) ||
            fr_text_starts(type, "Instruction"))
            continue;
        snprintf(path, sizeof path, "%s%d/size", dir, i);
        if (!read_line(path, size, sizeof size))
            continue;
        if (fr_parse_i64(level, &depth, &err) != FR_OK)
            continue;
        if (depth == 2)
            *l2_bytes = parse_cache_size(size);
        if (depth > deepest) {
            deepest = depth;
            *llc_bytes = parse_cache_size(size);
        }
    }
}

void fr_fingerprint_detect(fr_fingerprint *out)
{
    struct utsname system;

    memset(out, 0, sizeof *out);
    read_cpu_name(out->cpu, sizeof out->cpu);
    if (uname(&system) == 0)
        snprintf(out->kernel, sizeof out->kernel, "%.40s %.80s", system.sysname,
                 system.release);
    fr_text_copy_cut(out->blas, sizeof out->blas, fr_version_blas());
    fr_version_mpi(out->mpi, sizeof out->mpi);
    fr_text_copy_cut(out->compiler, sizeof out->compiler, __VERSION__);
    out->n_cores = (int32_t)sysconf(_SC_NPROCESSORS_ONLN);
    out->n_nodes = 1;
    read_caches(&out->l2_bytes, &out->llc_bytes);
    out->memory_bytes =
        (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}
