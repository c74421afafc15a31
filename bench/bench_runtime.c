/*
 * bench_runtime.c: training speed of the CPU runtime on GPT-2 124M, B=4, T=64,
 * against the sgemm rate and PyTorch in the same rounds.  Called by
 * bench/runtime.sh, which made the plans.
 *
 *   bench_runtime FORERUN PLAN_1x2 PLAN_2x1 PYTORCH_COMMAND|"" OUT
 */
#include "bench/rounds.h"
#include "core/base/buffer.h"
#include "core/base/fileio.h"
#include "core/document/json.h"
#include "core/numbers/stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { sgemm_n = 1024, rounds_max = 16 };

/*
 * 6 (P - wpe) tokens + 12 L C T tokens, as in docs/validation.md: what the
 * matrix products of one token cost, forward and backward.
 */
static double gpt2_124m_flop_per_token(double seq)
{
    return 6.0 * (124439808.0 - 1024.0 * 768.0) + 12.0 * 12.0 * 768.0 * seq;
}

typedef struct runtime_series {
    double single[rounds_max], dp2[rounds_max], pytorch[rounds_max];
    double sgemm_flops[rounds_max];
    const char *pytorch_reason; /* why there is no figure; NULL: there is */
} runtime_series;

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
    snprintf(command, sizeof command, "'%s' run '%s' --steps 8 --json", argv[1],
             argv[2]);
    FR_TRY(tokens_per_s(command, &s->single[i], err));
    snprintf(command, sizeof command, "'%s' run '%s' --steps 8 --json", argv[1],
             argv[3]);
    FR_TRY(tokens_per_s(command, &s->dp2[i], err));
    if (s->pytorch_reason == NULL)
        FR_TRY(tokens_per_s(argv[4], &s->pytorch[i], err));
    return FR_OK;
}

static fr_status write_result(const char *path, runtime_series *s, size_t n,
                              fr_err *err)
{
    double single = fr_stats_median(s->single, n);
    double dp2 = fr_stats_median(s->dp2, n);
    double sgemm_flops = fr_stats_median(s->sgemm_flops, n);
    double achieved_flops = single * gpt2_124m_flop_per_token(64);
    bool has_peer = s->pytorch_reason == NULL;
    double peer = has_peer ? fr_stats_median(s->pytorch, n) : 0;
    printf("GPT-2 124M, B=4 T=64, fp32, AdamW, median of %zu rounds\n", n);
    printf("  %-34s %8.1f tokens/s\n", "1 rank x 2 threads", single);
    printf("  %-34s %8.1f tokens/s\n", "2 ranks x 1 thread, DP=2", dp2);
    printf("  %-34s %8.1f GFLOP/s\n", "sgemm 1024^3, 2 threads",
           sgemm_flops / 1e9);
    printf("  %-34s %8.1f GFLOP/s (%.1f %% of sgemm)\n", "training",
           achieved_flops / 1e9, 100 * achieved_flops / sgemm_flops);
    if (has_peer)
        printf("  %-34s %8.1f tokens/s (ratio %.2f)\n", "PyTorch, 2 threads",
               peer, single / peer);
    else
        printf("  PyTorch: %s\n", s->pytorch_reason);
    fr_buffer buffer;
    fr_json_writer w;
    fr_buffer_init(&buffer);
    fr_json_writer_init(&w, &buffer);
    fr_json_begin_object(&w);
    fr_json_put_string(&w, "schema", "forerun.bench-runtime/1");
    fr_json_put_u64(&w, "rounds", n);
    fr_json_put_double(&w, "tokens_per_s", single);
    fr_json_put_double(&w, "tokens_per_s_dp2", dp2);
    fr_json_put_double(&w, "sgemm_flops", sgemm_flops);
    fr_json_put_double(&w, "achieved_flops", achieved_flops);
    fr_json_put_double(&w, "frac_of_sgemm", achieved_flops / sgemm_flops);
    if (has_peer) {
        fr_json_put_double(&w, "pytorch_tokens_per_s", peer);
        fr_json_put_double(&w, "ratio_pytorch", single / peer);
    } else {
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
    if (argc != 6) {
        fprintf(stderr, "usage: bench_runtime FORERUN PLAN_1x2 PLAN_2x1 "
                        "PYTORCH_COMMAND OUT\n");
        return 2;
    }
    const char *wanted = getenv("ROUNDS");
    long n = wanted != NULL ? strtol(wanted, NULL, 10) : 3;
    if (n < 1 || n > rounds_max) {
        fprintf(stderr, "bench_runtime: ROUNDS must be 1 to %d\n", rounds_max);
        return 2;
    }
    runtime_series series = {0};
    if (argv[4][0] == '\0')
        series.pytorch_reason = "python3-torch is not installed "
                                "(apt-get install python3-torch)";
    fr_err err = {0};
    fr_status status = FR_OK;
    for (size_t i = 0; status == FR_OK && i < (size_t)n; i++)
        status = measure_round(argv, &series, i, &err);
    if (status == FR_OK)
        status = write_result(argv[5], &series, (size_t)n, &err);
    if (status != FR_OK)
        fprintf(stderr, "bench_runtime: %s\n", err.text);
    return fr_status_exit_code(status);
}
