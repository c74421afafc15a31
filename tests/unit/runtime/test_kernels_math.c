/*
 * test_kernels_math.c: error bound of the vectorisable exp, the parts that
 * work is cut into, and the initial weights of any layout.
 */
#include "kernels/cpu/kernels_simd.h"
#include "tests/unit/runtime/kernel_fixture.h"

static void test_exp(void)
{
    double worst = 0;
    for (int i = -8730000; i <= 8870000; i += 7) {
        float x = (float)i * 1e-5F;
        double want = exp((double)x);
        double error = fabs((double)fr_fast_expf(x) - want) / want;
        worst = error > worst ? error : worst;
    }
    CHECK_WITHIN(worst, 0, 2e-7);
    for (int i = 0; i < 200000; i++) { /* around 0 */
        float x = (float)(0.01 * kf_noise(5, (uint64_t)i));
        CHECK_NEAR(fr_fast_expf(x), exp((double)x), 2e-7);
    }
    CHECK(fr_fast_expf(0.0F) == 1.0F);
    CHECK(isnan(fr_fast_expf(NAN)));
    CHECK(isnan(fr_fast_expf(fr_float_of_bits(0x7fc00001U))));
    CHECK(fr_fast_expf(-1e30F) < 2e-38F && fr_fast_expf(1e30F) > 3e38F);
    CHECK(fr_fast_sigmoidf(-300.0F) < 1e-37F);
    CHECK(fr_fast_sigmoidf(300.0F) == 1.0F);
}

static void test_parts(void)
{
    for (int64_t n = 0; n < 300; n += 7) {
        for (int64_t n_parts = 1; n_parts < 9; n_parts += 3) {
            int64_t at = 0;
            for (int64_t i = 0; i < n_parts; i++) {
                fr_range part = fr_range_part(n, 16, i, n_parts);
                CHECK(part.first == at && part.last >= part.first);
                CHECK(part.first % 16 == 0 || part.first == n);
                at = part.last;
            }
            CHECK_INT(at, n);
        }
    }
}

static const fr_tensor_place alone = {0, 1, 0, 0, 1};

/* A small rank program as one of n_tp ranks holds it. */
enum { N_TENSORS = 5 };

static uint64_t make_tensors(fr_tensor tensors[N_TENSORS], int64_t n_tp)
{
    static const fr_tensor whole[N_TENSORS] = {
        {.global_rows = 101,
         .global_cols = 24,
         .sharded_dim = 1,
         .id = 3,
         .init = FR_TENSOR_INIT_NORMAL,
         .init_std = 0.37}, /* padded */
        {.global_rows = 48,
         .global_cols = 20,
         .sharded_dim = 1,
         .id = 4,
         .n_parts = 3,
         .part_rows = {24, 12, 12},
         .init = FR_TENSOR_INIT_NORMAL,
         .init_std = 0.02}, /* q, k, v */
        {.global_rows = 20,
         .global_cols = 36,
         .sharded_dim = 2,
         .id = 5,
         .init = FR_TENSOR_INIT_NORMAL,
         .init_std = 1.9},
        {.global_rows = 1,
         .global_cols = 20,
         .id = 6,
         .init = FR_TENSOR_INIT_ONE},
        {.global_rows = 7,
         .global_cols = 20,
         .id = 7,
         .init = FR_TENSOR_INIT_NORMAL,
         .init_std = 0.5},
    };
    uint64_t at = 0;
    for (int i = 0; i < N_TENSORS; i++) {
        fr_tensor *t = &tensors[i];
        *t = whole[i];
        t->rows = t->sharded_dim == 1 ? (t->global_rows + n_tp - 1) / n_tp
                                      : t->global_rows;
        t->cols = t->sharded_dim == 2 ? t->global_cols / n_tp : t->global_cols;
        for (int j = 0; j < t->n_parts; j++)
            t->part_rows[j] /= n_tp;
        t->first = at;
        t->n = (uint64_t)(t->rows * t->cols);
        at += t->n;
    }
    return at;
}

static void check_place(const fr_tensor *part, const fr_tensor *whole,
                        const float *w, const float *all, int64_t tp,
                        int64_t n_tp)
{
    for (uint64_t i = 0; i < part->n; i++) {
        int64_t row = (int64_t)i / part->cols, col = (int64_t)i % part->cols;
        if (part->sharded_dim == 2)
            col += tp * part->cols;
        if (part->sharded_dim == 1 && part->n_parts == 0)
            row += tp * part->rows;
        if (part->n_parts == 3) { /* parts 24, 12, 12 of the whole */
            int64_t q = 24 / n_tp, k = 12 / n_tp;
            row = row < q       ? tp * q + row
                  : row < q + k ? 24 + tp * k + (row - q)
                                : 36 + tp * k + (row - q - k);
        }
        float want =
            row < whole->global_rows
                ? all[whole->first + (uint64_t)(row * whole->cols + col)]
                : 0.0F;
        CHECK(w[part->first + i] == want);
    }
}

static void test_init_layouts(void)
{
    fr_tensor whole[N_TENSORS], part[N_TENSORS];
    uint64_t n_whole = make_tensors(whole, 1);
    float *all = calloc(n_whole, sizeof *all);
    fr_kernels_cpu_init_weights(all, 0, (int64_t)n_whole, whole, N_TENSORS,
                                &alone, 2385, 2);
    for (int n_tp = 2; n_tp <= 4; n_tp += 2) {
        uint64_t n = make_tensors(part, n_tp);
        float *w = kf_floats((int64_t)n, 1, 1);
        for (int tp = 0; tp < n_tp; tp++) {
            fr_kernels_cpu_init_weights(w, 0, (int64_t)n, part, N_TENSORS,
                                        &(fr_tensor_place){tp, n_tp, 0, 0, 1},
                                        2385, 1);
            for (int i = 0; i < N_TENSORS; i++)
                check_place(&part[i], &whole[i], w, all, tp, n_tp);
        }
        free(w);
    }
    /* A range of the list is the same elements. */
    float *some = calloc(n_whole, sizeof *some);
    for (int64_t first = 0; first < (int64_t)n_whole; first += 1237) {
        int64_t n =
            (int64_t)n_whole - first < 701 ? (int64_t)n_whole - first : 701;
        fr_kernels_cpu_init_weights(some, first, n, whole, N_TENSORS, &alone,
                                    2385, 1);
        for (int i = 0; i < N_TENSORS; i++)
            for (int64_t k = 0; k < (int64_t)whole[i].n; k++) {
                int64_t at = (int64_t)whole[i].first + k;
                if (at >= first && at < first + n)
                    CHECK(some[at - first] == all[at]);
            }
    }
    free(some);
    float *other = calloc(n_whole, sizeof *other);
    fr_kernels_cpu_init_weights(other, 0, (int64_t)n_whole, whole, N_TENSORS,
                                &alone, 2386, 2);
    CHECK(other[0] != all[0] && other[777] != all[777]);
    free(other);
    free(all);
}

/* Mean, deviation, skewness, kurtosis and neighbours of a big tensor. */
static void test_init_moments(void)
{
    enum { ROWS = 700, COLS = 900, N = ROWS * COLS };
    fr_tensor tensor = {.n = N,
                        .rows = ROWS,
                        .cols = COLS,
                        .global_rows = ROWS,
                        .global_cols = COLS,
                        .id = 9,
                        .init = FR_TENSOR_INIT_NORMAL,
                        .init_std = 0.02};
    float *w = calloc(N, sizeof *w);
    double sums[5] = {0}, beside = 0;
    fr_kernels_cpu_init_weights(w, 0, N, &tensor, 1, &alone, 42, 2);
    for (int i = 0; i < N; i++) {
        double z = (double)w[i] / 0.02;
        CHECK(fabs(z) < 7);
        for (int j = 1; j < 5; j++)
            sums[j] += pow(z, j) / N;
        beside += z * (double)w[(i + 1) % N] / 0.02 / N;
    }
    /* five standard errors of each */
    CHECK_WITHIN(sums[1], 0, 5 / sqrt(N));
    CHECK_WITHIN(sums[2], 1, 5 * sqrt(2.0 / N));
    CHECK_WITHIN(sums[3], 0, 5 * sqrt(15.0 / N));
    CHECK_WITHIN(sums[4], 3, 5 * sqrt(96.0 / N));
    CHECK_WITHIN(beside, 0, 5 / sqrt(N));
    free(w);
}

CHECK_MAIN({"exp", test_exp}, {"parts", test_parts},
           {"init_layouts", test_init_layouts},
           {"init_moments", test_init_moments})
