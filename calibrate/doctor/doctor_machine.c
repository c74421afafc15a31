/* doctor_machine.c: cores, clocks, memory and limits. */
#include "calibrate/doctor/doctor_checks.h"
#include "core/base/units.h"
#include "spec/cluster/detect.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

void fr_check_cores(fr_examination *at)
{
    fr_machine machine;
    fr_machine_detect(&machine);
    long n_online = sysconf(_SC_NPROCESSORS_ONLN);
    const char *threads = getenv("OMP_NUM_THREADS");
    fr_doctor_add(at, "cores", FR_FINDING_OK, NULL, "",
                  "%d on %d socket%s, %ld hardware threads%s%s",
                  machine.n_cores, machine.n_sockets,
                  machine.n_sockets > 1 ? "s" : "", n_online,
                  machine.cpu[0] != '\0' ? ": " : "", machine.cpu);
    if (threads != NULL)
        fr_doctor_add(at, "threads", FR_FINDING_ADVICE, "run, calibrate",
                      "forerun sets threads from the plan: unset it",
                      "OMP_NUM_THREADS is %.20s", threads);
}

void fr_check_clocks(fr_examination *at)
{
    char governor[64], source[64];
    const bool has_governor = fr_doctor_read(
        at, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", governor,
        sizeof governor);
    const bool is_fast = !has_governor || strcmp(governor, "performance") == 0;
    if (!fr_doctor_read(
            at,
            "/sys/devices/system/clocksource/clocksource0/current_clocksource",
            source, sizeof source))
        snprintf(source, sizeof source, "an unknown source");
    /* Reading these takes a microsecond and more. */
    const bool is_slow =
        strcmp(source, "hpet") == 0 || strcmp(source, "acpi_pm") == 0;
    fr_doctor_add(
        at, "clocks", is_fast && !is_slow ? FR_FINDING_OK : FR_FINDING_ADVICE,
        "calibrate",
        is_slow    ? "steadier measurements: boot with "
                     "clocksource=tsc"
        : !is_fast ? "steadier measurements: cpupower "
                     "frequency-set -g performance"
                   : "",
        "governor %s; time from %s",
        has_governor ? governor : "not said (a virtual machine)", source);
}

void fr_check_memory(fr_examination *at)
{
    char text[FR_FORMAT_MAX];
    fr_machine machine;
    fr_machine_detect(&machine);
    fr_doctor_add(
        at, "memory", FR_FINDING_OK, NULL, "", "%s may be used",
        fr_format_bytes(text, sizeof text, (double)machine.memory_bytes));
}

void fr_check_huge_pages(fr_examination *at)
{
    char modes[128];
    if (!fr_doctor_read(at, "/sys/kernel/mm/transparent_hugepage/enabled",
                        modes, sizeof modes))
        return;
    bool is_off = strstr(modes, "[never]") != NULL;
    fr_doctor_add(at, "huge pages", is_off ? FR_FINDING_ADVICE : FR_FINDING_OK,
                  "run",
                  is_off ? "echo madvise > "
                           "/sys/kernel/mm/transparent_hugepage/enabled"
                         : "",
                  "transparent: %s", modes);
}

void fr_check_shared_memory(fr_examination *at)
{
    /* Ranks of a node hand each other slices of what they reduce there: less
     * than this is what containers give unless told otherwise (64 MiB). */
    const uint64_t least = UINT64_C(256) << 20;
    char path[512], text[FR_FORMAT_MAX];
    struct statvfs fs;
    snprintf(path, sizeof path, "%s/dev/shm", at->root);
    if (statvfs(path, &fs) != 0) {
        fr_doctor_add(at, "/dev/shm", FR_FINDING_MISSING,
                      "run and calibrate with several ranks",
                      "mount -t tmpfs tmpfs /dev/shm", "is not there");
        return;
    }
    uint64_t n_free = (uint64_t)fs.f_bavail * fs.f_frsize;
    bool is_enough = n_free >= least;
    fr_doctor_add(at, "/dev/shm", is_enough ? FR_FINDING_OK : FR_FINDING_ADVICE,
                  "run and calibrate with several ranks",
                  is_enough ? ""
                            : "in a container: --shm-size=8g, or mount "
                              "it with more",
                  "%s free",
                  fr_format_bytes(text, sizeof text, (double)n_free));
}

static void put_limit(rlim_t limit, char *buf, size_t n_buf, bool is_bytes)
{
    if (limit == RLIM_INFINITY)
        snprintf(buf, n_buf, "unlimited");
    else if (is_bytes)
        fr_format_bytes(buf, n_buf, (double)limit);
    else
        snprintf(buf, n_buf, "%llu", (unsigned long long)limit);
}

void fr_check_locked_memory(fr_examination *at)
{
    char text[FR_FORMAT_MAX];
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0)
        return;
    bool is_free = limit.rlim_cur == RLIM_INFINITY;
    put_limit(limit.rlim_cur, text, sizeof text, true);
    fr_doctor_add(at, "locked memory",
                  is_free ? FR_FINDING_OK : FR_FINDING_ADVICE,
                  "RDMA (InfiniBand, RoCE, EFA)",
                  is_free ? ""
                          : "ulimit -l unlimited, for the daemon that "
                            "starts ranks too",
                  "%s", text);
}

void fr_check_open_files(fr_examination *at)
{
    enum { LEAST = 1024 };
    char text[FR_FORMAT_MAX];
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    bool is_enough = limit.rlim_cur >= LEAST;
    put_limit(limit.rlim_cur, text, sizeof text, false);
    fr_doctor_add(
        at, "open files", is_enough ? FR_FINDING_OK : FR_FINDING_ADVICE,
        "run with many ranks", is_enough ? "" : "ulimit -n 65536", "%s", text);
}

void fr_check_temporary(fr_examination *at)
{
    char text[FR_FORMAT_MAX];
    const char *path = getenv("TMPDIR");
    struct statvfs fs;
    path = path != NULL && path[0] != '\0' ? path : "/tmp";
    if (access(path, W_OK) != 0 || statvfs(path, &fs) != 0)
        fr_doctor_add(at, "temporary files", FR_FINDING_MISSING, "run",
                      "point TMPDIR at a folder that can be written",
                      "%.100s cannot be written", path);
    else
        fr_doctor_add(
            at, "temporary files", FR_FINDING_OK, NULL, "", "%.100s: %s free",
            path,
            fr_format_bytes(text, sizeof text,
                            (double)fs.f_bavail * (double)fs.f_frsize));
}
