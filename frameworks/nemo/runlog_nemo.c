/*
 * runlog_nemo.c: NeMo (lightning/pytorch/callbacks/progress_printer.py,
 * format_string; utils/exp_manager.py, TimingCallback, at commit 8cfedd72),
 * and the progress bar of NeMo 1.
 */
#include "frameworks/log/runlog_format.h"

const fr_runlog_format fr_runlog_nemo = {
    .what = "NeMo",
    .cell = "NeMo",
    .step_mark = "train_step_timing in s",
    .other_mark = "Validation",
    .tflops_kind = "model flop (NeMo's FLOPsMeasurementCallback)",
    .memory_kind = "rank that logged",
    .numbers =
        {
            {"train_step_timing in s: ", FR_RUNLOG_STEP_S, 1, false},
            {"train_step_timing in s=", FR_RUNLOG_STEP_S, 1, false},
            {"TFLOPS_per_GPU: ", FR_RUNLOG_TFLOPS, 1, false},
            {"TFLOPS_per_GPU=", FR_RUNLOG_TFLOPS, 1, false},
            {"global_batch_size: ", FR_RUNLOG_BATCH, 1, false},
            {"global_batch_size=", FR_RUNLOG_BATCH, 1, false},
        },
};
