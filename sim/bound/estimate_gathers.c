/*
 * estimate_gathers.c: ZeRO 3: which uses of a layer's weights are preceded by
 * a gather (plan/outline/weight_uses.h).  What follows is for layers that are
 * all alike.
 *
 * Use k of a rank takes c_k of the compute lane from its start s_k to its end,
 * and waits for a gather that takes g_k (0: the weights are there).  With one
 * layer of prefetch the gather waits for use k - 2 and for the gather before,
 * so with u_k the later of the ends of gather k and of use k - 1
 *
 *     gather k and use k - 1 both run between u_(k-1) and u_k <= s_k
 *
 * and these windows do not overlap.  Each is no shorter than g_k, than c_(k-1)
 * and than what both want of the device's processors: the step is no shorter
 * than the sum.  The first two windows are left out where passes wait for a
 * pipeline: their gathers may come before.
 */
#include "plan/outline/weight_uses.h"
#include "sim/bound/estimate_state.h"

#include <stdlib.h>

/* More uses than these are not looked at. */
enum { MOST_USES = 1 << 16 };

/* Gathers of layers, and of these what follows the use of another layer. */
static void count(const fr_weight_uses *uses, int32_t n_layers,
                  est_gathers *out)
{
    for (size_t i = 0; i < uses->n; i++) {
        const fr_weight_use *use = &uses->items[i];
        if (!use->is_gathered || use->set >= n_layers)
            continue;
        out->n++;
        if (i < 2 || use[-1].set >= n_layers)
            continue;
        out->n_after_forward += !use[-1].is_backward;
        out->n_after_backward += use[-1].is_backward;
    }
}

/* Sets *out to the number of gathers of the set that is gathered least often,
 * among the sets in use. */
static fr_status count_least(const fr_weight_uses *uses, int32_t n_sets,
                             int64_t *out, fr_err *err)
{
    int64_t *n;
    FR_TRY_CALLOC(n, (size_t)n_sets, err);
    for (size_t i = 0; i < uses->n; i++)
        n[uses->items[i].set] += uses->items[i].is_gathered;
    *out = 0;
    for (int32_t set = 0; set < n_sets; set++)
        if (n[set] > 0 && (*out == 0 || n[set] < *out))
            *out = n[set];
    free(n);
    return FR_OK;
}

static fr_status make(est_plan *x, int32_t rank, est_gathers *out, fr_err *err)
{
    const fr_schedule *schedule = fr_schedules[x->plan->schedule];
    int64_t n_tasks = fr_schedule_n_tasks(schedule, x->n_micro, x->vpp);
    int64_t n_most = 0;
    *out = (est_gathers){0};
    for (int32_t c = 0; c < x->vpp; c++) {
        const fr_stage_span span =
            fr_stage_span_held(x->plan, x->e->model, rank, c);
        n_most += 2 * x->n_micro * (2 + span.end - span.first);
    }
    if (n_most > MOST_USES)
        return FR_OK;
    fr_weight_uses uses = {0};
    fr_task *tasks = malloc((size_t)n_tasks * sizeof *tasks);
    if (tasks == NULL || fr_vec_reserve(&uses, (size_t)n_most) != FR_OK) {
        free(tasks);
        return fr_fail_no_memory(err);
    }
    schedule->emit(rank, x->pp, x->n_micro, x->vpp, tasks);
    fr_status status = fr_weight_uses_list(x->plan, x->e->model, rank, tasks,
                                           (size_t)n_tasks, &uses, err);
    if (status == FR_OK)
        status = count_least(&uses, fr_weight_ends_of(x->e->model).n_sets,
                             &out->n_least, err);
    if (status == FR_OK)
        count(&uses, x->e->n_layers, out);
    free(tasks);
    fr_vec_release(&uses);
    return status;
}

/* No padding: a key. */
typedef struct gathers_key {
    int64_t n_micro;
    int32_t pp, vpp, rank, schedule, n_prefetch, is_resharded;
    uint32_t split, unused;
} gathers_key;

static fr_status find(est_plan *x, int32_t rank, est_gathers *out, fr_err *err)
{
    fr_estimator *e = x->e;
    const fr_plan *plan = x->plan;
    gathers_key key = {.n_micro = x->n_micro,
                       .pp = x->pp,
                       .vpp = x->vpp,
                       .rank = rank,
                       .schedule = (int32_t)plan->schedule,
                       .n_prefetch = plan->n_prefetch,
                       .is_resharded = plan->is_resharded};
    FR_TRY(est_split_find(e, plan, &key.split, err));
    const est_gathers *known = fr_memo_find(&e->gathers, &key, sizeof key);
    if (known != NULL) {
        *out = *known;
        return FR_OK;
    }
    FR_TRY(make(x, rank, out, err));
    return fr_memo_add(&e->gathers, &key, sizeof key, out) != NULL
               ? FR_OK
               : fr_fail_no_memory(err);
}

fr_status est_gathers_find(est_plan *x, est_stage *stage, fr_err *err)
{
    const fr_plan *plan = x->plan;
    bool is_gathered = plan->zero_stage == 3;
    uint32_t of = 1;
    if (is_gathered)
        of = (uint32_t)plan->n_prefetch << 2 | 2u |
             (plan->is_resharded ? 1u : 0u);
    if (stage->gathers_of == of)
        return FR_OK;
    stage->gathers = (est_gathers){0};
    if (is_gathered)
        FR_TRY(find(x, stage->rank, &stage->gathers, err));
    if (!stage->layers->is_uniform)
        stage->gathers = (est_gathers){.n_least = stage->gathers.n_least};
    stage->gathers_of = of;
    return FR_OK;
}
