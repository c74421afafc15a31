/*
 * kernels_optim.c: the optimizers of optimizer.h, gradient norm and
 * clipping.
 *
 * A range of the flat parameter list is updated in one pass over memory, the
 * threads sharing the range; tensor boundaries only switch weight decay and
 * trust ratio.  Elements that belong to no tensor (padding) stay as they are.
 */
#include "kernels/cpu/kernels_simd.h"
#include "kernels/cpu/narrow/narrow.h"
#include "kernels/kernels_list.h"
#include "plan/codec/optimizer.h"

#include <math.h>

/* The range of an optimizer instruction, in the flat parameter list. */
typedef struct flat_range {
    int64_t first, n;
} flat_range;

static flat_range range_of(const fr_kernel_call *call)
{
    return (flat_range){fr_instr_range_first(call->instr, call->coordinate),
                        call->instr->range.n};
}

/* Returns the part of `tensor` in [first, last), relative to `first`. */
static fr_range overlap(const fr_tensor *tensor, int64_t first, int64_t last)
{
    int64_t begin = (int64_t)tensor->first, end = begin + (int64_t)tensor->n;
    begin = begin > first ? begin : first;
    end = end < last ? end : last;
    return (fr_range){begin - first, end > begin ? end - first : begin - first};
}

/* ---- gradient norm ------------------------------------------------------ */

FR_SIMD static double sq_sum(const float *restrict x, int64_t n)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

static bool is_counted(const fr_kernel_call *call, const fr_tensor *tensor)
{
    return !tensor->is_tied_copy && !tensor->is_statistic &&
           (tensor->sharded_dim != 0 || call->tp_coordinate == 0);
}

/* Squares of the counted tensors in [part.first, part.last) of the range. */
static double counted_sq_sum(const fr_kernel_call *call, flat_range range,
                             fr_range part)
{
    const float *g = (const float *)call->ptr[0] + part.first;
    double sum = 0;
    for (uint32_t i = 0; i < call->n_tensors; i++) {
        const fr_tensor *tensor = &call->tensors[i];
        fr_range in =
            overlap(tensor, range.first + part.first, range.first + part.last);
        if (in.last > in.first && is_counted(call, tensor))
            sum += sq_sum(g + in.first, in.last - in.first);
    }
    return sum;
}

void fr_kernel_grad_sqsum(const fr_kernel_call *call)
{
    flat_range range = range_of(call);
    fr_step_scalars *step = call->ptr[FR_GRAD_SQSUM_STEP];
    double sums[FR_SUM_PIECES];
#pragma omp parallel for num_threads(fr_team(call, range.n)) schedule(static)
    for (int i = 0; i < FR_SUM_PIECES; i++)
        sums[i] = counted_sq_sum(call, range,
                                 fr_range_part(range.n, 16, i, FR_SUM_PIECES));
    double sum = 0;
    for (int i = 0; i < FR_SUM_PIECES; i++)
        sum += sums[i];
    /* If several ranks of the sum hold the same gradients, each adds only its
     * share of the square. */
    step->grad_sq_sum +=
        call->instr->scalar > 0 ? call->instr->scalar * sum : sum;
}

void fr_kernel_clip(const fr_kernel_call *call)
{
    fr_step_scalars *step = call->ptr[FR_CLIP_STEP];
    double max_norm = call->instr->scalar;
    double norm = sqrt(step->grad_sq_sum);
    step->grad_norm = norm;
    step->clip_factor = max_norm > 0 && norm > max_norm ? max_norm / norm : 1;
}

/* ---- updates ------------------------------------------------------------ */

/* One run of elements of one tensor; the coefficients of its update. */
typedef struct update {
    const float *g;
    float *w, *m, *v;
    int64_t n;
    float clip, beta1, beta2;
    float one_beta1, one_beta2; /* 1 - beta, rounded once */
    float lr, decay;
    float m_scale;      /* 1 / (1 - beta1^t) */
    float v_root_scale; /* 1 / sqrt(1 - beta2^t) */
    float eps, trust;
} update;

FR_SIMD static void sgd(const update *u)
{
    const float *restrict g = u->g;
    float *restrict w = u->w, *restrict m = u->m;
    float clip = u->clip, beta = u->beta1, lr = u->lr, decay = u->decay;
    int64_t n = u->n;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float moment = beta * m[i] + (clip * g[i] + decay * w[i]);
        m[i] = moment;
        w[i] -= lr * moment;
    }
}

FR_SIMD static void adamw(const update *u)
{
    const float *restrict g = u->g;
    float *restrict w = u->w, *restrict m = u->m, *restrict v = u->v;
    float clip = u->clip, beta1 = u->beta1, beta2 = u->beta2;
    float one_beta1 = u->one_beta1, one_beta2 = u->one_beta2;
    float keep = 1.0F - u->lr * u->decay, eps = u->eps;
    float lr_m = u->lr * u->m_scale, v_root_scale = u->v_root_scale;
    int64_t n = u->n;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float grad = clip * g[i];
        float moment = beta1 * m[i] + one_beta1 * grad;
        float square = beta2 * v[i] + one_beta2 * (grad * grad);
        float root = __builtin_sqrtf(square) * v_root_scale + eps;
        m[i] = moment;
        v[i] = square;
        w[i] = w[i] * keep - lr_m * moment / root;
    }
}

FR_SIMD static void lars(const update *u)
{
    const float *restrict g = u->g;
    float *restrict w = u->w, *restrict m = u->m;
    float clip = u->clip, beta = u->beta1, decay = u->decay;
    float rate = u->lr * u->trust;
    int64_t n = u->n;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float moment = beta * m[i] + rate * (clip * g[i] + decay * w[i]);
        m[i] = moment;
        w[i] -= moment;
    }
}

FR_SIMD static void lamb(const update *u)
{
    const float *restrict m = u->m, *restrict v = u->v;
    float *restrict w = u->w;
    float decay = u->decay, eps = u->eps, m_scale = u->m_scale;
    float rate = u->lr * u->trust, v_root_scale = u->v_root_scale;
    int64_t n = u->n;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float root = __builtin_sqrtf(v[i]) * v_root_scale + eps;
        w[i] -= rate * (m[i] * m_scale / root + decay * w[i]);
    }
}

static void move_statistic(const update *u)
{
    for (int64_t i = 0; i < u->n; i++)
        u->w[i] -= (float)FR_STATISTIC_RATE * u->g[i];
}

/* Moves the moments on; returns |u|^2, the square of the whole update. */
FR_SIMD static double lamb_moments(const update *u)
{
    const float *restrict g = u->g, *restrict w = u->w;
    float *restrict m = u->m, *restrict v = u->v;
    float clip = u->clip, beta1 = u->beta1, beta2 = u->beta2;
    float one_beta1 = u->one_beta1, one_beta2 = u->one_beta2;
    float decay = u->decay, eps = u->eps;
    float m_scale = u->m_scale, v_root_scale = u->v_root_scale;
    int64_t n = u->n;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) {
        float grad = clip * g[i];
        float moment = beta1 * m[i] + one_beta1 * grad;
        float square = beta2 * v[i] + one_beta2 * (grad * grad);
        float root = __builtin_sqrtf(square) * v_root_scale + eps;
        float step = moment * m_scale / root + decay * w[i];
        m[i] = moment;
        v[i] = square;
        sum += (double)step * (double)step;
    }
    return sum;
}

/* The coefficients that all tensors share. */
static update update_of(const fr_kernel_call *call)
{
    const fr_job *job = call->job;
    const fr_step_scalars *step = call->ptr[3];
    double t = (double)(call->i_step + 1);
    double m_left = 1 - pow(job->beta1, t), v_left = 1 - pow(job->beta2, t);
    return (update){.clip = (float)step->clip_factor,
                    .beta1 = (float)job->beta1,
                    .beta2 = (float)job->beta2,
                    .one_beta1 = (float)(1 - job->beta1),
                    .one_beta2 = (float)(1 - job->beta2),
                    .lr = (float)fr_job_lr(job, call->i_step),
                    .m_scale = m_left > 0 ? (float)(1 / m_left) : 1,
                    .v_root_scale = v_left > 0 ? (float)(1 / sqrt(v_left)) : 1,
                    .eps = (float)job->optimizer_eps,
                    .trust = 1};
}

static double trust_ratio(const fr_job *job, const fr_tensor *tensor,
                          const double norms[2])
{
    double w = sqrt(norms[0]), g = sqrt(norms[1]);
    if (!tensor->is_decayed || !(w > 0) || !(g > 0))
        return 1;
    if (job->optimizer == FR_OPTIMIZER_LARS)
        return job->trust_coefficient * w / (g + job->weight_decay * w);
    return w / g;
}

static bool is_narrow(const fr_kernel_call *call)
{
    return call->instr->dtype == FR_DTYPE_BF16;
}

/* Elements of gradients that are widened at once, and of weights that are
 * rounded from their master copies. */
#define NARROW_TILE 2048

/* Sets the pointers and coefficients of elements `in` of the range: of narrow
 * weights the master copy, which lies behind the moments; narrow gradients are
 * widened into `room`. */
static update update_at(const fr_kernel_call *call, const update *shared,
                        const fr_tensor *tensor, fr_range in, float *room)
{
    const int64_t n = range_of(call).n;
    const int n_moments = fr_optimizers[call->job->optimizer]->n_moments;
    update at = *shared;
    at.n = in.last - in.first;
    at.g = (const float *)call->ptr[0] + in.first;
    if (call->instr->grad_dtype == FR_DTYPE_BF16) {
        fr_narrow_load(room, call->ptr[0], FR_DTYPE_BF16, in.first, at.n);
        at.g = room;
    }
    at.m = (float *)call->ptr[2] + in.first;
    at.v = at.m + n;
    at.w = is_narrow(call) ? at.m + n_moments * n
                           : (float *)call->ptr[1] + in.first;
    at.decay = tensor->is_decayed ? (float)call->job->weight_decay : 0.0F;
    return at;
}

/* The most of a range that is updated at once. */
static int64_t tile_of(const fr_kernel_call *call, fr_range in)
{
    bool is_cut = is_narrow(call) || call->instr->grad_dtype == FR_DTYPE_BF16;
    return is_cut && in.last - in.first > NARROW_TILE ? NARROW_TILE
                                                      : in.last - in.first;
}

static void step_run(const fr_kernel_call *call, const update *shared,
                     uint32_t i_tensor, fr_range in)
{
    const fr_tensor *tensor = &call->tensors[i_tensor];
    const double *norms = call->ptr[4];
    float room[NARROW_TILE];
    update at = update_at(call, shared, tensor, in, room);
    if (tensor->is_statistic) { /* of float32 */
        move_statistic(&at);
        return;
    }
    if (fr_optimizers[call->job->optimizer]->has_norms)
        at.trust =
            (float)trust_ratio(call->job, tensor, norms + 2 * (size_t)i_tensor);
    switch (call->job->optimizer) {
    case FR_OPTIMIZER_SGD:
        sgd(&at);
        break;
    case FR_OPTIMIZER_ADAMW:
        adamw(&at);
        break;
    case FR_OPTIMIZER_LARS:
        lars(&at);
        break;
    case FR_OPTIMIZER_LAMB:
        lamb(&at);
        break;
    case FR_OPTIMIZER_N:
        break;
    }
    if (is_narrow(call))
        fr_narrow_store(call->ptr[1], FR_DTYPE_BF16, in.first, at.w, at.n);
}

static void step_tensor(const fr_kernel_call *call, const update *shared,
                        uint32_t i_tensor, fr_range in)
{
    const int64_t step = tile_of(call, in);
    for (; in.first < in.last; in.first += step) {
        int64_t last = in.first + step < in.last ? in.first + step : in.last;
        step_run(call, shared, i_tensor, (fr_range){in.first, last});
    }
}

void fr_kernel_opt_step(const fr_kernel_call *call)
{
    flat_range range = range_of(call);
    update shared = update_of(call);
#pragma omp parallel num_threads(fr_team(call, range.n))
    {
        fr_range part = fr_range_mine(range.n, 16);
        for (uint32_t i = 0; i < call->n_tensors; i++) {
            fr_range in = overlap(&call->tensors[i], range.first + part.first,
                                  range.first + part.last);
            in.first += part.first;
            in.last += part.first;
            if (in.last > in.first)
                step_tensor(call, &shared, i, in);
        }
    }
}

/* One piece of a tensor: {|w|^2, |g|^2 or |u|^2} into sums. */
static void norms_of_piece(const fr_kernel_call *call, const update *shared,
                           const fr_tensor *tensor, fr_range in, double sums[2])
{
    float room[NARROW_TILE];
    const int64_t step = tile_of(call, in);
    sums[0] = sums[1] = 0;
    for (; in.first < in.last; in.first += step) {
        int64_t last = in.first + step < in.last ? in.first + step : in.last;
        const update at =
            update_at(call, shared, tensor, (fr_range){in.first, last}, room);
        if (call->job->optimizer == FR_OPTIMIZER_LAMB)
            sums[1] += lamb_moments(&at);
        else
            sums[1] += sq_sum(at.g, at.n) * ((double)at.clip * (double)at.clip);
        sums[0] += sq_sum(at.w, at.n);
    }
}

static void norms_of_tensor(const fr_kernel_call *call, const update *shared,
                            const fr_tensor *tensor, fr_range in,
                            double norms[2])
{
    double sums[FR_SUM_PIECES][2];
    int64_t n = in.last - in.first;
#pragma omp parallel for num_threads(fr_team(call, n)) schedule(static)
    for (int i = 0; i < FR_SUM_PIECES; i++) {
        fr_range piece = fr_range_part(n, 16, i, FR_SUM_PIECES);
        piece.first += in.first;
        piece.last += in.first;
        norms_of_piece(call, shared, tensor, piece, sums[i]);
    }
    if (tensor->sharded_dim == 0 && call->tp_coordinate != 0)
        return; /* TP coordinate 0 counts it */
    for (int i = 0; i < FR_SUM_PIECES; i++) {
        norms[0] += sums[i][0];
        norms[1] += sums[i][1];
    }
}

void fr_kernel_opt_norms(const fr_kernel_call *call)
{
    flat_range range = range_of(call);
    update shared = update_of(call);
    double *norms = call->ptr[FR_OPT_NORMS_NORMS];
    for (uint32_t i = 0; i < call->n_tensors; i++) {
        const fr_tensor *tensor = &call->tensors[i];
        fr_range in = overlap(tensor, range.first, range.first + range.n);
        if (in.last > in.first && !tensor->is_statistic)
            norms_of_tensor(call, &shared, tensor, in, norms + 2 * (size_t)i);
    }
}
