/*
 * kernels_activation.c: what stands between the two products of an MLP: GELU
 * (Hendrycks and Gimpel 2016, arXiv 1606.08415) in three forms, SiLU, ReLU and
 * its square, plain or as the gate of a second projection (Shazeer 2020, arXiv
 * 2002.05202).
 *
 * An activation is its value and its slope; the loops are made for each.
 */
#include "kernels/cpu/kernels_simd.h"
#include "kernels/kernels_list.h"
#include "spec/model/model.h"

/* ---- values and slopes -------------------------------------------------- */

#define GELU_A 1.5957691216057308F /* 2 sqrt(2 / pi) */
#define GELU_B 0.044715F
#define QUICK 1.702F

/* (1 + tanh(u)) / 2 = sigmoid(2u), which needs one exp and loses no digits. */
FR_INLINE float gelu_tanh_value(float v)
{
    return v * fr_fast_sigmoidf(GELU_A * (v + GELU_B * (v * v * v)));
}

FR_INLINE float gelu_tanh_slope(float x)
{
    /* beyond 16 the slope is 0 or 1 to the last bit, but the saturated
     * sigmoid times v^3 would not be */
    float v = fr_clampf(x, -16.0F, 16.0F);
    float s = fr_fast_sigmoidf(GELU_A * (v + GELU_B * (v * v * v)));
    float inner = GELU_A * (1.0F + 3.0F * GELU_B * (v * v));
    return s + v * s * (1.0F - s) * inner;
}

/* The share of the normal distribution below v, and `density`, sqrt(2 pi) times
 * its density there.  erfc by Abramowitz and Stegun 7.1.26: absolute error of
 * the share 1e-7. */
FR_INLINE float normal_share(float v, float *density)
{
    float away = v < 0 ? -v : v;
    float t = 1.0F / (1.0F + 0.3275911F * 0.70710678F * away);
    float p = 1.061405429F;
    p = p * t - 1.453152027F;
    p = p * t + 1.421413741F;
    p = p * t - 0.284496736F;
    p = p * t + 0.254829592F;
    *density = fr_fast_expf(-0.5F * (v * v));
    float tail = 0.5F * (p * t) * *density;
    return v < 0 ? tail : 1.0F - tail;
}

FR_INLINE float gelu_value(float v)
{
    float density;
    return v * normal_share(v, &density);
}

FR_INLINE float gelu_slope(float x)
{
    float density, v = fr_clampf(x, -16.0F, 16.0F);
    float share = normal_share(v, &density);
    return share + v * (0.3989422804F * density);
}

FR_INLINE float silu_value(float v)
{
    return v * fr_fast_sigmoidf(v);
}

FR_INLINE float silu_slope(float v)
{
    float s = fr_fast_sigmoidf(v);
    return s + v * s * (1.0F - s);
}

FR_INLINE float quick_value(float v)
{
    return v * fr_fast_sigmoidf(QUICK * v);
}

FR_INLINE float quick_slope(float v)
{
    float s = fr_fast_sigmoidf(QUICK * v);
    return s + QUICK * v * s * (1.0F - s);
}

FR_INLINE float sigmoid_value(float v)
{
    return fr_fast_sigmoidf(v);
}

FR_INLINE float sigmoid_slope(float v)
{
    float s = fr_fast_sigmoidf(v);
    return s * (1.0F - s);
}

/* Near 0 the series, where the sigmoid's one half would cancel. */
FR_INLINE float tanh_value(float v)
{
    float w = v * v, away = v < 0 ? -v : v;
    float p = 62.0F / 2835.0F;
    p = p * w - 17.0F / 315.0F;
    p = p * w + 2.0F / 15.0F;
    p = p * w - 1.0F / 3.0F;
    float far = 2.0F * fr_fast_sigmoidf(2.0F * v) - 1.0F;
    return away < 0.3F ? v + v * (w * p) : far;
}

FR_INLINE float tanh_slope(float v)
{
    float s = fr_fast_sigmoidf(2.0F * v);
    return 4.0F * s * (1.0F - s);
}

/* A NaN stays one. */
FR_INLINE float relu_value(float v)
{
    return v < 0 ? 0.0F : v;
}

FR_INLINE float relu_slope(float v)
{
    return v > 0 ? 1.0F : 0.0F;
}

FR_INLINE float relu2_value(float v)
{
    return relu_value(v) * relu_value(v);
}

FR_INLINE float relu2_slope(float v)
{
    return 2.0F * relu_value(v);
}

/* ---- loops -------------------------------------------------------------- */

/*
 * The loops of one activation.  Plain: y = f(x), and dx = dy f'(x), where dx
 * may be dy itself.  Gated, of one row: h and dh are [gate | up], each n long.
 */
typedef struct activation_loops {
    void (*plain)(float *y, const float *x, int64_t n);
    void (*plain_grad)(float *dx, const float *dy, const float *x, int64_t n);
    void (*gated)(float *y, const float *h, int64_t n);
    void (*gated_grad)(float *dh, const float *dy, const float *h, int64_t n);
} activation_loops;

#define LOOPS(name)                                                            \
    FR_SIMD static void name##_plain(float *restrict y,                        \
                                     const float *restrict x, int64_t n)       \
    {                                                                          \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) y[i] =             \
            name##_value(x[i]);                                                \
    }                                                                          \
    FR_SIMD static void name##_plain_grad(float *dx, const float *dy,          \
                                          const float *x, int64_t n)           \
    {                                                                          \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) dx[i] =            \
            dy[i] * name##_slope(x[i]);                                        \
    }                                                                          \
    FR_SIMD static void name##_gated(float *restrict y,                        \
                                     const float *restrict h, int64_t n)       \
    {                                                                          \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) y[i] =             \
            name##_value(h[i]) * h[n + i];                                     \
    }                                                                          \
    FR_SIMD static void name##_gated_grad(float *restrict dh,                  \
                                          const float *restrict dy,            \
                                          const float *restrict h, int64_t n)  \
    {                                                                          \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                    \
        {                                                                      \
            dh[i] = dy[i] * h[n + i] * name##_slope(h[i]);                     \
            dh[n + i] = dy[i] * name##_value(h[i]);                            \
        }                                                                      \
    }

LOOPS(gelu_tanh)
LOOPS(gelu)
LOOPS(silu)
LOOPS(relu)
LOOPS(relu2)
LOOPS(quick)
LOOPS(sigmoid)
LOOPS(tanh)

#define ROW(name)                                                              \
    {                                                                          \
        name##_plain, name##_plain_grad, name##_gated, name##_gated_grad       \
    }
static const activation_loops loops[FR_ACTIVATION_N] = {
    [FR_ACTIVATION_GELU_TANH] = ROW(gelu_tanh),
    [FR_ACTIVATION_GELU] = ROW(gelu),
    [FR_ACTIVATION_SILU] = ROW(silu),
    [FR_ACTIVATION_RELU] = ROW(relu),
    [FR_ACTIVATION_RELU_SQUARED] = ROW(relu2),
    [FR_ACTIVATION_GELU_QUICK] = ROW(quick),
    [FR_ACTIVATION_SIGMOID] = ROW(sigmoid),
    [FR_ACTIVATION_TANH] = ROW(tanh),
};

FR_SIMD static float gate_dot(const float *restrict a, const float *restrict b,
                              int64_t n)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* ---- kernels ------------------------------------------------------------ */

void fr_kernel_gelu_fwd(const fr_kernel_call *call)
{
    const activation_loops *f = &loops[call->instr->activation];
    int64_t n = call->instr->vector.n;
    const float *x = call->ptr[FR_GELU_FWD_X];
    float *y = call->ptr[FR_GELU_FWD_Y];
#pragma omp parallel num_threads(fr_team(call, n))
    {
        fr_range part = fr_range_mine(n, 16);
        f->plain(y + part.first, x + part.first, part.last - part.first);
    }
}

void fr_kernel_gelu_bwd(const fr_kernel_call *call)
{
    const activation_loops *f = &loops[call->instr->activation];
    int64_t n = call->instr->vector.n;
    const float *dy = call->ptr[FR_GELU_BWD_DY], *x = call->ptr[FR_GELU_BWD_X];
    float *dx = call->ptr[FR_GELU_BWD_DX];
#pragma omp parallel num_threads(fr_team(call, n))
    {
        fr_range part = fr_range_mine(n, 16);
        f->plain_grad(dx + part.first, dy + part.first, x + part.first,
                      part.last - part.first);
    }
}

void fr_kernel_swiglu_fwd(const fr_kernel_call *call)
{
    const activation_loops *f = &loops[call->instr->activation];
    int64_t rows = call->instr->matrix.rows, n = call->instr->matrix.cols;
    const float *h = call->ptr[FR_SWIGLU_FWD_H];
    const float *weights = call->ptr[FR_SWIGLU_FWD_WEIGHTS];
    float *y = call->ptr[FR_SWIGLU_FWD_Y];
#pragma omp parallel for num_threads(fr_team(call, rows *n)) schedule(static)
    for (int64_t i = 0; i < rows; i++) {
        f->gated(y + i * n, h + 2 * i * n, n);
        if (weights != NULL)
            fr_floats_scale(y + i * n, n, weights[i]);
    }
}

void fr_kernel_swiglu_bwd(const fr_kernel_call *call)
{
    const activation_loops *f = &loops[call->instr->activation];
    int64_t rows = call->instr->matrix.rows, n = call->instr->matrix.cols;
    const float *dy = call->ptr[FR_SWIGLU_BWD_DY],
                *h = call->ptr[FR_SWIGLU_BWD_H];
    const float *weights = call->ptr[FR_SWIGLU_BWD_WEIGHTS];
    float *dh = call->ptr[FR_SWIGLU_BWD_DH],
          *dweights = call->ptr[FR_SWIGLU_BWD_DWEIGHTS];
#pragma omp parallel for num_threads(fr_team(call, rows *n)) schedule(static)
    for (int64_t i = 0; i < rows; i++) {
        f->gated_grad(dh + 2 * i * n, dy + i * n, h + 2 * i * n, n);
        if (weights == NULL)
            continue;
        /* dh of `up` is dy f(gate), so its product with up is dy y. */
        dweights[i] = gate_dot(dh + (2 * i + 1) * n, h + (2 * i + 1) * n, n);
        fr_floats_scale(dh + 2 * i * n, 2 * n, weights[i]);
    }
}
