/*
 * runlog_megatron.c: Megatron-LM (training/training.py, training_log;
 * utils/common_utils.py, report_memory; arguments.py, _print_args, at commit
 * d98e8a64), and what is built on it: Megatron-DeepSpeed, Megatron-Bridge.
 * The time of a line is the mean of --log-interval steps.
 */
#include "frameworks/log/runlog_format.h"

#include <string.h>

/* "> using world size: 64, data-parallel size: 4, ...": what the arguments
 * say too, where they were cut off. */
static void read_sizes(fr_runlog_reader *reader, const char *line)
{
    static const struct {
        const char *word;
        fr_runlog_fact fact;
    } sizes[] = {
        {"using world size: ", FR_RUNLOG_WORLD},
        {"data-parallel size: ", FR_RUNLOG_DP},
        {"context-parallel size: ", FR_RUNLOG_CP},
        {"tensor-model-parallel size: ", FR_RUNLOG_TP},
        {"pipeline-model-parallel size: ", FR_RUNLOG_PP},
    };
    if (strstr(line, "using world size: ") == NULL)
        return;
    for (size_t i = 0; i < FR_LENGTH(sizes); i++) {
        const char *at = strstr(line, sizes[i].word);
        if (at == NULL)
            continue;
        at += strlen(sizes[i].word);
        fr_runlog_set(reader, sizes[i].fact, at, strspn(at, "0123456789"));
    }
}

const fr_runlog_format fr_runlog_megatron = {
    .what = "Megatron-LM, Megatron-Bridge, Megatron-DeepSpeed",
    .cell = "Megatron-LM",
    .step_mark = "elapsed time per iteration (ms):",
    .tflops_kind = "model flop (num_floating_point_operations)",
    .memory_kind = "tightest rank that reported",
    .numbers =
        {
            {"elapsed time per iteration (ms):", FR_RUNLOG_STEP_S, 1e-3, false},
            {"throughput per GPU (TFLOP/s/GPU):", FR_RUNLOG_TFLOPS, 1, false},
            {"global batch size:", FR_RUNLOG_BATCH, 1, false},
            {"| max allocated:", FR_RUNLOG_ALLOCATED_GIB, 1.0 / 1024, false},
            {"| max reserved:", FR_RUNLOG_RESERVED_GIB, 1.0 / 1024, false},
        },
    .read = read_sizes,
};
