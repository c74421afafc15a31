/*
 * NCCL's model against published measurements: every row of
 * tests/validate/collectives.csv whose hardware and size are known, through
 * the cost model and catalogue clusters as a user would describe them.
 */
#include "core/system/fileio.h"
#include "cost_models/base/cost.h"
#include "plan/collective/collective.h"
#include "tests/check.h"
#include "tests/contract/plan/collective_rows.h"

#include <stdlib.h>

typedef struct tally {
    int n;
    double sum_ape, sum_err, worst;
} tally;

static void tally_add(tally *t, double rel)
{
    t->n++;
    t->sum_ape += fabs(rel);
    t->sum_err += rel;
    t->worst = fabs(rel) > fabs(t->worst) ? rel : t->worst;
}

static fr_cluster load(const char *text)
{
    fr_err err = {0};
    fr_cluster cluster = {0};
    if (text[0] == '<')
        CHECK_OK(fr_cluster_parse("x.xml", text, strlen(text), &cluster, &err),
                 &err);
    else
        CHECK_OK(fr_cluster_load(NULL, text, &cluster, &err), &err);
    return cluster;
}

static double predict(const fr_cost_model *model, fr_op op,
                      fr_collective_kind kind, double n_bytes,
                      fr_comm_scope scope)
{
    fr_err err = {0};
    fr_cost cost = {0};
    fr_instr instr = {
        .op = (uint8_t)op,
        .dtype = FR_DTYPE_BF16,
        .axis = FR_AXIS_DP,
        .algorithm = (uint8_t)kind,
        .flags = kind == FR_COLLECTIVE_AUTO ? 0 : FR_INSTR_GIVEN,
        .dim = {(int64_t)(n_bytes / 2.0)},
    };
    CHECK_OK(fr_cost_communicate(model, &instr, &scope, true, &cost, &err),
             &err);
    return cost.latency_s + cost.work_s;
}

typedef struct outcome {
    /* [0]: below 16 MB, [1]: from 16 MB on; bare: without the host's call */
    tally all[2], of[N_MACHINES][2], bare[2], bare_of[N_MACHINES][2];
    int n_rows, n_no_size, n_no_digits, n_unknown;
} outcome;

static void score(fr_cost_model *const *models, char *const *row, outcome *out)
{
    flaw why;
    double want = measured_s(row, &why), size = atof(row[SIZE]);
    int i = machine_of(row), is_large = size >= 16e6;
    fr_comm_scope scope = {.n_group = atoi(row[GPUS]),
                           .n_nodes = atoi(row[NODES]),
                           .ranks_on_node = atoi(row[GPUS]) / atoi(row[NODES])};
    out->n_rows++;
    out->n_no_size += why == NO_SIZE;
    out->n_no_digits += why == NO_DIGITS;
    out->n_unknown += why == USABLE && i < 0;
    if (why != USABLE || i < 0)
        return;
    fr_op op =
        row[OP][4] == 't' ? FR_OP_ALL_TO_ALL : FR_OP_ALL_REDUCE; /* all_t... */
    bool is_ring = strcmp(row[ALGO], "RING") == 0;
    const double bare_s =
        predict(models[i], op,
                is_ring ? FR_COLLECTIVE_RING : FR_COLLECTIVE_AUTO, size, scope);
    const double got = bare_s + host_call_s;
    tally_add(&out->of[i][is_large], got / want - 1);
    tally_add(&out->bare_of[i][is_large], bare_s / want - 1);
    if (machines[i].is_guess)
        return;
    tally_add(&out->all[is_large], got / want - 1);
    tally_add(&out->bare[is_large], bare_s / want - 1);
}

/* bare NULL: the rows have no call of the host. */
static void print_tally(const char *label, const tally *t, const tally *bare,
                        bool is_large)
{
    if (t->n == 0)
        return;
    printf("# %-16s %-9s %3d rows, mean |error| %5.1f %%, bias %+5.1f %%, "
           "worst %+.0f %%",
           label, is_large ? ">= 16 MB" : "< 16 MB", t->n,
           100 * t->sum_ape / t->n, 100 * t->sum_err / t->n, 100 * t->worst);
    if (bare != NULL)
        printf("; without the host's call %5.1f %%, %+5.1f %%",
               100 * bare->sum_ape / bare->n, 100 * bare->sum_err / bare->n);
    printf("\n");
}

static void score_file(char *text, fr_cost_model *const *models, outcome *out)
{
    char *save = NULL;
    char *line = strtok_r(text, "\n", &save); /* the header */
    while ((line = strtok_r(NULL, "\n", &save)) != NULL) {
        char *row[N_COLUMNS];
        if (CHECK_INT(split(line, row), N_COLUMNS))
            score(models, row, out);
    }
}

static void test_published(void)
{
    fr_err err = {0};
    fr_cluster clusters[N_MACHINES];
    fr_cost_model *models[N_MACHINES] = {0};
    outcome out = {0};
    char *text = NULL;
    if (!CHECK_OK(fr_file_read(CSV, 0, &text, NULL, &err), &err))
        return;
    for (int i = 0; i < N_MACHINES; i++) {
        clusters[i] = load(machines[i].cluster);
        CHECK_OK(fr_cost_model_create(NULL, &clusters[i], &models[i], &err),
                 &err);
    }
    score_file(text, models, &out);
    for (int i = 0; i < N_MACHINES; i++) {
        for (int large = 0; large < 2; large++) {
            const tally *t = &out.of[i][large];
            print_tally(machines[i].label, t, &out.bare_of[i][large], large);
            /* Each source on its own, with room for its noise. */
            if (t->n > 0 && !machines[i].is_guess)
                CHECK(t->sum_ape / t->n <= (large ? 0.12 : 0.32));
        }
        fr_cost_model_destroy(models[i]);
        fr_cluster_release(&clusters[i]);
    }
    print_tally("all", &out.all[0], &out.bare[0], false);
    print_tally("all", &out.all[1], &out.bare[1], true);
    printf("# %d rows: %d without a size, %d with one digit\n", out.n_rows,
           out.n_no_size, out.n_no_digits);
    CHECK_INT(out.n_unknown, 0);
    CHECK(out.all[0].n >= 50 && out.all[1].n >= 80);
    CHECK(out.all[0].sum_ape / out.all[0].n <= 0.25);
    CHECK(out.all[1].sum_ape / out.all[1].n <= 0.10);
    CHECK(fabs(out.all[1].sum_err / out.all[1].n) <= 0.05);
    free(text);
}

/* busbw = S/t times 2(n-1)/n (all-reduce), (n-1)/n or 1. */
static double busbw(const fr_cost_model *model, fr_op op,
                    fr_collective_kind kind, double n_bytes,
                    fr_comm_scope scope)
{
    double n = (double)scope.n_group;
    double factor = op == FR_OP_SEND ? 1 : (n - 1) / n;
    if (op == FR_OP_ALL_REDUCE)
        factor *= 2;
    return factor * n_bytes / predict(model, op, kind, n_bytes, scope);
}

/* Twelve nodes whose InfiniBand switches add. */
static const char h100_sharp[] =
    "<cluster name=\"sharp\"><group id=\"n\" node-type=\"dgx-h100\" "
    "count=\"12\"/><fabric kind=\"switch\" sharp=\"yes\"/></cluster>";

/*
 * Peaks that were published besides.  Constants of NVLink come from other rows
 * of some of these tables (docs/gpu.md).  The sizes of groups inside a node:
 * Stas Bekman, Machine Learning Engineering, network/README.md; H100: NVIDIA in
 * nccl-tests issues 212 (ring 370, NVLS 480 GB/s) and nccl issue 2409 (two
 * nodes with 8 x 400 Gb/s: 470); NDR ports: 46 to 48 GB/s each under a ring
 * (nccl-tests issue 290); four HDR ports on three A100 nodes: 96 GB/s at best
 * (nccl-tests issue 119); SHARP on 96 H100: coreweave/nccl-tests, README.md.
 */
static const struct {
    const char *cluster;
    fr_op op;
    fr_collective_kind kind;
    fr_comm_scope scope;
    double busbw_GBps, tolerance;
} peaks[] = {
    {"dgx-h200:1", FR_OP_ALL_REDUCE, FR_COLLECTIVE_AUTO, {4, 1, 4, 0}, 363, .1},
    {"dgx-h200:1", FR_OP_ALL_REDUCE, FR_COLLECTIVE_AUTO, {5, 1, 5, 0}, 414, .1},
    {"dgx-h200:1", FR_OP_ALL_REDUCE, FR_COLLECTIVE_AUTO, {6, 1, 6, 0}, 436, .1},
    {"dgx-h200:1", FR_OP_ALL_REDUCE, FR_COLLECTIVE_AUTO, {7, 1, 7, 0}, 460, .1},
    {"dgx-h200:1", FR_OP_ALL_REDUCE, FR_COLLECTIVE_AUTO, {8, 1, 8, 0}, 473, .1},
    {"dgx-b200:1", FR_OP_ALL_REDUCE, FR_COLLECTIVE_AUTO, {4, 1, 4, 0}, 673, .1},
    {"dgx-b200:1", FR_OP_ALL_REDUCE, FR_COLLECTIVE_AUTO, {5, 1, 5, 0}, 678, .1},
    {"dgx-b200:1", FR_OP_ALL_REDUCE, FR_COLLECTIVE_AUTO, {6, 1, 6, 0}, 778, .1},
    {"dgx-b200:1", FR_OP_ALL_REDUCE, FR_COLLECTIVE_AUTO, {7, 1, 7, 0}, 811, .1},
    {"dgx-b200:1", FR_OP_ALL_REDUCE, FR_COLLECTIVE_AUTO, {8, 1, 8, 0}, 838, .1},
    {"dgx-b200:1", FR_OP_ALL_REDUCE, FR_COLLECTIVE_RING, {8, 1, 8, 0}, 682, .1},
    {"dgx-h100:1", FR_OP_ALL_REDUCE, FR_COLLECTIVE_AUTO, {8, 1, 8, 0}, 480, .1},
    {"dgx-h100:1", FR_OP_ALL_GATHER, FR_COLLECTIVE_AUTO, {8, 1, 8, 0}, 370, .1},
    {"dgx-h100:2",
     FR_OP_ALL_REDUCE,
     FR_COLLECTIVE_AUTO,
     {16, 2, 8, 0},
     470,
     .1},
    {"dgx-h100:4", FR_OP_ALL_GATHER, FR_COLLECTIVE_RING, {4, 4, 1, 0}, 47, .1},
    {h100_sharp,
     FR_OP_ALL_REDUCE,
     FR_COLLECTIVE_SHARP,
     {96, 12, 8, 0},
     386.6,
     .1},
    {hdr_4, FR_OP_ALL_REDUCE, FR_COLLECTIVE_AUTO, {24, 3, 8, 0}, 96, .1},
    {"mi300x-8:1",
     FR_OP_ALL_REDUCE,
     FR_COLLECTIVE_AUTO,
     {2, 1, 2, 0},
     47.7,
     .1},
    {"mi300x-8:1",
     FR_OP_ALL_REDUCE,
     FR_COLLECTIVE_AUTO,
     {8, 1, 8, 0},
     312.9,
     .1},
};

static void test_peaks(void)
{
    for (size_t i = 0; i < sizeof peaks / sizeof peaks[0]; i++) {
        fr_err err = {0};
        fr_cluster cluster = load(peaks[i].cluster);
        fr_cost_model *model = NULL;
        if (CHECK_OK(fr_cost_model_create(NULL, &cluster, &model, &err),
                     &err)) {
            double got = busbw(model, peaks[i].op, peaks[i].kind, 8589934592.0,
                               peaks[i].scope) /
                         1e9;
            double rel = got / peaks[i].busbw_GBps - 1;
            printf("# peak %-12.12s %2d ranks on %d: %5.1f GB/s, published "
                   "%5.1f (%+.1f %%)\n",
                   peaks[i].cluster, (int)peaks[i].scope.n_group,
                   (int)peaks[i].scope.n_nodes, got, peaks[i].busbw_GBps,
                   100 * rel);
            CHECK(fabs(rel) <= peaks[i].tolerance);
        }
        fr_cost_model_destroy(model);
        fr_cluster_release(&cluster);
    }
}

/*
 * nccl-tests with a process per GPU, which queues its calls: 8 H20 (Hopper,
 * 18 NVLinks), NCCL 2.30 without NVLS, out of place (kvcache-ai/Mooncake pull
 * request 3484).
 */
static void test_queued(void)
{
    static const struct {
        double bytes, us;
    } rows[] = {
        {32768, 18.66},       {65536, 18.95},       {131072, 19.25},
        {262144, 19.54},      {524288, 20.39},      {1048576, 27.76},
        {2097152, 40.66},     {4194304, 53.24},     {8388608, 81.16},
        {16777216, 121.33},   {33554432, 195.40},   {134217728, 700.25},
        {268435456, 1366.17}, {536870912, 2671.60}, {1073741824, 5252.64}};
    const fr_comm_scope scope = {8, 1, 8, 0};
    fr_err err = {0};
    fr_cluster cluster = load("dgx-h100:1");
    fr_cost_model *model = NULL;
    tally all[2] = {{0}};
    CHECK_OK(fr_cost_model_create(NULL, &cluster, &model, &err), &err);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double got = predict(model, FR_OP_ALL_REDUCE, FR_COLLECTIVE_RING,
                             rows[i].bytes, scope);
        tally_add(&all[rows[i].bytes >= 16e6], got / rows[i].us * 1e6 - 1);
    }
    print_tally("8 H20, ring", &all[0], NULL, false);
    print_tally("8 H20, ring", &all[1], NULL, true);
    CHECK(all[0].sum_ape / all[0].n <= 0.15);
    CHECK(all[1].sum_ape / all[1].n <= 0.10);
    fr_cost_model_destroy(model);
    fr_cluster_release(&cluster);
}

CHECK_MAIN({"queued", test_queued}, {"published", test_published},
           {"peaks", test_peaks})
