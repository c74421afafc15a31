/*
 * estimate_gathers.c: ZeRO 3: which uses of a layer's weights are preceded by
 * a gather, as lower_gather.c decides, for layers that are all alike.
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
#include "plan/schedule/schedule.h"
#include "sim/bound/estimate_state.h"

#include <stdlib.h>
#include <string.h>

/* More uses than these are not looked at. */
enum { MOST_USES = 1 << 16 };

typedef struct est_use {
    int32_t set, next; /* next use of the set; -1: none */
    bool is_layer, is_backward;
} est_use;

typedef struct est_uses {
    est_use *at;
    int32_t n, n_sets;
} est_uses;

static void push(est_uses *uses, int32_t set, bool is_layer, bool is_backward)
{
    uses->at[uses->n++] = (est_use){set, -1, is_layer, is_backward};
}

/* In the order of lower_uses_init(). */
static void list_uses(const est_plan *x, int32_t rank, const fr_task *tasks,
                      int64_t n_tasks, est_uses *uses)
{
    const int32_t n_all = x->e->n_layers;
    bool is_joined = x->e->model->is_tied;
    const int32_t embed = n_all, head = is_joined ? n_all : n_all + 1;
    for (int64_t t = 0; t < n_tasks; t++) {
        bool is_back = tasks[t].kind == FR_TASK_BACKWARD;
        const fr_stage_span span =
            fr_stage_span_held(x->plan, x->e->model, rank, tasks[t].chunk);
        const int32_t first = span.first, end = span.end;
        if (tasks[t].kind == FR_TASK_WEIGHTS)
            continue;
        if (!is_back && span.has_embed)
            push(uses, embed, false, false);
        if (is_back && span.has_head)
            push(uses, head, false, true);
        for (int32_t i = first; i < end; i++)
            push(uses, is_back ? end - 1 - (i - first) : i, true, is_back);
        if (is_back && span.has_embed && x->e->model->has_embed_norm)
            push(uses, embed, false, true);
    }
}

static void link_uses(est_uses *uses, int32_t *next)
{
    for (int32_t i = 0; i < uses->n_sets; i++)
        next[i] = -1;
    for (int32_t i = uses->n; i-- > 0;) {
        uses->at[i].next = next[uses->at[i].set];
        next[uses->at[i].set] = i;
    }
}

/* Is what use `now` has read dropped (lower_after_use())? */
static bool is_dropped(const est_plan *x, const est_uses *uses, int32_t now,
                       int32_t n_gathered)
{
    const fr_plan *plan = x->plan;
    const est_use *use = &uses->at[now];
    if (use->next < 0)
        return true;
    bool is_next_back = uses->at[use->next].is_backward;
    bool is_near =
        use->next < n_gathered || (use->next <= now + 1 + plan->n_prefetch &&
                                   !(use->is_backward && !is_next_back));
    return !is_near && (plan->is_resharded ||
                        (plan->pp == 1 && (use->is_backward || !is_next_back)));
}

static void count(const est_plan *x, const est_uses *uses, bool *is_there,
                  est_gathers *out)
{
    int32_t n_gathered = 0;
    memset(is_there, 0, (size_t)uses->n_sets * sizeof *is_there);
    for (int32_t now = 0; now < uses->n; now++) {
        int32_t end =
            (int32_t)est_least(uses->n, (int64_t)now + 1 + x->plan->n_prefetch);
        for (; n_gathered < end; n_gathered++) {
            const est_use *use = &uses->at[n_gathered];
            bool is_new = !is_there[use->set];
            is_there[use->set] = true;
            if (!is_new || !use->is_layer)
                continue;
            out->n++;
            if (n_gathered < 2 || !use[-1].is_layer)
                continue;
            out->n_after_forward += !use[-1].is_backward;
            out->n_after_backward += use[-1].is_backward;
        }
        if (is_dropped(x, uses, now, n_gathered))
            is_there[uses->at[now].set] = false;
    }
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
    est_uses uses = {.n_sets = x->e->n_layers + 2};
    fr_task *tasks = malloc((size_t)n_tasks * sizeof *tasks);
    int32_t *next = malloc((size_t)uses.n_sets * sizeof *next);
    bool *is_there = malloc((size_t)uses.n_sets * sizeof *is_there);
    uses.at = malloc((size_t)n_most * sizeof *uses.at);
    fr_status status = FR_OK;
    if (tasks != NULL && next != NULL && is_there != NULL && uses.at != NULL) {
        schedule->emit(rank, x->pp, x->n_micro, x->vpp, tasks);
        list_uses(x, rank, tasks, n_tasks, &uses);
        link_uses(&uses, next);
        count(x, &uses, is_there, out);
    } else {
        status = fr_fail_no_memory(err);
    }
    free(tasks);
    free(next);
    free(is_there);
    free(uses.at);
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
    bool is_gathered = plan->zero_stage == 3 && stage->layers->is_uniform;
    uint32_t of = 1;
    if (is_gathered)
        of = (uint32_t)plan->n_prefetch << 2 | 2u |
             (plan->is_resharded ? 1u : 0u);
    if (stage->gathers_of == of)
        return FR_OK;
    stage->gathers = (est_gathers){0};
    if (is_gathered)
        FR_TRY(find(x, stage->rank, &stage->gathers, err));
    stage->gathers_of = of;
    return FR_OK;
}
