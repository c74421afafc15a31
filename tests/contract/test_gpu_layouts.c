/*
 * Every layout on fake GPUs gives what one CPU rank gives: the program becomes
 * streams, events, graphs and communicators without losing a dependency.
 * Each runs with graphs and communicators, and again with launches and
 * communication staged through the host.
 */
#include "runtime/gradient_dump.h"
#include "tests/check.h"
#include "tests/unit/gpu_show.h"

#include <stdlib.h>
#include <unistd.h>

#define N_STEPS 6

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
    double offload_frac; /* of activations, to the host */
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
    {.name = "activations on the host",
     .is_llama = true,
     .micro_batch = 2,
     .optimizer = ADAMW,
     .offload_frac = 0.6},
    {.name = "pp2 with some of them there",
     .pp = 2,
     .micro_batch = 1,
     .optimizer = SGD,
     .schedule = F1B,
     .offload_frac = 0.5},
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

static void prepare(gpu_show *show, const layout *l)
{
    static const double rates[FR_OPTIMIZER_N] = {
        [SGD] = 0.03, [LARS] = 0.5, [LAMB] = 0.02, [ADAMW] = 0.003};
    fr_plan *plan = &show->plan;
    fr_job *job = &show->job;

    gpu_show_init(show);
    show->model_text = l->is_llama ? gpu_show_llama : gpu_show_gpt2;
    job->n_steps = N_STEPS;
    job->optimizer = l->optimizer;
    job->lr = rates[l->optimizer];
    if (l->optimizer == SGD || l->optimizer == LARS)
        job->beta1 = 0.9;
    job->trust_coefficient = 0.01;
    job->warmup_steps = 3;
    job->lr_schedule = FR_LR_COSINE;
    plan->dp = l->dp ? l->dp : 1;
    plan->tp = l->tp ? l->tp : 1;
    plan->pp = l->pp ? l->pp : 1;
    plan->vpp = l->vpp ? l->vpp : 1;
    plan->micro_batch = l->micro_batch;
    plan->zero_stage = l->zero;
    plan->recompute = l->recompute;
    plan->is_sequence_parallel = l->is_sequence_parallel;
    plan->schedule = plan->pp > 1 ? l->schedule : F1B;
    if (l->offload_frac > 0) {
        plan->activation_offload_frac = l->offload_frac;
        plan->is_flash = true;
        plan->kernels = FR_KERNELS_OWN;
    }
    if (l->bucket_bytes)
        plan->bucket_bytes = l->bucket_bytes;
    show->options.is_gradient_dump = true;
    show->options.gradient_path = self.path;
}

static const reference *find_reference(const layout *l)
{
    reference *r = &self.references[l->is_llama][l->optimizer];
    layout alone = {.name = "alone",
                    .is_llama = l->is_llama,
                    .optimizer = l->optimizer,
                    .micro_batch = 8};
    gpu_show show;
    fr_err err = {0};

    if (r->is_there)
        return r;
    prepare(&show, &alone);
    r->is_there =
        gpu_show_perform_well(&show) &&
        CHECK_OK(fr_gradients_load(self.path, &r->gradients, &err), &err);
    if (r->is_there)
        memcpy(r->loss, show.result.loss, sizeof r->loss);
    gpu_show_release(&show);
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
    fr_gradients gradients = {0};
    gpu_show show;
    fr_err err = {0};

    prepare(&show, l);
    show.fake = fake;
    show.is_shared = show.is_launched = is_shared;
    if (gpu_show_perform_well(&show) &&
        CHECK_OK(fr_gradients_load(self.path, &gradients, &err), &err)) {
        const reference *expected = find_reference(l);
        for (int i = 0; i < N_STEPS; i++)
            check_that(fabs(show.result.loss[i] / expected->loss[i] - 1) <=
                           1e-4,
                       __FILE__, __LINE__, "%s: step %d: loss %.9g, alone %.9g",
                       l->name, i, show.result.loss[i], expected->loss[i]);
        compare_gradients(l->name, &gradients, &expected->gradients);
        CHECK_INT(show.result.peak_bytes - show.result.baseline_bytes,
                  show.result.slab_bytes);
        CHECK(show.timeline.n > 0);
    }
    fr_gradients_release(&gradients);
    gpu_show_release(&show);
}

static void check_layout(const layout *l)
{
    int world = (l->dp ? l->dp : 1) * (l->tp ? l->tp : 1) * (l->pp ? l->pp : 1);
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
