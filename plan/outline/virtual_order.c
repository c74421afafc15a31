/* virtual_order.c: see virtual_order.h. */
#include "plan/outline/virtual_order.h"

#include "plan/outline/stages.h"

#include <stdlib.h>

static int64_t *end_of(const fr_virtual_order *o, fr_task_kind kind,
                       int32_t stage, int64_t micro_batch)
{
    return &o->end[kind][(int64_t)stage * o->n_micro + micro_batch];
}

int64_t fr_virtual_order_input(const fr_virtual_order *o, int32_t stage,
                               const fr_task *task)
{
    int64_t m = task->micro_batch;
    if (task->kind == FR_TASK_FORWARD)
        return stage == 0 ? 0 : *end_of(o, FR_TASK_FORWARD, stage - 1, m);
    if (task->kind == FR_TASK_WEIGHTS)
        return *end_of(o, FR_TASK_BACKWARD, stage, m);
    return stage == o->n_stages - 1
               ? *end_of(o, FR_TASK_FORWARD, stage, m)
               : *end_of(o, FR_TASK_BACKWARD, stage + 1, m);
}

int32_t fr_virtual_order_sender(const fr_virtual_order *o, int32_t stage,
                                const fr_task *task)
{
    int32_t from = task->kind == FR_TASK_BACKWARD ? stage + 1 : stage - 1;
    if (task->kind == FR_TASK_WEIGHTS || from < 0 || from == o->n_stages)
        return -1;
    return fr_schedule_rank(o->schedule, from, o->pp) ==
                   fr_schedule_rank(o->schedule, stage, o->pp)
               ? -1
               : from;
}

static int64_t time_of(const fr_virtual_order *o, int32_t stage,
                       fr_task_kind kind)
{
    int32_t n_layers = fr_plan_stage_layers(o->plan, o->model, stage);
    n_layers = n_layers > 0 ? n_layers : 1;
    if (kind != FR_TASK_BACKWARD)
        return n_layers;
    return (o->schedule->is_split ? 1 : 2) * n_layers +
           fr_stage_n_recomputed(o->plan, n_layers);
}

bool fr_virtual_order_is_paired(const fr_plan *plan, const fr_task *task,
                                const fr_task *next)
{
    return plan->is_ep_overlap && task->kind == FR_TASK_BACKWARD &&
           next->kind == FR_TASK_FORWARD;
}

/*
 * Runs the next task of a rank if it can; two that run in turn if both can:
 * they end together, the first one instant before.
 */
static bool run_next(fr_virtual_order *o, int32_t rank)
{
    const size_t n_left = o->n_tasks - o->next[rank];
    fr_virtual_task *now = &o->tasks[(size_t)rank * o->n_tasks + o->next[rank]];
    if (n_left == 0)
        return false;
    bool is_paired = n_left > 1 && fr_virtual_order_is_paired(
                                       o->plan, &now[0].task, &now[1].task);
    int64_t end = o->next[rank] > 0 ? now[-1].end : 0, length = 0;
    const int n = is_paired ? 2 : 1;
    for (int i = 0; i < n; i++) {
        int32_t stage =
            fr_schedule_stage(o->schedule, rank, now[i].task.chunk, o->pp);
        int64_t begin = fr_virtual_order_input(o, stage, &now[i].task);
        if (begin < 0)
            return false;
        end = begin > end ? begin : end;
        length += time_of(o, stage, now[i].task.kind);
    }
    for (int i = 0; i < n; i++) {
        const fr_task *task = &now[i].task;
        int32_t stage =
            fr_schedule_stage(o->schedule, rank, task->chunk, o->pp);
        now[i].end = end + length - (n - 1 - i);
        if (task->kind != FR_TASK_WEIGHTS)
            *end_of(o, task->kind, stage, task->micro_batch) = now[i].end;
    }
    o->next[rank] += (size_t)n;
    return true;
}

static bool run_all(fr_virtual_order *o)
{
    bool has_moved = true, is_over = true;
    while (has_moved) {
        has_moved = false;
        for (int32_t rank = 0; rank < o->pp; rank++)
            while (run_next(o, rank))
                has_moved = true;
    }
    for (int32_t rank = 0; rank < o->pp; rank++)
        is_over = is_over && o->next[rank] == o->n_tasks;
    return is_over;
}

static fr_status list_tasks(fr_virtual_order *o, fr_err *err)
{
    fr_task *tasks;
    FR_TRY_CALLOC(tasks, o->n_tasks, err);
    for (int32_t rank = 0; rank < o->pp; rank++) {
        o->schedule->emit(rank, o->pp, o->n_micro, o->plan->vpp, tasks);
        for (size_t i = 0; i < o->n_tasks; i++)
            o->tasks[(size_t)rank * o->n_tasks + i].task = tasks[i];
    }
    free(tasks);
    return FR_OK;
}

fr_status fr_virtual_order_init(const fr_plan *plan, const fr_model *model,
                                int64_t n_micro, fr_virtual_order *out,
                                fr_err *err)
{
    *out = (fr_virtual_order){.plan = plan,
                              .model = model,
                              .schedule = fr_schedules[plan->schedule],
                              .pp = plan->pp,
                              .n_stages = plan->pp * plan->vpp,
                              .n_micro = n_micro};
    size_t n_ends = (size_t)out->n_stages * (size_t)n_micro;
    out->n_tasks =
        (size_t)fr_schedule_n_tasks(out->schedule, n_micro, plan->vpp);
    FR_TRY_CALLOC(out->tasks, (size_t)out->pp * out->n_tasks, err);
    FR_TRY_CALLOC(out->next, (size_t)out->pp, err);
    FR_TRY_CALLOC(out->end[0], n_ends, err);
    FR_TRY_CALLOC(out->end[1], n_ends, err);
    for (size_t i = 0; i < n_ends; i++)
        out->end[0][i] = out->end[1][i] = -1;
    FR_TRY(list_tasks(out, err));
    if (!run_all(out))
        return fr_fail(err, FR_CHECK, "schedule %s cannot run",
                       out->schedule->name);
    return FR_OK;
}

void fr_virtual_order_release(fr_virtual_order *order)
{
    free(order->tasks);
    free(order->next);
    free(order->end[0]);
    free(order->end[1]);
    *order = (fr_virtual_order){0};
}
