/*
 * estimate_paths.c: the longest way through all passes of a pipeline.
 *
 * Passes of all ranks are the vertices of a graph: each waits for the one
 * before it on its rank, and for its input, which is sent when it is made.
 * Frameworks begin to receive what comes while a rank is about to wait only
 * when the pass before is over (plan/lower_transfer.c), so there its rank
 * takes the time of the transfer, too.  Whatever passes and transfers take,
 * the time from the first rank's first forward to its last pass is no shorter
 * than any way between the two.
 *
 * Which way is the longest depends on the schedule and on how long passes are
 * against each other.  So it is looked for once for each schedule and each
 * half power of two of these ratios, and kept as how often every virtual stage
 * is passed in each direction: for a pipeline it is a scalar product.
 */
#include "sim/estimate_state.h"

#include "core/hash.h"
#include "cost_models/gpu_memory.h"
#include "plan/virtual_order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* More passes than these are not looked at. */
enum { MOST_PASSES = 1 << 16 };

/* How a pass came to begin when it did. */
enum { AFTER_PASS, AFTER_INPUT, AFTER_WAIT };

/* What passes take against a layer's forward: powers of sqrt(2). */
typedef struct ratios {
    int16_t backward, weights, early, hop, embed, head;
} ratios;

enum { NOTHING = INT16_MIN, UNIT_BITS = 20 };

typedef struct path_graph {
    fr_virtual_order order;
    const est_plan *x;
    bool is_by_framework;
    int64_t forward, backward, weights, early, hop, embed, head; /* a layer's */
    int64_t *end;           /* [pp][n_tasks] */
    uint8_t *how;           /* [pp][n_tasks] */
    int32_t *place[2];      /* of forward, backward: [n_stages][n_micro] task */
    size_t *next;           /* [pp] */
} path_graph;

/* ---- ratios ---------------------------------------------------------------- */

static int16_t ratio_of(double ps, double forward_ps)
{
    if (!(ps > 0) || !(forward_ps > 0))
        return NOTHING;
    return (int16_t)lround(fmax(-1000, fmin(1000, 64 * log2(ps / forward_ps))));
}

static int64_t length_of(int16_t ratio)
{
    return ratio == NOTHING ? 0 : (int64_t)exp2(UNIT_BITS + ratio / 64.0);
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
        .backward = ratio_of(backward_ps, forward_ps),
        .weights = ratio_of(weights_ps / n, forward_ps),
        .early = ratio_of((double)first->early_ps, forward_ps),
        .hop = ratio_of(hop_ps / x->pp, forward_ps),
        .embed = ratio_of(embed_ps, forward_ps),
        .head = ratio_of(head_ps, forward_ps),
    };
}

/* ---- the graph ------------------------------------------------------------- */

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

/* ---- the longest way ------------------------------------------------------- */

/* Back from the last pass of the first rank to its first. */
static void follow(const path_graph *g, est_passed *passed)
{
    const fr_virtual_order *o = &g->order;
    int32_t rank = 0;
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
    if (!g->end || !g->how || !g->place[0] || !g->place[1] || !g->next)
        return fr_fail_no_memory(err);
    memset(g->place[0], 0xff, n_made * sizeof *g->place[0]);
    memset(g->place[1], 0xff, n_made * sizeof *g->place[1]);
    run_all(g);
    follow(g, passed);
    return FR_OK;
}

static fr_status make(est_plan *x, bool is_by_framework, const ratios *r,
                      est_passed *passed, fr_err *err)
{
    path_graph g = {.x = x, .is_by_framework = is_by_framework};
    memset(passed, 0, (size_t)(x->pp * x->vpp) * sizeof *passed);
    fr_status status = fr_virtual_order_init(x->plan, x->e->model, x->n_micro,
                                             &g.order, err);
    if (status == FR_OK)
        status = find_longest(&g, r, passed, err);
    fr_virtual_order_release(&g.order);
    free(g.end);
    free(g.how);
    free(g.place[0]);
    free(g.place[1]);
    free(g.next);
    return status;
}

/* ---- kept ------------------------------------------------------------------ */

static uint64_t key_of(const est_plan *x, bool is_by_framework, const ratios *r)
{
    const fr_plan *plan = x->plan;
    const size_t n_split = (size_t)plan->n_split * sizeof plan->layer_split[0];
    uint64_t bits = 0; bits=fr_hash_bytes(r,sizeof *r,1);

    const uint64_t words[] = {
        (uint64_t)plan->pp << 32 | (uint64_t)plan->vpp,
        (uint64_t)x->n_micro,
        (uint64_t)plan->schedule << 40 |
            (uint64_t)(plan->recompute == FR_RECOMPUTE_FULL) << 33 |
            (uint64_t)is_by_framework << 32 | (uint32_t)plan->recompute_layers,
        n_split > 0 ? fr_hash_bytes(plan->layer_split, n_split, 6) : 0,
        bits,
    };
    return fr_hash_bytes(words, sizeof words, 11);
}

/* NULL: none is known. */
static fr_status find(est_plan *x, const est_passed **out, fr_err *err)
{
    fr_estimator *e = x->e;
    const ratios r = ratios_of(x);
    const size_t n = (size_t)(x->pp * x->vpp);
    bool is_by_framework = fr_gpu_is_by_framework(
        x->plan, fr_cluster_device(e->cluster, x->stages[0].place->node));
    uint64_t key = key_of(x, is_by_framework, &r);
    const int64_t *known = est_map_find(&e->paths, key);
    if (known != NULL) {
        *out = &e->all_passed.items[*known];
        return FR_OK;
    }
    if (fr_vec_reserve(&e->all_passed, n) != FR_OK)
        return fr_fail_no_memory(err);
    est_passed *passed = &e->all_passed.items[e->all_passed.n];
    FR_TRY(make(x, is_by_framework, &r, passed, err));
    FR_TRY(est_map_add(&e->paths, key, (int64_t)e->all_passed.n, err));
    e->all_passed.n += n;
    *out = passed;
    return FR_OK;
}

/* Some chunk without a layer has nothing that waits. */
static bool has_passes(const est_plan *x)
{
    const int32_t n = x->pp * x->vpp;
    int64_t n_passes = n * x->n_micro * (x->is_split ? 3 : 2);
    if (x->pp == 1 || n_passes > MOST_PASSES)
        return false;
    for (int32_t i = 0; i < n; i++)
        if (x->passes[i].n_layers == 0)
            return false;
    return true;
}

fr_status est_path_find(est_plan *x, int64_t *out_ps, fr_err *err)
{
    const fr_schedule *schedule = fr_schedules[x->plan->schedule];
    const est_passed *passed;
    *out_ps = 0;
    if (!has_passes(x))
        return FR_OK;
    FR_TRY(find(x, &passed, err));
    for (int32_t i = 0; i < x->pp * x->vpp; i++) {
        const est_passed *n = &passed[i];
        const est_pass_times *t = &x->passes[i];
        bool is_up = !x->is_v || i < x->pp; /* towards later ranks */
        int32_t from = is_up && i > 0 ? i - 1 : i;
        int32_t rank = fr_schedule_rank(schedule, from, x->pp);
        *out_ps += n->n_forward * t->forward_ps +
                   n->n_backward * t->backward_ps +
                   n->n_weights * t->weights_ps - n->n_late * t->early_ps +
                   n->n_hops * x->stages[rank].hop_ps;
    }
    return FR_OK;
}
