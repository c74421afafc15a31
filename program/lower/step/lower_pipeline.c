/*
 * lower_pipeline.c: in which order a pipeline rank receives, and when it has
 * to have the memory for it.
 *
 * A transfer happens when its data are made in virtual time
 * (virtual_order.h).  Both lanes take transfers in that order, and a
 * receive stands in program order before the task that its rank works on at
 * that moment, so that it waits for memory only of tasks that are over by
 * then.  So virtual time is an order that agrees with every dependency, lane
 * and rendezvous: whatever the real durations are, nothing can deadlock, and
 * no send has to wait for a receiver that is busy.
 *
 * A host that waits for what it receives (lower_is_p2p_sync) asks for it when
 * it needs it: right before the task that reads it.
 */
#include "plan/outline/virtual_order.h"
#include "program/lower/step/lower_step.h"

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

/* Lists what a rank receives, in the order in which it is made. */
static void list_arrivals(const fr_virtual_order *o, int32_t rank, bool is_sync,
                          lower_arrival *arrivals, size_t *n_arrivals)
{
    size_t n = 0;
    for (size_t i = 0; i < o->n_tasks; i++) {
        const fr_task *task = &fr_virtual_order_at(o, rank, i)->task;
        int32_t stage =
            fr_schedule_stage(o->schedule, rank, task->chunk, o->pp);
        bool is_gradient = task->kind == FR_TASK_BACKWARD;
        if (fr_virtual_order_sender(o, stage, task) < 0)
            continue;
        arrivals[n++] = (lower_arrival){
            .time = fr_virtual_order_input(o, stage, task),
            .before_task = i,
            .boundary = is_gradient ? stage + 1 : stage,
            .is_gradient = is_gradient,
            .chunk = task->chunk,
            .micro_batch = task->micro_batch,
        };
    }
    *n_arrivals = n;
    if (is_sync)
        return;
    qsort(arrivals, n, sizeof *arrivals, compare_arrivals);
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        while (at < o->n_tasks &&
               fr_virtual_order_at(o, rank, at)->end <= arrivals[i].time)
            at++;
        arrivals[i].before_task = at;
    }
}

void lower_pipeline_release(lower_program *program)
{
    free(program->tasks);
    free(program->arrivals);
    free(program->n_arrivals);
    program->tasks = NULL;
    program->arrivals = NULL;
    program->n_arrivals = NULL;
}

static fr_status list_all(lower_program *program, const fr_virtual_order *o,
                          bool is_sync, fr_err *err)
{
    const size_t pp = (size_t)o->pp, n = o->n_tasks;
    lower_pipeline_release(program);
    program->n_tasks = n;
    program->tasks = calloc(pp * n, sizeof(fr_task));
    program->arrivals = calloc(pp * n, sizeof *program->arrivals);
    program->n_arrivals = calloc(pp, sizeof *program->n_arrivals);
    if (program->tasks == NULL || program->arrivals == NULL ||
        program->n_arrivals == NULL)
        return fr_fail_no_memory(err);
    for (int32_t rank = 0; rank < o->pp; rank++) {
        const size_t first = (size_t)rank * n;
        for (size_t i = 0; i < n; i++)
            program->tasks[first + i] = fr_virtual_order_at(o, rank, i)->task;
        list_arrivals(o, rank, is_sync, &program->arrivals[first],
                      &program->n_arrivals[rank]);
    }
    return FR_OK;
}

fr_status lower_pipeline(lower_context *context, lower_program *program,
                         fr_err *err)
{
    fr_virtual_order order;
    fr_status status = fr_virtual_order_init(context->plan, context->model,
                                             context->n_micro, &order, err);
    if (status == FR_OK)
        status = list_all(program, &order, lower_is_p2p_sync(context), err);
    fr_virtual_order_release(&order);
    return status;
}
