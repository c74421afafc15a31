/*
 * bench_runtime.c: training speed of the CPU runtime against the sgemm rate,
 * and for GPT-2 124M against PyTorch, in the same rounds.  Called by
 * bench/runtime.sh, which made the plans.
 *
 *   bench_runtime FORERUN DIR PYTORCH_COMMAND|"" OUT
 *
 * DIR holds a plan NAME.json for every row.
 */
#include "bench/rounds.h"
#include "core/base/buffer.h"
#include "core/document/json.h"
#include "core/numbers/stats.h"
#include "core/system/fileio.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { sgemm_n = 1024, rounds_max = 16 };

/*
 * Flop of the matrix products of one token, forward and backward, as in
 * docs/validation.md: 6 for each parameter of a matrix that the token is
 * multiplied by (of experts, the chosen ones), and 12 L C T for attention over
 * all pairs of tokens.
 */
typedef struct runtime_row {
    const char *name; /* of the plan's file */
    const char *text;
    double matrix_parameters; /* that a token meets */
    double n_layers, hidden, seq;
} runtime_row;

static const runtime_row rows[] = {
    {"single", "GPT-2 124M, 1 rank x 2 threads", 124439808.0 - 1024.0 * 768.0,
     12, 768, 64},
    {"dp2", "GPT-2 124M, 2 ranks x 1 thread, dp 2",
     124439808.0 - 1024.0 * 768.0, 12, 768, 64},
    /* The head's transform (512^2) and the tied embedding are products too. */
    {"bert", "BERT, 8 layers of 512",
     8 * 12 * 512.0 * 512.0 + 512.0 * 512.0 + 30522.0 * 512.0, 8, 512, 128},
    /* q and o, k and v of half the heads, 2 of 8 experts of three matrices,
     * the router, and the head. */
    {"mixtral", "Mixtral, 6 layers of 512",
     6 * (3 * 512.0 * 512.0 + 2 * 3 * 512.0 * 1024.0 + 8 * 512.0) +
         32000.0 * 512.0,
     6, 512, 128},
};

enum { n_rows = sizeof rows / sizeof rows[0] };

typedef struct runtime_series {
    double tokens_per_s[n_rows][rounds_max];
    double pytorch[rounds_max]; /* of the first row's model */
    double sgemm_flops[rounds_max];
    const char *pytorch_reason; /* why there is no figure; NULL: there is */
} runtime_series;

static double flop_per_token(const runtime_row *row)
{
    return 6.0 * row->matrix_parameters +
           12.0 * row->n_layers * row->hidden * row->seq;
}

static fr_status tokens_per_s(const char *command, double *out, fr_err *err)
{
    fr_json *json = NULL;
    FR_TRY(fr_command_json(command, &json, err));
    fr_status status =
        fr_json_get_double(fr_json_root(json), "tokens_per_s", out, err);
    fr_json_destroy(json);
    return status;
}

static fr_status measure_round(char **argv, runtime_series *s, size_t i,
                               fr_err *err)
{
    char command[2048];
    double seconds;
    FR_TRY(fr_sgemm_s(sgemm_n, 10, &seconds, err));
    s->sgemm_flops[i] = 2.0 * sgemm_n * sgemm_n * sgemm_n / seconds;
    for (size_t r = 0; r < n_rows; r++) {
        snprintf(command, sizeof command,
                 "'%s' run '%s/%s.json' --steps 8 --json", argv[1], argv[2],
                 rows[r].name);
        FR_TRY(tokens_per_s(command, &s->tokens_per_s[r][i], err));
    }
    if (s->pytorch_reason == NULL)
        FR_TRY(tokens_per_s(argv[3], &s->pytorch[i], err));
    return FR_OK;
}

/* Prints a row, and writes it as an object. */
static void report_row(const runtime_row *row, double rate, double sgemm_flops,
                       fr_json_writer *w)
{
    double achieved_flops = rate * flop_per_token(row);
    printf("  %-38s %8.1f tokens/s %8.1f GFLOP/s %6.1f %% of sgemm\n",
           row->text, rate, achieved_flops / 1e9,
           100 * achieved_flops / sgemm_flops);
    fr_json_begin_object(w);
    fr_json_put_string(w, "name", row->name);
    fr_json_put_double(w, "tokens_per_s", rate);
    fr_json_put_double(w, "achieved_flops", achieved_flops);
    fr_json_put_double(w, "frac_of_sgemm", achieved_flops / sgemm_flops);
    fr_json_end_object(w);
}

static fr_status write_result(const char *path, runtime_series *s, size_t n,
                              fr_err *err)
{
    double sgemm_flops = fr_stats_median(s->sgemm_flops, n);
    double single = fr_stats_median(s->tokens_per_s[0], n);
    bool has_peer = s->pytorch_reason == NULL;
    double peer = has_peer ? fr_stats_median(s->pytorch, n) : 0;
    fr_buffer buffer;
    fr_json_writer w;
    fr_buffer_init(&buffer);
    fr_json_writer_init(&w, &buffer);
    fr_json_begin_object(&w);
    fr_json_put_string(&w, "schema", "forerun.bench-runtime/2");
    fr_json_put_u64(&w, "rounds", n);
    fr_json_put_double(&w, "sgemm_flops", sgemm_flops);
    printf("fp32, AdamW, median of %zu rounds; sgemm 1024^3 on 2 threads: "
           "%.1f GFLOP/s\n",
           n, sgemm_flops / 1e9);
    fr_json_key(&w, "plans");
    fr_json_begin_array(&w);
    for (size_t r = 0; r < n_rows; r++)
        report_row(&rows[r], fr_stats_median(s->tokens_per_s[r], n),
                   sgemm_flops, &w);
    fr_json_end_array(&w);
    if (has_peer) {
        printf("  %-38s %8.1f tokens/s, ours is %.2f times as fast\n",
               "GPT-2 124M in PyTorch, 2 threads", peer, single / peer);
        fr_json_put_double(&w, "pytorch_tokens_per_s", peer);
        fr_json_put_double(&w, "ratio_pytorch", single / peer);
    } else {
        printf("  PyTorch: %s\n", s->pytorch_reason);
        fr_json_put_null(&w, "pytorch_tokens_per_s");
        fr_json_put_null(&w, "ratio_pytorch");
        fr_json_put_string(&w, "pytorch_reason", s->pytorch_reason);
    }
    fr_json_end_object(&w);
    fr_buffer_putc(&buffer, '\n');
    return fr_file_write_buffer(path, &buffer, err);
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr,
                "usage: bench_runtime FORERUN DIR PYTORCH_COMMAND OUT\n");
        return 2;
    }
    const char *wanted = getenv("ROUNDS");
    long n = wanted != NULL ? strtol(wanted, NULL, 10) : 3;
    if (n < 1 || n > rounds_max) {
        fprintf(stderr, "bench_runtime: ROUNDS must be 1 to %d\n", rounds_max);
        return 2;
    }
    runtime_series series = {0};
    if (argv[3][0] == '\0')
        series.pytorch_reason = "python3-torch is not installed "
                                "(apt-get install python3-torch)";
    fr_err err = {0};
    fr_status status = FR_OK;
    for (size_t i = 0; status == FR_OK && i < (size_t)n; i++)
        status = measure_round(argv, &series, i, &err);
    if (status == FR_OK)
        status = write_result(argv[4], &series, (size_t)n, &err);
    if (status != FR_OK)
        fprintf(stderr, "bench_runtime: %s\n", err.text);
    return fr_status_exit_code(status);
}
