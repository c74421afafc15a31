/*
 * optim.cu: the optimizers of optimizer.h, gradient norm and clipping
 * (kernels_optim.c has the formulas).
 *
 * One look at everything: bytes moved per parameter with gradients of g bytes
 * and weights of w (each of them also a float32 master copy, 8 bytes more,
 * where w is 2): AdamW g + 16 + 2 w (w 4) or g + 24 + w (w 2), SGD and LARS 8
 * less; GRAD_SQSUM g; OPT_NORMS of LARS g + 4, of LAMB g + 20.
 *
 * Sums: 16 elements of a thread in fp32, everything beyond in double, blocks
 * in the order of their numbers.
 */
#include "kernels/cuda/kernel_launch.cuh"

extern "C" {
#include "plan/codec/optimizer.h"
#include "kernels/cuda/optim_cuda.h"
}

enum {
    THREADS = 256,
    N_WARPS = THREADS / 32,
    EACH = FR_CUDA_BLOCK_ELEMENTS / THREADS, /* elements of a thread */
    BATCH = 4, /* of them that are updated at a time */
    SUM_THREADS = 1024,
    SUM_WARPS = SUM_THREADS / 32
};

/* The run of this block, and where in the range its elements are. */
struct block_part {
    uint32_t i_run;
    int64_t first, last;
};

FR_DEVICE block_part part_of(const fr_cuda_runs &runs)
{
    uint32_t low = 0, high = runs.n;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (runs.first_block[middle] <= blockIdx.x)
            low = middle;
        else
            high = middle;
    }
    const fr_cuda_run &run = runs.at[low];
    int64_t first =
        (int64_t)(blockIdx.x - runs.first_block[low]) * FR_CUDA_BLOCK_ELEMENTS;
    int64_t last = first + FR_CUDA_BLOCK_ELEMENTS;
    return {low, run.first + first, run.first + (last < run.n ? last : run.n)};
}

static launch_shape shape_for(const fr_cuda_launch *launch,
                              const fr_cuda_runs &runs)
{
    return {dim3(runs.first_block[runs.n]), THREADS, 0, launch->stream};
}

/* ---- gradient norm ------------------------------------------------------ */

template <class G>
__global__ void sq_sum(fr_cuda_runs runs, const G *g, double *parts)
{
    __shared__ double room[N_WARPS];
    const block_part part = part_of(runs);
    float x[EACH], sum = 0;
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        const int64_t i = part.first + threadIdx.x + j * THREADS;
        x[j] = i < part.last ? to_float(g[i]) : 0.0F;
    }
#pragma unroll
    for (int j = 0; j < EACH; j++)
        sum += x[j] * x[j];
    double total = team_sum<THREADS>((double)sum, room);
    if (threadIdx.x == 0)
        parts[blockIdx.x] = total;
}

__global__ __launch_bounds__(SUM_THREADS) void add_sq_sum(const double *parts,
                                                          int64_t n,
                                                          double weight,
                                                          fr_step_scalars *step)
{
    __shared__ double room[SUM_WARPS];
    double sum = 0;
#pragma unroll 16
    for (int64_t i = threadIdx.x; i < n; i += SUM_THREADS)
        sum += parts[i];
    sum = team_sum<SUM_THREADS>(sum, room);
    if (threadIdx.x == 0)
        step->grad_sq_sum += weight * sum;
}

extern "C" fr_status fr_cuda_grad_sqsum(const fr_cuda_launch *launch,
                                        fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    const fr_instr *instr = call->instr;
    const double weight = instr->scalar == 0 ? 1 : instr->scalar;
    fr_cuda_runs runs;
    uint32_t i_tensor = 0;
    while (fr_cuda_runs_next(call, FR_CUDA_RUN_COUNTED, &i_tensor, &runs)) {
        const int64_t n_blocks = runs.first_block[runs.n];
        void *parts = nullptr;
        FR_TRY(take_workspace(launch, (uint64_t)n_blocks * sizeof(double),
                              &parts, err));
        if (!with_type(instr->grad_dtype, [&](auto g) {
                using G = decltype(g);
                start(shape_for(launch, runs), sq_sum<G>, runs,
                      (const G *)call->ptr[FR_GRAD_SQSUM_G], (double *)parts);
            }))
            return refuse_dtype(launch, err);
        start({dim3(1), SUM_THREADS, 0, launch->stream}, add_sq_sum,
              (const double *)parts, n_blocks, weight,
              (fr_step_scalars *)call->ptr[FR_GRAD_SQSUM_STEP]);
    }
    return launched(launch, err);
}

__global__ void clip(fr_step_scalars *step, double max_norm)
{
    if (threadIdx.x > 0)
        return;
    double norm = sqrt(step->grad_sq_sum);
    step->grad_norm = norm;
    step->clip_factor = max_norm > 0 && norm > max_norm ? max_norm / norm : 1;
}

extern "C" fr_status fr_cuda_clip(const fr_cuda_launch *launch, fr_err *err)
{
    start({dim3(1), 32, 0, launch->stream}, clip,
          (fr_step_scalars *)launch->call.ptr[FR_CLIP_STEP],
          launch->call.instr->scalar);
    return launched(launch, err);
}

/* ---- updates ------------------------------------------------------------ */

/* The values that all elements of a launch share; the others are in `step`. */
struct update_shape {
    float beta1, beta2, one_beta1, one_beta2, eps, decay;
    double trust_coefficient;
    int optimizer;
};

static update_shape update_of(const fr_job *job)
{
    return {(float)job->beta1,         (float)job->beta2,
            (float)(1 - job->beta1),   (float)(1 - job->beta2),
            (float)job->optimizer_eps, (float)job->weight_decay,
            job->trust_coefficient,    (int)job->optimizer};
}

/* master: NULL where the weights are float32 themselves. */
template <class W, class G> struct update_operands {
    const G *g;
    W *w;
    float *m, *v, *master;
    const fr_step_scalars *scalars;
    const fr_cuda_step *step;
    double *norms; /* [2 * tensors] */
};

/* The coefficients of one run. */
struct update {
    float clip, decay, lr, m_scale, v_root_scale, trust;
};

FR_DEVICE float trust_ratio(const update_shape &shape, bool is_decayed,
                            double w_sq, double g_sq)
{
    double w = sqrt(w_sq), g = sqrt(g_sq);
    if (!is_decayed || !(w > 0) || !(g > 0))
        return 1.0F;
    if (shape.optimizer == FR_OPTIMIZER_LARS)
        return (float)(shape.trust_coefficient * w /
                       (g + (double)shape.decay * w));
    return (float)(w / g);
}

template <class W, class G>
FR_DEVICE update coefficients(const update_shape &shape,
                              const update_operands<W, G> &at,
                              const fr_cuda_run &run)
{
    return {(float)at.scalars->clip_factor, run.is_decayed ? shape.decay : 0.0F,
            at.step->learning_rate,         at.step->moment1_scale,
            sqrtf(at.step->moment2_scale),  1.0F};
}

/* The values that an element's update reads and writes. */
struct element {
    float g, w, m, v;
};

/* Elements i, i + THREADS, ... of a batch, before `last`: all of them are on
 * their way before the first is used. */
template <int KIND, class W, class G>
FR_DEVICE void load_batch(const update_operands<W, G> &at, int64_t i,
                          int64_t last, element (&out)[BATCH])
{
    constexpr bool HAS_V =
        KIND == FR_OPTIMIZER_ADAMW || KIND == FR_OPTIMIZER_LAMB;
#pragma unroll
    for (int j = 0; j < BATCH; j++, i += THREADS) {
        if (i >= last)
            continue;
        out[j].g = KIND == FR_OPTIMIZER_LAMB ? 0.0F : to_float(at.g[i]);
        out[j].w = at.master ? at.master[i] : to_float(at.w[i]);
        out[j].m = at.m[i];
        out[j].v = HAS_V ? at.v[i] : 0.0F;
    }
}

/* AdamW's moments move on; returns mh / (sqrt(vh) + eps). */
FR_DEVICE float adam(const update_shape &shape, const update &u, element *x)
{
    float grad = u.clip * x->g;
    x->m = shape.beta1 * x->m + shape.one_beta1 * grad;
    x->v = shape.beta2 * x->v + shape.one_beta2 * (grad * grad);
    return x->m * u.m_scale / (sqrtf(x->v) * u.v_root_scale + shape.eps);
}

/* The element's new weight and moments. */
template <int KIND>
FR_DEVICE void advance(const update_shape &shape, const update &u, element *x)
{
    const float w = x->w;
    if constexpr (KIND == FR_OPTIMIZER_ADAMW) {
        x->w = w * (1.0F - u.lr * u.decay) - u.lr * adam(shape, u, x);
    } else if constexpr (KIND == FR_OPTIMIZER_LAMB) {
        float root = sqrtf(x->v) * u.v_root_scale + shape.eps;
        x->w = w - u.lr * u.trust * (x->m * u.m_scale / root + u.decay * w);
    } else {
        float grad = u.clip * x->g + u.decay * w;
        bool is_lars = KIND == FR_OPTIMIZER_LARS;
        x->m = shape.beta1 * x->m + (is_lars ? u.lr * u.trust : 1.0F) * grad;
        x->w = w - (is_lars ? 1.0F : u.lr) * x->m;
    }
}

template <int KIND, class W, class G>
__global__ void opt_step(fr_cuda_runs runs, update_shape shape,
                         update_operands<W, G> at)
{
    const block_part part = part_of(runs);
    const fr_cuda_run &run = runs.at[part.i_run];
    update u = coefficients(shape, at, run);
    element x[BATCH];
    if (at.norms)
        u.trust = trust_ratio(shape, run.is_decayed, at.norms[2 * run.i_tensor],
                              at.norms[2 * run.i_tensor + 1]);
    for (int64_t first = part.first + threadIdx.x; first < part.last;
         first += BATCH * THREADS) {
        load_batch<KIND>(at, first, part.last, x);
#pragma unroll
        for (int j = 0; j < BATCH; j++) {
            const int64_t i = first + j * THREADS;
            if (i >= part.last)
                break;
            advance<KIND>(shape, u, &x[j]);
            if (KIND != FR_OPTIMIZER_LAMB)
                at.m[i] = x[j].m;
            if (KIND == FR_OPTIMIZER_ADAMW)
                at.v[i] = x[j].v;
            if (at.master)
                at.master[i] = x[j].w;
            store(&at.w[i], x[j].w);
        }
    }
}

/* parts[block] = {|w|^2, |g|^2 (LARS) or |u|^2 (LAMB)} of its elements. */
template <class W, class G>
__global__ void opt_norms(fr_cuda_runs runs, update_shape shape,
                          update_operands<W, G> at, double *parts)
{
    __shared__ double room[N_WARPS];
    const block_part part = part_of(runs);
    const update u = coefficients(shape, at, runs.at[part.i_run]);
    const bool is_lamb = shape.optimizer == FR_OPTIMIZER_LAMB;
    float w_sq = 0, g_sq = 0;
    for (int64_t i = part.first + threadIdx.x; i < part.last; i += THREADS) {
        const float w = at.master ? at.master[i] : to_float(at.w[i]);
        float g = u.clip * to_float(at.g[i]);
        if (is_lamb) { /* its moments move on here */
            element x = {to_float(at.g[i]), w, at.m[i], at.v[i]};
            g = adam(shape, u, &x) + u.decay * w;
            at.m[i] = x.m;
            at.v[i] = x.v;
        }
        w_sq += w * w;
        g_sq += g * g;
    }
    double w_total = team_sum<THREADS>((double)w_sq, room);
    double g_total = team_sum<THREADS>((double)g_sq, room);
    if (threadIdx.x == 0) {
        parts[2 * blockIdx.x] = w_total;
        parts[2 * blockIdx.x + 1] = g_total;
    }
}

/* Block r adds the parts of run r to the norms of its tensor. */
__global__ __launch_bounds__(SUM_THREADS) void add_norms(fr_cuda_runs runs,
                                                         const double *parts,
                                                         double *norms)
{
    __shared__ double room[SUM_WARPS];
    const fr_cuda_run &run = runs.at[blockIdx.x];
    double w_sq = 0, g_sq = 0;
#pragma unroll 8
    for (uint32_t i = runs.first_block[blockIdx.x] + threadIdx.x;
         i < runs.first_block[blockIdx.x + 1]; i += SUM_THREADS) {
        w_sq += parts[2 * i];
        g_sq += parts[2 * i + 1];
    }
    w_sq = team_sum<SUM_THREADS>(w_sq, room);
    g_sq = team_sum<SUM_THREADS>(g_sq, room);
    if (threadIdx.x == 0 && run.is_counted) {
        norms[2 * run.i_tensor] += w_sq;
        norms[2 * run.i_tensor + 1] += g_sq;
    }
}

template <class W, class G>
static update_operands<W, G> operands_of(const fr_cuda_launch *launch)
{
    const fr_kernel_call *call = &launch->call;
    const int64_t n = fr_cuda_range_n(call);
    const int n_moments = fr_optimizers[call->job->optimizer]->n_moments;
    const bool has_norms = fr_optimizers[call->job->optimizer]->has_norms;
    float *m = (float *)call->ptr[2];
    return {(const G *)call->ptr[0],
            (W *)call->ptr[1],
            m,
            n_moments > 1 ? m + n : nullptr,
            sizeof(W) < sizeof(float) ? m + n_moments * n : nullptr,
            (const fr_step_scalars *)call->ptr[3],
            launch->step,
            has_norms ? (double *)call->ptr[4] : nullptr};
}

template <class W, class G>
static void run_step(const fr_cuda_launch *launch, const fr_cuda_runs &runs)
{
    const launch_shape blocks = shape_for(launch, runs);
    const update_shape shape = update_of(launch->call.job);
    const update_operands<W, G> at = operands_of<W, G>(launch);
    switch (shape.optimizer) {
    case FR_OPTIMIZER_SGD:
        start(blocks, opt_step<FR_OPTIMIZER_SGD, W, G>, runs, shape, at);
        break;
    case FR_OPTIMIZER_ADAMW:
        start(blocks, opt_step<FR_OPTIMIZER_ADAMW, W, G>, runs, shape, at);
        break;
    case FR_OPTIMIZER_LARS:
        start(blocks, opt_step<FR_OPTIMIZER_LARS, W, G>, runs, shape, at);
        break;
    default:
        start(blocks, opt_step<FR_OPTIMIZER_LAMB, W, G>, runs, shape, at);
    }
}

template <class W, class G>
static void run_norms(const fr_cuda_launch *launch, const fr_cuda_runs &runs,
                      double *parts)
{
    const update_operands<W, G> at = operands_of<W, G>(launch);
    start(shape_for(launch, runs), opt_norms<W, G>, runs,
          update_of(launch->call.job), at, parts);
    start({dim3(runs.n), SUM_THREADS, 0, launch->stream}, add_norms, runs,
          (const double *)parts, at.norms);
}

static fr_status check_place(const fr_cuda_launch *launch, fr_err *err)
{
    if (launch->call.instr->flags & FR_INSTR_HOST)
        return fr_fail(err, FR_INPUT,
                       "an optimizer on the host has no CUDA kernel");
    return FR_OK;
}

extern "C" fr_status fr_cuda_opt_step(const fr_cuda_launch *launch, fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    const bool has_norms = fr_optimizers[call->job->optimizer]->has_norms;
    fr_cuda_runs runs;
    uint32_t i_tensor = 0;
    bool is_known = true;
    FR_TRY(check_place(launch, err));
    while (is_known &&
           fr_cuda_runs_next(call,
                             has_norms ? FR_CUDA_RUN_TENSOR : FR_CUDA_RUN_DECAY,
                             &i_tensor, &runs))
        is_known = with_types(call->instr, [&](auto w, auto g) {
            run_step<decltype(w), decltype(g)>(launch, runs);
        });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}

extern "C" fr_status fr_cuda_opt_norms(const fr_cuda_launch *launch,
                                       fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    fr_cuda_runs runs;
    uint32_t i_tensor = 0;
    bool is_known = true;
    FR_TRY(check_place(launch, err));
    while (is_known &&
           fr_cuda_runs_next(call, FR_CUDA_RUN_TENSOR, &i_tensor, &runs)) {
        void *parts = nullptr;
        FR_TRY(take_workspace(
            launch, runs.first_block[runs.n] * (uint64_t)(2 * sizeof(double)),
            &parts, err));
        is_known = with_types(call->instr, [&](auto w, auto g) {
            run_norms<decltype(w), decltype(g)>(launch, runs, (double *)parts);
        });
    }
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}
