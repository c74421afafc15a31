/*
 * test_tuner_space.c: what the space holds, counted by hand for a small case,
 * and what every space must keep: legal plans, each once, pins respected.
 */
#include "tests/check.h"
#include "tuner/space/plan_space.h"

#include <stdlib.h>

/* A machine of `n_nodes` nodes with `n_cores` cores each. */
typedef struct machine {
    fr_cluster cluster;
    fr_device_type device;
    fr_node_type node;
    fr_node_group group;
} machine;

static void make_machine(machine *m, int64_t n_cores, int64_t n_nodes)
{
    memset(m, 0, sizeof *m);
    m->device.kind = FR_DEVICE_CPU;
    m->device.n_cores = n_cores;
    m->device.memory_bytes = 3000000019;
    m->node.n_devices = 1;
    m->group.n_nodes = n_nodes;
    m->cluster.devices = &m->device;
    m->cluster.n_devices = 1;
    m->cluster.node_types = &m->node;
    m->cluster.n_node_types = 1;
    m->cluster.groups = &m->group;
    m->cluster.n_groups = 1;
}

static void make_model(fr_model *model, int64_t n_layers, int64_t n_heads)
{
    fr_model_init(model);
    model->n_layers = n_layers;
    model->n_heads = model->n_kv_heads = n_heads;
    model->head_dim = 8;
    model->hidden = 8 * n_heads;
    model->ffn_hidden = 4 * model->hidden;
    model->vocab = 96;
    model->max_seq = 64;
}

static fr_plan_space_request make_request(const fr_model *model,
                                          const fr_job *job, const machine *m)
{
    fr_plan_space_request request = {
        .model = model, .job = job, .cluster = &m->cluster};
    fr_plan_init(&request.base);
    return request;
}

static void make_job(fr_job *job, int64_t global_batch)
{
    fr_job_init(job);
    job->global_batch = global_batch;
    job->seq = 32;
}

/*
 * Two layers, two heads, two sequences, two cores.
 * one rank: 2 micro-batches x 4 recompute (of one layer, too)    =  8
 * dp2: 4 recompute x (2 ZeRO 0, 1, gradients below the least
 *      bucket; 2 ZeRO 2, with overlap and without; 4 ZeRO 3, also
 *      resharded or not)                                         = 32
 * tp2: 2 micro-batches x 4 recompute x 2 sequence parallel       = 16
 * pp2: 3 recompute (stages have one layer) x (micro 1: 1f1b,
 *      gpipe, zb-h1; micro 2: 1f1b)                              = 12
 */
static void test_count_by_hand(void)
{
    machine m;
    fr_model model;
    fr_job job;
    fr_plan_space space;
    fr_err err;
    make_machine(&m, 2, 1);
    make_model(&model, 2, 2);
    make_job(&job, 2);
    fr_plan_space_request request = make_request(&model, &job, &m);
    CHECK_OK(fr_plan_space_create(&request, NULL, NULL, &space, &err), &err);
    CHECK_INT(space.plans.n, 8 + 32 + 16 + 12);
    int n_one = 0;
    for (size_t i = 0; i < space.plans.n; i++) {
        fr_plan plan;
        fr_plan_space_plan(&space.request, &space.plans.items[i], &plan);
        n_one += fr_plan_world(&plan) == 1;
        CHECK_INT(plan.n_threads, fr_plan_world(&plan) == 1 ? 2 : 1);
    }
    CHECK_INT(n_one, 8);
    fr_plan_space_release(&space);
}

static int compare_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void check_space(const fr_plan_space *space)
{
    enum { N_NAME = 200 };
    char(*names)[N_NAME] = malloc((space->plans.n + 1) * sizeof *names);
    fr_err err;
    CHECK(space->plans.n > 0);
    for (size_t i = 0; i < space->plans.n; i++) {
        fr_plan plan;
        fr_plan_space_plan(&space->request, &space->plans.items[i], &plan);
        CHECK_OK(fr_plan_check(&plan, space->request.model, space->request.job,
                               &err),
                 &err);
        fr_plan_describe(&plan, names[i], N_NAME);
    }
    qsort(names, space->plans.n, sizeof *names, compare_text);
    for (size_t i = 1; i < space->plans.n; i++)
        if (!check_that(strcmp(names[i], names[i - 1]) != 0, __FILE__, __LINE__,
                        "twice: %s", names[i]))
            break;
    free(names);
}

static void test_legal_and_once(void)
{
    static const struct {
        int64_t n_cores, n_nodes, n_layers, n_heads, batch;
        bool allow_lossy;
    } cases[] = {
        {2, 1, 6, 6, 8, false},
        {4, 1, 12, 12, 12, true},
        {2, 2, 8, 4, 6, true},
        {3, 1, 7, 3, 9, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        machine m;
        fr_model model;
        fr_job job;
        fr_plan_space space;
        fr_err err;
        make_machine(&m, cases[i].n_cores, cases[i].n_nodes);
        make_model(&model, cases[i].n_layers, cases[i].n_heads);
        model.vocab = 50257;
        model.hidden = 64 * cases[i].n_heads;
        model.head_dim = 64;
        model.ffn_hidden = 4 * model.hidden;
        make_job(&job, cases[i].batch);
        fr_plan_space_request request = make_request(&model, &job, &m);
        request.allow_lossy = cases[i].allow_lossy;
        if (CHECK_OK(fr_plan_space_create(&request, NULL, NULL, &space, &err),
                     &err)) {
            check_space(&space);
            fr_plan_space_release(&space);
        }
    }
}

/* Every axis of the second issue is in the space, lossy ones when allowed. */
static void test_axes_are_there(void)
{
    machine m;
    fr_model model;
    fr_job job;
    fr_plan_space space;
    fr_err err;
    make_machine(&m, 2, 2);
    make_model(&model, 8, 4);
    model.vocab = 50257;
    make_job(&job, 8);
    fr_plan_space_request request = make_request(&model, &job, &m);
    request.allow_lossy = true;
    CHECK_OK(fr_plan_space_create(&request, NULL, NULL, &space, &err), &err);
    bool has_compressor[FR_COMPRESSOR_N] = {false};
    bool has_recompute[FR_RECOMPUTE_N] = {false};
    bool has_schedule[FR_SCHEDULE_N] = {false};
    bool has_hybrid = false, has_zero = false, has_split = false;
    bool has_order = false, has_sp = false, has_sync = false;
    for (size_t i = 0; i < space.plans.n; i++) {
        fr_plan p;
        fr_plan_space_plan(&space.request, &space.plans.items[i], &p);
        has_compressor[p.compressor] = true;
        has_recompute[p.recompute] = true;
        has_schedule[p.schedule] = true;
        has_hybrid |= p.dp == 2 && p.tp == 2;
        has_zero |= p.zero_stage == 1;
        has_split |= p.n_split > 0;
        has_order |= p.rank_order != FR_RANK_ORDER_TP_DP_PP;
        has_sp |= p.is_sequence_parallel;
        has_sync |= !p.is_overlap;
    }
    for (int i = 0; i < fr_n_compressors; i++)
        CHECK(has_compressor[i]);
    for (int i = 0; i < FR_RECOMPUTE_N; i++)
        CHECK(has_recompute[i]);
    for (int i = 0; i <= FR_SCHEDULE_INTERLEAVED; i++) /* can be run */
        CHECK(has_schedule[i]);
    CHECK(has_hybrid && has_zero && has_split && has_order && has_sp &&
          has_sync);
    fr_plan_space_release(&space);
}

static void test_pins(void)
{
    machine m;
    fr_model model;
    fr_job job;
    fr_plan_space space;
    fr_err err;
    make_machine(&m, 4, 1);
    make_model(&model, 6, 6);
    make_job(&job, 12);
    fr_plan_space_request request = make_request(&model, &job, &m);
    request.base.dp = 2;
    request.base.micro_batch = 3;
    request.base.recompute = FR_RECOMPUTE_FULL;
    request.base.zero_stage = 1;
    request.base.bucket_bytes = 7340033;
    request.pins = FR_PIN(DP) | FR_PIN(MICRO_BATCH) | FR_PIN(RECOMPUTE) |
                   FR_PIN(ZERO) | FR_PIN(BUCKET);
    CHECK_OK(fr_plan_space_create(&request, NULL, NULL, &space, &err), &err);
    CHECK(space.plans.n > 0);
    for (size_t i = 0; i < space.plans.n; i++) {
        fr_plan p;
        fr_plan_space_plan(&space.request, &space.plans.items[i], &p);
        CHECK(p.dp == 2 && p.micro_batch == 3 && p.zero_stage == 1);
        CHECK(p.recompute == FR_RECOMPUTE_FULL && p.bucket_bytes == 7340033);
    }
    fr_plan_space_release(&space);
    request.world = 3; /* dp 2 does not divide it */
    CHECK_OK(fr_plan_space_create(&request, NULL, NULL, &space, &err), &err);
    CHECK_INT(space.plans.n, 0);
    fr_plan_space_release(&space);
}

/* Splits keep all layers, and at least one on each stage. */
static void test_splits(void)
{
    machine m;
    fr_model model;
    fr_job job;
    fr_plan_space space;
    fr_err err;
    make_machine(&m, 4, 1);
    make_model(&model, 13, 4);
    make_job(&job, 4);
    fr_plan_space_request request = make_request(&model, &job, &m);
    request.base.pp = 4;
    request.pins = FR_PIN(PP);
    CHECK_OK(fr_plan_space_create(&request, NULL, NULL, &space, &err), &err);
    int n_uneven = 0;
    for (size_t i = 0; i < space.plans.n; i++) {
        fr_plan p;
        int32_t sum = 0;
        fr_plan_space_plan(&space.request, &space.plans.items[i], &p);
        for (int32_t s = 0; s < p.n_split; s++)
            sum += p.layer_split[s];
        if (p.n_split > 0)
            CHECK_INT(sum, 13);
        n_uneven += p.n_split > 0;
    }
    CHECK(n_uneven > 0);
    fr_plan_space_release(&space);
}

static void count_reason(void *context, const char *reason)
{
    CHECK(reason[0] != '\0');
    ++*(int *)context;
}

static void test_illegal_are_counted(void)
{
    machine m;
    fr_model model;
    fr_job job;
    fr_plan_space space;
    fr_err err;
    int n = 0;
    make_machine(&m, 4, 1);
    make_model(&model, 8, 6); /* 6 kv heads, tp 4 is refused before */
    model.n_kv_heads = 3;     /* tp 2 is refused by fr_plan_check */
    make_job(&job, 6);        /* interleaved: 3 micro-batches % pp 2 */
    fr_plan_space_request request = make_request(&model, &job, &m);
    CHECK_OK(fr_plan_space_create(&request, count_reason, &n, &space, &err),
             &err);
    CHECK(n > 0);
    CHECK_INT(space.n_illegal, n);
    fr_plan_space_release(&space);
}

CHECK_MAIN({"count", test_count_by_hand}, {"legal", test_legal_and_once},
           {"axes", test_axes_are_there}, {"pins", test_pins},
           {"splits", test_splits}, {"illegal", test_illegal_are_counted})
