/*
 * runlog_deepspeed.c: DeepSpeed (utils/timer.py, ThroughputTimer.stop;
 * runtime/pipe/engine.py, train_batch; runtime/config.py, print, at commit
 * edaa7221).  Samples are those of the whole run.
 */
#include "frameworks/log/runlog_format.h"

#include <string.h>

/* The engine of pipelines prints the time of an iteration itself. */
static void read_zero(fr_runlog_reader *reader, const char *line)
{
    static const char *const words[] = {"zero_optimization_stage",
                                        "\"stage\":", "stage="};
    const char *at = strstr(line, "zero_");
    for (size_t i = 0; i < FR_LENGTH(words); i++) {
        const char *found = strstr(line, words[i]);
        if (found == NULL || (i > 0 && at == NULL))
            continue;
        found += strlen(words[i]);
        found += strspn(found, " .");
        if (*found >= '0' && *found <= '3')
            fr_runlog_set(reader, FR_RUNLOG_ZERO, found, 1);
    }
}

const fr_runlog_format fr_runlog_deepspeed = {
    .what = "DeepSpeed",
    .cell = "DeepSpeed",
    .step_mark = "SamplesPerSec=",
    .memory_kind = "rank 0",
    .numbers =
        {
            {"CurrSamplesPerSec=", FR_RUNLOG_SAMPLES_PER_S, 1, false},
            {", SamplesPerSec=", FR_RUNLOG_SAMPLES_PER_S, 1, false},
            {"MaxMemAllocated=", FR_RUNLOG_ALLOCATED_GIB, 1, false},
            {"Max_MA ", FR_RUNLOG_ALLOCATED_GIB, 1, false},
            {"Max_CA ", FR_RUNLOG_RESERVED_GIB, 1, false},
        },
    .read = read_zero,
};

static const char pipe_mark[] = "iter time (s):";

const fr_runlog_format fr_runlog_deepspeed_pipe = {
    .what = "DeepSpeed's pipeline engine",
    .cell = "DeepSpeed",
    .step_mark = pipe_mark,
    .memory_kind = "rank 0",
    .numbers =
        {
            {pipe_mark, FR_RUNLOG_STEP_S, 1, false},
            {"Max_MA ", FR_RUNLOG_ALLOCATED_GIB, 1, false},
            {"Max_CA ", FR_RUNLOG_RESERVED_GIB, 1, false},
        },
    .read = read_zero,
};

/* The flops profiler (profiling/flops_profiler/profiler.py,
 * print_model_profile) profiles one micro-batch of a run. */
static void read_profile(fr_runlog_reader *reader, const char *line)
{
    static const struct {
        const char *word;
        fr_runlog_fact fact;
    } sizes[] = {
        {"data parallel size: ", FR_RUNLOG_DP},
        {"model parallel size: ", FR_RUNLOG_TP},
        {"batch size per GPU: ", FR_RUNLOG_MBS},
    };
    for (size_t i = 0; i < FR_LENGTH(sizes); i++) {
        const char *at =
            strncmp(line, sizes[i].word, strlen(sizes[i].word)) == 0
                ? line + strlen(sizes[i].word)
                : NULL;
        if (at == NULL)
            continue;
        at += strspn(at, " ");
        fr_runlog_set(reader, sizes[i].fact, at, strspn(at, "0123456789"));
    }
}

const fr_runlog_format fr_runlog_deepspeed_flops = {
    .what = "DeepSpeed's flops profiler",
    .cell = "DeepSpeed",
    .step_mark = "samples/second: ",
    .numbers = {{"samples/second: ", FR_RUNLOG_SAMPLES_PER_S, 1, false}},
    .note = "one micro-batch under the profiler, which synchronizes its parts",
    .is_weak = true,
    .read = read_profile,
};
