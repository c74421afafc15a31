/*
 * runlog_nanotron.c: nanotron (trainer.py, train_step_logs; logging/base.py,
 * human_format and log_memory, at commit 2411b022).  Numbers have three
 * digits: a time of 11.5K ms is known to 0.4 %.
 */
#include "frameworks/log/runlog_format.h"

#include <string.h>

/* "mbs: 4 | grad_accum: 2 | cp: 1 | sequence_length: 4096 | ..." */
static void read_start(fr_runlog_reader *reader, const char *line)
{
    static const struct {
        const char *word;
        fr_runlog_fact fact;
    } words[] = {{"mbs: ", FR_RUNLOG_MBS},
                 {"grad_accum: ", FR_RUNLOG_ACCUM},
                 {"cp: ", FR_RUNLOG_CP},
                 {"sequence_length: ", FR_RUNLOG_SEQ},
                 {"global_batch_size: ", FR_RUNLOG_GBS}};
    if (strstr(line, "mbs: ") == NULL || strstr(line, "grad_accum: ") == NULL)
        return;
    for (size_t i = 0; i < FR_LENGTH(words); i++) {
        const char *at = strstr(line, words[i].word);
        if (at == NULL)
            continue;
        at += strlen(words[i].word);
        fr_runlog_set(reader, words[i].fact, at, strspn(at, "0123456789"));
    }
}

const fr_runlog_format fr_runlog_nanotron = {
    .what = "nanotron",
    .cell = "nanotron",
    .step_mark = "time_per_iteration_ms:",
    .tflops_kind = "model flop (get_flops_per_sec)",
    .memory_kind = "rank 0",
    .numbers =
        {
            {"time_per_iteration_ms:", FR_RUNLOG_STEP_S, 1e-3, false},
            {"model_tflops_per_gpu:", FR_RUNLOG_TFLOPS, 1, false},
            {"tokens_per_sec_per_gpu:", FR_RUNLOG_TOKENS_PER_S_PER_GPU, 1,
             false},
            {"tokens_per_sec:", FR_RUNLOG_TOKENS_PER_S, 1, false},
            {"cuda_max_memory_reserved:", FR_RUNLOG_RESERVED_GIB,
             1.0 / (1024.0 * 1024 * 1024), false},
            {"Peak allocated ", FR_RUNLOG_ALLOCATED_GIB, 1.0 / 1024, false},
            {"Peak reserved: ", FR_RUNLOG_RESERVED_GIB, 1.0 / 1024, false},
        },
    .read = read_start,
};
