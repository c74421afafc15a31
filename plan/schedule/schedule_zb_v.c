/*
 * schedule_zb_v.c: ZB-V (Qi, Wan, Amar, Lin, NeurIPS 2024, arXiv 2405.15362,
 * section 3): each rank holds two chunks, the second in the reverse order of
 * ranks, so that the last stage sits where the first does and gradients come
 * back early.  With equal passes only the filling is idle, and the memory is
 * that of 1F1B: 2 p half-sized micro-batches.  DualPipeV of DeepSeek is this
 * order with forwards and backwards of different micro-batches overlapped.
 */
#include "plan/schedule/schedule.h"

static int64_t least_micro(int64_t n_stages)
{
    return 2 * n_stages - 1;
}

/* The list under construction, and how far each chunk is in each kind. */
typedef struct order {
    fr_task *tasks;
    int64_t n, n_micro;
    int64_t next[3][2];
} order;

static void add(order *o, fr_task_kind kind, int chunk)
{
    int64_t *next = &o->next[kind][chunk];
    int64_t end =
        kind == FR_TASK_WEIGHTS ? o->next[FR_TASK_BACKWARD][chunk] : o->n_micro;
    if (*next < end)
        o->tasks[o->n++] = (fr_task){kind, chunk, (*next)++};
}

static void emit(int64_t stage, int64_t n_stages, int64_t n_micro, int64_t vpp,
                 fr_task *tasks)
{
    (void)vpp;
    order o = {.tasks = tasks, .n_micro = n_micro};
    const int64_t *forward = o.next[FR_TASK_FORWARD];
    for (int64_t i = 0; i < 2 * (n_stages - stage) - 1; i++)
        add(&o, FR_TASK_FORWARD, 0);
    for (int64_t i = 0; i < stage; i++)
        for (int chunk = 1; chunk >= 0; chunk--)
            add(&o, FR_TASK_FORWARD, chunk);
    for (int64_t i = 0; i < n_stages - stage; i++)
        for (int kind = FR_TASK_FORWARD; kind <= FR_TASK_WEIGHTS; kind++)
            add(&o, (fr_task_kind)kind, 1);
    while (forward[1] < forward[0] || forward[0] < n_micro)
        for (int chunk = 0; chunk < 2; chunk++)
            for (int kind = FR_TASK_FORWARD; kind <= FR_TASK_WEIGHTS; kind++)
                add(&o, (fr_task_kind)kind, chunk);
    for (int64_t i = 0; i < stage; i++)
        for (int chunk = 0; chunk < 2; chunk++)
            add(&o, FR_TASK_BACKWARD, chunk);
    for (int64_t i = 0; i < n_stages - stage; i++) {
        add(&o, FR_TASK_BACKWARD, 0);
        add(&o, FR_TASK_WEIGHTS, 0);
    }
    for (int chunk = 1; chunk >= 0; chunk--)
        for (int64_t i = 0; i < n_micro; i++)
            add(&o, FR_TASK_WEIGHTS, chunk);
}

static int64_t peak_live_micro(int64_t stage, int64_t n_stages, int64_t n_micro,
                               int64_t vpp)
{
    (void)stage;
    (void)n_micro;
    (void)vpp;
    return 2 * n_stages;
}

/* The filling, p - 1 passes of one chunk, and where forward is longer than
 * what comes back, the wait for it at p - 2 turns.  Exact for passes of like
 * lengths (the longest less than twice the shortest); else a lower bound. */
static double bubble_s(int64_t n_stages, int64_t n_micro, int64_t vpp,
                       const fr_pass_times *times)
{
    (void)n_micro;
    double excess_s = times->forward_s - times->input_s;
    double longer_s = excess_s > 0 ? times->forward_s : times->input_s;
    double wait_s = excess_s > 0 ? (double)(n_stages - 2) * excess_s : 0;
    return ((double)(n_stages - 1) * longer_s + wait_s) / (double)vpp;
}

const fr_schedule fr_schedule_zb_v = {
    .name = "zb-v",
    .summary = "two chunks in V shape, split backward: almost no bubble",
    .needs_pipeline = true,
    .n_chunks = 2,
    .least_micro = least_micro,
    .is_split = true,
    .is_v = true,
    .emit = emit,
    .peak_live_micro = peak_live_micro,
    .bubble_s = bubble_s,
};
