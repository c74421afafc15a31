/*
 * runlog_foundry.c: MosaicML's Composer and LLM Foundry
 * (composer/loggers/console_logger.py; callbacks/speed_monitor.py and
 * memory_monitor.py, at commit 64051888): a block of lines per batch, rates
 * over a window of batches.  Their gigabytes are 1e9 bytes.
 */
#include "frameworks/log/runlog_format.h"

#define GB_IN_GIB (1e9 / (1024.0 * 1024 * 1024))

const fr_runlog_format fr_runlog_foundry = {
    .what = "LLM Foundry, Composer",
    .cell = "llm-foundry",
    .step_mark = "Train throughput/batches_per_sec:",
    .tflops_kind = "model flop (flops_per_batch)",
    .memory_kind = "rank 0",
    .numbers =
        {
            {"Train throughput/batches_per_sec:", FR_RUNLOG_STEP_S, 1, true},
            {"Train throughput/samples_per_sec:", FR_RUNLOG_SAMPLES_PER_S, 1,
             false},
            {"Train throughput/device/tokens_per_sec:",
             FR_RUNLOG_TOKENS_PER_S_PER_GPU, 1, false},
            {"Train throughput/device/flops_per_sec:", FR_RUNLOG_TFLOPS, 1e-12,
             false},
            {"Train memory/peak_reserved_mem:", FR_RUNLOG_RESERVED_GIB,
             GB_IN_GIB, false},
            {"Train memory/peak_allocated_mem:", FR_RUNLOG_ALLOCATED_GIB,
             GB_IN_GIB, false},
        },
};
