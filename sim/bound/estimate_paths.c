/*
 * estimate_paths.c: the critical path through all passes of a pipeline, for
 * schedules that split the backward.
 *
 * Passes of all ranks are the vertices of a graph: each waits for the one
 * before it on its rank, and for its input, which is sent when it is made.
 * Where the input is made no sooner than the rank is free, in the virtual time
 * that lowering orders receives by, frameworks begin to receive it only when
 * the pass before is over, so that the rank takes the time of the transfer,
 * too.  Whatever passes and transfers take, the time from the first rank's
 * first forward to the last pass of any is no shorter than any path between the
 * two.
 *
 * Which path is critical depends on the schedule and on how long passes are
 * against each other.  So it is looked for once for each schedule and each
 * quarter power of two of these ratios, and kept as how often every virtual
 * stage is passed: for a pipeline it is a scalar product.
 *
 * Stragglers: gradients of weights are computed without a meeting.  Where the
 * pass after them meets its group at once, and came to wait for nothing that
 * may be later (see is_met_late()), it waits for the slowest of them, too.
 */
#include "cost_models/gpu/gpu_memory.h"
#include "plan/outline/virtual_order.h"
#include "sim/bound/estimate_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* More passes than these are not looked at. */
enum { MOST_PASSES = 1 << 16 };

/* The reason for the begin of a pass: the pass before it on its lane, its
 * input, or a wait for another transfer. */
enum { AFTER_PASS, AFTER_INPUT, AFTER_WAIT };

/* A path is kept as its index in all_passed and the rank at which it ends. */
enum { RANK_BITS = 16 };

/* The time of each pass relative to a layer's forward: the exponent of a power
 * of two, in quarters. */
typedef struct ratios {
    int16_t backward, weights, early, hop, embed, head;
} ratios;

enum { NOTHING = INT16_MIN, UNIT_BITS = 20 };

typedef struct path_graph {
    fr_virtual_order order;
    const est_plan *x;
    bool is_by_framework;
    int64_t forward, backward, weights, early, hop, embed, head; /* a layer's */
    int64_t *end;      /* [pp][n_tasks] */
    uint8_t *how;      /* [pp][n_tasks] */
    int32_t *place[2]; /* of forward, backward: [n_stages][n_micro] task */
    size_t *next;      /* [pp] */
    int32_t last_rank; /* that is over last */
    int64_t *due;      /* [n_tasks] of due_rank: list_due() */
    int32_t due_rank;  /* -1: of none */
} path_graph;

/* ---- ratios ------------------------------------------------------------- */

/* Returns the ratio as an exponent, in quarters.  Long passes are rounded to
 * quarters (n_steps 4), short ones to whole powers (n_steps 1). */
static int16_t ratio_of(double ps, double forward_ps, int n_steps)
{
    if (!(ps > 0) || !(forward_ps > 0))
        return NOTHING;
    double power = fmax(-UNIT_BITS, fmin(UNIT_BITS, log2(ps / forward_ps)));
    return (int16_t)(4 / n_steps * lround(n_steps * power));
}

static int64_t length_of(int16_t ratio)
{
    return ratio == NOTHING ? 0 : (int64_t)exp2(UNIT_BITS + 0.25 * ratio);
}

static ratios ratios_of(const est_plan *x)
{
    const est_stage *first = &x->stages[0];
    const est_times *t = first->times;
    double forward_ps = 0, backward_ps = 0, weights_ps = 0, hop_ps = 0;
    double n = (double)x->e->n_layers;
    for (int32_t s = 0; s < x->pp; s++) {
        forward_ps += (double)x->stages[s].forward_ps;
        backward_ps += (double)x->stages[s].backward_ps;
        weights_ps += (double)x->stages[s].weights_ps;
        hop_ps += (double)x->stages[s].hop_ps;
    }
    double embed_ps = (double)(t->embed_ps + t->embed_back_ps);
    double head_ps = (double)t->head_ps;
    forward_ps = (forward_ps - (double)t->embed_ps) / n;
    backward_ps = (backward_ps - (double)t->embed_back_ps - head_ps) / n;
    return (ratios){
        .backward = ratio_of(backward_ps, forward_ps, 4),
        .weights = ratio_of(weights_ps / n, forward_ps, 4),
        .early = ratio_of((double)first->early_ps, forward_ps, 4),
        .hop = ratio_of(hop_ps / x->pp, forward_ps, 1),
        .embed = ratio_of(embed_ps, forward_ps, 1),
        .head = ratio_of(head_ps, forward_ps, 4),
    };
}

/* ---- the graph ---------------------------------------------------------- */

static int64_t length_at(const path_graph *g, int32_t stage, fr_task_kind kind)
{
    const int64_t n = g->x->passes[stage].n_layers;
    if (kind == FR_TASK_FORWARD)
        return n * g->forward + (stage == 0 ? g->embed / 2 : 0);
    if (kind == FR_TASK_WEIGHTS)
        return n * g->weights;
    return n * g->backward + (stage == 0 ? g->embed / 2 : 0) +
           (stage == g->order.n_stages - 1 ? g->head : 0);
}

static size_t index_of(const path_graph *g, int32_t rank, size_t i)
{
    return (size_t)rank * g->order.n_tasks + i;
}

static int32_t *place_of(const path_graph *g, fr_task_kind kind, int32_t stage,
                         int64_t micro_batch)
{
    return &g->place[kind][(int64_t)stage * g->order.n_micro + micro_batch];
}

/* The index of the pass that makes what a task reads; -1: it has not run. */
static int64_t maker_of(const path_graph *g, int32_t from, const fr_task *task)
{
    int32_t at = *place_of(g, task->kind, from, task->micro_batch);
    if (at < 0)
        return -1;
    int32_t rank = fr_schedule_rank(g->order.schedule, from, g->order.pp);
    return (int64_t)index_of(g, rank, (size_t)at);
}

/* Does the rank begin to receive only when the task before is over? */
static bool is_waiting(const path_graph *g, int32_t rank, size_t i,
                       int32_t stage)
{
    const fr_virtual_order *o = &g->order;
    if (!g->is_by_framework || i == 0)
        return false;
    return fr_virtual_order_at(o, rank, i - 1)->end <=
           fr_virtual_order_input(o, stage,
                                  &fr_virtual_order_at(o, rank, i)->task);
}

static void consider(int64_t end, uint8_t how, int64_t *best, uint8_t *best_how)
{
    if (end <= *best)
        return;
    *best = end;
    *best_how = how;
}

static bool run_next(path_graph *g, int32_t rank)
{
    const fr_virtual_order *o = &g->order;
    const size_t i = g->next[rank], at = index_of(g, rank, i);
    if (i == o->n_tasks)
        return false;
    const fr_task *task = &fr_virtual_order_at(o, rank, i)->task;
    int32_t stage = fr_schedule_stage(o->schedule, rank, task->chunk, o->pp);
    int32_t from = fr_virtual_order_sender(o, stage, task);
    int64_t before = i > 0 ? g->end[at - 1] : 0;
    int64_t length = length_at(g, stage, task->kind), end = before + length;
    int64_t late = task->kind == FR_TASK_BACKWARD ? length - g->early : length;
    uint8_t how = AFTER_PASS;
    if (from >= 0) {
        int64_t maker = maker_of(g, from, task);
        if (maker < 0)
            return false;
        consider(g->end[maker] + g->hop + late, AFTER_INPUT, &end, &how);
        if (is_waiting(g, rank, i, stage))
            consider(before + g->hop + late, AFTER_WAIT, &end, &how);
    }
    g->end[at] = end;
    g->how[at] = how;
    if (task->kind != FR_TASK_WEIGHTS)
        *place_of(g, task->kind, stage, task->micro_batch) = (int32_t)i;
    g->next[rank]++;
    return true;
}

static void run_all(path_graph *g)
{
    bool has_moved = true;
    while (has_moved) {
        has_moved = false;
        for (int32_t rank = 0; rank < g->order.pp; rank++)
            while (run_next(g, rank))
                has_moved = true;
    }
}

/* Lists for each task of a rank the time at which the first input of the
 * receives after it is made. */
static void list_due(path_graph *g, int32_t rank)
{
    const fr_virtual_order *o = &g->order;
    if (g->due_rank == rank)
        return;
    g->due_rank = rank;
    g->due[o->n_tasks - 1] = INT64_MAX;
    for (size_t i = o->n_tasks - 1; i > 0; i--) {
        const fr_task *task = &fr_virtual_order_at(o, rank, i)->task;
        int32_t stage =
            fr_schedule_stage(o->schedule, rank, task->chunk, o->pp);
        g->due[i - 1] = g->due[i];
        if (fr_virtual_order_sender(o, stage, task) >= 0)
            g->due[i - 1] = est_least(g->due[i - 1],
                                      fr_virtual_order_input(o, stage, task));
    }
}

/*
 * Pass i follows gradients of weights, is a backward that begins with a layer,
 * and its receive is the first thing after them: it begins when they are over,
 * since all that was to be received before was needed before.  So the receive,
 * and the pass after it, know how long has been computed since a meeting.
 */
static bool is_met_late(path_graph *g, int32_t rank, size_t i, int32_t stage)
{
    const fr_virtual_order *o = &g->order;
    const fr_task *task = &fr_virtual_order_at(o, rank, i)->task;
    if (i == 0 || task->kind != FR_TASK_BACKWARD ||
        fr_virtual_order_at(o, rank, i - 1)->task.kind != FR_TASK_WEIGHTS ||
        fr_virtual_order_sender(o, stage, task) < 0 ||
        !is_waiting(g, rank, i, stage))
        return false;
    list_due(g, rank);
    return fr_virtual_order_input(o, stage, task) < g->due[i];
}

/* ---- the critical path -------------------------------------------------- */

/* The rank that is the last to be over. */
static int32_t last_rank(const path_graph *g)
{
    const size_t last = g->order.n_tasks - 1;
    int32_t rank = 0;
    for (int32_t r = 1; r < g->order.pp; r++)
        if (g->end[index_of(g, r, last)] > g->end[index_of(g, rank, last)])
            rank = r;
    return rank;
}

/* Back from the last pass of all to the first. */
static void follow(path_graph *g, est_passed *passed)
{
    const fr_virtual_order *o = &g->order;
    int32_t rank = g->last_rank;
    size_t i = o->n_tasks - 1;
    for (;;) {
        const fr_task *task = &fr_virtual_order_at(o, rank, i)->task;
        int32_t stage =
            fr_schedule_stage(o->schedule, rank, task->chunk, o->pp);
        est_passed *at = &passed[stage];
        uint8_t how = g->how[index_of(g, rank, i)];
        bool is_back = task->kind == FR_TASK_BACKWARD;
        at->n_forward += task->kind == FR_TASK_FORWARD;
        at->n_backward += is_back;
        at->n_weights += task->kind == FR_TASK_WEIGHTS;
        if (how != AFTER_INPUT && is_met_late(g, rank, i, stage)) {
            int32_t chunk = fr_virtual_order_at(o, rank, i - 1)->task.chunk;
            passed[fr_schedule_stage(o->schedule, rank, chunk, o->pp)]
                .n_straggler++;
        }
        if (how == AFTER_PASS) {
            if (i-- == 0)
                return;
            continue;
        }
        at->n_late += is_back;
        int32_t from = fr_virtual_order_sender(o, stage, task);
        passed[is_back ? from : stage].n_hops++;
        if (how == AFTER_WAIT) {
            i--;
            continue;
        }
        rank = fr_schedule_rank(o->schedule, from, o->pp);
        i = (size_t)*place_of(g, task->kind, from, task->micro_batch);
    }
}

static fr_status find_longest(path_graph *g, const ratios *r,
                              est_passed *passed, fr_err *err)
{
    const fr_virtual_order *o = &g->order;
    const size_t n = (size_t)o->pp * o->n_tasks;
    const size_t n_made = (size_t)o->n_stages * (size_t)o->n_micro;
    g->forward = (int64_t)1 << UNIT_BITS;
    g->backward = length_of(r->backward);
    g->weights = length_of(r->weights);
    g->early = length_of(r->early);
    g->hop = length_of(r->hop);
    g->embed = length_of(r->embed);
    g->head = length_of(r->head);
    g->end = malloc(n * sizeof *g->end);
    g->how = malloc(n * sizeof *g->how);
    g->place[0] = malloc(n_made * sizeof *g->place[0]);
    g->place[1] = malloc(n_made * sizeof *g->place[1]);
    g->next = calloc((size_t)o->pp, sizeof *g->next);
    g->due = malloc(o->n_tasks * sizeof *g->due);
    g->due_rank = -1;
    if (g->end == NULL || g->how == NULL || g->place[0] == NULL ||
        g->place[1] == NULL || g->next == NULL || g->due == NULL)
        return fr_fail_no_memory(err);
    memset(g->place[0], 0xff, n_made * sizeof *g->place[0]);
    memset(g->place[1], 0xff, n_made * sizeof *g->place[1]);
    run_all(g);
    g->last_rank = last_rank(g);
    follow(g, passed);
    return FR_OK;
}

static fr_status make(est_plan *x, bool is_by_framework, const ratios *r,
                      est_passed *passed, int32_t *last_rank, fr_err *err)
{
    path_graph g = {.x = x, .is_by_framework = is_by_framework};
    memset(passed, 0, (size_t)(x->pp * x->vpp) * sizeof *passed);
    fr_status status =
        fr_virtual_order_init(x->plan, x->e->model, x->n_micro, &g.order, err);
    if (status == FR_OK)
        status = find_longest(&g, r, passed, err);
    *last_rank = g.last_rank;
    fr_virtual_order_release(&g.order);
    free(g.end);
    free(g.how);
    free(g.place[0]);
    free(g.place[1]);
    free(g.next);
    free(g.due);
    return status;
}

/* ---- kept --------------------------------------------------------------- */

/* No padding: a key. */
typedef struct paths_key {
    int64_t n_micro;
    int32_t pp, vpp, schedule, is_full_recompute, is_by_framework;
    int32_t recompute_layers;
    uint32_t split;
    ratios r;
} paths_key;
_Static_assert(sizeof(paths_key) == 8 + 7 * 4 + 6 * 2, "no padding");

static fr_status find(est_plan *x, int64_t *out, fr_err *err)
{
    fr_estimator *e = x->e;
    const fr_plan *plan = x->plan;
    const size_t n = (size_t)(x->pp * x->vpp), first = e->all_passed.n;
    bool is_by_framework = fr_gpu_is_by_framework(
        plan, fr_cluster_device(e->cluster, x->stages[0].place->node));
    int32_t last_rank;
    paths_key key = {.n_micro = x->n_micro,
                     .pp = x->pp,
                     .vpp = x->vpp,
                     .schedule = (int32_t)plan->schedule,
                     .is_full_recompute = plan->recompute == FR_RECOMPUTE_FULL,
                     .is_by_framework = is_by_framework,
                     .recompute_layers = plan->recompute_layers,
                     .r = ratios_of(x)};
    FR_TRY(est_split_find(e, plan, &key.split, err));
    const int64_t *known = fr_memo_find(&e->paths, &key, sizeof key);
    if (known != NULL) {
        *out = *known;
        return FR_OK;
    }
    if (fr_vec_reserve(&e->all_passed, n) != FR_OK)
        return fr_fail_no_memory(err);
    FR_TRY(make(x, is_by_framework, &key.r, &e->all_passed.items[first],
                &last_rank, err));
    *out = (int64_t)first << RANK_BITS | last_rank;
    if (fr_memo_add(&e->paths, &key, sizeof key, out) == NULL)
        return fr_fail_no_memory(err);
    e->all_passed.n += n;
    return FR_OK;
}

static bool is_looked_at(const est_plan *x)
{
    return x->is_split && 3 * x->pp * x->vpp * x->n_micro <= MOST_PASSES;
}

/* A chunk without a layer has nothing that waits. */
static bool has_passes(const est_plan *x)
{
    for (int32_t i = 0; i < x->pp * x->vpp; i++)
        if (x->passes[i].n_layers == 0)
            return false;
    return true;
}

/* Are the weights gathered again before backward? */
static bool is_regathered(const fr_plan *plan)
{
    return plan->zero_stage == 3 && plan->is_resharded;
}

/* Sets *out to the expected wait for the slowest member of the group, in
 * seconds per second of computation before the meeting. */
static fr_status straggler_frac(est_plan *x, const est_stage *stage,
                                double *out, fr_err *err)
{
    *out = 0;
    if (is_regathered(x->plan))
        return FR_OK;
    return est_jitter(x->e, stage->layers->n_met, out, err);
}

/* The path, with x->passes. */
static fr_status length_of_path(est_plan *x, int64_t path, int64_t *out_ps,
                                fr_err *err)
{
    const fr_schedule *schedule = fr_schedules[x->plan->schedule];
    const est_passed *passed = &x->e->all_passed.items[path >> RANK_BITS];
    *out_ps = x->stages[0].begin_ps;
    for (int32_t i = 0; i < x->pp * x->vpp; i++) {
        const est_passed *n = &passed[i];
        const est_pass_times *t = &x->passes[i];
        bool is_up = !x->is_v || i < x->pp; /* towards later ranks */
        int32_t from = is_up && i > 0 ? i - 1 : i;
        const est_stage *hop =
            &x->stages[fr_schedule_rank(schedule, from, x->pp)];
        const est_stage *stage =
            &x->stages[fr_schedule_rank(schedule, i, x->pp)];
        double frac = 0;
        if (n->n_straggler > 0)
            FR_TRY(straggler_frac(x, stage, &frac, err));
        *out_ps += n->n_forward * t->forward_ps +
                   n->n_backward * t->backward_ps +
                   n->n_weights * t->weights_ps - n->n_late * t->early_ps +
                   n->n_hops * hop->hop_ps +
                   (int64_t)(frac * n->n_straggler * (double)t->weights_ps);
    }
    return FR_OK;
}

static void set_path(est_ranks *ranks, int32_t rank, int64_t ps)
{
    int32_t i = 0;
    while (i + 1 < ranks->n && ranks->at[i + 1].rank <= rank)
        i++;
    ranks->at[i].path_ps = ps;
}

fr_status est_paths_find(est_plan *x, fr_err *err)
{
    const bool is_estimate = x->is_estimate;
    int64_t path = 0, ps = 0;
    const bool is_known =
        x->has_paths && x->is_regathered == is_regathered(x->plan);
    if (is_known || !is_looked_at(x))
        return FR_OK;
    for (int i = 0; i < 2; i++) {
        x->is_estimate = i > 0;
        if (i == 0 || !x->is_known_twice)
            FR_TRY(est_stages_find(x, err));
        if (i == 0 && !has_passes(x))
            break;
        if (i == 0)
            FR_TRY(find(x, &path, err));
        if (i == 0 || !x->is_known_twice)
            FR_TRY(length_of_path(x, path, &ps, err));
        set_path(&x->ranks[i], (int32_t)(path & ((1 << RANK_BITS) - 1)), ps);
    }
    x->is_estimate = is_estimate;
    x->has_paths = true;
    x->is_regathered = is_regathered(x->plan);
    return FR_OK;
}
