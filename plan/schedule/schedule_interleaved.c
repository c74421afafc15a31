/*
 * schedule_interleaved.c: interleaved 1F1B (Narayanan et al., SC 2021, arXiv
 * 2104.04473, section 2.2): each rank holds v chunks of the model, micro-
 * batches go round the ranks v times in groups of p, and the bubble shrinks
 * by v.
 */
#include "plan/schedule/schedule.h"

/* The i-th forward (backward) pass of a rank. */
static fr_task pass(int64_t i, fr_task_kind kind, int64_t p, int64_t v)
{
    int64_t in_group = i % (p * v);
    int64_t chunk = in_group / p;
    return (fr_task){
        .kind = kind,
        .chunk = (int32_t)(kind == FR_TASK_FORWARD ? chunk : v - 1 - chunk),
        .micro_batch = i / (p * v) * p + in_group % p,
    };
}

static int64_t n_warmup(int64_t stage, int64_t p, int64_t m, int64_t v)
{
    int64_t n = 2 * (p - stage - 1) + (v - 1) * p;
    return n < m * v ? n : m * v;
}

static void emit(int64_t stage, int64_t n_stages, int64_t n_micro, int64_t vpp,
                 fr_task *tasks)
{
    int64_t total = n_micro * vpp, n = 0, forward = 0, backward = 0;
    while (forward < n_warmup(stage, n_stages, n_micro, vpp))
        tasks[n++] = pass(forward++, FR_TASK_FORWARD, n_stages, vpp);
    while (backward < total) {
        if (forward < total)
            tasks[n++] = pass(forward++, FR_TASK_FORWARD, n_stages, vpp);
        tasks[n++] = pass(backward++, FR_TASK_BACKWARD, n_stages, vpp);
    }
}

static int64_t peak_live_micro(int64_t stage, int64_t n_stages, int64_t n_micro,
                               int64_t vpp)
{
    int64_t live = n_warmup(stage, n_stages, n_micro, vpp) + 1;
    return live < n_micro * vpp ? live : n_micro * vpp;
}

const fr_schedule fr_schedule_interleaved = {
    .name = "interleaved",
    .summary = "1f1b over several chunks per rank: a smaller bubble",
    .needs_pipeline = true,
    .is_grouped = true,
    .emit = emit,
    .peak_live_micro = peak_live_micro,
    .bubble_s = fr_schedule_filling_s,
};
