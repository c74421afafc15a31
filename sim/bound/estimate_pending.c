/*
 * estimate_pending.c: memory of split backwards.  Between the gradients of its
 * inputs and those of its weights a micro-batch holds what the latter read:
 * inputs and gradients of outputs of all products.  A schedule fixes the order
 * in which a rank runs its passes, so it also fixes how many micro-batches are
 * before the one and how many before the other at any time.
 */
#include "plan/schedule/schedule.h"
#include "sim/bound/estimate_state.h"

#include <stdlib.h>

/* Is it the gradients of weights of a layer, for the first micro-batch? */
static bool is_of_weights(const fr_program *program, const fr_call *call)
{
    const fr_segment *segment = &program->segments[call->i_segment];
    return call->layer >= 0 && call->micro_batch == 0 &&
           est_pass_of(segment) == EST_WEIGHTS;
}

void est_add_pending(const fr_program *program, est_layers *out)
{
    for (uint32_t c = 0; c < program->n_rank_programs; c++) {
        const fr_rank_program *rank_program = &program->rank_programs[c];
        for (uint32_t i = 0; i < rank_program->n_blocks; i++) {
            const fr_block *block = &rank_program->blocks[i];
            const fr_call *first = &rank_program->calls[block->first_call];
            const fr_call *last = &rank_program->calls[block->last_call];
            if (!block->is_persistent && is_of_weights(program, last) &&
                !is_of_weights(program, first))
                out->pending_bytes[last->layer + 1] += block->n_bytes;
        }
    }
}

/* ---- how many at once ---------------------------------------------------- */

/* Is at least as much there at a as at b? */
static bool covers(est_occupancy_point a, est_occupancy_point b)
{
    return a.n_kept >= b.n_kept && a.n_pending >= b.n_pending &&
           a.has_gradients >= b.has_gradients;
}

/* Points that another one covers are left out. */
static fr_status add_point(est_occupancy *f, est_occupancy_point point,
                           fr_err *err)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        if (covers(f->items[i], point))
            return FR_OK;
    for (size_t i = 0; i < f->n; i++)
        if (!covers(point, f->items[i]))
            f->items[n++] = f->items[i];
    f->n = n;
    return fr_vec_push(f, point) == FR_OK ? FR_OK : fr_fail_no_memory(err);
}

/* Micro-batches after which more of them add no point: the pipeline has filled
 * and drains, and does the same again in between. */
static int64_t enough_micro(const est_plan *x)
{
    const int64_t most = 16 * (int64_t)x->pp + 256;
    return x->n_micro < most ? x->n_micro : most;
}

static fr_status walk_tasks(const est_plan *x, const fr_task *tasks, int64_t n,
                            est_occupancy *out, fr_err *err)
{
    est_occupancy_point now = {0};
    int64_t n_done[FR_PLAN_MAX_STAGES] = {0}; /* of weights, by chunk */
    int32_t n_open = 0; /* chunks with some of them done and some not */
    for (int64_t i = 0; i < n; i++) {
        const fr_task *task = &tasks[i];
        now.n_kept += task->kind == FR_TASK_FORWARD;
        now.n_kept -= task->kind == FR_TASK_BACKWARD;
        now.n_pending += task->kind == FR_TASK_BACKWARD;
        now.n_pending -= task->kind == FR_TASK_WEIGHTS;
        if (task->kind == FR_TASK_WEIGHTS) {
            int64_t n_weights = ++n_done[task->chunk];
            n_open += n_weights == 1;
            n_open -= n_weights == enough_micro(x);
        }
        now.has_gradients = n_open == x->vpp;
        FR_TRY(add_point(out, now, err));
    }
    return FR_OK;
}

static fr_status fill(const est_plan *x, int32_t rank, est_occupancy *out,
                      fr_err *err)
{
    const fr_schedule *schedule = fr_schedules[x->plan->schedule];
    const int64_t n = fr_schedule_n_tasks(schedule, enough_micro(x), x->vpp);
    fr_task *tasks = malloc(((size_t)n + 1) * sizeof *tasks);
    if (tasks == NULL)
        return fr_fail_no_memory(err);
    schedule->emit(rank, x->pp, enough_micro(x), x->vpp, tasks);
    fr_status status = walk_tasks(x, tasks, n, out, err);
    free(tasks);
    return status;
}

fr_status est_occupancy_find(const est_plan *x, int32_t rank,
                             const est_occupancy **out, fr_err *err)
{
    fr_estimator *e = x->e;
    const int64_t words[] = {x->plan->schedule, rank, x->pp, x->n_micro,
                             x->vpp};
    est_occupancy *fresh;
    *out = NULL;
    if (!x->is_split)
        return FR_OK;
    est_occupancy *const *known =
        fr_memo_find(&e->occupancy, words, sizeof words);
    if (known != NULL) {
        *out = *known;
        return FR_OK;
    }
    fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return fr_fail_no_memory(err);
    fr_status status = fill(x, rank, fresh, err);
    if (status == FR_OK &&
        fr_memo_add(&e->occupancy, words, sizeof words, &fresh) == NULL)
        status = fr_fail_no_memory(err);
    if (status != FR_OK) {
        fr_vec_release(fresh);
        free(fresh);
        return status;
    }
    *out = fresh;
    return FR_OK;
}

uint64_t est_occupancy_bytes(const est_occupancy *f, uint64_t kept_bytes,
                             uint64_t pending_bytes, uint64_t gradients_bytes)
{
    uint64_t most = 0;
    for (size_t i = 0; f != NULL && i < f->n; i++) {
        uint64_t bytes = (uint64_t)f->items[i].n_kept * kept_bytes +
                         (uint64_t)f->items[i].n_pending * pending_bytes;
        bytes += f->items[i].has_gradients ? gradients_bytes : 0;
        most = bytes > most ? bytes : most;
    }
    return most;
}
