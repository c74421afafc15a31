/*
 * bench_sim.c: the simulator by the clock: bench_sim [RESULT.json].
 *
 * Event queue: the hold model (pop the next event, push it again at its time
 * plus a random increment) with increments drawn beforehand from several
 * laws; the exponential one counts.  Ring: an all-reduce of 1 GiB over 1,024
 * ranks flow by flow, which must end at the textbook time to the picosecond.
 * Coupled: 1,024 flows between random hosts of a two-level tree whose leaves
 * are oversubscribed 4:1; whenever one ends another begins.  Medians of
 * several runs; one thread.
 */
#include "core/clock.h"
#include "core/fileio.h"
#include "core/json.h"
#include "core/stats.h"
#include "plan/lower.h"
#include "sim/event_queue.h"
#include "sim/flows.h"
#include "sim/simulate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_RUNS = 5, N_DRAWS = 1 << 16 };

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

    if (!draws)
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

    if (!g)
        return fr_fail_no_memory(&b->err);
    g->items = malloc(n * sizeof *g->items);
    g->children = malloc(2 * n * sizeof *g->children);
    g->end_ps = malloc(n * sizeof *g->end_ps);
    status = g->items && g->children && g->end_ps
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
    fr_status status = capacity ? FR_OK : fr_fail_no_memory(err);

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

/* GPT-3 175B on 32 nodes of 8 H100: every rank simulated by itself. */
static fr_status simulate_256(double *wall_s, double *step_s, fr_err *err)
{
    fr_cluster cluster = {0};
    fr_cost_model *costs = NULL;
    fr_program *program = NULL;
    fr_model model = {0};
    fr_prediction prediction;
    fr_plan plan;
    fr_job job;
    int32_t nodes[256];
    double runs[N_RUNS];
    fr_status status;

    fr_plan_init(&plan);
    plan.tp = plan.pp = 8;
    plan.dp = 4;
    plan.is_sequence_parallel = true;
    fr_job_init(&job);
    job.global_batch = 64;
    job.seq = 2048;
    for (int i = 0; i < 256; i++)
        nodes[i] = i / 8;
    const fr_placement placement = {256, nodes};
    FR_TRY_GOTO(status, fr_model_load("gpt3-175b", &model, err), out);
    FR_TRY_GOTO(status, fr_cluster_load("dgx-h100:32", &cluster, err), out);
    FR_TRY_GOTO(status, fr_cost_model_create(NULL, &cluster, &costs, err), out);
    FR_TRY_GOTO(status,
                fr_lower(&model, &job, &plan, &placement, &program, err), out);
    for (int i = 0; i < N_RUNS; i++) {
        double begin_s = fr_clock_s();
        FR_TRY_GOTO(status,
                    fr_simulate(program, costs, &cluster, &placement, NULL,
                                &prediction, err),
                    out);
        runs[i] = fr_clock_s() - begin_s;
    }
    *wall_s = fr_stats_median(runs, N_RUNS);
    *step_s = prediction.step_s;
out:
    fr_program_destroy(program);
    fr_cost_model_destroy(costs);
    fr_cluster_release(&cluster);
    fr_model_release(&model);
    return status;
}

static void put_absent(bench *b, const char *key, const char *why)
{
    char text[64];

    fr_json_put_null(&b->json, key);
    snprintf(text, sizeof text, "%s_why", key);
    fr_json_put_string(&b->json, text, why);
}

static void bench_programs(bench *b)
{
    double wall_s = 0.0, step_s = 0.0;
    fr_err err = {0};

    printf("gpt3-175b, tp 8 pp 8 dp 4 on dgx-h100:32, each of 256 ranks\n");
    if (simulate_256(&wall_s, &step_s, &err) == FR_OK) {
        printf("  step of %.3f s simulated in %.3f s\n", step_s, wall_s);
        fr_json_put_double(&b->json, "unfolded256_s", wall_s);
    } else {
        printf("  not possible: %s\n", err.text);
        put_absent(b, "unfolded256_s", err.text);
    }
    put_absent(b, "folded_405b_ms", "ranks are not folded yet");
    put_absent(b, "unfolded131072_s", "ranks are not folded yet");
    put_absent(b, "unfolded131072_peak_bytes", "ranks are not folded yet");
    put_absent(b, "estimate_us", "there is no estimate yet");
}

int main(int argc, char **argv)
{
    fr_buffer text;
    bench b = {0};

    fr_buffer_init(&text);
    fr_json_writer_init(&b.json, &text);
    fr_json_begin_object(&b.json);
    fr_status status = bench_hold(&b);
    if (status == FR_OK)
        status = bench_ring(&b);
    if (status == FR_OK)
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
