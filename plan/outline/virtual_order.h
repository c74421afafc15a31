/*
 * virtual_order.h: the schedules of all pipeline ranks, run in virtual time: a
 * layer's forward takes 1, its backward 2, with full recompute 3, either part
 * of a split one 1, transfers nothing.
 *
 * Virtual time is an order that agrees with every dependency; lowering takes
 * from it where receives stand among the tasks of a rank (lower_pipeline.c),
 * and the estimate which of them begin after a task is over.
 */
#ifndef FR_PLAN_OUTLINE_VIRTUAL_ORDER_H
#define FR_PLAN_OUTLINE_VIRTUAL_ORDER_H

#include "plan/schedule/schedule.h"
#include "spec/model/model.h"

typedef struct fr_virtual_task {
    fr_task task;
    int64_t end;
} fr_virtual_task;

typedef struct fr_virtual_order {
    const fr_plan *plan; /* borrowed, as the model */
    const fr_model *model;
    const fr_schedule *schedule;
    int32_t pp, n_stages; /* ranks, virtual stages */
    int64_t n_micro;
    size_t n_tasks;         /* of a rank */
    fr_virtual_task *tasks; /* [pp][n_tasks] */
    size_t *next;           /* [pp] tasks that have run */
    int64_t *end[2]; /* forward, backward: [n_stages][n_micro], -1: not yet */
} fr_virtual_order;

/* Errors: FR_NO_MEMORY, FR_CHECK where the schedule cannot run.  Release takes
 * what a failed init left. */
FR_CHECKED fr_status fr_virtual_order_init(const fr_plan *plan,
                                           const fr_model *model,
                                           int64_t n_micro,
                                           fr_virtual_order *out, fr_err *err);
void fr_virtual_order_release(fr_virtual_order *order);

static inline const fr_virtual_task *
fr_virtual_order_at(const fr_virtual_order *order, int32_t rank, size_t i)
{
    return &order->tasks[(size_t)rank * order->n_tasks + i];
}

/* Do two tasks run in turn, layer by layer (lower_stage.c)? */
bool fr_virtual_order_is_paired(const fr_plan *plan, const fr_task *task,
                                const fr_task *next);

/* Returns the virtual time at which the input of a task of a virtual stage
 * exists; -1: its producer has not run yet. */
int64_t fr_virtual_order_input(const fr_virtual_order *order, int32_t stage,
                               const fr_task *task);

/*
 * The virtual stage whose rank sends the task its input; -1: what it reads is
 * there, or made by the rank itself.
 */
int32_t fr_virtual_order_sender(const fr_virtual_order *order, int32_t stage,
                                const fr_task *task);

#endif
