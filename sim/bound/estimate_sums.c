/* estimate_sums.c: what is known of a few layers, for all of them. */
#include "sim/bound/estimate_state.h"

#include <string.h>

/* Layers of a run that are enough: the first, one of the middle and the last;
 * of a whole model four. */
enum { FEW_FIRST = 3, FEW_OTHERS = 4 };

est_few est_few_of(int32_t n_first_all, int32_t n_all)
{
    const int32_t n_others = n_all - n_first_all;
    est_few few = {.n_first_all = n_first_all,
                   .n_all = n_all,
                   .n_first =
                       n_first_all < FEW_FIRST ? n_first_all : FEW_FIRST};
    few.n = few.n_first + (n_others < FEW_OTHERS ? n_others : FEW_OTHERS);
    return few;
}

/* The layer that stands for layer i of a run of n, which n_few are left of. */
static int32_t stands_for(int32_t i, int32_t n, int32_t n_few)
{
    return n_few == n || i == 0 ? i : i == n - 1 ? n_few - 1 : 1;
}

static int32_t like(const est_few *few, int32_t i)
{
    if (i < few->n_first_all)
        return stands_for(i, few->n_first_all, few->n_first);
    if (i < few->n_all)
        return few->n_first + stands_for(i - few->n_first_all,
                                         few->n_all - few->n_first_all,
                                         few->n - few->n_first);
    return few->n + i - few->n_all; /* predicts further tokens */
}

static void spread(int32_t n, const est_few *few, est_layers *out)
{
    for (int32_t i = n; i-- > 0;) {
        int32_t from = like(few, i) + 1, to = i + 1;
        for (int k = 0; k < EST_KINDS; k++) {
            est_times *t = &out->times[k];
            t->forward_ps[to] = t->forward_ps[from];
            t->backward_ps[to] = t->backward_ps[from];
            t->weights_ps[to] = t->weights_ps[from];
            t->recompute_ps[to] = t->recompute_ps[from];
        }
        out->n_dense[to] = out->n_dense[from];
        out->n_expert[to] = out->n_expert[from];
        out->kept_bytes[to] = out->kept_bytes[from];
        out->plain_bytes[to] = out->plain_bytes[from];
        out->pending_bytes[to] = out->pending_bytes[from];
        out->layer_scratch_bytes[to] = out->layer_scratch_bytes[from];
    }
}

static int64_t shortest(int32_t n, const int64_t *sum_ps)
{
    int64_t least_ps = INT64_MAX;
    for (int32_t i = 0; i < n; i++)
        least_ps = est_least(least_ps, sum_ps[i + 1] - sum_ps[i]);
    return least_ps;
}

/* The most that a pass of any layer takes, and leaves of its processors. */
static void find_most(int32_t n, est_layers *l)
{
    const est_times *t = &l->times[EST_BOUND], *c = &l->times[EST_CORES];
    for (int32_t i = 0; i < n; i++) {
        int64_t forward_ps = t->forward_ps[i + 1] - t->forward_ps[i];
        int64_t core_ps = c->forward_ps[i + 1] - c->forward_ps[i];
        l->most_forward_ps = est_most(l->most_forward_ps, forward_ps);
        l->most_forward_rest_ps =
            est_most(l->most_forward_rest_ps, forward_ps - core_ps);
        int64_t backward_ps = t->backward_ps[i + 1] - t->backward_ps[i];
        int64_t recompute_ps = t->recompute_ps[i + 1] - t->recompute_ps[i];
        core_ps = c->backward_ps[i + 1] - c->backward_ps[i];
        l->most_backward_ps =
            est_most(l->most_backward_ps, backward_ps + recompute_ps);
        l->most_backward_rest_ps =
            est_most(l->most_backward_rest_ps, backward_ps - core_ps);
        core_ps += c->recompute_ps[i + 1] - c->recompute_ps[i];
        l->most_backward_rest_ps = est_most(
            l->most_backward_rest_ps, backward_ps + recompute_ps - core_ps);
    }
}

static uint64_t smallest(int32_t n, const uint64_t *sum)
{
    uint64_t least = UINT64_MAX;
    for (int32_t i = 0; i < n; i++)
        least = sum[i + 1] - sum[i] < least ? sum[i + 1] - sum[i] : least;
    return least;
}

static void find_least(int32_t n, est_layers *l)
{
    l->least_kept_bytes = smallest(n, l->kept_bytes);
    l->least_dense = smallest(n, l->n_dense);
    l->least_expert = smallest(n, l->n_expert);
    l->least_scratch_bytes = UINT64_MAX;
    for (int32_t i = 1; i <= n; i++)
        if (l->layer_scratch_bytes[i] < l->least_scratch_bytes)
            l->least_scratch_bytes = l->layer_scratch_bytes[i];
}

static bool is_exact(int32_t n_layers, const est_layers *l)
{
    const est_times *a = &l->times[0], *b = &l->times[1];
    const size_t n = ((size_t)n_layers + 1) * sizeof *a->forward_ps;
    return memcmp(a->forward_ps, b->forward_ps, n) == 0 &&
           memcmp(a->backward_ps, b->backward_ps, n) == 0 &&
           memcmp(a->weights_ps, b->weights_ps, n) == 0 &&
           memcmp(a->recompute_ps, b->recompute_ps, n) == 0 &&
           a->embed_ps == b->embed_ps && a->head_ps == b->head_ps &&
           a->embed_back_ps == b->embed_back_ps;
}

static void sum_up(int32_t n, est_layers *out)
{
    for (int k = 0; k < EST_KINDS; k++) {
        est_times *t = &out->times[k];
        for (int32_t i = 1; i <= n; i++) {
            t->forward_ps[i] += t->forward_ps[i - 1];
            t->backward_ps[i] += t->backward_ps[i - 1];
            t->weights_ps[i] += t->weights_ps[i - 1];
            t->recompute_ps[i] += t->recompute_ps[i - 1];
        }
    }
    for (int32_t i = 1; i <= n; i++) {
        out->n_dense[i] += out->n_dense[i - 1];
        out->n_expert[i] += out->n_expert[i - 1];
        out->kept_bytes[i] += out->kept_bytes[i - 1];
        out->plain_bytes[i] += out->plain_bytes[i - 1];
        out->pending_bytes[i] += out->pending_bytes[i - 1];
    }
}

est_pass est_pass_of(const fr_segment *segment)
{
    switch ((fr_segment_role)segment->role) {
    case FR_SEGMENT_RECOMPUTE:
        return EST_RECOMPUTE;
    case FR_SEGMENT_INPUT:
    case FR_SEGMENT_EMBED:
    case FR_SEGMENT_FORWARD:
        return EST_FORWARD;
    case FR_SEGMENT_WEIGHTS:
        return EST_WEIGHTS;
    default:
        return EST_BACKWARD;
    }
}

void est_layers_sum(int32_t n, const est_few *few, est_layers *l)
{
    const est_times *least = &l->times[EST_BOUND];
    if (few->n > 0) {
        spread(n, few, l);
        l->n_steps = l->n_steps * n / (few->n + n - few->n_all);
    }
    sum_up(n, l);
    l->least_forward_ps = shortest(n, least->forward_ps);
    l->least_backward_ps = shortest(n, least->backward_ps);
    l->least_weights_ps = shortest(n, least->weights_ps);
    find_most(n, l);
    find_least(n, l);
    l->is_exact = is_exact(n, l);
}
