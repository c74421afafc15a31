/* rounds.c: see rounds.h. */
#include "bench/rounds.h"

#include "core/base/buffer.h"
#include "core/base/text.h"
#include "core/document/json.h"
#include "core/numbers/stats.h"
#include "core/system/clock.h"
#include "core/system/fileio.h"
#include "kernels/cpu/kernels_cpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A run must last this long for its median to mean something. */
static const double target_run_s = 1.2;
static const double sentinel_tolerance = 0.03;

/* ---- the list of plans -------------------------------------------------- */

static bool contender_parse(char *line, fr_contender *out)
{
    char *fields[3];
    char *rest = line;
    for (int i = 0; i < 3; i++) {
        rest = fr_text_trim(rest);
        size_t n = strcspn(rest, " \t");
        if (n == 0)
            return false;
        fields[i] = rest;
        rest += n;
        if (*rest != '\0')
            *rest++ = '\0';
    }
    memset(out, 0, sizeof *out);
    return fr_text_copy(out->name, sizeof out->name, fields[0]) &&
           fr_text_copy(out->link, sizeof out->link, fields[1]) &&
           fr_text_copy(out->model, sizeof out->model, fields[2]) &&
           fr_text_copy(out->options, sizeof out->options, fr_text_trim(rest));
}

fr_status fr_contenders_load(const char *path, fr_contender **out, size_t *n,
                             fr_err *err)
{
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return fr_fail(err, FR_IO, "%s: cannot be read", path);
    fr_status status = FR_OK;
    fr_contender *list = NULL;
    size_t count = 0;
    int line_number = 0;
    char line[1024];
    while (status == FR_OK && fgets(line, sizeof line, file) != NULL) {
        line_number++;
        line[strcspn(line, "#\n")] = '\0';
        char *text = fr_text_trim(line);
        if (*text == '\0')
            continue;
        fr_contender *grown = realloc(list, (count + 1) * sizeof *list);
        if (grown == NULL) {
            status = fr_fail_no_memory(err);
            break;
        }
        list = grown;
        if (!contender_parse(text, &list[count++]))
            status = fr_fail(err, FR_INPUT,
                             "%s:%d: expected \"name link model options\"",
                             path, line_number);
    }
    fclose(file);
    if (status != FR_OK) {
        free(list);
        return status;
    }
    *out = list;
    *n = count;
    return FR_OK;
}

/* ---- running the program ------------------------------------------------ */

fr_status fr_command_json(const char *command, fr_json **out, fr_err *err)
{
    FILE *pipe = popen(command, "r");
    if (pipe == NULL)
        return fr_fail(err, FR_IO, "cannot start: %s", command);
    fr_buffer text;
    fr_buffer_init(&text);
    char chunk[4096];
    size_t n;
    while ((n = fread(chunk, 1, sizeof chunk, pipe)) > 0)
        fr_buffer_append(&text, chunk, n);
    int wait_status = pclose(pipe);
    fr_status status = fr_buffer_check(&text, err);
    if (status == FR_OK && wait_status != 0)
        status = fr_fail(err, FR_FAILURE, "exit code %d of: %s",
                         WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1,
                         command);
    if (status == FR_OK)
        status =
            fr_json_parse(command, fr_buffer_text(&text), text.n, out, err);
    fr_buffer_release(&text);
    return status;
}

/* Do its ranks and threads outnumber the cores? */
static bool is_oversubscribed(const fr_contender *contender)
{
    return strstr(contender->options, "--ranks-per-node") != NULL;
}

static bool is_net(const fr_contender *contender)
{
    return strcmp(contender->link, "shm") != 0;
}

fr_status fr_contender_predict(const fr_rounds *rounds, fr_contender *contender,
                               fr_err *err)
{
    bool net = is_net(contender);
    contender->is_oversubscribed = is_oversubscribed(contender);
    snprintf(contender->plan_path, sizeof contender->plan_path, "%s/%s-%s.json",
             rounds->directory, contender->name, contender->link);
    char command[4096];
    snprintf(
        command, sizeof command,
        "'%s' simulate %s '%s' %s --profile '%s' -o '%s' --json",
        rounds->forerun, contender->model,
        net ? rounds->cluster_net : rounds->cluster_shm, contender->options,
        net ? rounds->profile_net : rounds->profile_shm, contender->plan_path);
    fr_json *json = NULL;
    FR_TRY(fr_command_json(command, &json, err));
    const fr_json_value *root = fr_json_root(json);
    const fr_json_value *memory = NULL;
    fr_status status =
        fr_json_get_double(root, "step_s", &contender->predicted_s, err);
    if (status == FR_OK)
        status = fr_json_get_object(root, "memory", &memory, err);
    if (status == FR_OK)
        status = fr_json_get_double(memory, "device_bytes",
                                    &contender->predicted_bytes, err);
    fr_json_destroy(json);
    return status;
}

static fr_status contender_run(const fr_rounds *rounds,
                               const fr_contender *contender, double *step_s,
                               double *peak_bytes, fr_err *err)
{
    long n_steps = (long)(target_run_s / contender->predicted_s);
    n_steps = n_steps < 8 ? 8 : n_steps > 60 ? 60 : n_steps;
    char command[4096], prefix[1024] = "", hosts[1024] = "";
    if (is_net(contender)) {
        snprintf(prefix, sizeof prefix, "bench/two_hosts.sh exec '%s' ",
                 rounds->hosts);
        snprintf(hosts, sizeof hosts, " --hostfile '%s/hostfile'",
                 rounds->hosts);
    }
    snprintf(command, sizeof command,
             "%s'%s' run '%s' --profile '%s' --steps %ld%s --json", prefix,
             rounds->forerun, contender->plan_path,
             is_net(contender) ? rounds->profile_net : rounds->profile_shm,
             n_steps + 3, hosts);
    fr_json *json = NULL;
    FR_TRY(fr_command_json(command, &json, err));
    const fr_json_value *root = fr_json_root(json);
    const fr_json_value *times = NULL;
    fr_status status = fr_json_get_object(root, "step_s", &times, err);
    if (status == FR_OK)
        status = fr_json_get_double(times, "median", step_s, err);
    if (status == FR_OK)
        status = fr_json_get_double(root, "peak_bytes", peak_bytes, err);
    fr_json_destroy(json);
    return status;
}

/* ---- rounds ------------------------------------------------------------- */

/*
 * Seconds of a fixed matrix product: what the machine gives us just now.  The
 * best in a tenth of a second, after what the run before it left behind is
 * gone, so that one interrupt does not condemn a round.
 */
static fr_status sentinel_s(double *out, fr_err *err)
{
    const struct timespec rest = {.tv_nsec = 50 * 1000 * 1000};
    (void)nanosleep(&rest, NULL);
    return fr_sgemm_s(512, 64, out, err);
}

fr_status fr_sgemm_s(int n, int n_tries, double *out, fr_err *err)
{
    float *buffer = calloc(3 * (size_t)n * (size_t)n, sizeof *buffer);
    if (buffer == NULL)
        return fr_fail_no_memory(err);
    for (size_t i = 0; i < 2 * (size_t)n * (size_t)n; i++)
        buffer[i] = (float)(i % 31) * 0.03125f;
    fr_instr instr = {.op = FR_OP_LINEAR_FWD,
                      .linear = {.m = n, .n = n, .k = n}};
    fr_kernel_call call = {.instr = &instr, .n_threads = 2};
    call.ptr[0] = buffer;
    call.ptr[1] = buffer + (size_t)n * (size_t)n;
    call.ptr[3] = buffer + 2 * (size_t)n * (size_t)n;
    fr_kernels_cpu_set_threads(2);
    double best = 1e9;
    for (int i = 0; i < n_tries; i++) {
        double begin = fr_clock_s();
        fr_kernels_cpu[FR_OP_LINEAR_FWD](&call);
        double elapsed = fr_clock_s() - begin;
        best = elapsed < best ? elapsed : best;
    }
    free(buffer);
    *out = best;
    return FR_OK;
}

/*
 * One undisturbed run: the sentinel before and after must agree with the best
 * one seen.  A machine that never rests must still end: so many tries, of
 * which the least disturbed one counts.
 */
static fr_status undisturbed_run(fr_rounds *rounds, fr_contender *contender,
                                 double *step_s, double *peak_bytes,
                                 fr_err *err)
{
    enum { n_tries = 4 };
    double before, after, least = INFINITY;
    FR_TRY(sentinel_s(&before, err));
    for (int i = 0; i < n_tries; i++) {
        double try_s, try_bytes;
        FR_TRY(contender_run(rounds, contender, &try_s, &try_bytes, err));
        FR_TRY(sentinel_s(&after, err));
        double worst = fmax(before, after), best = fmin(before, after);
        if (rounds->sentinel_s == 0 || best < rounds->sentinel_s)
            rounds->sentinel_s = best;
        if (worst < least) {
            least = worst;
            *step_s = try_s;
            *peak_bytes = try_bytes;
        }
        if (worst <= rounds->sentinel_s * (1 + sentinel_tolerance))
            break;
        before = after;
        rounds->n_repeated++;
    }
    rounds->sentinel_spread =
        fmax(rounds->sentinel_spread, least / rounds->sentinel_s - 1);
    return FR_OK;
}

static void contenders_finish(fr_contender *contenders, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double sorted[FR_ROUNDS_MAX];
        size_t count = (size_t)contenders[i].n_rounds;
        memcpy(sorted, contenders[i].round_s, count * sizeof *sorted);
        contenders[i].measured_s = fr_stats_median(sorted, count);
    }
}

fr_status fr_rounds_measure(fr_rounds *rounds, fr_contender *contenders,
                            size_t n, fr_err *err)
{
    rounds->n_repeated = 0;
    rounds->sentinel_spread = 0;
    FR_TRY(sentinel_s(&rounds->sentinel_s, err));
    for (int round = 0; round < rounds->n_rounds; round++) {
        for (size_t i = 0; i < n; i++) {
            fr_contender *c = &contenders[i];
            double peak_bytes = 0;
            FR_TRY(undisturbed_run(rounds, c, &c->round_s[c->n_rounds],
                                   &peak_bytes, err));
            c->n_rounds++;
            if (peak_bytes > c->measured_bytes)
                c->measured_bytes = peak_bytes;
            if (isatty(STDERR_FILENO))
                fprintf(stderr, "\rround %d of %d: %3zu/%zu %-40s", round + 1,
                        rounds->n_rounds, i + 1, n, c->name);
        }
    }
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r%70s\r", "");
    contenders_finish(contenders, n);
    return FR_OK;
}
