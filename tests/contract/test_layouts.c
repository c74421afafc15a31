/*
 * Every layout trains the same model: 20 steps of loss within 1e-4 of the
 * single process, gradients of the first step within 1e-5 of the largest, and
 * the same layout twice gives the same bits.
 *
 * The program starts itself under mpirun with four ranks; a layout of fewer
 * uses the first ones.  Takes about a minute of two cores.
 */
#include "plan/lower.h"
#include "runtime/gradient_dump.h"
#include "runtime/launch.h"
#include "runtime/run.h"
#include "runtime/transport.h"
#include "tests/check.h"

#include <stdlib.h>
#include <unistd.h>

#define N_STEPS 20
#define MAX_RANKS 4

typedef struct layout {
    const char *name;
    bool is_llama;
    fr_optimizer_kind optimizer;
    int32_t dp, tp, pp, vpp;
    int64_t micro_batch;
    int32_t zero;
    fr_recompute recompute;
    bool is_sequence_parallel;
    fr_schedule_kind schedule;
    bool is_serial; /* no overlap */
    uint64_t bucket_bytes;
    int32_t split[4]; /* uneven layers per stage */
    fr_rank_order order;
    fr_collective_kind collective;
} layout;

#define GPIPE FR_SCHEDULE_GPIPE
#define F1B FR_SCHEDULE_1F1B
#define INTERLEAVED FR_SCHEDULE_INTERLEAVED
#define SGD FR_OPTIMIZER_SGD
#define LARS FR_OPTIMIZER_LARS
#define LAMB FR_OPTIMIZER_LAMB
#define ADAMW FR_OPTIMIZER_ADAMW

static const layout layouts[] = {
    /* one rank */
    {.name = "accumulate 4", .micro_batch = 2, .optimizer = ADAMW},
    {.name = "accumulate 8, full recompute",
     .micro_batch = 1,
     .optimizer = ADAMW,
     .recompute = FR_RECOMPUTE_FULL},
    {.name = "selective recompute",
     .micro_batch = 8,
     .optimizer = SGD,
     .recompute = FR_RECOMPUTE_SELECTIVE},
    {.name = "llama full recompute",
     .is_llama = true,
     .micro_batch = 4,
     .optimizer = ADAMW,
     .recompute = FR_RECOMPUTE_FULL},
    /* two ranks */
    {.name = "dp2", .dp = 2, .micro_batch = 4, .optimizer = ADAMW},
    {.name = "dp2 small buckets",
     .dp = 2,
     .micro_batch = 2,
     .optimizer = LAMB,
     .bucket_bytes = 40000},
    {.name = "dp2 serial lars",
     .dp = 2,
     .micro_batch = 4,
     .optimizer = LARS,
     .is_serial = true},
    {.name = "dp2 ring over messages",
     .dp = 2,
     .micro_batch = 4,
     .optimizer = SGD,
     .collective = FR_COLLECTIVE_RING},
    {.name = "dp2 zero1",
     .dp = 2,
     .micro_batch = 4,
     .optimizer = ADAMW,
     .zero = 1},
    {.name = "dp2 zero1 lamb buckets",
     .dp = 2,
     .micro_batch = 2,
     .optimizer = LAMB,
     .zero = 1,
     .bucket_bytes = 60000},
    {.name = "llama dp2 zero1 lars",
     .is_llama = true,
     .dp = 2,
     .micro_batch = 2,
     .optimizer = LARS,
     .zero = 1},
    {.name = "tp2", .tp = 2, .micro_batch = 8, .optimizer = ADAMW},
    {.name = "tp2 sequence parallel",
     .tp = 2,
     .micro_batch = 4,
     .optimizer = ADAMW,
     .is_sequence_parallel = true},
    {.name = "llama tp2 lamb",
     .is_llama = true,
     .tp = 2,
     .micro_batch = 4,
     .optimizer = LAMB},
    {.name = "llama tp2 sp full recompute",
     .is_llama = true,
     .tp = 2,
     .micro_batch = 4,
     .optimizer = ADAMW,
     .is_sequence_parallel = true,
     .recompute = FR_RECOMPUTE_FULL},
    {.name = "pp2 gpipe",
     .pp = 2,
     .micro_batch = 2,
     .optimizer = ADAMW,
     .schedule = GPIPE},
    {.name = "pp2 1f1b",
     .pp = 2,
     .micro_batch = 1,
     .optimizer = SGD,
     .schedule = F1B},
    {.name = "pp2 uneven",
     .pp = 2,
     .micro_batch = 2,
     .optimizer = ADAMW,
     .schedule = F1B,
     .split = {1, 3}},
    {.name = "pp2 interleaved",
     .pp = 2,
     .vpp = 2,
     .micro_batch = 2,
     .optimizer = ADAMW,
     .schedule = INTERLEAVED},
    {.name = "llama pp2 selective",
     .is_llama = true,
     .pp = 2,
     .micro_batch = 2,
     .optimizer = ADAMW,
     .schedule = F1B,
     .recompute = FR_RECOMPUTE_SELECTIVE},
    /* four ranks */
    {.name = "dp4 zero1",
     .dp = 4,
     .micro_batch = 1,
     .optimizer = ADAMW,
     .zero = 1},
    {.name = "dp2 tp2", .dp = 2, .tp = 2, .micro_batch = 4, .optimizer = LAMB},
    {.name = "dp2 tp2 sp zero1",
     .dp = 2,
     .tp = 2,
     .micro_batch = 2,
     .optimizer = ADAMW,
     .zero = 1,
     .is_sequence_parallel = true,
     .order = FR_RANK_ORDER_DP_TP_PP},
    {.name = "dp2 pp2",
     .dp = 2,
     .pp = 2,
     .micro_batch = 1,
     .optimizer = ADAMW,
     .schedule = F1B},
    {.name = "llama dp2 pp2 zero1",
     .is_llama = true,
     .dp = 2,
     .pp = 2,
     .micro_batch = 2,
     .optimizer = LAMB,
     .schedule = F1B,
     .zero = 1,
     .order = FR_RANK_ORDER_PP_DP_TP},
    {.name = "tp2 pp2",
     .tp = 2,
     .pp = 2,
     .micro_batch = 2,
     .optimizer = LARS,
     .schedule = F1B},
    {.name = "llama tp2 pp2 interleaved sp",
     .is_llama = true,
     .tp = 2,
     .pp = 2,
     .vpp = 2,
     .micro_batch = 2,
     .optimizer = ADAMW,
     .schedule = INTERLEAVED,
     .is_sequence_parallel = true},
    {.name = "pp4 1f1b",
     .pp = 4,
     .micro_batch = 1,
     .optimizer = ADAMW,
     .schedule = F1B,
     .recompute = FR_RECOMPUTE_FULL},
    {.name = "tp4 sp",
     .tp = 4,
     .micro_batch = 4,
     .optimizer = ADAMW,
     .is_sequence_parallel = true},
};

enum { N_LAYOUTS = sizeof layouts / sizeof *layouts };

/* A result of one process that layouts are compared with. */
typedef struct reference {
    bool is_there;
    double loss[N_STEPS];
    fr_gradients gradients;
} reference;

/* Of this process; the tests' only state. */
static struct {
    int rank;
    reference references[2][FR_OPTIMIZER_N];
} self;

static const char gpt2_text[] =
    "{\"model_type\": \"gpt2\", \"n_layer\": 4, \"n_embd\": 48, "
    "\"n_head\": 4, \"n_inner\": 176, \"n_positions\": 40, "
    "\"vocab_size\": 259, \"layer_norm_epsilon\": 1e-5, "
    "\"activation_function\": \"gelu_new\"}";

static const char llama_text[] =
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 4, "
    "\"hidden_size\": 48, \"num_attention_heads\": 8, "
    "\"num_key_value_heads\": 4, \"intermediate_size\": 176, "
    "\"vocab_size\": 259, \"max_position_embeddings\": 40, "
    "\"rms_norm_eps\": 1e-5, \"rope_theta\": 10000.0, "
    "\"hidden_act\": \"silu\", \"tie_word_embeddings\": false}";

static fr_status make_model(bool is_llama, fr_model *out, fr_err *err)
{
    if (is_llama)
        return fr_model_parse("tiny-llama", llama_text, strlen(llama_text), out,
                              err);
    return fr_model_parse("tiny-gpt2", gpt2_text, strlen(gpt2_text), out, err);
}

static fr_job make_job(fr_optimizer_kind optimizer)
{
    static const double rates[FR_OPTIMIZER_N] = {
        [SGD] = 0.03, [LARS] = 0.5, [LAMB] = 0.02, [ADAMW] = 0.003};
    fr_job job;

    fr_job_init(&job);
    job.global_batch = 8;
    job.seq = 32;
    job.n_steps = N_STEPS;
    job.seed = 20240311;
    job.optimizer = optimizer;
    job.lr = rates[optimizer];
    if (optimizer == SGD || optimizer == LARS)
        job.beta1 = 0.9;
    job.trust_coefficient = 0.01;
    job.clip_norm = 0.7; /* of gradients with norms around 1 to 3 */
    job.warmup_steps = 3;
    job.lr_schedule = FR_LR_COSINE;
    return job;
}

static fr_plan make_plan(const layout *l)
{
    fr_plan plan;

    fr_plan_init(&plan);
    plan.dp = l->dp ? l->dp : 1;
    plan.tp = l->tp ? l->tp : 1;
    plan.pp = l->pp ? l->pp : 1;
    plan.vpp = l->vpp ? l->vpp : 1;
    plan.micro_batch = l->micro_batch;
    plan.zero_stage = l->zero;
    plan.recompute = l->recompute;
    plan.is_sequence_parallel = l->is_sequence_parallel;
    plan.schedule = plan.pp > 1 ? l->schedule : F1B;
    plan.is_overlap = !l->is_serial;
    if (l->bucket_bytes)
        plan.bucket_bytes = l->bucket_bytes;
    plan.rank_order = l->order;
    plan.collective = l->collective;
    plan.n_threads = 1;
    for (int i = 0; i < 4 && l->split[i]; i++)
        plan.layer_split[plan.n_split++] = l->split[i];
    return plan;
}

#define PATH_BYTES 128

static void dump_path(const char *what, char path[PATH_BYTES])
{
    (void)snprintf(path, PATH_BYTES, "/tmp/test_layouts.%d.%s", (int)getpid(),
                   what);
}

static fr_status lower(const layout *l, fr_transport *transport,
                       fr_program **out, fr_err *err)
{
    fr_model model;
    fr_job job = make_job(l->optimizer);
    fr_plan plan = make_plan(l);
    fr_placement placement = {.n_ranks = fr_plan_world(&plan)};

    if (transport)
        placement.node_of_rank = transport->node_of_rank;
    FR_TRY(make_model(l->is_llama, &model, err));
    fr_status status = fr_lower(&model, &job, &plan, &placement, out, err);
    fr_model_release(&model);
    return status;
}

/* Runs a layout on this rank; losses count on rank 0 alone. */
static fr_status run_layout(const layout *l, double loss[N_STEPS],
                            const char *gradient_path, fr_err *err)
{
    fr_plan plan = make_plan(l);
    int64_t world = fr_plan_world(&plan);
    fr_program *program = NULL;
    fr_transport *transport = NULL;
    fr_run_options options;
    fr_run_result result = {0};
    fr_status status = FR_OK;

    fr_run_options_init(&options);
    options.is_gradient_dump = gradient_path != NULL;
    options.gradient_path = gradient_path;
    if (world > 1) {
        FR_TRY(fr_transport_mpi_create(world, 60, &transport, err));
        if (!transport)
            return FR_OK; /* not of this layout's ranks */
    } else if (self.rank != 0) {
        return FR_OK;
    }
    status = lower(l, transport, &program, err);
    if (status == FR_OK)
        status = transport ? fr_run_over(transport, program, &options, NULL,
                                         &result, err)
                           : fr_run(program, &options, NULL, &result, err);
    if (status == FR_OK && self.rank == 0)
        memcpy(loss, result.loss, N_STEPS * sizeof *loss);
    fr_run_result_release(&result);
    fr_program_destroy(program);
    if (status == FR_OK)
        fr_transport_destroy(transport);
    return status;
}

static const reference *find_reference(const layout *l)
{
    reference *r = &self.references[l->is_llama][l->optimizer];
    layout alone = {.name = "alone",
                    .is_llama = l->is_llama,
                    .optimizer = l->optimizer,
                    .micro_batch = 8};
    fr_err err = {0};

    if (r->is_there)
        return r;
    char path[PATH_BYTES];
    dump_path("reference", path);
    if (CHECK_OK(run_layout(&alone, r->loss, path, &err), &err) &&
        CHECK_OK(fr_gradients_load(path, &r->gradients, &err), &err))
        r->is_there = true;
    (void)unlink(path);
    return r;
}

static double largest(const fr_gradient *g)
{
    double most = 0;

    for (int64_t i = 0; i < g->rows * g->cols; i++)
        most = fmax(most, fabs((double)g->at[i]));
    return most;
}

static void compare_gradients(const char *name, const fr_gradients *mine,
                              const fr_gradients *theirs)
{
    double most = 0;

    if (!CHECK_INT(mine->n, theirs->n))
        return;
    for (size_t t = 0; t < theirs->n; t++)
        most = fmax(most, largest(&theirs->at[t]));
    CHECK(most > 1e-3);
    for (size_t t = 0; t < theirs->n; t++) {
        const fr_gradient *a = &mine->at[t], *b = &theirs->at[t];
        double worst = 0, scale = fmax(largest(b), 1e-3 * most);
        if (!CHECK_STR(a->name, b->name) || !CHECK_INT(a->rows, b->rows) ||
            !CHECK_INT(a->cols, b->cols))
            return;
        for (int64_t i = 0; i < a->rows * a->cols; i++)
            worst = fmax(worst, fabs((double)a->at[i] - b->at[i]));
        check_that(worst <= 1e-5 * scale, __FILE__, __LINE__,
                   "%s: gradient of %s differs by %.3g of the largest", name,
                   a->name, worst / scale);
    }
}

static void check_layout(const layout *l)
{
    double loss[N_STEPS] = {0}, again[N_STEPS] = {0};
    char path[PATH_BYTES];
    fr_gradients gradients = {0};
    fr_err err = {0};

    dump_path("layout", path);
    bool is_ok = CHECK_OK(run_layout(l, loss, path, &err), &err) &&
                 CHECK_OK(run_layout(l, again, NULL, &err), &err);
    if (!is_ok) {
        /* The others wait in a collective; mpirun ends them. */
        printf("%s: failed\n", l->name);
        fflush(stdout);
        _exit(1);
    }
    if (self.rank != 0)
        return;
    const reference *expected = find_reference(l);
    for (int i = 0; i < N_STEPS; i++) {
        double rel = fabs(loss[i] - expected->loss[i]) / expected->loss[i];
        check_that(rel <= 1e-4, __FILE__, __LINE__,
                   "%s: step %d: loss %.9g, alone %.9g", l->name, i, loss[i],
                   expected->loss[i]);
    }
    check_that(expected->loss[N_STEPS - 1] < 0.97 * expected->loss[0], __FILE__,
               __LINE__, "%s: the loss fell from %g to %g only", l->name,
               expected->loss[0], expected->loss[N_STEPS - 1]);
    check_that(memcmp(loss, again, sizeof loss) == 0, __FILE__, __LINE__,
               "%s: the second run has other bits", l->name);
    if (CHECK_OK(fr_gradients_load(path, &gradients, &err), &err))
        compare_gradients(l->name, &gradients, &expected->gradients);
    fr_gradients_release(&gradients);
    (void)unlink(path);
}

static void test_layouts(void)
{
    for (int i = 0; i < N_LAYOUTS; i++)
        check_layout(&layouts[i]);
}

/* Different data must give different losses: the comparison can fail. */
static void test_negative_control(void)
{
    const layout other = {
        .name = "other batch cut", .micro_batch = 8, .optimizer = SGD};

    if (self.rank != 0)
        return;
    const reference *sgd = find_reference(&other);
    const reference *adamw = &self.references[0][ADAMW];
    CHECK(fabs(sgd->loss[0] - adamw->loss[0]) < 1e-6);
    CHECK(fabs(sgd->loss[N_STEPS - 1] - adamw->loss[N_STEPS - 1]) > 1e-3);
}

static int start_ranks(char **argv)
{
    static char path[512];
    char *args[] = {"mpirun",
                    "--allow-run-as-root",
                    "--oversubscribe",
                    "--bind-to",
                    "none",
                    "-np",
                    "4",
                    path,
                    argv[1],
                    NULL};
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

    if (n < 0 || !fr_transport_mpi_is_available())
        return 77;
    (void)execvp(args[0], args);
    printf("# skipped: no mpirun\n");
    return 77;
}

int main(int argc, char **argv)
{
    static const check_test tests[] = {
        {"layouts", test_layouts}, {"negative_control", test_negative_control}};
    fr_launch launch;
    int64_t rank = 0;
    fr_err err = {0};

    fr_launch_detect(&launch);
    if (launch.role != FR_LAUNCH_RANK)
        return start_ranks(argv);
    if (fr_run_join(MAX_RANKS, &rank, NULL, &err) != FR_OK) {
        printf("%s\n", err.text);
        return 1;
    }
    self.rank = (int)rank;
    if (rank != 0 && !freopen("/dev/null", "w", stdout))
        return 1;
    int code = check_run(tests, sizeof tests / sizeof *tests, argc, argv);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < FR_OPTIMIZER_N; k++)
            fr_gradients_release(&self.references[i][k].gradients);
    fr_run_leave();
    return code;
}
