/*
 * test_estimate.c: over random plans on several clusters no replay is shorter
 * than the bound, and where nothing contends the estimate is within 2 % of
 * it.  What cannot be lowered cannot be estimated, and the other way round.
 */
#include "core/numbers/rng.h"
#include "core/numbers/stats.h"
#include "sim/bound/estimate.h"
#include "tests/contract/sim/sim_fixture.h"
#include "tests/record/random_plans.h"

enum { N_SCENES = 11, MOST_PLANS = 20000 };

/* As sim_gpu_xml, with bf16. */
static const char cluster_xml[] =
    "<cluster name=\"gpus\">\n"
    "  <device id=\"gpu\" kind=\"gpu\" memory=\"80GiB\"\n"
    "          memory-bandwidth=\"3350GB/s\">\n"
    "    <peak dtype=\"fp32\" rate=\"67TFLOP/s\"/>\n"
    "    <peak dtype=\"bf16\" rate=\"989TFLOP/s\"/>\n"
    "  </device>\n"
    "  <node-type id=\"box\" device=\"gpu\" devices=\"8\">\n"
    "    <intra kind=\"nvswitch\" bandwidth=\"450GB/s\" latency=\"2us\"\n"
    "           host-bandwidth=\"53GB/s\"/>\n"
    "    <nic count=\"%d\" bandwidth=\"%s\" latency=\"5us\"/>\n"
    "  </node-type>\n"
    "  <group id=\"box\" node-type=\"box\" count=\"%d\"/>\n"
    "%s"
    "</cluster>\n";

typedef struct scene {
    const char *name;
    int n_nics;
    const char *nic, *more;
    int64_t hidden, ffn, n_layers, seq, batch;
    int64_t n_experts, top_k;
    bool is_tied;
    int n_plans;
    const char *cluster, *model; /* by name; NULL: from the above */
    int64_t n_dense, n_mtp;      /* first layers without experts; DeepSeek-V3 */
    int64_t moe_every;           /* 0: as the fixture has it */
} scene;

static const scene scenes[N_SCENES] = {
    {"small", 4, "200Gb/s", "  <fabric kind=\"switch\"/>\n", 512, 2048, 8, 128,
     32, 0, 0, false, 3000, NULL, NULL, 0, 0, 0},
    {"tied", 8, "400Gb/s", "  <fabric kind=\"switch\"/>\n", 1024, 4096, 8, 512,
     32, 0, 0, true, 3000, NULL, NULL, 0, 0, 0},
    {"experts", 8, "400Gb/s", "  <fabric kind=\"switch\"/>\n", 512, 1024, 8,
     256, 32, 8, 2, false, 3000, NULL, NULL, 0, 0, 0},
    {"slow", 4, "100Gb/s",
     "  <fabric kind=\"switch\"/>\n"
     "  <slow node=\"box-1\" compute=\"0.83\" network=\"0.71\"/>\n"
     "  <jitter compute=\"0.02\" network=\"0.01\"/>\n",
     1024, 4096, 8, 256, 32, 0, 0, true, 2000, NULL, NULL, 0, 0, 0},
    {"large", 8, "400Gb/s", "  <fabric kind=\"switch\"/>\n", 8192, 28672, 8,
     2048, 16, 0, 0, false, 2000, NULL, NULL, 0, 0, 0},
    {.name = "llama-3-8b",
     .more = "",
     .seq = 2048,
     .batch = 16,
     .n_plans = 300,
     .cluster = "dgx-h100:8",
     .model = "llama-3-8b"},
    {.name = "mixtral-8x7b",
     .more = "",
     .seq = 2048,
     .batch = 16,
     .n_experts = 8,
     .n_plans = 300,
     .cluster = "selene-like",
     .model = "mixtral-8x7b"},
    {.name = "mixed nodes",
     .more = "",
     .seq = 1024,
     .batch = 16,
     .n_plans = 300,
     .cluster = "mixed-a100-v100",
     .model = "gpt2-1.5b"},
    {.name = "cloud",
     .more = "",
     .seq = 1024,
     .batch = 16,
     .n_plans = 300,
     .cluster = "cloud-p4d-8",
     .model = "gpt2-1.5b"},
    {.name = "dense, then experts",
     .n_nics = 8,
     .nic = "400Gb/s",
     .more = "  <fabric kind=\"switch\"/>\n",
     .hidden = 512,
     .ffn = 2048,
     .n_layers = 16,
     .seq = 256,
     .batch = 32,
     .n_experts = 8,
     .top_k = 2,
     .n_plans = 1500,
     .n_dense = 5,
     .n_mtp = 1},
    {.name = "experts in the last layer",
     .n_nics = 8,
     .nic = "400Gb/s",
     .more = "  <fabric kind=\"switch\"/>\n",
     .hidden = 512,
     .ffn = 2048,
     .n_layers = 8,
     .seq = 256,
     .batch = 32,
     .n_experts = 8,
     .top_k = 2,
     .n_plans = 300,
     .moe_every = 8},
};

typedef struct tally {
    double tightness[MOST_PLANS]; /* bound / simulated */
    double busy[MOST_PLANS];      /* least work / simulated, of computing */
    double error[MOST_PLANS];     /* estimate / simulated - 1, plain plans */
    double other[MOST_PLANS];     /* the same, all others */
    double memory[MOST_PLANS];    /* peak / simulated */
    double least[MOST_PLANS];     /* least / simulated, of the device */
    double chain[MOST_PLANS];     /* the same, pipelines of single ranks */
    size_t n, n_error, n_other, n_chain, n_busy;
    int n_refused;
    int64_t n_ranks_most;
} tally;

static int64_t pick(fr_rng *rng, int64_t n)
{
    return (int64_t)fr_rng_below(rng, (uint64_t)n);
}

static int32_t power(fr_rng *rng, int64_t n)
{
    return (int32_t)(1 << pick(rng, n));
}

static bool setup_named(sim_fixture *f, const scene *s)
{
    fr_err err;
    f->job.seq = s->seq;
    f->job.global_batch = s->batch;
    if (!CHECK_OK(fr_model_load(NULL, s->model, &f->model, &err), &err))
        return false;
    f->model.has_rope_scaling = false;
    return sim_fixture_cluster(f, s->cluster, NULL);
}

static bool setup(sim_fixture *f, const scene *s)
{
    char xml[2048];
    sim_fixture_init(f);
    if (s->cluster != NULL)
        return setup_named(f, s);
    snprintf(xml, sizeof xml, cluster_xml, s->n_nics, s->nic, 8, s->more);
    f->model.hidden = s->hidden;
    f->model.ffn_hidden = s->ffn;
    f->model.n_layers = s->n_layers;
    f->model.head_dim = s->hidden / f->model.n_heads;
    f->model.is_tied = s->is_tied;
    f->model.max_seq = s->seq;
    f->model.n_experts = s->n_experts;
    f->model.n_experts_per_token = s->top_k;
    f->model.first_dense_layers = s->n_dense;
    f->model.n_mtp_layers = s->n_mtp;
    if (s->moe_every > 0)
        f->model.moe_every = s->moe_every;
    f->job.seq = s->seq;
    f->job.global_batch = s->batch;
    return sim_fixture_cluster(f, "test.xml", xml);
}

static void random_layout(fr_rng *rng, bool has_experts, fr_plan *plan)
{
    plan->tp = power(rng, 4);
    plan->pp = power(rng, 3);
    plan->dp = power(rng, 3);
    plan->cp = pick(rng, 4) == 0 ? power(rng, 3) : 1;
    if (has_experts) {
        plan->ep = power(rng, 3);
        plan->etp = pick(rng, 2) ? 1 : 0;
    }
    plan->rank_order = (fr_rank_order)pick(rng, FR_RANK_ORDER_N);
    plan->micro_batch = power(rng, 3);
    plan->schedule = (fr_schedule_kind)pick(rng, FR_SCHEDULE_N);
    plan->vpp = plan->schedule == FR_SCHEDULE_INTERLEAVED ? power(rng, 2) * 2
                : plan->schedule == FR_SCHEDULE_ZB_V      ? 2
                                                          : 1;
    if (plan->pp == 1) {
        plan->schedule = FR_SCHEDULE_1F1B;
        plan->vpp = 1;
    }
}

static void random_plan(fr_rng *rng, bool has_experts, fr_plan *plan)
{
    static const uint64_t buckets[] = {0, 1, 1 << 20, 25 << 20};
    fr_plan_init(plan);
    random_layout(rng, has_experts, plan);
    plan->zero_stage = (int32_t)pick(rng, 4);
    plan->zero_group =
        plan->zero_stage > 0 && pick(rng, 4) == 0 ? power(rng, 2) : 0;
    plan->is_resharded = pick(rng, 2);
    plan->n_prefetch = (int32_t)pick(rng, 3);
    plan->recompute = (fr_recompute)pick(rng, FR_RECOMPUTE_N);
    plan->recompute_parts = FR_RECOMPUTE_PART_ATTENTION;
    if (plan->recompute == FR_RECOMPUTE_FULL)
        plan->recompute_layers = (int32_t)pick(rng, 3);
    plan->is_flash = pick(rng, 2);
    plan->is_sequence_parallel = plan->tp > 1 && pick(rng, 2);
    plan->is_overlap = pick(rng, 2);
    plan->is_gather_overlap = pick(rng, 2);
    plan->is_tp_overlap = plan->is_sequence_parallel && pick(rng, 4) == 0;
    plan->cp_kind = (fr_cp_kind)pick(rng, FR_CP_N);
    plan->bucket_bytes = buckets[pick(rng, 4)];
    plan->execution.cuda_graphs = (fr_cuda_graphs)pick(rng, FR_CUDA_GRAPHS_N);
    plan->protocol = (fr_protocol)((plan->dp + plan->tp) % FR_PROTOCOL_N);
    plan->n_channels = plan->dp == 2 ? 3 : 0;
    plan->precision = pick(rng, 2) ? FR_DTYPE_F32 : FR_DTYPE_BF16;
    plan->grad_dtype = FR_DTYPE_F32;
    if (plan->dp > 1 && plan->ep == 1 && plan->zero_stage == 0 &&
        pick(rng, 4) == 0)
        plan->compressor = (fr_compressor_kind)(1 + pick(rng, 4));
    plan->is_optimizer_offloaded = pick(rng, 8) == 0;
    bool is_in_turn = plan->ep > 1 && pick(rng, 2);
    if (is_in_turn &&
        (plan->pp == 1 || plan->schedule == FR_SCHEDULE_INTERLEAVED)) {
        plan->is_ep_overlap = true;
        plan->zero_stage %= 2;
        if (plan->recompute == FR_RECOMPUTE_FULL)
            plan->recompute = FR_RECOMPUTE_NONE;
    }
    if (pick(rng, 4) == 0 && plan->pp * plan->vpp > 1) {
        plan->n_split = plan->pp * plan->vpp;
        for (int32_t i = 0; i < plan->n_split; i++)
            plan->layer_split[i] = 8 / plan->n_split;
        if (plan->layer_split[0] > 1) {
            plan->layer_split[0]--;
            plan->layer_split[plan->n_split - 1]++;
        }
    }
}

/* A plan with no two things at a time: one axis of ranks inside a node, and
 * nothing beside the compute lane but sends; hosts issue nothing. */
static void make_plain(fr_rng *rng, fr_plan *plan)
{
    int which = (int)pick(rng, 3);
    if (which != 0)
        plan->tp = 1;
    if (which != 1) {
        plan->dp = 1;
        plan->compressor = FR_COMPRESSOR_NONE;
    }
    plan->cp = plan->ep = 1;
    plan->is_ep_overlap = false;
    plan->etp = 0;
    plan->execution.cuda_graphs = FR_CUDA_GRAPHS_FULL;
    plan->is_sequence_parallel = plan->is_sequence_parallel && plan->tp > 1;
    plan->is_tp_overlap = plan->is_overlap = plan->is_gather_overlap = false;
    plan->zero_stage = (int32_t)pick(rng, 2);
    plan->zero_group = 0;
    if (which == 2)
        return;
    plan->n_split = 0;
    plan->pp = plan->vpp = 1;
    plan->schedule = FR_SCHEDULE_1F1B;
}

/*
 * Nobody waits for a host, a link, a core or a lane that another one uses:
 * one graph, one rank,
 * or ranks of one node that are split along one axis, tp or dp, and whose
 * collectives run in the way of compute.
 */
static bool is_uncontended(const fr_plan *plan)
{
    bool is_quiet = plan->compressor == FR_COMPRESSOR_NONE &&
                    !plan->is_optimizer_offloaded && !plan->is_overlap &&
                    !plan->is_gather_overlap && !plan->is_tp_overlap &&
                    !plan->is_ep_overlap && plan->zero_stage <= 1 &&
                    plan->execution.cuda_graphs == FR_CUDA_GRAPHS_FULL;
    return is_quiet && plan->pp * plan->cp == 1 &&
           (plan->tp == 1 || plan->dp == 1);
}

/* A pipeline of single ranks: order of sends aside, nothing contends. */
static bool is_chain(const fr_plan *plan)
{
    return !plan->is_optimizer_offloaded &&
           plan->tp * plan->dp * plan->cp == 1 &&
           (plan->schedule == FR_SCHEDULE_1F1B ||
            plan->schedule == FR_SCHEDULE_GPIPE);
}

static void report(const char *what, double *values, size_t n)
{
    if (n == 0)
        return;
    printf("  %s, %zu plans:", what, n);
    for (int p = 0; p <= 100; p += 10)
        printf(" %.4f", fr_stats_quantile(values, n, 0.01 * p));
    printf("\n");
}

static uint64_t live_bytes(const fr_prediction *p)
{
    return p->memory.parameters_bytes + p->memory.gradients_bytes +
           p->memory.optimizer_bytes + p->memory.activations_bytes +
           p->memory.buffers_bytes;
}

/* One plan; false: it is refused. */
static bool try_plan(sim_fixture *f, fr_estimator *estimator, bool has_jitter,
                     tally *t)
{
    fr_estimate estimate;
    fr_prediction prediction;
    fr_err err, why;
    char text[256];
    int64_t n = fr_plan_world(&f->plan);
    fr_status status = fr_estimate_plan(estimator, &f->plan, &estimate, &why);
    f->program = NULL;
    f->node_of_rank = NULL;
    if (n > t->n_ranks_most)
        return false;
    f->node_of_rank = malloc((size_t)n * sizeof *f->node_of_rank);
    fr_placement placement = {.n_ranks = n,
                              .node_of_rank = f->node_of_rank,
                              .by_framework = fr_gpu_is_by_framework(
                                  &f->plan, &f->cluster.devices[0])};
    fr_status lowered =
        fr_cluster_place(&f->cluster, n, 1, 0, f->node_of_rank, &err);
    if (lowered == FR_OK)
        lowered = fr_lower(&f->model, &f->job, &f->plan, &placement,
                           &f->program, &err);
    /* An operation that the device lacks is found when it is priced. */
    bool is_known =
        fr_estimate_knows(&f->plan) && f->plan.compressor == FR_COMPRESSOR_NONE;
    if (status != FR_OK && lowered == FR_OK && is_known)
        lowered = fr_simulate(f->program, f->costs, &f->cluster, &placement,
                              NULL, &prediction, &err);
    /* Nothing is known of what only the simulator knows; compressed gradients
     * may travel by another collective than the one that is asked for. */
    if (is_known && !CHECK_INT(status, lowered))
        printf("  estimate: %s\n  lowering: %s\n  %s\n",
               status != FR_OK ? why.text : "",
               lowered != FR_OK ? err.text : "",
               fr_plan_describe(&f->plan, text, sizeof text));
    if (status != FR_OK || lowered != FR_OK)
        return false;
    if (!sim_fixture_predict(f, FR_REPLAY_AUTO, false, &prediction))
        return false;
    /* Energy is bounded by what devices have to compute. */
    fr_least_work work = {0};
    const double busy_s = prediction.busy_frac * prediction.step_s;
    CHECK_OK(fr_estimate_least_work(estimator, &f->plan, &work, &err), &err);
    CHECK(work.lane_s == 0 || work.compute_s <= work.lane_s * (1 + 1e-9));
    if (prediction.busy_frac < 1 && work.compute_s > 0)
        t->busy[t->n_busy++] = work.compute_s / busy_s;
    CHECK(prediction.busy_frac == 1 || work.compute_s <= busy_s * (1 + 1e-9));
    double tightness = estimate.lower_bound_s / prediction.step_s;
    double error = estimate.estimate_s / prediction.step_s - 1;
    t->tightness[t->n] = tightness;
    t->least[t->n] =
        (double)estimate.least_bytes / (double)prediction.memory.peak_bytes;
    t->memory[t->n++] =
        (double)estimate.peak_bytes / (double)live_bytes(&prediction);
    bool is_ok = CHECK(tightness <= 1 + 1e-9);
    is_ok =
        CHECK((double)estimate.capacity_bytes - (double)estimate.least_bytes >=
              (double)prediction.memory.capacity_bytes -
                  (double)prediction.memory.peak_bytes) &&
        is_ok;
    if (is_uncontended(&f->plan) && !has_jitter) {
        t->error[t->n_error++] = error;
        is_ok = CHECK(error >= -0.02 && error <= 0.02) && is_ok;
    } else if (is_chain(&f->plan)) {
        t->chain[t->n_chain++] = error;
    } else {
        t->other[t->n_other++] = error;
    }
    if (!is_ok || getenv("LOOSE") != NULL) {
        printf("  memory %.4f of %.4f GB\n",
               1e-9 * (double)estimate.least_bytes,
               1e-9 * (double)prediction.memory.peak_bytes);
        printf("  %.4f %.6f bound %.6f estimate %.6f simulated: %s\n",
               tightness, 1e3 * estimate.lower_bound_s,
               1e3 * estimate.estimate_s, 1e3 * prediction.step_s,
               fr_plan_describe(&f->plan, text, sizeof text));
    }
    return true;
}

/* The distribution from which the plans of a scene are drawn. */
typedef struct drawing {
    int n_ranks_most, tries_per_plan;
    bool (*set_up)(sim_fixture *f, const scene *s);
    void (*draw)(fr_rng *rng, const scene *s, sim_fixture *f);
    bool is_always_uncertain; /* else only where the cluster has jitter */
} drawing;

static void draw_few_fields(fr_rng *rng, const scene *s, sim_fixture *f)
{
    random_plan(rng, s->n_experts > 0, &f->plan);
    if (s->cluster != NULL)
        f->plan.n_split = 0;
    if (pick(rng, 3) == 0)
        make_plain(rng, &f->plan);
}

static void draw_every_field(fr_rng *rng, const scene *s, sim_fixture *f)
{
    (void)s;
    random_plans_next(rng, &f->model, fr_cluster_slots(&f->cluster), &f->plan);
}

/* The same with any shares of the batch, where there is enough to share. */
static void draw_shares(fr_rng *rng, const scene *s, sim_fixture *f)
{
    draw_few_fields(rng, s, f);
    random_plans_share(rng, &f->job, &f->plan);
}

static const drawing few_fields = {.n_ranks_most = 64,
                                   .tries_per_plan = 20,
                                   .set_up = setup,
                                   .draw = draw_few_fields};
static const drawing uneven_shares = {.n_ranks_most = 64,
                                      .tries_per_plan = 40,
                                      .set_up = setup,
                                      .draw = draw_shares};
static const drawing every_field = {.n_ranks_most = 512,
                                    .tries_per_plan = 40,
                                    .set_up = setup_named,
                                    .draw = draw_every_field,
                                    .is_always_uncertain = true};

/* No replay is shorter than its bound, none takes less memory than the least.
 */
static void test_scene(const scene *s, const drawing *d, uint64_t seed,
                       tally *t)
{
    sim_fixture f;
    fr_estimator *estimator = NULL;
    fr_err err;
    fr_rng *rng = NULL;
    const int n_plans = (int)check_slice_of((size_t)s->n_plans);
    *t = (tally){.n_ranks_most = d->n_ranks_most};
    sim_fixture_init(&f);
    if (d->set_up(&f, s) && CHECK_OK(fr_rng_create(seed, &rng, &err), &err) &&
        CHECK_OK(fr_estimator_create(&f.model, &f.job, &f.cluster, f.costs,
                                     &estimator, &err),
                 &err))
        while ((int)t->n < n_plans &&
               t->n_refused < d->tries_per_plan * n_plans) {
            d->draw(rng, s, &f);
            bool is_uncertain =
                d->is_always_uncertain || f.cluster.jitter_compute_frac > 0;
            if (!try_plan(&f, estimator, is_uncertain, t))
                t->n_refused++;
            fr_program_destroy(f.program);
            free(f.node_of_rank);
            f.program = NULL;
            f.node_of_rank = NULL;
        }
    printf("%s: %zu plans, %d refused, deciles from 0 to 100 %%\n", s->name,
           t->n, t->n_refused);
    report("bound / simulated", t->tightness, t->n);
    report("least work of computing", t->busy, t->n_busy);
    report("error where nothing contends", t->error, t->n_error);
    report("error of pipelines of single ranks", t->chain, t->n_chain);
    report("error elsewhere", t->other, t->n_other);
    report("peak / simulated", t->memory, t->n);
    report("least / simulated", t->least, t->n);
    fr_estimator_destroy(estimator);
    fr_rng_destroy(rng);
    fr_model_release(&f.model);
    sim_fixture_release(&f);
}

static tally of_scene;

static void test_every_field(void)
{
    static const scene all[] = {{.name = "every field, small",
                                 .model = "gpt2-mini",
                                 .cluster = "dgx-h100:64",
                                 .seq = 128,
                                 .batch = 256,
                                 .n_plans = 400},
                                {.name = "every field, unlike nodes",
                                 .model = "gpt2-1.5b",
                                 .cluster = "mixed-a100-v100",
                                 .seq = 1024,
                                 .batch = 64,
                                 .n_plans = 100},
                                {.name = "every field, experts",
                                 .model = "mixtral-8x7b",
                                 .cluster = "selene-like",
                                 .seq = 2048,
                                 .batch = 256,
                                 .n_plans = 60},
                                {.name = "every field, torus",
                                 .model = "gpt2-mini",
                                 .cluster = "torus-64",
                                 .seq = 256,
                                 .batch = 128,
                                 .n_plans = 100},
                                {.name = "every field, layers",
                                 .model = "resnet-50",
                                 .cluster = "dgx-a100:8",
                                 .seq = 1,
                                 .batch = 512,
                                 .n_plans = 100}};
    for (size_t i = 0; i < FR_LENGTH(all); i++)
        test_scene(&all[i], &every_field, 81 + i, &of_scene);
}

/* On nodes that are alike, slow, and of two types. */
static void test_uneven_shares(void)
{
    static const int which[] = {0, 3, 7};
    for (size_t i = 0; i < FR_LENGTH(which); i++) {
        scene s = scenes[which[i]];
        s.n_plans = 200;
        test_scene(&s, &uneven_shares, 4711 + i, &of_scene);
    }
}

static void test_random_plans(void)
{
    for (int i = 0; i < N_SCENES; i++)
        test_scene(&scenes[i], &few_fields, 2385 + (uint64_t)i, &of_scene);
}

CHECK_MAIN({"random plans", test_random_plans},
           {"uneven shares", test_uneven_shares},
           {"every field", test_every_field})
