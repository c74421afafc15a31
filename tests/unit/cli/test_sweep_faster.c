/*
 * test_sweep_faster.c: a sweep never predicts a longer step for faster
 * hardware: each point has the winners of its neighbours, too, where the search
 * of its own has missed them.
 */
#include "cli/cli.h"
#include "core/document/json.h"
#include "tests/check.h"
#include "tests/unit/cli/run_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const jobs[] = {
    "gpt2-124m dgx-h100:2 --global-batch 64 --seq 512",
    "gpt2-1.5b dgx-h100:2 --global-batch 64 --seq 1024",
    "llama-3-8b dgx-h100:2 --global-batch 64 --seq 4096",
    "llama-3-70b dgx-h100:8 --global-batch 64 --seq 8192",
    "mixtral-8x7b dgx-a100:4 --global-batch 64 --seq 4096",
};

/* Values from slow to fast.  Network cards of A100 nodes go up to 200 Gb/s:
 * beyond it NCCL opens more channels, which take multiprocessors from the
 * kernels that they overlap. */
static const char *const keys[] = {
    "nic=50Gb/s,100Gb/s,200Gb/s", "nvlink=x0.5,x1,x2",
    "memory=40GiB,60GiB,80GiB",   "memory-bandwidth=x0.7,x1,x1.5",
    "flops=x0.7,x1,x1.5",         "nic=100Gb/s,150Gb/s,200Gb/s",
};

static double step_of(const fr_json_value *point)
{
    double step_s = 0;
    fr_err err;
    return fr_json_get_double(point, "step_s", &step_s, &err) == FR_OK ? step_s
                                                                       : 0;
}

/* Returns how many pairs of points were compared. */
static int check_sweep(const char *job, const char *key)
{
    static line_outcome found;
    char line[300];
    fr_json *json = NULL;
    const fr_json_value *points = NULL;
    fr_err err;
    int n = 0;
    snprintf(line, sizeof line, "sweep %s --vary %s --json -q", job, key);
    run_line(line, &found);
    if (!CHECK_INT(found.exit_code, 0) ||
        !CHECK_OK(
            fr_json_parse("sweep", found.out, strlen(found.out), &json, &err),
            &err))
        return 0;
    if (CHECK_OK(fr_json_get_array(fr_json_root(json), "points", &points, &err),
                 &err))
        for (size_t i = 1; i < fr_json_n(points); i++) {
            const double slow_s = step_of(fr_json_at(points, i - 1));
            const double fast_s = step_of(fr_json_at(points, i));
            n += slow_s > 0;
            if (!CHECK(slow_s == 0 ||
                       (fast_s > 0 && fast_s <= slow_s * (1 + 1e-9))))
                printf("  %s: %.6f s, then %.6f s\n", line, slow_s, fast_s);
        }
    fr_json_destroy(json);
    return n;
}

static void test_faster_hardware(void)
{
    int n = 0;
    for (size_t i = 0; i < FR_LENGTH(jobs) * FR_LENGTH(keys); i++)
        if (check_in_slice(i))
            n += check_sweep(jobs[i / FR_LENGTH(keys)],
                             keys[i % FR_LENGTH(keys)]);
    CHECK(n > 0);
}

CHECK_MAIN({"faster_hardware", test_faster_hardware})
