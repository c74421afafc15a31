/*
 * router.cu: the experts of each row, their weights, and the gradient
 * (kernels_moe.c has the formulas and their sources).
 *
 * A warp has a row: each lane every 32nd expert, whose scores lie in shared
 * memory.  Bytes moved: the logits once; bound by the top_k passes over them.
 */
#include "kernels/cuda/experts/places.cuh"

extern "C" {
#include "plan/decide/expert_capacity.h"
}

enum { THREADS = 128, N_WARPS = THREADS / 32 };
enum { DROP_THREADS = 1024, DIGIT_BITS = 8, N_DIGITS = 1 << DIGIT_BITS };

struct router_shape {
    fr_router_dims dim;
    float scale;
    bool is_by_sigmoid;
    bool is_over_all; /* weights do not add up to the scale */
};

static router_shape shape_of(const fr_kernel_call *call)
{
    const fr_instr *instr = call->instr;
    return {instr->router, instr->scalar > 0 ? (float)instr->scalar : 1.0F,
            instr->activation == FR_ACTIVATION_SIGMOID,
            (instr->flags & FR_INSTR_APART) != 0};
}

/* Sets of rows over which the auxiliary loss balances the experts; loads: of
 * each set and expert, null where there is no such loss. */
struct balance {
    float *loads;
    int64_t n_parts, part; /* a sequence parallel rank has a part of the rows */
    float slope; /* gradient of a probability per copy of its expert */
};

static balance balance_of(const fr_kernel_call *call, void *loads)
{
    const fr_router_dims *dim = &call->instr->router;
    const fr_plan *plan = call->plan;
    const int64_t n_parts = plan->is_sequence_parallel ? plan->tp : 1;
    if (loads == nullptr)
        return {};
    const double n_sequences = (double)plan->micro_batch / (double)dim->n_sets;
    const double n_tokens = n_sequences * (double)call->job->seq;
    return {(float *)loads, n_parts, n_parts > 1 ? call->tp_coordinate : 0,
            (float)(call->model->router_aux_coef * (double)dim->n_experts /
                    ((double)dim->top_k * n_tokens * n_tokens) * n_sequences /
                    (double)call->job->global_batch)};
}

FR_DEVICE float *loads_of(const balance &of, const fr_router_dims &dim,
                          int64_t row)
{
    const int64_t set =
        (of.part * dim.rows + row) * dim.n_sets / (of.n_parts * dim.rows);
    return of.loads + set * dim.n_experts;
}

FR_DEVICE float sigmoid(float x)
{
    return 1.0F / (1.0F + expf(-x));
}

/* ---- the best ----------------------------------------------------------- */

/* The better of two candidates; of equal ones the first; at -1: none. */
struct candidate {
    float score;
    int at;
};

FR_DEVICE candidate better(candidate a, candidate b)
{
    const bool is_other = b.at >= 0 && (a.at < 0 || b.score > a.score ||
                                        (b.score == a.score && b.at < a.at));
    return is_other ? b : a;
}

FR_DEVICE candidate warp_best(candidate mine)
{
#pragma unroll
    for (int mask = 16; mask > 0; mask /= 2) {
        const candidate other = {__shfl_xor_sync(0xffffffffU, mine.score, mask),
                                 __shfl_xor_sync(0xffffffffU, mine.at, mask)};
        mine = better(mine, other);
    }
    /* With NaNs the lanes may differ, so lane 0 decides. */
    return {__shfl_sync(0xffffffffU, mine.score, 0),
            __shfl_sync(0xffffffffU, mine.at, 0)};
}

/* Takes the best item that is left; bit i of a lane's `gone` marks item 32 i +
 * lane as taken. */
FR_DEVICE candidate take_best(const float *scores, int first, int n,
                              uint32_t *gone)
{
    const int lane = threadIdx.x % 32;
    candidate best = {0.0F, -1};
    for (int i = lane; i < n; i += 32)
        if (!(*gone >> (i / 32) & 1U))
            best = better(best, {scores[first + i], i});
    best = warp_best(best);
    if (best.at % 32 == lane)
        *gone |= 1U << (best.at / 32);
    return best;
}

/* Scores of the experts of groups that are not chosen become the least. */
FR_DEVICE void leave_groups(const router_shape &at, float *scores,
                            float *of_group)
{
    const int n_groups = (int)at.dim.n_groups;
    const int per_group = (int)at.dim.n_experts / n_groups;
    const int lane = threadIdx.x % 32;
    for (int g = 0; g < n_groups; g++) {
        uint32_t gone = 0;
        float sum = take_best(scores, g * per_group, per_group, &gone).score;
        if (at.is_by_sigmoid && per_group > 1)
            sum += take_best(scores, g * per_group, per_group, &gone).score;
        if (lane == 0)
            of_group[g] = sum;
    }
    __syncwarp();
    uint32_t chosen = 0;
    for (int64_t i = 0; i < at.dim.n_chosen_groups; i++)
        (void)take_best(of_group, 0, n_groups, &chosen);
    for (int g = 0; g < n_groups; g++) {
        const uint32_t bits = __shfl_sync(0xffffffffU, chosen, g % 32);
        if (bits >> (g / 32) & 1U)
            continue;
        for (int e = lane; e < per_group; e += 32)
            scores[g * per_group + e] = -INFINITY;
    }
    __syncwarp();
}

/* ---- forward ------------------------------------------------------------ */

/* Over the experts of a row that the lanes have. */
template <class T> FR_DEVICE float largest_of(const T *logits, int64_t n)
{
    float max = -INFINITY;
    for (int64_t e = threadIdx.x % 32; e < n; e += 32)
        max = max_of()(max, to_float(logits[e]));
    return warp_reduce(max, max_of());
}

template <class T>
FR_DEVICE float sum_exp(const T *logits, int64_t n, float shift)
{
    float sum = 0;
    for (int64_t e = threadIdx.x % 32; e < n; e += 32)
        sum += expf(to_float(logits[e]) - shift);
    return warp_sum(sum);
}

/* The weights of a row's experts; one lane writes them. */
template <class T>
FR_DEVICE void weigh(const router_shape &at, const T *logits, choice *row)
{
    const int64_t top_k = at.dim.top_k, n = at.dim.n_experts;
    float max = to_float(logits[row[0].expert]), sum = 0;
    if (at.is_over_all && !at.is_by_sigmoid)
        max = largest_of(logits, n);
    for (int64_t k = 0; k < top_k; k++) {
        const float x = to_float(logits[row[k].expert]);
        sum += at.is_by_sigmoid ? sigmoid(x) : expf(x - max);
    }
    if (at.is_over_all)
        sum = at.is_by_sigmoid ? 1.0F : sum_exp(logits, n, max);
    for (int64_t k = threadIdx.x % 32; k < top_k; k += 32) {
        const float x = to_float(logits[row[k].expert]);
        row[k].weight =
            at.scale * ((at.is_by_sigmoid ? sigmoid(x) : expf(x - max)) / sum);
    }
}

template <class T>
__global__ void choose(router_shape at, const T *logits, const T *bias,
                       choice *chosen, int32_t *counts, balance of)
{
    FR_SHARED(shared);
    const int lane = threadIdx.x % 32, n = (int)at.dim.n_experts;
    const int64_t row = (int64_t)blockIdx.x * N_WARPS + threadIdx.x / 32;
    float *scores = (float *)shared + (int64_t)(threadIdx.x / 32) * 2 * n;
    if (row >= at.dim.rows)
        return;
    const T *own = logits + row * n;
    choice *out = chosen + row * at.dim.top_k;
    for (int e = lane; e < n; e += 32) {
        const float x = to_float(own[e]);
        scores[e] = (at.is_by_sigmoid ? sigmoid(x) : x) +
                    (bias ? to_float(bias[e]) : 0.0F);
    }
    __syncwarp();
    if (at.dim.n_groups > 1)
        leave_groups(at, scores, scores + n);
    uint32_t gone = 0;
    for (int64_t k = 0; k < at.dim.top_k; k++) {
        const candidate best = take_best(scores, 0, n, &gone);
        if (lane != 0)
            continue;
        out[k].expert = best.at;
        atomicAdd(&counts[best.at], 1);
        if (of.loads) /* whole numbers: the order makes no difference */
            atomicAdd(&loads_of(of, at.dim, row)[best.at], 1.0F);
    }
    __syncwarp();
    weigh(at, own, out);
}

/* ---- capacity of the experts --------------------------------------------- */

/* Copies in the order in which they stay: by weights, which are positive, of
 * equal ones the first. */
FR_DEVICE uint64_t order_of(const choice &copy, int64_t i)
{
    return (uint64_t)__float_as_uint(copy.weight) << 32 | (uint32_t)~i;
}

/* The digit of the last copy that stays, of those of one expert that agree in
 * all digits before: how many of them have it, and how many of these stay. */
struct last_digit {
    uint64_t digit;
    int32_t n, n_staying;
};

/* Keeps for each expert the `capacity` copies that come first in their order.
 * A block has an expert: it finds the last of them digit by digit, until all
 * that agree with it so far stay. */
__global__ __launch_bounds__(DROP_THREADS) void drop_copies(choice *chosen,
                                                            int64_t n,
                                                            int32_t capacity,
                                                            int32_t *counts)
{
    __shared__ int32_t of_digit[N_DIGITS];
    __shared__ last_digit last;
    const int32_t expert = (int32_t)blockIdx.x, thread = (int32_t)threadIdx.x;
    int32_t n_left = counts[expert], n_staying = capacity;
    uint64_t first = 0, mask = 0;
    if (n_left <= capacity)
        return;
    for (int shift = 64 - DIGIT_BITS; n_staying < n_left; shift -= DIGIT_BITS) {
        if (thread < N_DIGITS)
            of_digit[thread] = 0;
        __syncthreads();
        for (int64_t i = thread; i < n; i += DROP_THREADS) {
            const uint64_t order = order_of(chosen[i], i);
            if (chosen[i].expert == expert && (order & mask) == first)
                atomicAdd(&of_digit[order >> shift & (N_DIGITS - 1)], 1);
        }
        __syncthreads();
        int32_t n_above = 0;
        for (int digit = thread + 1; digit < N_DIGITS; digit++)
            n_above += of_digit[digit];
        if (thread < N_DIGITS && n_above < n_staying &&
            n_staying <= n_above + of_digit[thread])
            last = {(uint64_t)thread, of_digit[thread], n_staying - n_above};
        __syncthreads();
        n_left = last.n;
        n_staying = last.n_staying;
        first |= last.digit << shift;
        mask |= (uint64_t)(N_DIGITS - 1) << shift;
    }
    for (int64_t i = thread; i < n; i += DROP_THREADS)
        if (chosen[i].expert == expert &&
            (order_of(chosen[i], i) & mask) < first)
            chosen[i].expert = -1 - expert;
    if (thread == 0)
        counts[expert] = capacity;
}

static void drop_beyond_capacity(const fr_cuda_launch *launch)
{
    const fr_kernel_call *call = &launch->call;
    const fr_router_dims *d = &call->instr->router;
    if ((call->instr->flags & FR_INSTR_CAPPED) == 0)
        return;
    const int64_t capacity =
        fr_expert_capacity(call->plan, d->rows, d->top_k, d->n_experts);
    start({dim3((unsigned)d->n_experts), DROP_THREADS, 0, launch->stream},
          drop_copies, (choice *)call->ptr[FR_ROUTER_FWD_CHOSEN],
          d->rows * d->top_k, (int32_t)capacity,
          (int32_t *)call->ptr[FR_ROUTER_FWD_COUNTS]);
}

/* ---- forward, on --------------------------------------------------------- */

extern "C" fr_status fr_cuda_router_fwd(const fr_cuda_launch *launch,
                                        fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    const router_shape at = shape_of(call);
    const size_t n = (size_t)at.dim.n_experts;
    void *const *ptr = call->ptr;
    if (n > FR_MOST_EXPERTS)
        return fr_fail(err, FR_INPUT, "%lld experts have no CUDA kernel",
                       (long long)n);
    cudaMemsetAsync(ptr[FR_ROUTER_FWD_COUNTS], 0, n * sizeof(int32_t),
                    (cudaStream_t)launch->stream);
    const balance of = balance_of(call, ptr[FR_ROUTER_FWD_LOADS]);
    if (of.loads)
        cudaMemsetAsync(of.loads, 0, (size_t)at.dim.n_sets * n * sizeof(float),
                        (cudaStream_t)launch->stream);
    bool is_known = with_type(call->instr->dtype, [&](auto t) {
        using T = decltype(t);
        start({dim3(blocks_of(at.dim.rows, N_WARPS)), THREADS,
               2 * N_WARPS * n * sizeof(float), launch->stream},
              choose<T>, at, (const T *)ptr[FR_ROUTER_FWD_LOGITS],
              (const T *)ptr[FR_ROUTER_FWD_BIAS],
              (choice *)ptr[FR_ROUTER_FWD_CHOSEN],
              (int32_t *)ptr[FR_ROUTER_FWD_COUNTS], of);
        drop_beyond_capacity(launch);
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}

/* ---- backward ----------------------------------------------------------- */

/* The inputs of the gradients of a row's logits. */
struct router_row {
    const choice *chosen;
    const int32_t *places;
    float mean; /* sum of weights times their gradients */
};

/* A dropped copy has no gradient, but a part in the gradients of others. */
FR_DEVICE float weight_grad(const router_row &row, const float *dweights,
                            int64_t k)
{
    return row.places[k] < 0 ? 0.0F : dweights[row.places[k]];
}

/* The gradient by the weight of the row's k-th expert, as far as it goes
 * through that weight alone. */
template <class T>
FR_DEVICE float by_weight(const router_shape &at, const router_row &row,
                          const T *logits, float dweight, int64_t k)
{
    const choice *own = &row.chosen[k];
    if (!at.is_by_sigmoid)
        return own->weight * dweight -
               (at.is_over_all ? 0.0F : own->weight / at.scale * row.mean);
    float sum = at.is_over_all ? 1.0F : 0.0F;
    for (int64_t j = 0; !at.is_over_all && j < at.dim.top_k; j++)
        sum += sigmoid(to_float(logits[expert_of(row.chosen[j])]));
    const float s = sigmoid(to_float(logits[expert_of(*own)]));
    const float ds = at.scale * dweight - (at.is_over_all ? 0.0F : row.mean);
    return ds / sum * s * (1.0F - s);
}

/* The loads of a row's set, and the inputs of its probabilities. */
struct balance_row {
    const float *loads;
    float max, sum, mean; /* mean: of the loads, by the probabilities */
};

/* A probability times the sum of all: softmax over all, or a sigmoid. */
FR_DEVICE float balanced_part(const router_shape &at, float logit, float max)
{
    return at.is_by_sigmoid ? sigmoid(logit) : expf(logit - max);
}

template <class T>
FR_DEVICE balance_row balance_row_of(const router_shape &at, const T *logits,
                                     int64_t i, float max, const balance &of)
{
    if (!of.loads)
        return {};
    const float *loads = loads_of(of, at.dim, i);
    float sum = 0, mean = 0;
    for (int64_t e = threadIdx.x % 32; e < at.dim.n_experts; e += 32) {
        const float p = balanced_part(at, to_float(logits[e]), max);
        sum += p;
        mean += p * loads[e];
    }
    sum = warp_sum(sum);
    return {loads, max, sum, warp_sum(mean) / sum};
}

/* The gradient of an expert's logit by the auxiliary loss. */
FR_DEVICE float by_balance(const router_shape &at, const balance_row &row,
                           float logit, int64_t e, float slope)
{
    const float p = balanced_part(at, logit, row.max);
    return slope * p / row.sum * (row.loads[e] - row.mean) *
           (at.is_by_sigmoid ? 1.0F - p : 1.0F);
}

template <class T>
__global__ void choose_grad(router_shape at, const choice *chosen,
                            const int32_t *places, const T *logits,
                            const float *dweights, T *dlogits, balance of)
{
    const int lane = threadIdx.x % 32;
    const int64_t n = at.dim.n_experts, top_k = at.dim.top_k;
    const int64_t i = (int64_t)blockIdx.x * N_WARPS + threadIdx.x / 32;
    if (i >= at.dim.rows)
        return;
    const T *own = logits + i * n;
    router_row row = {chosen + i * top_k, places + i * top_k, 0.0F};
    for (int64_t k = 0; k < top_k; k++)
        row.mean += row.chosen[k].weight * weight_grad(row, dweights, k);
    const float max = largest_of(own, n), sum = sum_exp(own, n, max);
    const bool is_softmax = at.is_over_all && !at.is_by_sigmoid;
    const balance_row balanced = balance_row_of(at, own, i, max, of);
    for (int64_t e = lane; e < n; e += 32) {
        float out =
            is_softmax ? -expf(to_float(own[e]) - max) / sum * row.mean : 0.0F;
        if (of.loads)
            out += by_balance(at, balanced, to_float(own[e]), e, of.slope);
        for (int64_t k = 0; k < top_k; k++)
            if (expert_of(row.chosen[k]) == e)
                out +=
                    by_weight(at, row, own, weight_grad(row, dweights, k), k);
        store(&dlogits[i * n + e], out);
    }
}

extern "C" fr_status fr_cuda_router_bwd(const fr_cuda_launch *launch,
                                        fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    const router_shape at = shape_of(call);
    void *const *ptr = call->ptr;
    const copy_list copies = {(const choice *)ptr[FR_ROUTER_BWD_CHOSEN],
                              at.dim.rows * at.dim.top_k, at.dim.n_experts,
                              at.dim.n_slots, at.dim.slot_rows};
    const int32_t *places = nullptr;
    FR_TRY(find_places(launch, copies, &places, err));
    bool is_known = with_type(call->instr->dtype, [&](auto t) {
        using T = decltype(t);
        start(
            {dim3(blocks_of(at.dim.rows, N_WARPS)), THREADS, 0, launch->stream},
            choose_grad<T>, at, copies.chosen, places,
            (const T *)ptr[FR_ROUTER_BWD_LOGITS],
            (const float *)ptr[FR_ROUTER_BWD_DWEIGHTS],
            (T *)ptr[FR_ROUTER_BWD_DLOGITS],
            balance_of(call, ptr[FR_ROUTER_BWD_LOADS]));
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}
