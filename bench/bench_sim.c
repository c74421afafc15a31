/*
 * bench_sim.c: the simulator by the clock: bench_sim [RESULT.json [programs]].
 *
 * Event queue: the hold model (pop the next event, push it again at its time
 * plus a random increment) with increments drawn beforehand from several
 * laws; the exponential one counts.  Ring: an all-reduce of 1 GiB over 1,024
 * ranks flow by flow, which must end at the textbook time to the picosecond.
 * Coupled: 1,024 flows between random hosts of a two-level tree whose leaves
 * are oversubscribed 4:1; whenever one ends another begins.  Medians of
 * several runs; one thread.
 */
#include "bench/estimate_search.h"
#include "core/document/json.h"
#include "core/numbers/stats.h"
#include "core/system/clock.h"
#include "core/system/fileio.h"
#include "cost_models/gpu/gpu_memory.h"
#include "program/lower/step/lower.h"
#include "sim/engine/event_queue.h"
#include "sim/predict/simulate.h"
#include "simgrid/flows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { N_RUNS = 5, MANY_RUNS = 25, N_DRAWS = 1 << 16 };

typedef struct bench {
    fr_json_writer json;
    fr_err err;
} bench;

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static double next_uniform(uint64_t *state) /* (0, 1] */
{
    return ((double)(next_random(state) >> 11) + 1.0) * 0x1p-53;
}

/* ---- hold model --------------------------------------------------------- */

typedef enum hold_law { EXPONENTIAL, UNIFORM, BIMODAL, EQUAL, N_LAWS } hold_law;

static const char *const law_names[N_LAWS] = {"exponential", "uniform 0..2",
                                              "0.9 x 0.1, 0.1 x 9.1", "all 1"};

/* Mean 1 us each. */
static int64_t draw_ps(hold_law law, uint64_t *state)
{
    double u = next_uniform(state), x = 1.0;

    if (law == EXPONENTIAL)
        x = -log(u);
    else if (law == UNIFORM)
        x = 2.0 * u;
    else if (law == BIMODAL)
        x = u < 0.9 ? 0.1 : 9.1;
    return (int64_t)(x * 1e6) + 1;
}

static fr_status hold_once(hold_law law, uint32_t n, double *events_per_s,
                           fr_err *err)
{
    enum { N_EVENTS = 4000000 };
    fr_event_queue queue;
    uint64_t state = 88172645463325252u;
    fr_status status = FR_OK;
    int64_t *draws = malloc(N_DRAWS * sizeof *draws);

    if (draws == NULL)
        return fr_fail_no_memory(err);
    for (size_t i = 0; i < N_DRAWS; i++)
        draws[i] = draw_ps(law, &state);
    fr_event_queue_init(&queue);
    for (uint32_t i = 0; i < n && status == FR_OK; i++)
        status = fr_event_queue_push(&queue, draws[i % N_DRAWS], i, err);
    double begin_s = fr_clock_s();
    for (uint32_t i = 0; i < N_EVENTS && status == FR_OK; i++) {
        uint32_t payload;
        int64_t now_ps = fr_event_queue_pop(&queue, &payload);
        status = fr_event_queue_push(&queue, now_ps + draws[i * 7 % N_DRAWS],
                                     payload, err);
    }
    *events_per_s = N_EVENTS / (fr_clock_s() - begin_s);
    fr_event_queue_release(&queue);
    free(draws);
    return status;
}

static fr_status hold(hold_law law, uint32_t n, double *out, fr_err *err)
{
    double runs[N_RUNS];

    for (int i = 0; i < N_RUNS; i++)
        FR_TRY(hold_once(law, n, &runs[i], err));
    *out = fr_stats_median(runs, N_RUNS);
    return FR_OK;
}

static fr_status bench_hold(bench *b)
{
    static const uint32_t sizes[] = {1024, 16384, 262144};
    double events_per_s = 0.0;
    char key[32];

    printf("event queue, hold model\n");
    fr_json_key(&b->json, "hold_events_per_s");
    fr_json_begin_object(&b->json);
    for (size_t i = 0; i < 3; i++) {
        FR_TRY(hold(EXPONENTIAL, sizes[i], &events_per_s, &b->err));
        printf("  %8u pending, %-22s %8.2f M events/s\n", sizes[i],
               law_names[EXPONENTIAL], 1e-6 * events_per_s);
        snprintf(key, sizeof key, "%u", sizes[i]);
        fr_json_put_double(&b->json, key, events_per_s);
    }
    fr_json_end_object(&b->json);
    for (int law = UNIFORM; law < N_LAWS; law++) {
        FR_TRY(hold((hold_law)law, 16384, &events_per_s, &b->err));
        printf("  %8u pending, %-22s %8.2f M events/s\n", 16384u,
               law_names[law], 1e-6 * events_per_s);
    }
    return FR_OK;
}

/* ---- ring --------------------------------------------------------------- */

enum { RING = 1024, RING_STEPS = 2 * (RING - 1) };

typedef struct ring {
    int64_t capacity[2 * RING];
    fr_maxmin_use uses[2 * RING];
    fr_flow_route routes[RING];
    fr_flow_item *items;
    uint32_t *children;
    int64_t *end_ps;
} ring;

/* Rank r sends to r + 1; step s + 1 of a rank waits for its step s and for
 * that of the rank before. */
static void fill_ring(ring *g, int64_t quanta_per_ps, fr_work work)
{
    for (uint32_t r = 0; r < RING; r++) {
        uint32_t to = (r + 1) % RING;
        g->capacity[2 * r] = g->capacity[2 * r + 1] = quanta_per_ps;
        g->uses[2 * r] = (fr_maxmin_use){2 * r, FR_MAXMIN_ONE};
        g->uses[2 * r + 1] = (fr_maxmin_use){2 * to + 1, FR_MAXMIN_ONE};
        g->routes[r] = (fr_flow_route){2 * r, 2, FR_MAXMIN_NO_CAP, 0};
    }
    for (uint32_t i = 0; i < RING_STEPS * RING; i++) {
        uint32_t s = i / RING, r = i % RING;
        g->items[i] = (fr_flow_item){.work = work,
                                     .route = r,
                                     .n_deps = s ? 2 : 0,
                                     .first_child = 2 * i,
                                     .n_children = s + 1 < RING_STEPS ? 2 : 0};
        g->children[2 * i] = (s + 1) * RING + r;
        g->children[2 * i + 1] = (s + 1) * RING + (r + 1) % RING;
    }
}

static fr_status run_ring(ring *g, double *wall_s, fr_err *err)
{
    const double bandwidth_Bps = 12.5e9, bytes = 1024.0 * 1024.0 * 1024.0;
    const size_t n = (size_t)RING_STEPS * RING;
    double runs[N_RUNS];

    fill_ring(g, (int64_t)ldexp(bandwidth_Bps, 18),
              (fr_work)ldexp(bytes / RING, 18) * UINT64_C(1000000000000));
    fr_flow_set set = {.n_links = 2 * RING,
                       .n_items = n,
                       .capacity = g->capacity,
                       .uses = g->uses,
                       .routes = g->routes,
                       .items = g->items,
                       .children = g->children};
    /* 2 (n - 1) / n * S / B */
    double textbook_s = 2.0 * (RING - 1) / RING * bytes / bandwidth_Bps;
    for (int i = 0; i < N_RUNS; i++) {
        uint64_t n_events = 0;
        double begin_s = fr_clock_s();
        FR_TRY(fr_flow_set_run(&set, g->end_ps, &n_events, err));
        runs[i] = fr_clock_s() - begin_s;
        if (g->end_ps[n - 1] != llround(textbook_s * 1e12))
            return fr_fail(err, FR_CHECK, "the ring ends at %.12f s, not %.12f",
                           1e-12 * (double)g->end_ps[n - 1], textbook_s);
    }
    *wall_s = fr_stats_median(runs, N_RUNS);
    printf("ring all-reduce of 1 GiB, %d ranks, %.1f M flows\n"
           "  simulated %.9f s (textbook %.9f s)  in %.3f s\n",
           RING, 1e-6 * (double)n, 1e-12 * (double)g->end_ps[n - 1], textbook_s,
           *wall_s);
    return FR_OK;
}

static fr_status bench_ring(bench *b)
{
    const size_t n = (size_t)RING_STEPS * RING;
    ring *g = calloc(1, sizeof *g);
    fr_status status = FR_OK;
    double wall_s = 0.0;

    if (g == NULL)
        return fr_fail_no_memory(&b->err);
    g->items = malloc(n * sizeof *g->items);
    g->children = malloc(2 * n * sizeof *g->children);
    g->end_ps = malloc(n * sizeof *g->end_ps);
    status = g->items != NULL && g->children != NULL && g->end_ps != NULL
                 ? run_ring(g, &wall_s, &b->err)
                 : fr_fail_no_memory(&b->err);
    fr_json_put_double(&b->json, "ring1024_s", wall_s);
    free(g->items);
    free(g->children);
    free(g->end_ps);
    free(g);
    return status;
}

/* ---- coupled ------------------------------------------------------------ */

typedef struct tree {
    uint32_t n_hosts, n_below; /* hosts of a leaf switch */
    fr_maxmin *maxmin;
    uint64_t random;
} tree;

/* Links: 2 per host (out, in), then 2 per leaf (up, down). */
static fr_status start_random(tree *t, uint32_t tag, fr_err *err)
{
    uint32_t n = t->n_hosts, a, b;
    fr_maxmin_use uses[4];
    size_t n_uses = 2;

    a = (uint32_t)(next_random(&t->random) >> 33) % n;
    do
        b = (uint32_t)(next_random(&t->random) >> 33) % n;
    while (b == a);
    uint32_t leaf_a = a / t->n_below, leaf_b = b / t->n_below;
    uses[0] = (fr_maxmin_use){2 * a, FR_MAXMIN_ONE};
    uses[1] = (fr_maxmin_use){2 * b + 1, FR_MAXMIN_ONE};
    if (leaf_a != leaf_b) {
        uses[2] = (fr_maxmin_use){2 * n + 2 * leaf_a, FR_MAXMIN_ONE};
        uses[3] = (fr_maxmin_use){2 * n + 2 * leaf_b + 1, FR_MAXMIN_ONE};
        n_uses = 4;
    }
    double bytes = 1e6 + 9e6 * next_uniform(&t->random);
    fr_work work = (fr_work)ldexp(bytes, 16) * UINT64_C(1000000000000);
    return fr_maxmin_add(t->maxmin, work, FR_MAXMIN_NO_CAP, uses, n_uses, tag,
                         NULL, err);
}

static fr_status run_tree(tree *t, uint32_t n_flows, double *us, fr_err *err)
{
    enum { N_ENDS = 20000, BATCH = 64 };
    uint32_t tags[BATCH], n_ended = 0;

    for (uint32_t i = 0; i < n_flows; i++)
        FR_TRY(start_random(t, i, err));
    fr_maxmin_solve(t->maxmin, 0);
    double begin_s = fr_clock_s();
    while (n_ended < N_ENDS) {
        int64_t now_ps = fr_maxmin_next_ps(t->maxmin);
        size_t n = fr_maxmin_take_finished(t->maxmin, now_ps, tags, BATCH);
        for (size_t i = 0; i < n; i++)
            FR_TRY(start_random(t, tags[i], err));
        fr_maxmin_solve(t->maxmin, now_ps);
        n_ended += (uint32_t)n;
    }
    *us = 1e6 * (fr_clock_s() - begin_s) / n_ended;
    return FR_OK;
}

static fr_status coupled(uint32_t n_hosts, uint32_t n_below, uint32_t n_flows,
                         double *us, fr_err *err)
{
    const int64_t nic = (int64_t)ldexp(12.5e9, 16);
    size_t n_links = 2 * n_hosts + 2 * (n_hosts / n_below);
    int64_t *capacity = malloc(n_links * sizeof *capacity);
    double runs[N_RUNS];
    fr_status status = capacity != NULL ? FR_OK : fr_fail_no_memory(err);

    for (size_t l = 0; l < n_links && status == FR_OK; l++)
        capacity[l] = l < 2 * n_hosts ? nic : nic * n_below / 4;
    for (int i = 0; i < N_RUNS && status == FR_OK; i++) {
        tree t = {.n_hosts = n_hosts, .n_below = n_below, .random = 918273645};
        status = fr_maxmin_create(n_links, capacity, &t.maxmin, err);
        if (status == FR_OK)
            status = run_tree(&t, n_flows, &runs[i], err);
        fr_maxmin_destroy(t.maxmin);
    }
    free(capacity);
    if (status != FR_OK)
        return status;
    *us = fr_stats_median(runs, N_RUNS);
    printf("  %4u hosts, %2u to a leaf: %6.2f us per completion\n", n_hosts,
           n_below, *us);
    return FR_OK;
}

static fr_status bench_coupled(bench *b)
{
    double us = 0.0, other_us = 0.0;

    printf("1,024 flows at a time on a tree oversubscribed 4:1\n");
    FR_TRY(coupled(1024, 32, 1024, &us, &b->err));
    FR_TRY(coupled(1024, 16, 1024, &other_us, &b->err));
    FR_TRY(coupled(256, 16, 1024, &other_us, &b->err));
    fr_json_put_double(&b->json, "coupled1024_us_per_completion", us);
    return FR_OK;
}

/* ---- programs ----------------------------------------------------------- */

typedef struct scene {
    const char *model, *cluster;
    int32_t n_layers; /* 0: the model's */
    int32_t tp, pp, dp;
    int64_t n_micro, seq; /* of each pipeline */
    bool is_unfolded;
} scene;

typedef struct timing {
    double lower_s, simulate_s, step_s;
    int64_t ranks_simulated;
    uint64_t n_events;
} timing;

typedef struct stage_set {
    fr_cluster cluster;
    fr_cost_model *costs;
    fr_model model;
    fr_plan plan;
    fr_job job;
    fr_placement placement;
    int32_t *node_of_rank;
} stage_set;

static void stage_set_release(stage_set *set)
{
    fr_cost_model_destroy(set->costs);
    fr_cluster_release(&set->cluster);
    fr_model_release(&set->model);
    free(set->node_of_rank);
}

static fr_status stage_set_init(const scene *of, stage_set *out, fr_err *err)
{
    memset(out, 0, sizeof *out);
    fr_plan_init(&out->plan);
    out->plan.tp = of->tp;
    out->plan.pp = of->pp;
    out->plan.dp = of->dp;
    out->plan.micro_batch = 1;
    out->plan.is_sequence_parallel = of->tp > 1;
    fr_job_init(&out->job);
    out->job.global_batch = of->dp * of->n_micro;
    out->job.seq = of->seq;
    int64_t n = fr_plan_world(&out->plan);
    FR_TRY(fr_model_load(NULL, of->model, &out->model, err));
    if (of->n_layers > 0)
        out->model.n_layers = of->n_layers;
    out->model.has_rope_scaling = false; /* costs no time */
    FR_TRY(fr_cluster_load(NULL, of->cluster, &out->cluster, err));
    FR_TRY(fr_cost_model_create(NULL, &out->cluster, &out->costs, err));
    out->node_of_rank = malloc((size_t)n * sizeof *out->node_of_rank);
    if (out->node_of_rank == NULL)
        return fr_fail_no_memory(err);
    out->placement = (fr_placement){.n_ranks = n,
                                    .node_of_rank = out->node_of_rank,
                                    .by_framework = fr_gpu_is_by_framework(
                                        &out->plan, &out->cluster.devices[0])};
    return fr_cluster_place(&out->cluster, n, 1, 0, out->node_of_rank, err);
}

/* From the plan to the prediction, and both halves of it. */
static fr_status simulate_once(const scene *of, const stage_set *set,
                               timing *out, fr_err *err)
{
    const fr_replay_options options = {.is_unfolded = of->is_unfolded};
    fr_prediction prediction;
    fr_program *program = NULL;
    double begin_s = fr_clock_s();
    FR_TRY(fr_lower(&set->model, &set->job, &set->plan, &set->placement,
                    &program, err));
    double lowered_s = fr_clock_s();
    fr_status status = fr_simulate(
        program, set->costs, &set->cluster, &set->placement,
        &(fr_simulate_options){.replay = &options}, &prediction, err);
    double end_s = fr_clock_s();
    fr_program_destroy(program);
    if (status != FR_OK)
        return status;
    out->lower_s = lowered_s - begin_s;
    out->simulate_s = end_s - lowered_s;
    out->step_s = prediction.step_s;
    out->ranks_simulated = prediction.sim.ranks_simulated;
    out->n_events = prediction.sim.events;
    return FR_OK;
}

static fr_status simulate_scene(const scene *of, int n_runs, timing *out,
                                fr_err *err)
{
    double lower_s[MANY_RUNS], simulate_s[MANY_RUNS];
    stage_set set;
    fr_status status = stage_set_init(of, &set, err);
    for (int i = 0; status == FR_OK && i < n_runs; i++) {
        status = simulate_once(of, &set, out, err);
        lower_s[i] = out->lower_s;
        simulate_s[i] = out->simulate_s;
    }
    stage_set_release(&set);
    if (status != FR_OK)
        return status;
    out->lower_s = fr_stats_median(lower_s, (size_t)n_runs);
    out->simulate_s = fr_stats_median(simulate_s, (size_t)n_runs);
    return FR_OK;
}

static void put_absent(bench *b, const char *key, const char *why)
{
    char text[64];

    fr_json_put_null(&b->json, key);
    snprintf(text, sizeof text, "%s_why", key);
    fr_json_put_string(&b->json, text, why);
}

/* One scene; its time in `unit_s`. */
static bool bench_scene(bench *b, const scene *of, int n_runs, const char *key,
                        double unit_s)
{
    timing t = {0};
    fr_err err = {0};

    printf("%s, tp %d pp %d dp %d, %lld micro-batches on %s%s\n", of->model,
           (int)of->tp, (int)of->pp, (int)of->dp, (long long)of->n_micro,
           of->cluster, of->is_unfolded ? ", each rank" : "");
    if (simulate_scene(of, n_runs, &t, &err) != FR_OK) {
        printf("  not possible: %s\n", err.text);
        put_absent(b, key, err.text);
        return false;
    }
    printf("  step of %.3f s, %lld ranks simulated, %llu events:\n"
           "  lowering %.2f ms, simulation %.2f ms, together %.2f ms\n",
           t.step_s, (long long)t.ranks_simulated,
           (unsigned long long)t.n_events, 1e3 * t.lower_s, 1e3 * t.simulate_s,
           1e3 * (t.lower_s + t.simulate_s));
    fr_json_put_double(&b->json, key, (t.lower_s + t.simulate_s) / unit_s);
    return true;
}

/* The most memory that this process has had. */
static double peak_bytes(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0
               ? 1024.0 * (double)usage.ru_maxrss
               : 0.0;
}

static void bench_estimate(bench *b)
{
    static const scene of = {"llama-3-70b", "dgx-h100:32", 0, 1, 1, 256, 2,
                             4096,          false};
    const int64_t world = of.tp * of.pp * of.dp;
    double us[N_RUNS];
    stage_set set;
    fr_err err = {0};
    printf("estimates of %s on %s\n", of.model, of.cluster);
    fr_status status = stage_set_init(&of, &set, &err);
    for (int i = 0; status == FR_OK && i < N_RUNS; i++)
        status = fr_estimate_search(
            &(fr_estimate_job){&set.model, &set.job, &set.cluster, set.costs},
            world, &us[i], &err);
    stage_set_release(&set);
    if (status == FR_OK)
        fr_json_put_double(&b->json, "estimate_us",
                           fr_stats_median(us, N_RUNS));
    else
        put_absent(b, "estimate_us", err.text);
}

/* Times the plans that a tuner simulates again and again. */
static void bench_usual(bench *b)
{
    static const struct usual {
        const char *key;
        scene of;
    } all[] = {
        {"gpt2-1.5b_dp8",
         {"gpt2-1.5b", "dgx-h100", 0, 1, 1, 8, 8, 1024, false}},
        {"llama-3-70b_tp8_pp4_dp8",
         {"llama-3-70b", "dgx-h100:32", 0, 8, 4, 8, 32, 4096, false}},
        {"gpt3-175b_tp8_pp16_dp8",
         {"gpt3-175b", "dgx-a100:128", 0, 8, 16, 8, 24, 2048, false}},
    };
    fr_json_key(&b->json, "simulate_ms");
    fr_json_begin_object(&b->json);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        bench_scene(b, &all[i].of, MANY_RUNS, all[i].key, 1e-3);
    fr_json_end_object(&b->json);
}

static void bench_programs(bench *b)
{
    static const scene folded = {
        "llama-3-405b", "dgx-h100:2048", 0, 8, 16, 128, 64, 8192, false};
    static const scene small = {"gpt3-175b", "dgx-h100:32", 8,   8, 8, 4,
                                16,          2048,          true};
    static const scene wave = {
        "llama-3-405b", "dgx-h100:16384", 0, 8, 16, 1024, 1, 8192, true};

    bench_scene(b, &folded, MANY_RUNS, "folded_405b_ms", 1e-3);
    bench_usual(b);
    bench_scene(b, &small, N_RUNS, "unfolded256_s", 1.0);
    if (bench_scene(b, &wave, 1, "unfolded131072_s", 1.0)) {
        printf("  %.2f GiB at most\n", peak_bytes() / 0x1p30);
        fr_json_put_double(&b->json, "unfolded131072_peak_bytes", peak_bytes());
    } else {
        put_absent(b, "unfolded131072_peak_bytes", "not simulated");
    }
    bench_estimate(b);
}

int main(int argc, char **argv)
{
    fr_buffer text;
    bench b = {0};
    bool is_whole = argc < 3 || strcmp(argv[2], "programs") != 0;

    fr_buffer_init(&text);
    fr_json_writer_init(&b.json, &text);
    fr_json_begin_object(&b.json);
    fr_status status = is_whole ? bench_hold(&b) : FR_OK;
    if (status == FR_OK && is_whole)
        status = bench_ring(&b);
    if (status == FR_OK && is_whole)
        status = bench_coupled(&b);
    if (status == FR_OK) {
        bench_programs(&b);
        fr_json_end_object(&b.json);
        fr_buffer_putc(&text, '\n');
        status = fr_buffer_check(&text, &b.err);
    }
    if (status == FR_OK && argc > 1)
        status = fr_file_write(argv[1], fr_buffer_text(&text), text.n, &b.err);
    if (status != FR_OK)
        fprintf(stderr, "bench_sim: %s\n", b.err.text);
    fr_buffer_release(&text);
    return fr_status_exit_code(status);
}
