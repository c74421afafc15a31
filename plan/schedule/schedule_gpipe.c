/*
 * schedule_gpipe.c: all forwards, then all backwards (Huang et al., NeurIPS
 * 2019, arXiv 1811.06965).
 */
#include "plan/schedule/schedule.h"

static void emit(int64_t stage, int64_t n_stages, int64_t n_micro, int64_t vpp,
                 fr_task *tasks)
{
    (void)stage;
    (void)n_stages;
    (void)vpp;
    for (int64_t i = 0; i < n_micro; i++) {
        tasks[i] = (fr_task){.micro_batch = i};
        tasks[n_micro + i] = (fr_task){FR_TASK_BACKWARD, 0, i};
    }
}

static int64_t peak_live_micro(int64_t stage, int64_t n_stages, int64_t n_micro,
                               int64_t vpp)
{
    (void)stage;
    (void)n_stages;
    (void)vpp;
    return n_micro;
}

const fr_schedule fr_schedule_gpipe = {
    .name = "gpipe",
    .summary = "all forwards, then all backwards",
    .n_chunks = 1,
    .is_forward_first = true,
    .emit = emit,
    .peak_live_micro = peak_live_micro,
    .bubble_s = fr_schedule_filling_s,
};
