/*
 * Every layout on fake GPUs gives what one CPU rank gives: the program becomes
 * streams, events, graphs and communicators without losing a dependency.
 * Each runs with graphs and communicators, and again with launches and
 * communication staged through the host.
 */
#include "plan/lower.h"
#include "runtime/executor_gpu.h"
#include "runtime/gradient_dump.h"
#include "runtime/transport.h"
#include "tests/check.h"
#include "tests/unit/gpu_fake.h"

#include <stdlib.h>
#include <unistd.h>

#define N_STEPS 6
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
    uint64_t bucket_bytes;
    fr_compressor_kind compressor;
} layout;

#define GPIPE FR_SCHEDULE_GPIPE
#define F1B FR_SCHEDULE_1F1B
#define INTERLEAVED FR_SCHEDULE_INTERLEAVED
#define SGD FR_OPTIMIZER_SGD
#define LARS FR_OPTIMIZER_LARS
#define LAMB FR_OPTIMIZER_LAMB
#define ADAMW FR_OPTIMIZER_ADAMW

static const layout layouts[] = {
    {.name = "one rank", .micro_batch = 8, .optimizer = ADAMW},
    {.name = "accumulate 4", .micro_batch = 2, .optimizer = LAMB},
    {.name = "full recompute",
     .micro_batch = 4,
     .optimizer = SGD,
     .recompute = FR_RECOMPUTE_FULL},
    {.name = "dp2", .dp = 2, .micro_batch = 4, .optimizer = ADAMW},
    {.name = "dp2 small buckets",
     .dp = 2,
     .micro_batch = 2,
     .optimizer = LAMB,
     .bucket_bytes = 40000},
    {.name = "llama dp2 zero1 lars",
     .is_llama = true,
     .dp = 2,
     .micro_batch = 2,
     .optimizer = LARS,
     .zero = 1,
     .bucket_bytes = 60000},
    {.name = "tp2 sequence parallel",
     .tp = 2,
     .micro_batch = 4,
     .optimizer = ADAMW,
     .is_sequence_parallel = true},
    {.name = "llama tp2",
     .is_llama = true,
     .tp = 2,
     .micro_batch = 4,
     .optimizer = LAMB},
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
    {.name = "pp2 interleaved",
     .pp = 2,
     .vpp = 2,
     .micro_batch = 2,
     .optimizer = ADAMW,
     .schedule = INTERLEAVED},
    {.name = "dp2 tp2 sp zero1",
     .dp = 2,
     .tp = 2,
     .micro_batch = 2,
     .optimizer = ADAMW,
     .zero = 1,
     .is_sequence_parallel = true},
    {.name = "llama dp2 pp2 zero1",
     .is_llama = true,
     .dp = 2,
     .pp = 2,
     .micro_batch = 2,
     .optimizer = LAMB,
     .schedule = F1B,
     .zero = 1},
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
};

enum { N_LAYOUTS = sizeof layouts / sizeof *layouts };

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

static fr_job make_job(fr_optimizer_kind optimizer)
{
    static const double rates[FR_OPTIMIZER_N] = {
        [SGD] = 0.03, [LARS] = 0.5, [LAMB] = 0.02, [ADAMW] = 0.003};
    fr_job job;

    fr_job_init(&job);
    job.global_batch = 8;
    job.seq = 16;
    job.n_steps = N_STEPS;
    job.seed = 20240311;
    job.optimizer = optimizer;
    job.lr = rates[optimizer];
    if (optimizer == SGD || optimizer == LARS)
        job.beta1 = 0.9;
    job.trust_coefficient = 0.01;
    job.clip_norm = 0.7;
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
    if (l->bucket_bytes)
        plan.bucket_bytes = l->bucket_bytes;
    plan.compressor = l->compressor;
    plan.n_threads = 1;
    return plan;
}

/* All ranks of one run, a thread each. */
typedef struct show {
    fr_program *program;
    fr_loopback *hub;
    const fr_backend *backend; /* NULL: the CPU */
    const char *gradient_path;
    double loss[N_STEPS];
    fr_timeline timeline;
    fr_run_result result;
    fr_err err[MAX_RANKS];
    fr_status status[MAX_RANKS];
} show;

typedef struct player {
    show *s;
    int64_t rank;
} player;

static void *play(void *context)
{
    player *p = context;
    show *s = p->s;
    fr_transport *transport = NULL;
    fr_run_options options;
    fr_run_result result = {0};
    fr_err *err = &s->err[p->rank];

    fr_run_options_init(&options);
    options.backend = s->backend;
    options.is_gradient_dump = s->gradient_path != NULL;
    options.gradient_path = s->gradient_path;
    fr_status status =
        fr_transport_loopback_create(s->hub, p->rank, 60, &transport, err);
    if (status == FR_OK)
        status = fr_run_over(transport, s->program, &options,
                             p->rank == 0 ? &s->timeline : NULL, &result, err);
    fr_transport_destroy(transport);
    if (status == FR_OK && p->rank == 0)
        memcpy(s->loss, result.loss, sizeof s->loss);
    if (p->rank == 0)
        s->result = result;
    s->status[p->rank] = status;
    return NULL;
}

static bool perform(show *s, const layout *l)
{
    fr_plan plan = make_plan(l);
    fr_job job = make_job(l->optimizer);
    int64_t world = fr_plan_world(&plan);
    fr_placement placement = {world, NULL};
    const char *text = l->is_llama ? llama_text : gpt2_text;
    pthread_t threads[MAX_RANKS];
    player players[MAX_RANKS];
    fr_model model;
    fr_err err = {0};
    bool is_ok = true;

    fr_timeline_init(&s->timeline);
    if (!CHECK_OK(fr_model_parse("tiny", text, strlen(text), &model, &err),
                  &err))
        return false;
    is_ok =
        CHECK_OK(fr_lower(&model, &job, &plan, &placement, &s->program, &err),
                 &err) &&
        CHECK_OK(fr_loopback_create(world, NULL, &s->hub, &err), &err);
    fr_model_release(&model);
    if (!is_ok)
        return false;
    for (int64_t i = 0; i < world; i++) {
        players[i] = (player){s, i};
        pthread_create(&threads[i], NULL, play, &players[i]);
    }
    for (int64_t i = 0; i < world; i++)
        pthread_join(threads[i], NULL);
    for (int64_t i = 0; i < world; i++)
        is_ok = CHECK_OK(s->status[i], &s->err[i]) && is_ok;
    fr_loopback_destroy(s->hub);
    return is_ok;
}

static void show_release(show *s)
{
    fr_program_destroy(s->program);
    fr_timeline_release(&s->timeline);
    fr_run_result_release(&s->result);
}

/* What one CPU rank gives, once for each model and optimizer. */
typedef struct reference {
    bool is_there;
    double loss[N_STEPS];
    fr_gradients gradients;
} reference;

static struct {
    reference references[2][FR_OPTIMIZER_N];
    char path[64];
} self;

static const reference *find_reference(const layout *l)
{
    reference *r = &self.references[l->is_llama][l->optimizer];
    layout alone = {.name = "alone",
                    .is_llama = l->is_llama,
                    .optimizer = l->optimizer,
                    .micro_batch = 8};
    show s = {.gradient_path = self.path};
    fr_err err = {0};

    if (r->is_there)
        return r;
    r->is_there =
        perform(&s, &alone) &&
        CHECK_OK(fr_gradients_load(self.path, &r->gradients, &err), &err);
    memcpy(r->loss, s.loss, sizeof r->loss);
    show_release(&s);
    return r;
}

static void compare_gradients(const char *name, const fr_gradients *a,
                              const fr_gradients *b)
{
    double worst = 0, most = 0;

    if (!CHECK_INT(a->n, b->n))
        return;
    for (size_t t = 0; t < b->n; t++)
        for (int64_t i = 0; i < b->at[t].rows * b->at[t].cols; i++) {
            double x = a->at[t].at[i], y = b->at[t].at[i];
            worst = fmax(worst, fabs(x - y));
            most = fmax(most, fabs(y));
        }
    check_that(worst <= 1e-5 * most, __FILE__, __LINE__,
               "%s: a gradient differs by %g of the largest", name,
               worst / most);
}

static void check_way(const layout *l, bool is_shared, gpu_fake *fake)
{
    fr_gpu_system system = gpu_fake_system(fake);
    fr_gpu_setup setup = {
        .system = &system, .is_shared = is_shared, .is_launched = is_shared};
    fr_backend backend = fr_gpu_backend(&setup);
    show s = {.backend = &backend, .gradient_path = self.path};
    fr_gradients gradients = {0};
    fr_err err = {0};

    if (perform(&s, l) &&
        CHECK_OK(fr_gradients_load(self.path, &gradients, &err), &err)) {
        const reference *expected = find_reference(l);
        for (int i = 0; i < N_STEPS; i++)
            check_that(fabs(s.loss[i] / expected->loss[i] - 1) <= 1e-4,
                       __FILE__, __LINE__, "%s: step %d: loss %.9g, alone %.9g",
                       l->name, i, s.loss[i], expected->loss[i]);
        compare_gradients(l->name, &gradients, &expected->gradients);
        uint64_t grown = s.result.peak_bytes - s.result.baseline_bytes;
        CHECK_INT(grown, s.result.slab_bytes);
        CHECK(s.timeline.n > 0);
    }
    fr_gradients_release(&gradients);
    show_release(&s);
}

static void check_layout(const layout *l)
{
    fr_plan plan = make_plan(l);
    int world = (int)fr_plan_world(&plan);
    gpu_fake fake;

    gpu_fake_init(&fake, world);
    check_way(l, false, &fake);
    /* Step 0 shows gradients, the last is traced, the others are one graph. */
    CHECK_INT(atomic_load(&fake.n_graphs), world);
    CHECK_INT(atomic_load(&fake.n_graph_launches), world * (N_STEPS - 2));
    gpu_fake_release(&fake);
    gpu_fake_init(&fake, 1);
    check_way(l, true, &fake);
    CHECK_INT(atomic_load(&fake.n_graphs), 0);
    CHECK_INT(atomic_load(&fake.n_exchanges), 0);
    gpu_fake_release(&fake);
}

static void test_layouts(void)
{
    for (int i = 0; i < N_LAYOUTS; i++)
        check_layout(&layouts[i]);
}

int main(int argc, char **argv)
{
    static const check_test tests[] = {{"layouts", test_layouts}};

    (void)snprintf(self.path, sizeof self.path, "/tmp/test_gpu_layouts.%d",
                   (int)getpid());
    int code = check_run(tests, sizeof tests / sizeof *tests, argc, argv);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < FR_OPTIMIZER_N; k++)
            fr_gradients_release(&self.references[i][k].gradients);
    (void)unlink(self.path);
    return code;
}
