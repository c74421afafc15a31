/*
 * estimate_pending.c: memory of split backwards.  Between the gradients of its
 * inputs and those of its weights a micro-batch holds what the latter read:
 * inputs and gradients of outputs of all products.  A schedule fixes the order
 * in which a rank runs its passes, so it also fixes how many micro-batches are
 * before the one and how many before the other at any time.
 */
#include "sim/estimate_state.h"

#include "core/hash.h"
#include "plan/schedule.h"

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
    for (uint32_t c = 0; c < program->n_classes; c++) {
        const fr_class *klass = &program->classes[c];
        for (uint32_t i = 0; i < klass->n_blocks; i++) {
            const fr_block *block = &klass->blocks[i];
            const fr_call *first = &klass->calls[block->first_call];
            const fr_call *last = &klass->calls[block->last_call];
            if (!block->is_persistent && is_of_weights(program, last) &&
                !is_of_weights(program, first))
                out->pending_bytes[last->layer + 1] += block->n_bytes;
        }
    }
}

/* ---- how many at once ---------------------------------------------------- */

static bool is_covered(const est_fullness *f, est_fullest_point point)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->items[i].n_kept >= point.n_kept &&
            f->items[i].n_pending >= point.n_pending)
            return true;
    return false;
}

/* Points that one of them has not more of both than another are left out. */
static fr_status add_point(est_fullness *f, est_fullest_point point,
                           fr_err *err)
{
    size_t n = 0;
    if (is_covered(f, point))
        return FR_OK;
    for (size_t i = 0; i < f->n; i++)
        if (f->items[i].n_kept > point.n_kept ||
            f->items[i].n_pending > point.n_pending)
            f->items[n++] = f->items[i];
    f->n = n;
    return fr_vec_push(f, point) == FR_OK ? FR_OK : fr_fail_no_memory(err);
}

static fr_status fill(const fr_schedule *schedule, const est_plan *x,
                      int32_t rank, est_fullness *out, fr_err *err)
{
    const int64_t n = fr_schedule_n_tasks(schedule, x->n_micro, x->vpp);
    fr_task *tasks = malloc(((size_t)n + 1) * sizeof *tasks);
    est_fullest_point now = {0, 0};
    fr_status status = FR_OK;
    if (tasks == NULL)
        return fr_fail_no_memory(err);
    schedule->emit(rank, x->pp, x->n_micro, x->vpp, tasks);
    for (int64_t i = 0; i < n && status == FR_OK; i++) {
        now.n_kept += tasks[i].kind == FR_TASK_FORWARD;
        now.n_kept -= tasks[i].kind == FR_TASK_BACKWARD;
        now.n_pending += tasks[i].kind == FR_TASK_BACKWARD;
        now.n_pending -= tasks[i].kind == FR_TASK_WEIGHTS;
        status = add_point(out, now, err);
    }
    free(tasks);
    return status;
}

fr_status est_fullness_find(const est_plan *x, int32_t rank,
                            const est_fullness **out, fr_err *err)
{
    fr_estimator *e = x->e;
    const int64_t words[] = {x->plan->schedule, rank, x->pp, x->n_micro,
                             x->vpp};
    const uint64_t key = fr_hash_bytes(words, sizeof words, 12);
    const int64_t *known = est_map_find(&e->fullness, key);
    *out = NULL;
    if (!x->is_split)
        return FR_OK;
    if (known != NULL) {
        *out = e->all_fullness.items[*known];
        return FR_OK;
    }
    est_fullness *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL || fr_vec_push(&e->all_fullness, fresh) != FR_OK) {
        free(fresh);
        return fr_fail_no_memory(err);
    }
    *out = fresh;
    FR_TRY(fill(fr_schedules[x->plan->schedule], x, rank, fresh, err));
    return est_map_add(&e->fullness, key, (int64_t)e->all_fullness.n - 1, err);
}

uint64_t est_fullness_bytes(const est_fullness *f, uint64_t kept_bytes,
                            uint64_t pending_bytes)
{
    uint64_t most = 0;
    for (size_t i = 0; f != NULL && i < f->n; i++) {
        uint64_t bytes = (uint64_t)f->items[i].n_kept * kept_bytes +
                         (uint64_t)f->items[i].n_pending * pending_bytes;
        most = bytes > most ? bytes : most;
    }
    return most;
}
