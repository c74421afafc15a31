/*
 * runlog_torchtune.c: torchtune (torchtune/training/metric_logging.py,
 * StdoutLogger and DiskLogger; recipes/full_finetune_distributed.py): "Step 7 |
 * loss:1.52 lr:2e-05 tokens_per_second_per_gpu:1234.5 peak_memory_alloc:21.5",
 * in GiB.  Tokens of padding do not count in its rate.
 */
#include "frameworks/log/runlog_format.h"

#include <string.h>

/* The recipe prints its configuration as YAML, each key on a line.  Keys that
 * other programs print as well (batch_size, dtype) are not read. */
static void read_torchtune(fr_runlog_reader *reader, const char *line)
{
    static const struct {
        const char *word;
        fr_runlog_fact fact;
    } keys[] = {
        {"tensor_parallel_dim: ", FR_RUNLOG_TP},
        {"context_parallel_dim: ", FR_RUNLOG_CP},
        {"enable_activation_checkpointing: ", FR_RUNLOG_RECOMPUTE},
    };
    for (size_t i = 0; i < FR_LENGTH(keys); i++)
        if (strncmp(line, keys[i].word, strlen(keys[i].word)) == 0) {
            const char *at = line + strlen(keys[i].word);
            fr_runlog_set(reader, keys[i].fact, at, strcspn(at, " \t"));
        }
}

const fr_runlog_format fr_runlog_torchtune = {
    .what = "torchtune",
    .cell = "torchtune",
    .step_mark = "tokens_per_second_per_gpu:",
    .memory_kind = "rank 0",
    .numbers =
        {
            {"tokens_per_second_per_gpu:", FR_RUNLOG_TOKENS_PER_S_PER_GPU, 1,
             false},
            {"peak_memory_alloc:", FR_RUNLOG_ALLOCATED_GIB, 1, false},
            {"peak_memory_reserved:", FR_RUNLOG_RESERVED_GIB, 1, false},
        },
    .read = read_torchtune,
};
