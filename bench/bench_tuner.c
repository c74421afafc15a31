/*
 * bench_tuner.c: the tuner by the clock: bench_tuner [RESULT.json
 * [bounds]].
 *
 * For each case: every plan of the space estimated one by one (exhaustive),
 * the same optimum by branch and bound, and tune as a user calls it.  Rates
 * per core are of CPU time, so that other programs on the machine count less;
 * all other times are by the clock.  Medians of several runs where they are
 * short.  Then a small space whole, every plan simulated, against its bounds.
 */
#include "core/document/json.h"
#include "core/numbers/stats.h"
#include "core/system/clock.h"
#include "core/system/fileio.h"
#include "sim/bound/estimate.h"
#include "tuner/answer/tune.h"
#include "tuner/bound/bound_walk.h"
#include "tuner/search/evaluate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N_RUNS = 3, N_THREADS = 2 };

typedef struct tuner_case {
    const char *name, *model, *cluster;
    int64_t batch, seq, world;
} tuner_case;

/* Calculon's space of the first has 7,276,848 configurations (Isaev et al.,
 * SC 2023); the others are GPT-3's and Llama 3's own sizes. */
static const tuner_case cases[] = {
    {"gpt-1t on 4096 A100", "gpt-1t", "dgx-a100:512", 4096, 2048, 4096},
    {"gpt3-175b on 1024 A100", "gpt3-175b", "dgx-a100:128", 1536, 2048, 1024},
    {"llama-3-405b on 16384 H100", "llama-3-405b", "dgx-h100:2048", 2048, 8192,
     16384},
};
enum { N_CASES = sizeof cases / sizeof cases[0] };

typedef struct setting {
    fr_model model;
    fr_cluster cluster;
    fr_job job;
    fr_cost_model *costs;
    fr_plan_space_request request;
} setting;

typedef struct run_result {
    double wall_s, cpu_s, best_s; /* of the estimate */
    uint64_t n_plans, n_estimated;
} run_result;

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static fr_status open_setting(const tuner_case *c, setting *out, fr_err *err)
{
    FR_TRY(fr_model_load(NULL, c->model, &out->model, err));
    FR_TRY(fr_cluster_load(NULL, c->cluster, &out->cluster, err));
    FR_TRY(fr_cost_model_create(NULL, &out->cluster, &out->costs, err));
    fr_job_init(&out->job);
    out->job.global_batch = c->batch;
    out->job.seq = c->seq;
    out->request = (fr_plan_space_request){.model = &out->model,
                                           .job = &out->job,
                                           .cluster = &out->cluster,
                                           .world = c->world};
    fr_plan_init(&out->request.base);
    out->request.base.precision = FR_DTYPE_BF16;
    out->request.base.is_flash = true;
    return FR_OK;
}

static void close_setting(setting *s)
{
    fr_cost_model_destroy(s->costs);
    fr_cluster_release(&s->cluster);
    fr_model_release(&s->model);
}

/* From nothing: layers are listed and priced on the way. */
static fr_status walk(const setting *s, bool is_whole, int n_threads,
                      run_result *out, fr_err *err)
{
    fr_search_input in = {
        .request = &s->request, .costs = s->costs, .n_threads = n_threads};
    fr_walk_options options = {
        .is_best_only = !is_whole, .is_whole = is_whole, .limit = HUGE_VAL};
    fr_bound_walk *search = NULL;
    fr_walk_result found;
    double begin_s = fr_clock_s(), begin_cpu_s = cpu_s();
    FR_TRY(fr_bound_walk_create(&in, &search, err));
    fr_status status = fr_bound_walk_run(search, &options, &found, err);
    out->wall_s = fr_clock_s() - begin_s;
    out->cpu_s = cpu_s() - begin_cpu_s;
    fr_bound_walk_destroy(search);
    if (status != FR_OK)
        return status;
    out->best_s = found.by_estimate.n > 0 ? found.by_estimate.items[0].estimate
                                          : HUGE_VAL;
    out->n_plans = found.n_plans;
    out->n_estimated = found.n_estimated;
    fr_walk_result_release(&found);
    return FR_OK;
}

static fr_status walk_often(const setting *s, run_result *out, fr_err *err)
{
    double wall_s[N_RUNS], cpu[N_RUNS];
    for (int i = 0; i < N_RUNS; i++) {
        FR_TRY(walk(s, false, N_THREADS, out, err));
        wall_s[i] = out->wall_s;
        cpu[i] = out->cpu_s;
    }
    out->wall_s = fr_stats_quantile(wall_s, N_RUNS, 0.5);
    out->cpu_s = fr_stats_quantile(cpu, N_RUNS, 0.5);
    return FR_OK;
}

static fr_status tune(const setting *s, fr_tuning *out, fr_err *err)
{
    fr_tune_options options = {
        .space = s->request, .n_alternatives = 3, .n_threads = N_THREADS};
    return fr_tune(&options, s->costs, out, err);
}

static fr_status bench_case(const tuner_case *c, fr_json_writer *json,
                            double *speedup, double *per_s, fr_err *err)
{
    setting s = {0};
    run_result one, two, bnb;
    fr_tuning tuning;
    fr_status status = FR_OK;
    fr_tuning_init(&tuning);
    FR_TRY_GOTO(status, open_setting(c, &s, err), out_case);
    FR_TRY_GOTO(status, walk(&s, true, 1, &one, err), out_case);
    FR_TRY_GOTO(status, walk(&s, true, N_THREADS, &two, err), out_case);
    FR_TRY_GOTO(status, walk_often(&s, &bnb, err), out_case);
    FR_TRY_GOTO(status, tune(&s, &tuning, err), out_case);
    double gap = bnb.best_s / two.best_s - 1;
    *speedup = one.wall_s / two.wall_s;
    *per_s = (double)one.n_estimated / one.cpu_s;
    printf("%-28s %12llu plans  all %6.2f s (%.2f M/s and core)  bound "
           "%5.2f s (%.2f s of CPU, %llu one by one)  gap %.3f %%  simulated "
           "gap %.2f %% in %.2f s\n",
           c->name, (unsigned long long)two.n_plans, two.wall_s, 1e-6 * *per_s,
           bnb.wall_s, bnb.cpu_s, (unsigned long long)bnb.n_estimated,
           100 * gap, 100 * tuning.certificate.gap, tuning.wall_s);
    fr_json_begin_object(json);
    fr_json_put_string(json, "name", c->name);
    fr_json_put_u64(json, "plans", two.n_plans);
    fr_json_put_double(json, "exhaustive_s", two.wall_s);
    fr_json_put_double(json, "exhaustive_cpu_s", one.cpu_s);
    fr_json_put_double(json, "estimates_per_s_per_core", *per_s);
    fr_json_put_double(json, "speedup_2_threads", *speedup);
    fr_json_put_double(json, "bnb_s", bnb.wall_s);
    fr_json_put_double(json, "bnb_cpu_s", bnb.cpu_s);
    fr_json_put_u64(json, "bnb_estimates", bnb.n_estimated);
    fr_json_put_double(json, "gap_estimate", gap);
    fr_json_put_double(json, "gap_simulated", tuning.certificate.gap);
    fr_json_put_double(json, "tune_s", tuning.wall_s);
    fr_json_put_u64(json, "simulated", tuning.space.simulated);
    if (tuning.best.plan != NULL)
        fr_json_put_string(json, "best", tuning.best.name);
    fr_json_end_object(json);
out_case:
    fr_tuning_release(&tuning);
    close_setting(&s);
    return status;
}

/* ---- bounds against simulations ------------------------------------------ */

typedef struct tally {
    uint64_t n, n_above, n_roomier; /* plans; bounds that do not hold */
    double tightness;               /* bound / simulated, sum */
} tally;

/* One plan; what cannot be simulated for want of memory is no plan. */
static fr_status check_bound(const setting *s, fr_estimator *estimator,
                             const fr_candidate *candidate, tally *t,
                             fr_err *err)
{
    fr_plan plan;
    fr_evaluation evaluation;
    fr_estimate estimate;
    fr_plan_space_plan(&s->request, candidate, &plan);
    FR_TRY(fr_evaluate(&s->request, s->costs, &plan, &evaluation, err));
    FR_TRY(fr_estimate_plan(estimator, &plan, &estimate, err));
    if (evaluation.prediction.memory.device_bytes > 0)
        t->n_roomier +=
            estimate.least_bytes > evaluation.prediction.memory.peak_bytes;
    if (!(evaluation.prediction.step_s > 0))
        return FR_OK;
    double ratio = estimate.lower_bound_s / evaluation.prediction.step_s;
    t->n++;
    t->tightness += ratio;
    t->n_above += ratio > 1 + 1e-9;
    return FR_OK;
}

static fr_status check_part(const setting *s, const fr_plan_space *space,
                            size_t first, size_t step, tally *t, fr_err *err)
{
    fr_estimator *estimator = NULL;
    FR_TRY(fr_estimator_create(&s->model, &s->job, &s->cluster, s->costs,
                               &estimator, err));
    fr_status status = FR_OK;
    for (size_t i = first; i < space->plans.n && status == FR_OK; i += step)
        status = check_bound(s, estimator, &space->plans.items[i], t, err);
    fr_estimator_destroy(estimator);
    return status;
}

/* A space that is small enough to simulate, whole. */
static fr_status bench_bounds(fr_json_writer *json, fr_err *err)
{
    static const tuner_case small = {"bounds", "gpt2-mini", "dgx-a100:4",
                                     64,       256,         32};
    setting s = {0};
    fr_plan_space space = {0};
    tally t[N_THREADS] = {{0}};
    fr_status statuses[N_THREADS], status = FR_OK;
    fr_err errors[N_THREADS];
    FR_TRY_GOTO(status, open_setting(&small, &s, err), out_bounds);
    FR_TRY_GOTO(status,
                fr_plan_space_create(&s.request, NULL, NULL, &space, err),
                out_bounds);
#pragma omp parallel for num_threads(N_THREADS) schedule(static, 1)
    for (int i = 0; i < N_THREADS; i++)
        statuses[i] =
            check_part(&s, &space, (size_t)i, N_THREADS, &t[i], &errors[i]);
    for (int i = 0; i < N_THREADS; i++) {
        if (statuses[i] != FR_OK)
            status = fr_fail(err, statuses[i], "%s", errors[i].text);
        t[0].n += i > 0 ? t[i].n : 0;
        t[0].n_above += i > 0 ? t[i].n_above : 0;
        t[0].n_roomier += i > 0 ? t[i].n_roomier : 0;
        t[0].tightness += i > 0 ? t[i].tightness : 0;
    }
    double mean = t[0].tightness / (double)t[0].n;
    printf("%llu plans simulated: %llu bounds above, %llu least memories "
           "above; bound / simulated %.3f on average\n",
           (unsigned long long)t[0].n, (unsigned long long)t[0].n_above,
           (unsigned long long)t[0].n_roomier, mean);
    fr_json_put_u64(json, "bound_plans", t[0].n);
    fr_json_put_u64(json, "bound_violations", t[0].n_above);
    fr_json_put_u64(json, "memory_bound_violations", t[0].n_roomier);
    fr_json_put_double(json, "bound_tightness", mean);
out_bounds:
    fr_plan_space_release(&space);
    close_setting(&s);
    return status;
}

int main(int argc, char **argv)
{
    fr_buffer text;
    fr_json_writer json;
    fr_err err;
    double speedup[N_CASES], per_s[N_CASES];
    int n_cases = argc > 2 && strcmp(argv[2], "bounds") == 0 ? 0 : N_CASES;
    fr_buffer_init(&text);
    fr_json_writer_init(&json, &text);
    fr_json_begin_object(&json);
    fr_json_key(&json, "cases");
    fr_json_begin_array(&json);
    for (int i = 0; i < n_cases; i++)
        if (bench_case(&cases[i], &json, &speedup[i], &per_s[i], &err) !=
            FR_OK) {
            fprintf(stderr, "bench_tuner: %s: %s\n", cases[i].name, err.text);
            fr_buffer_release(&text);
            return 1;
        }
    fr_json_end_array(&json);
    if (n_cases > 0) {
        fr_json_put_double(&json, "estimates_per_s_per_core", per_s[0]);
        fr_json_put_double(&json, "speedup_2_threads", speedup[0]);
    }
    fr_status status = bench_bounds(&json, &err);
    fr_json_end_object(&json);
    fr_buffer_putc(&text, '\n');
    if (status == FR_OK)
        status = fr_buffer_check(&text, &err);
    if (status == FR_OK && argc > 1)
        status = fr_file_write(argv[1], fr_buffer_text(&text), text.n, &err);
    if (status != FR_OK)
        fprintf(stderr, "bench_tuner: %s\n", err.text);
    fr_buffer_release(&text);
    return status != FR_OK;
}
