/*
 * kernel_fixture.h: what the kernel tests share: random arrays, running one
 * instruction, comparing with double references, finite differences.
 */
#ifndef FR_TESTS_KERNEL_FIXTURE_H
#define FR_TESTS_KERNEL_FIXTURE_H

#include "kernels/cpu/kernels_cpu.h"
#include "tests/check.h"

#include <stdlib.h>

/* Uniform in [-1, 1) from a counter; its own generator, not rng.h. */
CHECK_MAYBE_UNUSED static double kf_noise(uint64_t seed, uint64_t i)
{
    uint64_t x = seed * 0xd1342543de82ef95U + i * 0x2545f4914f6cdd1dU + 1;
    for (int round = 0; round < 3; round++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x *= 0x9e3779b97f4a7c15U;
    }
    return (double)(x >> 11) * 0x1p-52 - 1.0;
}

CHECK_MAYBE_UNUSED static float *kf_floats(int64_t n, uint64_t seed,
                                           double scale)
{
    float *x = malloc((size_t)(n > 0 ? n : 1) * sizeof *x);
    for (int64_t i = 0; x != NULL && i < n; i++)
        x[i] = (float)(scale * kf_noise(seed, (uint64_t)i));
    return x;
}

CHECK_MAYBE_UNUSED static float *kf_copy(const float *from, int64_t n)
{
    float *x = malloc((size_t)n * sizeof *x);
    for (int64_t i = 0; x != NULL && i < n; i++)
        x[i] = from[i];
    return x;
}

CHECK_MAYBE_UNUSED static double *kf_doubles(const float *from, int64_t n)
{
    double *x = calloc((size_t)(n > 0 ? n : 1), sizeof *x);
    for (int64_t i = 0; x != NULL && from != NULL && i < n; i++)
        x[i] = (double)from[i];
    return x;
}

/* Everything but the operands; a test changes what it needs. */
CHECK_MAYBE_UNUSED static fr_kernel_call
kf_call(const fr_instr *instr, int n_threads, void *const *ptr, int n_ptr)
{
    static const fr_job job = {.global_batch = 4};
    static const fr_plan plan = {.tp = 1};
    fr_kernel_call call = {.instr = instr,
                           .n_group = 1,
                           .n_threads = n_threads,
                           .job = &job,
                           .plan = &plan};
    for (int i = 0; i < n_ptr; i++)
        call.ptr[i] = ptr[i];
    return call;
}

#define KF_RUN(instr, n_threads, ...)                                          \
    kf_run((instr), (n_threads), (void *[]){__VA_ARGS__},                      \
           (int)(sizeof((void *[]){__VA_ARGS__}) / sizeof(void *)))

CHECK_MAYBE_UNUSED static void kf_run(const fr_instr *instr, int n_threads,
                                      void *const *ptr, int n_ptr)
{
    fr_kernel_call call = kf_call(instr, n_threads, ptr, n_ptr);
    fr_kernels_cpu_set_threads(n_threads);
    fr_kernels_cpu[instr->op](&call);
}

/* Largest |a - b| over the largest |b|. */
CHECK_MAYBE_UNUSED static double kf_error(const float *a, const double *b,
                                          int64_t n)
{
    double worst = 0, largest = 1e-30;
    for (int64_t i = 0; i < n; i++) {
        double difference = fabs((double)a[i] - b[i]);
        if (!(difference <= worst)) /* a NaN counts */
            worst = difference;
        if (fabs(b[i]) > largest)
            largest = fabs(b[i]);
    }
    return worst / largest;
}

CHECK_MAYBE_UNUSED static bool kf_same(const float *a, const float *b,
                                       int64_t n)
{
    return memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

/* A scalar function of doubles that the caller changes one at a time. */
typedef double (*kf_loss_fn)(const void *context);

/* Central difference of `loss` by *x. */
CHECK_MAYBE_UNUSED static double kf_slope(kf_loss_fn loss, const void *context,
                                          double *x)
{
    double old = *x, h = 1e-5;
    *x = old + h;
    double above = loss(context);
    *x = old - h;
    double below = loss(context);
    *x = old;
    return (above - below) / (2 * h);
}

/*
 * Checks `n_samples` elements of a gradient (minus what it was before the
 * kernel added to it) against finite differences; the largest error relative
 * to the largest slope seen.
 */
CHECK_MAYBE_UNUSED static double
kf_gradient_error(kf_loss_fn loss, const void *context, double *x, int64_t n,
                  const float *gradient, const float *before, int n_samples)
{
    double worst = 0, largest = 1e-30;
    int64_t stride = n / n_samples > 1 ? n / n_samples : 1;
    for (int64_t i = 0; i < n; i += stride) {
        double slope = kf_slope(loss, context, &x[i]);
        double got =
            (double)gradient[i] - (before != NULL ? (double)before[i] : 0);
        if (!(fabs(slope - got) <= worst))
            worst = fabs(slope - got);
        if (fabs(slope) > largest)
            largest = fabs(slope);
    }
    return worst / largest;
}

#endif
