/*
 * schedule_1f1b.c: one forward, one backward (PipeDream-flush: Narayanan et
 * al., SC 2021, arXiv 2104.04473): as fast as GPipe, but a stage keeps at
 * most as many micro-batches as there are stages from it to the end.
 */
#include "plan/schedule/schedule.h"

double fr_schedule_filling_s(int64_t n_stages, int64_t n_micro, int64_t vpp,
                             const fr_pass_times *times)
{
    (void)n_micro;
    return (double)(n_stages - 1) *
           (times->forward_s + times->input_s + times->weights_s) / (double)vpp;
}

static void emit(int64_t stage, int64_t n_stages, int64_t n_micro, int64_t vpp,
                 fr_task *tasks)
{
    (void)vpp;
    int64_t n_warmup = n_stages - stage - 1;
    int64_t n = 0, forward = 0, backward = 0;
    n_warmup = n_warmup < n_micro ? n_warmup : n_micro;
    while (forward < n_warmup)
        tasks[n++] = (fr_task){.micro_batch = forward++};
    while (backward < n_micro) {
        if (forward < n_micro)
            tasks[n++] = (fr_task){.micro_batch = forward++};
        tasks[n++] = (fr_task){FR_TASK_BACKWARD, 0, backward++};
    }
}

static int64_t peak_live_micro(int64_t stage, int64_t n_stages, int64_t n_micro,
                               int64_t vpp)
{
    (void)vpp;
    return n_micro < n_stages - stage ? n_micro : n_stages - stage;
}

const fr_schedule fr_schedule_1f1b = {
    .name = "1f1b",
    .summary = "one forward, one backward, after a short warm-up",
    .n_chunks = 1,
    .is_1f1b = true,
    .emit = emit,
    .peak_live_micro = peak_live_micro,
    .bubble_s = fr_schedule_filling_s,
};
