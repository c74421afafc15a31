/*
 * bench_gpu_fit.c: fits the constants of the GPU model to the measurements of
 * configs/kernels/published.csv and prints them as they stand in
 * gpu_constants.c, with the errors of each table of each source.
 *
 *     bench_gpu_fit [-v] [TABLE.csv]      -v: every row
 */
#include "bench/gpu_fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_list(const char *name, const double *x, int n)
{
    printf("    .%s = {", name);
    for (int i = 0; i < n; i++)
        printf("%s%.5g", i > 0 ? ", " : "", x[i]);
    printf("},\n");
}

static void
print_shares(const char *name,
             const double shares[FR_GPU_GENERATION_N][FR_GPU_MATH_FITTED_N])
{
    printf("    .%s =\n        {\n", name);
    for (int g = 0; g < FR_GPU_GENERATION_N; g++) {
        printf("            {");
        for (int m = 0; m < FR_GPU_MATH_FITTED_N; m++)
            printf("%s%.4g", m > 0 ? ", " : "", shares[g][m]);
        printf("}, /* %s */\n", fr_gpu_generation_name((fr_gpu_generation)g));
    }
    printf("        },\n");
}

static void print_constants(const fr_gpu_constants *c)
{
    print_shares("achievable", c->achievable);
    print_shares("sustained", c->sustained);
    printf("    .power_exponent = %.5g,\n", c->power_exponent);
    printf("    .sustained_exponent = %.5g,\n", c->sustained_exponent);
    printf("    .block_rate = %.5g,\n", c->block_rate);
    printf("    .tile_traffic = %.5g,\n", c->tile_traffic);
    printf("    .tile_s = %.5g,\n", c->tile_s);
    printf("    .kernel_s = %.5g,\n", c->kernel_s);
    printf("    .stream_frac = %.5g,\n", c->stream_frac);
    printf("    .rows_frac = %.5g,\n", c->rows_frac);
    print_list("layers_rate", c->layers_rate, 2);
    print_list("attention_core_s", c->attention_core_s, FR_GPU_ATTENTION_N);
    printf("    .attention_bwd_core_ratio = %.5g,\n",
           c->attention_bwd_core_ratio);
    printf("    .attention_rate = {\n");
    for (int i = 0; i < 2; i++) {
        printf("        {");
        for (int k = 0; k < FR_GPU_ATTENTION_N; k++)
            printf("%s%.5g", k > 0 ? ", " : "", c->attention_rate[i][k]);
        printf("},\n");
    }
    printf("    },\n");
    print_list("attention_tile_s", c->attention_tile_s, 2);
    print_list("rel_err", c->rel_err, FR_GPU_FAMILY_N);
    printf("    .guess_err = %.5g,\n", c->guess_err);
    printf("    .n_rows =\n        {\n");
    for (int g = 0; g < FR_GPU_GENERATION_N; g++) {
        printf("            {");
        for (int i = 0; i < FR_GPU_FAMILY_N; i++)
            printf("%s%d", i > 0 ? ", " : "", c->n_rows[g][i]);
        printf("}, /* %s */\n", fr_gpu_generation_name((fr_gpu_generation)g));
    }
    printf("        },\n");
}

static bool is_alike(const fr_gpu_row *a, const fr_gpu_row *b)
{
    return strcmp(a->source, b->source) == 0 && strcmp(a->gpu, b->gpu) == 0 &&
           a->op == b->op && a->dtype == b->dtype &&
           a->is_fitted == b->is_fitted && a->is_sustained == b->is_sustained &&
           a->flash == b->flash && a->power_w == b->power_w &&
           a->has_block_scales == b->has_block_scales &&
           a->is_burst == b->is_burst && a->is_apart == b->is_apart;
}

/* One line for what one source says of one kind of kernel on one GPU. */
static void print_tables(const fr_gpu_rows *rows, const fr_gpu_constants *c)
{
    printf("%-28s %-14s %-20s %-5s %-5s %4s %7s %7s %7s\n", "source", "gpu",
           "kernel", "dtype", "use", "rows", "bias", "MAPE", "worst");
    for (size_t i = 0; i < rows->n; i++) {
        const fr_gpu_row *row = &rows->items[i];
        double n = 0, bias = 0, sum = 0, worst = 0;
        bool is_first = true;
        for (size_t k = 0; k < i && is_first; k++)
            is_first = !is_alike(row, &rows->items[k]);
        if (!is_first)
            continue;
        for (size_t k = i; k < rows->n; k++) {
            const fr_gpu_row *other = &rows->items[k];
            double error;
            if (!is_alike(row, other) || other->device == NULL)
                continue;
            error = fr_gpu_row_s(c, other) / other->seconds - 1.0;
            bias += error;
            sum += fabs(error);
            worst = fmax(worst, fabs(error));
            n += 1.0;
        }
        printf("%-28.28s %-14s %-13s%-7s %-5s %-5s ", row->source, row->gpu,
               row->op == FR_GPU_ROW_GEMM ? "product"
               : row->is_apart            ? "attention"
                               : fr_gpu_family_name(fr_gpu_row_family(row)),
               row->is_apart ? " apart" : "", fr_dtype_name(row->dtype),
               row->is_fitted ? "fit" : "check");
        if (n > 0)
            printf("%4.0f %+6.1f%% %6.1f%% %6.1f%%\n", n, 100 * bias / n,
                   100 * sum / n, 100 * worst);
        else
            printf("not in the catalogue\n");
    }
}

static void print_rows(const fr_gpu_rows *rows, const fr_gpu_constants *c)
{
    for (size_t i = 0; i < rows->n; i++) {
        const fr_gpu_row *row = &rows->items[i];
        double model_s = fr_gpu_row_s(c, row);
        if (model_s > 0.0)
            printf("%4d %-14s %-20s %-5s %6lld %6lld %6lld %4lld %s %10.2f us "
                   "%10.2f us %+6.1f%% %s\n",
                   row->line, row->gpu,
                   fr_gpu_family_name(fr_gpu_row_family(row)),
                   fr_dtype_name(row->dtype), (long long)row->dim[0],
                   (long long)row->dim[1], (long long)row->dim[2],
                   (long long)row->dim[3], row->is_causal ? "causal" : "",
                   1e6 * row->seconds, 1e6 * model_s,
                   100 * (model_s / row->seconds - 1),
                   row->is_fitted ? "fit" : "check");
    }
}

int main(int argc, char **argv)
{
    const char *path = "configs/kernels/published.csv";
    bool is_verbose = false;
    fr_gpu_constants constants;
    fr_gpu_rows rows;
    fr_err err = {0};

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-v") == 0)
            is_verbose = true;
        else
            path = argv[i];
    }
    if (fr_gpu_rows_load(path, &rows, &err) != FR_OK) {
        fprintf(stderr, "%s\n", err.text);
        return EXIT_FAILURE;
    }
    if (fr_gpu_fit(&rows, &constants, &err) != FR_OK) {
        fprintf(stderr, "%s\n", err.text);
        fr_gpu_rows_release(&rows);
        return EXIT_FAILURE;
    }
    if (is_verbose)
        print_rows(&rows, &constants);
    print_tables(&rows, &constants);
    printf("\n");
    print_constants(&constants);
    fr_gpu_rows_release(&rows);
    return EXIT_SUCCESS;
}
