/*
 * kernels_moe.c: the router of a mixture of experts (Shazeer et al. 2017, arXiv
 * 1701.06538; weights as in Mixtral, arXiv 2401.04088, section 2.1), and rows
 * to the order of their experts and back.
 *
 * The order is by expert, then by row: where a copy of a row goes follows from
 * `chosen` alone, so every kernel counts it out again and nothing is kept.
 */
#include "kernels/cpu/kernels_simd.h"
#include "kernels/kernels_list.h"
#include "plan/decide/expert_capacity.h"

#include <assert.h>
#include <math.h>

/* The router's choice for a row; expert -1 - e: expert e, which has no room. */
typedef struct choice {
    float weight;
    int32_t expert;
} choice;

static bool is_dropped(const choice *copy)
{
    return copy->expert < 0;
}

static int32_t expert_of(const choice *copy)
{
    return copy->expert < 0 ? -1 - copy->expert : copy->expert;
}

/* The rank of the next copy to each expert. */
typedef struct places {
    int64_t next[FR_MOST_EXPERTS];
} places;

/* All copies, and the slots that they go to. */
typedef struct copies {
    const choice *chosen;
    int64_t n, n_experts, n_slots, slot_rows;
} copies;

/* Places as they are before copy `first`. */
static void places_before(places *at, const copies *all, int64_t first)
{
    const choice *chosen = all->chosen;
    const int64_t per_slot = all->n_experts / all->n_slots;
    int64_t sum = 0;
    for (int64_t e = 0; e < all->n_experts; e++)
        at->next[e] = 0;
    for (int64_t i = 0; i < all->n; i++)
        if (!is_dropped(&chosen[i]))
            at->next[chosen[i].expert]++;
    for (int64_t e = 0; e < all->n_experts; e++) {
        int64_t n = at->next[e];
        if (e % per_slot == 0)
            sum = e / per_slot * all->slot_rows;
        at->next[e] = sum;
        sum += n;
    }
    for (int64_t i = 0; i < first; i++)
        if (!is_dropped(&chosen[i]))
            at->next[chosen[i].expert]++;
}

/* ---- router ------------------------------------------------------------- */

static float largest_of(const float *x, int64_t n)
{
    return fr_floats_max(x, n, x[0]);
}

static float sum_exp(const float *x, int64_t n, float shift)
{
    float sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += fr_fast_expf(x[i] - shift);
    return sum;
}

static bool is_among(const choice *chosen, int64_t n, int64_t expert)
{
    for (int64_t i = 0; i < n; i++)
        if (chosen[i].expert == expert)
            return true;
    return false;
}

/* The best first; of equal ones the first. */
static void choose(const float *scores, int64_t n_experts, int64_t top_k,
                   choice *out)
{
    for (int64_t k = 0; k < top_k; k++) {
        int64_t best = -1;
        for (int64_t e = 0; e < n_experts; e++)
            if ((best < 0 || scores[e] > scores[best]) && !is_among(out, k, e))
                best = e;
        out[k] = (choice){scores[best], (int32_t)best};
    }
}

static float sigmoid(float x)
{
    return 1.0F / (1.0F + fr_fast_expf(-x));
}

static bool is_by_sigmoid(const fr_kernel_call *call)
{
    return call->instr->activation == FR_ACTIVATION_SIGMOID;
}

/* Returns the factor of the weights. */
static float scale_of(const fr_kernel_call *call)
{
    return call->instr->scalar > 0 ? (float)call->instr->scalar : 1.0F;
}

/* Scores of the experts of groups that are not chosen become the least. */
static void leave_groups(const fr_router_dims *d, bool is_by_two, float *scores)
{
    const int64_t per_group = d->n_experts / d->n_groups;
    const int64_t n_best = is_by_two && per_group > 1 ? 2 : 1;
    float of_group[FR_MOST_EXPERTS];
    choice best[FR_MOST_EXPERTS];
    for (int64_t g = 0; g < d->n_groups; g++) {
        choose(scores + g * per_group, per_group, n_best, best);
        of_group[g] = best[0].weight + (n_best > 1 ? best[1].weight : 0.0F);
    }
    choose(of_group, d->n_groups, d->n_chosen_groups, best);
    for (int64_t e = 0; e < d->n_experts; e++)
        if (!is_among(best, d->n_chosen_groups, e / per_group))
            scores[e] = -INFINITY;
}

/* The experts of a row, without weights. */
static void choose_experts(const fr_kernel_call *call, const float *logits,
                           choice *out)
{
    const fr_router_dims *d = &call->instr->router;
    const float *bias = call->ptr[FR_ROUTER_FWD_BIAS];
    float scores[FR_MOST_EXPERTS];
    for (int64_t e = 0; e < d->n_experts; e++)
        scores[e] = (is_by_sigmoid(call) ? sigmoid(logits[e]) : logits[e]) +
                    (bias != NULL ? bias[e] : 0.0F);
    if (d->n_groups > 1)
        leave_groups(d, is_by_sigmoid(call), scores);
    choose(scores, d->n_experts, d->top_k, out);
}

/* The weights of the chosen experts of a row. */
static void weigh(const fr_kernel_call *call, const float *logits, choice *row)
{
    const fr_router_dims *d = &call->instr->router;
    const float scale = scale_of(call);
    bool is_over_all = (call->instr->flags & FR_INSTR_APART) != 0;
    float max = logits[row[0].expert], sum = 0;
    if (is_over_all && !is_by_sigmoid(call))
        max = largest_of(logits, d->n_experts);
    for (int64_t k = 0; k < d->top_k; k++) {
        const float x = logits[row[k].expert];
        row[k].weight =
            is_by_sigmoid(call) ? sigmoid(x) : fr_fast_expf(x - max);
        sum += row[k].weight;
    }
    if (is_over_all)
        sum = is_by_sigmoid(call) ? 1.0F : sum_exp(logits, d->n_experts, max);
    for (int64_t k = 0; k < d->top_k; k++)
        row[k].weight = scale * (row[k].weight / sum);
}

/* ---- balance of the experts ---------------------------------------------- */

/* The set of a row; a sequence parallel rank has a part of the rows. */
static int64_t set_of(const fr_kernel_call *call, int64_t row)
{
    const fr_router_dims *d = &call->instr->router;
    const fr_plan *plan = call->plan;
    const int64_t n_parts = plan->is_sequence_parallel ? plan->tp : 1;
    const int64_t part = n_parts > 1 ? call->tp_coordinate : 0;
    return (part * d->rows + row) * d->n_sets / (n_parts * d->rows);
}

static void count_loads(const fr_kernel_call *call)
{
    const fr_router_dims *d = &call->instr->router;
    const choice *chosen = call->ptr[FR_ROUTER_FWD_CHOSEN];
    float *loads = call->ptr[FR_ROUTER_FWD_LOADS];
    if (loads == NULL)
        return;
    memset(loads, 0, (size_t)(d->n_sets * d->n_experts) * sizeof *loads);
    for (int64_t i = 0; i < d->rows * d->top_k; i++)
        loads[set_of(call, i / d->top_k) * d->n_experts + chosen[i].expert] +=
            1.0F;
}

/* The gradient of a probability per copy that its expert has in the set. */
static float slope_of(const fr_kernel_call *call)
{
    const fr_router_dims *d = &call->instr->router;
    const double n_sequences =
        (double)call->plan->micro_batch / (double)d->n_sets;
    const double n_tokens = n_sequences * (double)call->job->seq;
    return (float)(call->model->router_aux_coef * (double)d->n_experts /
                   ((double)d->top_k * n_tokens * n_tokens) * n_sequences /
                   (double)call->job->global_batch);
}

/* Adds the gradients of a row's logits of the auxiliary loss.  Probabilities
 * are softmax over all, or sigmoids over their sum. */
static void add_balance(const fr_kernel_call *call, int64_t i)
{
    const int64_t n = call->instr->router.n_experts;
    const float *loads =
        (const float *)call->ptr[FR_ROUTER_BWD_LOADS] + set_of(call, i) * n;
    const float *logits =
        (const float *)call->ptr[FR_ROUTER_BWD_LOGITS] + i * n;
    float *out = (float *)call->ptr[FR_ROUTER_BWD_DLOGITS] + i * n;
    const float slope = slope_of(call), max = largest_of(logits, n);
    const bool is_sigmoid = is_by_sigmoid(call);
    float p[FR_MOST_EXPERTS], sum = 0, mean = 0;
    for (int64_t e = 0; e < n; e++) {
        p[e] = is_sigmoid ? sigmoid(logits[e]) : fr_fast_expf(logits[e] - max);
        sum += p[e];
        mean += p[e] * loads[e];
    }
    mean /= sum;
    for (int64_t e = 0; e < n; e++)
        out[e] += slope * p[e] / sum * (loads[e] - mean) *
                  (is_sigmoid ? 1.0F - p[e] : 1.0F);
}

/* ---- capacity of the experts --------------------------------------------- */

/* Weights, which are positive, in the order of their bits. */
static uint32_t bits_of(float weight)
{
    uint32_t bits;
    memcpy(&bits, &weight, sizeof bits);
    return bits;
}

/*
 * Keeps for each expert the `capacity` copies with the largest weights, of
 * equal ones the first.  The least weight that stays is found bit by bit for
 * all experts at once: the largest number that as many weights reach.
 */
static void drop_copies(const fr_router_dims *d, int64_t capacity,
                        choice *chosen)
{
    const int64_t n = d->rows * d->top_k;
    uint32_t least[FR_MOST_EXPERTS] = {0};
    int64_t n_met[FR_MOST_EXPERTS], left[FR_MOST_EXPERTS];
    for (int bit = 31; bit >= 0; bit--) {
        memset(n_met, 0, sizeof n_met);
        for (int64_t i = 0; i < n; i++)
            n_met[chosen[i].expert] +=
                bits_of(chosen[i].weight) >=
                (least[chosen[i].expert] | UINT32_C(1) << bit);
        for (int64_t e = 0; e < d->n_experts; e++)
            if (n_met[e] >= capacity)
                least[e] |= UINT32_C(1) << bit;
    }
    for (int64_t e = 0; e < d->n_experts; e++)
        left[e] = capacity;
    for (int64_t i = 0; i < n; i++)
        left[chosen[i].expert] -=
            bits_of(chosen[i].weight) > least[chosen[i].expert];
    for (int64_t i = 0; i < n; i++) {
        const int32_t e = chosen[i].expert;
        const uint32_t bits = bits_of(chosen[i].weight);
        if (bits < least[e] || (bits == least[e] && left[e]-- <= 0))
            chosen[i].expert = -1 - e;
    }
}

/* ---- router, on ---------------------------------------------------------- */

void fr_kernel_router_fwd(const fr_kernel_call *call)
{
    const fr_router_dims *d = &call->instr->router;
    const int64_t n = d->n_experts, top_k = d->top_k;
    const float *logits = call->ptr[FR_ROUTER_FWD_LOGITS];
    choice *chosen = call->ptr[FR_ROUTER_FWD_CHOSEN];
    int32_t *counts = call->ptr[FR_ROUTER_FWD_COUNTS];
#pragma omp parallel for num_threads(fr_team(call, d->rows *n)) schedule(static)
    for (int64_t i = 0; i < d->rows; i++) {
        choose_experts(call, logits + i * n, chosen + i * top_k);
        weigh(call, logits + i * n, chosen + i * top_k);
    }
    count_loads(call);
    if ((call->instr->flags & FR_INSTR_CAPPED) != 0)
        drop_copies(d, fr_expert_capacity(call->plan, d->rows, top_k, n),
                    chosen);
    for (int64_t e = 0; e < n; e++)
        counts[e] = 0;
    for (int64_t i = 0; i < d->rows * top_k; i++)
        if (!is_dropped(&chosen[i]))
            counts[chosen[i].expert]++;
}

/* For weights scale s / sum, where s are sigmoids: replaces the gradients of
 * the weights in `out` by those of the logits. */
static void sigmoid_backward(const fr_kernel_call *call, const choice *row,
                             const float *logits, float mean, float *out)
{
    const int64_t top_k = call->instr->router.top_k;
    bool is_over_sum = (call->instr->flags & FR_INSTR_APART) == 0;
    float sum = is_over_sum ? 0.0F : 1.0F;
    for (int64_t k = 0; is_over_sum && k < top_k; k++)
        sum += sigmoid(logits[expert_of(&row[k])]);
    for (int64_t k = 0; k < top_k; k++) {
        const int32_t e = expert_of(&row[k]);
        const float s = sigmoid(logits[e]);
        const float ds = scale_of(call) * out[e] - (is_over_sum ? mean : 0.0F);
        out[e] = ds / sum * s * (1.0F - s);
    }
}

/* The gradients of one row's logits from those of its weights, which lie where
 * its copies are. */
static void router_row(const fr_kernel_call *call, int64_t i, places *at)
{
    const fr_router_dims *d = &call->instr->router;
    const int64_t n = d->n_experts;
    const choice *row =
        (const choice *)call->ptr[FR_ROUTER_BWD_CHOSEN] + i * d->top_k;
    const float *logits =
        (const float *)call->ptr[FR_ROUTER_BWD_LOGITS] + i * n;
    const float *dweights = call->ptr[FR_ROUTER_BWD_DWEIGHTS];
    float *out = (float *)call->ptr[FR_ROUTER_BWD_DLOGITS] + i * n;
    bool is_over_all = (call->instr->flags & FR_INSTR_APART) != 0;
    float mean = 0;
    for (int64_t e = 0; e < n; e++)
        out[e] = 0.0F;
    for (int64_t k = 0; k < d->top_k; k++) {
        /* A dropped copy has no gradient, but a part in the gradients of
         * others. */
        float dw =
            is_dropped(&row[k]) ? 0.0F : dweights[at->next[row[k].expert]++];
        out[expert_of(&row[k])] = is_by_sigmoid(call) ? dw : row[k].weight * dw;
        mean += row[k].weight * dw;
    }
    if (is_by_sigmoid(call)) {
        sigmoid_backward(call, row, logits, mean, out);
        return;
    }
    if (!is_over_all) {
        const float scale = scale_of(call);
        for (int64_t k = 0; k < d->top_k; k++)
            out[expert_of(&row[k])] -= row[k].weight / scale * mean;
        return;
    }
    float max = largest_of(logits, n), sum = sum_exp(logits, n, max);
    for (int64_t e = 0; e < n; e++)
        out[e] -= fr_fast_expf(logits[e] - max) / sum * mean;
}

void fr_kernel_router_bwd(const fr_kernel_call *call)
{
    const fr_router_dims *d = &call->instr->router;
    const copies all = {call->ptr[FR_ROUTER_BWD_CHOSEN], d->rows * d->top_k,
                        d->n_experts, d->n_slots, d->slot_rows};
#pragma omp parallel num_threads(fr_team(call, d->rows * d->n_experts))
    {
        places at;
        fr_range part = fr_range_mine(d->rows, 1);
        places_before(&at, &all, part.first * d->top_k);
        for (int64_t i = part.first; i < part.last; i++) {
            router_row(call, i, &at);
            if (call->ptr[FR_ROUTER_BWD_LOADS] != NULL)
                add_balance(call, i);
        }
    }
}

/* ---- to the order of the experts and back ------------------------------- */

void fr_kernel_permute(const fr_kernel_call *call)
{
    const fr_permute_dims *d = &call->instr->permute;
    const int64_t cols = d->cols, top_k = d->top_k;
    const float *src = call->ptr[FR_PERMUTE_SRC];
    const choice *chosen = call->ptr[FR_PERMUTE_CHOSEN];
    const copies all = {chosen, d->rows_in * top_k, d->n_experts, d->n_slots,
                        d->rows_out / d->n_slots};
    float *dst = call->ptr[FR_PERMUTE_DST],
          *weights = call->ptr[FR_PERMUTE_WEIGHTS];
#pragma omp parallel num_threads(fr_team(call, d->rows_out *cols))
    {
        places at;
        fr_range part = fr_range_mine(d->rows_in, 1);
        places_before(&at, &all, part.first * top_k);
        for (int64_t i = part.first * top_k; i < part.last * top_k; i++) {
            if (is_dropped(&chosen[i]))
                continue;
            int64_t to = at.next[chosen[i].expert]++;
            assert(to < d->rows_out);
            memcpy(dst + to * cols, src + i / top_k * cols,
                   (size_t)cols * sizeof *dst);
            if (weights != NULL)
                weights[to] = chosen[i].weight;
        }
    }
}

void fr_kernel_unpermute(const fr_kernel_call *call)
{
    const fr_permute_dims *d = &call->instr->permute;
    const int64_t cols = d->cols, top_k = d->top_k;
    const float *src = call->ptr[FR_UNPERMUTE_SRC];
    const choice *chosen = call->ptr[FR_UNPERMUTE_CHOSEN];
    const copies all = {chosen, d->rows_out * top_k, d->n_experts, d->n_slots,
                        d->rows_in / d->n_slots};
    float *dst = call->ptr[FR_UNPERMUTE_DST];
#pragma omp parallel num_threads(fr_team(call, d->rows_in *cols))
    {
        places at;
        fr_range part = fr_range_mine(d->rows_out, 1);
        places_before(&at, &all, part.first * top_k);
        for (int64_t i = part.first * top_k; i < part.last * top_k; i++) {
            float *to = dst + i / top_k * cols;
            if (i % top_k == 0 && is_dropped(&chosen[i]))
                memset(to, 0, (size_t)cols * sizeof *dst);
            if (is_dropped(&chosen[i]))
                continue;
            const float *from = src + at.next[chosen[i].expert]++ * cols;
            if (i % top_k == 0)
                memcpy(to, from, (size_t)cols * sizeof *dst);
            else
                fr_floats_add(to, from, cols);
        }
    }
}
