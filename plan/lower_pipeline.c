/*
 * lower_pipeline.c: in which order a pipeline rank receives, and when it has
 * to have the memory for it.
 *
 * The schedules of all ranks are run in virtual time (a layer's forward 1,
 * backward 2 or, with full recompute, 3; transfers 0).  A transfer happens
 * when its data are made.  Both lanes take transfers in that order, and a
 * receive stands in program order before the task that its rank works on at
 * that moment, so that it waits for memory only of tasks that are over by
 * then.  So virtual time is an order that agrees with every dependency, lane
 * and rendezvous: whatever the real durations are, nothing can deadlock, and
 * no send has to wait for a receiver that is busy.
 */
#include "plan/lower_internal.h"

#include "plan/schedule.h"

#include <string.h>

typedef struct timed_task {
    fr_task task;
    int64_t end;
} timed_task;

typedef struct pipeline {
    const lower_context *context;
    int32_t pp, n_stages; /* ranks, virtual stages */
    int64_t n_micro;
    size_t n_tasks;
    timed_task *tasks; /* [pp][n_tasks] */
    size_t *next;      /* [pp] */
    const fr_schedule *schedule;
    int64_t *end[2]; /* forward, backward: [n_stages][n_micro], -1: not yet */
} pipeline;

bool lower_is_paired(const lower_context *context, const fr_task *task,
                     const fr_task *next)
{
    return context->plan->is_ep_overlap && task->kind == FR_TASK_BACKWARD &&
           next->kind == FR_TASK_FORWARD;
}

static timed_task *task_at(const pipeline *p, int32_t rank, size_t i)
{
    return &p->tasks[(size_t)rank * p->n_tasks + i];
}

static int64_t *end_of(const pipeline *p, fr_task_kind kind, int32_t stage,
                       int64_t micro_batch)
{
    return &p->end[kind][(int64_t)stage * p->n_micro + micro_batch];
}

/* When the input of a task is there; -1: its maker has not run yet. */
static int64_t input_time(const pipeline *p, int32_t stage, const fr_task *task)
{
    int64_t m = task->micro_batch;
    if (task->kind == FR_TASK_FORWARD)
        return stage == 0 ? 0 : *end_of(p, FR_TASK_FORWARD, stage - 1, m);
    if (task->kind == FR_TASK_WEIGHTS)
        return *end_of(p, FR_TASK_BACKWARD, stage, m);
    return stage == p->n_stages - 1
               ? *end_of(p, FR_TASK_FORWARD, stage, m)
               : *end_of(p, FR_TASK_BACKWARD, stage + 1, m);
}

static int64_t cost_of(const pipeline *p, int32_t stage, const fr_task *task)
{
    const fr_plan *plan = p->context->plan;
    int64_t n_layers = fr_plan_stage_layers(plan, p->context->model, stage);
    n_layers = n_layers > 0 ? n_layers : 1;
    int64_t n_remade =
        plan->recompute != FR_RECOMPUTE_FULL ? 0
        : plan->recompute_layers == 0 || plan->recompute_layers > n_layers
            ? n_layers
            : plan->recompute_layers;
    return task->kind == FR_TASK_BACKWARD
               ? (p->schedule->is_split ? 1 : 2) * n_layers + n_remade
               : n_layers;
}

/*
 * Runs the next task of a rank if it can; two that run in turn (lower_stage.c)
 * if both can: they end together, the first one instant before.
 */
static bool run_next(pipeline *p, int32_t rank)
{
    if (p->next[rank] == p->n_tasks)
        return false;
    timed_task *now = task_at(p, rank, p->next[rank]);
    size_t n_left = p->n_tasks - p->next[rank];
    bool is_paired =
        n_left > 1 && lower_is_paired(p->context, &now[0].task, &now[1].task);
    int64_t end = p->next[rank] > 0 ? now[-1].end : 0, cost = 0;
    int n = is_paired ? 2 : 1;
    for (int i = 0; i < n; i++) {
        int32_t stage =
            fr_schedule_stage(p->schedule, rank, now[i].task.chunk, p->pp);
        int64_t begin = input_time(p, stage, &now[i].task);
        if (begin < 0)
            return false;
        end = begin > end ? begin : end;
        cost += cost_of(p, stage, &now[i].task);
    }
    for (int i = 0; i < n; i++) {
        const fr_task *task = &now[i].task;
        int32_t stage =
            fr_schedule_stage(p->schedule, rank, task->chunk, p->pp);
        now[i].end = end + cost - (n - 1 - i);
        if (task->kind != FR_TASK_WEIGHTS)
            *end_of(p, task->kind, stage, task->micro_batch) = now[i].end;
    }
    p->next[rank] += (size_t)n;
    return true;
}

static bool run_all(pipeline *p)
{
    bool has_moved = true, is_over = true;
    while (has_moved) {
        has_moved = false;
        for (int32_t rank = 0; rank < p->pp; rank++)
            while (run_next(p, rank))
                has_moved = true;
    }
    for (int32_t rank = 0; rank < p->pp; rank++)
        is_over = is_over && p->next[rank] == p->n_tasks;
    return is_over;
}

static int compare_arrivals(const void *va, const void *vb)
{
    const lower_arrival *a = va, *b = vb;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    if (a->boundary != b->boundary)
        return a->boundary < b->boundary ? -1 : 1;
    if (a->is_gradient != b->is_gradient)
        return a->is_gradient ? 1 : -1;
    return a->micro_batch < b->micro_batch ? -1
                                           : a->micro_batch > b->micro_batch;
}

/* What a rank receives, in the order of making. */
static void list_arrivals(const pipeline *p, int32_t rank,
                          lower_arrival *arrivals, size_t *n_arrivals)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_tasks; i++) {
        const fr_task *task = &task_at(p, rank, i)->task;
        int32_t stage =
            fr_schedule_stage(p->schedule, rank, task->chunk, p->pp);
        bool is_gradient = task->kind == FR_TASK_BACKWARD;
        int32_t from = is_gradient ? stage + 1 : stage - 1;
        /* What the rank itself makes is there already. */
        if (task->kind == FR_TASK_WEIGHTS || from < 0 || from == p->n_stages ||
            fr_schedule_rank(p->schedule, from, p->pp) == rank)
            continue;
        arrivals[n++] = (lower_arrival){
            .time = input_time(p, stage, task),
            .boundary = is_gradient ? stage + 1 : stage,
            .is_gradient = is_gradient,
            .chunk = task->chunk,
            .micro_batch = task->micro_batch,
        };
    }
    qsort(arrivals, n, sizeof *arrivals, compare_arrivals);
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        while (at < p->n_tasks && task_at(p, rank, at)->end <= arrivals[i].time)
            at++;
        arrivals[i].before_task = at;
    }
    *n_arrivals = n;
}

static fr_status init_pipeline(pipeline *p, const lower_context *context,
                               fr_err *err)
{
    const fr_plan *plan = context->plan;
    *p = (pipeline){.context = context,
                    .pp = plan->pp,
                    .n_stages = plan->pp * plan->vpp,
                    .schedule = fr_schedules[plan->schedule],
                    .n_micro = context->n_micro};
    size_t n_ends = (size_t)p->n_stages * (size_t)p->n_micro;
    p->n_tasks =
        (size_t)fr_schedule_n_tasks(p->schedule, p->n_micro, plan->vpp);
    p->tasks = calloc((size_t)p->pp * p->n_tasks, sizeof *p->tasks);
    p->next = calloc((size_t)p->pp, sizeof *p->next);
    p->end[0] = malloc(n_ends * sizeof *p->end[0]);
    p->end[1] = malloc(n_ends * sizeof *p->end[1]);
    fr_task *tasks = calloc(p->n_tasks, sizeof *tasks);
    if (!p->tasks || !p->next || !p->end[0] || !p->end[1] || !tasks) {
        free(tasks);
        return fr_fail_no_memory(err);
    }
    for (size_t i = 0; i < n_ends; i++)
        p->end[0][i] = p->end[1][i] = -1;
    for (int32_t rank = 0; rank < p->pp; rank++) {
        p->schedule->emit(rank, p->pp, p->n_micro, plan->vpp, tasks);
        for (size_t i = 0; i < p->n_tasks; i++)
            task_at(p, rank, i)->task = tasks[i];
    }
    free(tasks);
    return FR_OK;
}

fr_status lower_pipeline(lower_context *context, fr_err *err)
{
    pipeline p;
    fr_status status;
    FR_TRY_GOTO(status, init_pipeline(&p, context, err), out_release);
    context->n_tasks = p.n_tasks;
    context->tasks = calloc((size_t)p.pp * p.n_tasks, sizeof(fr_task));
    context->arrivals =
        calloc((size_t)p.pp * p.n_tasks, sizeof *context->arrivals);
    context->n_arrivals = calloc((size_t)p.pp, sizeof *context->n_arrivals);
    if (!context->tasks || !context->arrivals || !context->n_arrivals) {
        status = fr_fail_no_memory(err);
        goto out_release;
    }
    if (!run_all(&p)) {
        status = fr_fail(err, FR_CHECK, "schedule %s cannot run",
                         fr_schedules[context->plan->schedule]->name);
        goto out_release;
    }
    for (int32_t rank = 0; rank < p.pp; rank++) {
        for (size_t i = 0; i < p.n_tasks; i++)
            context->tasks[(size_t)rank * p.n_tasks + i] =
                task_at(&p, rank, i)->task;
        list_arrivals(&p, rank, &context->arrivals[(size_t)rank * p.n_tasks],
                      &context->n_arrivals[rank]);
    }
out_release:
    free(p.tasks);
    free(p.next);
    free(p.end[0]);
    free(p.end[1]);
    return status;
}
