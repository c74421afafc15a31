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
