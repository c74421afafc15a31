/*
 * schedule_zb_h1.c: ZB-H1 (Qi, Wan, Huang, Lin, ICLR 2024, arXiv 2401.10241,
 * section 2.2): 1F1B whose weight gradients fill what was bubble.  Rank s puts
 * off s of them, so that every rank keeps p micro-batches, as many as the
 * first one of 1F1B does.
 */
#include "plan/schedule/schedule.h"

static int64_t least_micro(int64_t n_stages)
{
    return n_stages;
}

static int64_t live_at_backward(int64_t stage, int64_t n_stages,
                                int64_t n_micro)
{
    return n_micro < n_stages - stage ? n_micro : n_stages - stage;
}

static int64_t weights_at_end(int64_t stage, int64_t n_micro)
{
    return n_micro < stage + 1 ? n_micro : stage + 1;
}

static void emit(int64_t stage, int64_t n_stages, int64_t n_micro, int64_t vpp,
                 fr_task *tasks)
{
    (void)vpp;
    int64_t n = 0, forward = 0, backward = 0, weights = 0;
    while (forward < n_stages - stage - 1)
        tasks[n++] = (fr_task){FR_TASK_FORWARD, 0, forward++};
    while (backward < n_micro) {
        if (forward < n_micro)
            tasks[n++] = (fr_task){FR_TASK_FORWARD, 0, forward++};
        tasks[n++] = (fr_task){FR_TASK_BACKWARD, 0, backward++};
        if (backward > stage)
            tasks[n++] = (fr_task){FR_TASK_WEIGHTS, 0, weights++};
    }
    while (weights < n_micro)
        tasks[n++] = (fr_task){FR_TASK_WEIGHTS, 0, weights++};
}

static int64_t peak_live_micro(int64_t stage, int64_t n_stages, int64_t n_micro,
                               int64_t vpp)
{
    (void)stage;
    (void)n_micro;
    (void)vpp;
    return n_stages;
}

/* Table 1 of the paper.  Exact as long as a rank's spare weight passes fill
 * the drain: weights no longer than forward and input gradients. */
static double bubble_s(int64_t n_stages, int64_t n_micro, int64_t vpp,
                       const fr_pass_times *times)
{
    (void)n_micro;
    (void)vpp;
    return (double)(n_stages - 1) *
           (times->forward_s + times->input_s - times->weights_s);
}

const fr_schedule fr_schedule_zb_h1 = {
    .name = "zb-h1",
    .summary = "1f1b with weight gradients in the bubble, same memory",
    .needs_pipeline = true,
    .n_chunks = 1,
    .least_micro = least_micro,
    .is_1f1b = true,
    .live_at_backward = live_at_backward,
    .weights_at_end = weights_at_end,
    .is_split = true,
    .emit = emit,
    .peak_live_micro = peak_live_micro,
    .bubble_s = bubble_s,
};
