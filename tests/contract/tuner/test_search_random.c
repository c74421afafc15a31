/*
 * test_search_random.c: random search against the proven optimum.
 *
 * Random problems on GPU clusters, whose spaces are larger than what it looks
 * at: the optimum is that which branch and bound proves.  Then the same bytes
 * for any number of threads.
 */
#include "core/numbers/rng.h"
#include "tests/contract/sim/sim_fixture.h"
#include "tests/unit/tuner/tuning_text.h"
#include "tuner/answer/tune.h"

#include <math.h>

enum { N_GPU = 30, LEAST_PLANS = 700, MOST_PLANS = 2000 };

static const char gpu_xml[] =
    "<cluster name=\"gpus\">\n"
    "  <device id=\"gpu\" kind=\"gpu\" memory=\"%dMiB\"\n"
    "          memory-bandwidth=\"3350GB/s\">\n"
    "    <peak dtype=\"fp32\" rate=\"67TFLOP/s\"/>\n"
    "    <peak dtype=\"bf16\" rate=\"989TFLOP/s\"/>\n"
    "  </device>\n"
    "  <node-type id=\"box\" device=\"gpu\" devices=\"%d\">\n"
    "    <intra kind=\"nvswitch\" bandwidth=\"450GB/s\" latency=\"2us\"/>\n"
    "    <nic count=\"2\" bandwidth=\"%dGb/s\" latency=\"5us\"/>\n"
    "  </node-type>\n"
    "  <group id=\"box\" node-type=\"box\" count=\"2\"/>\n"
    "  <fabric kind=\"switch\"/>\n"
    "</cluster>\n";

typedef struct problem {
    sim_fixture f;
    fr_plan_space_request request;
} problem;

static int64_t pick(fr_rng *rng, int64_t n)
{
    return (int64_t)fr_rng_below(rng, (uint64_t)n);
}

static void draw_model(fr_rng *rng, problem *p)
{
    fr_model *model = &p->f.model;
    sim_fixture_init(&p->f);
    model->n_layers = 3 + pick(rng, 8);
    model->hidden = 512 << pick(rng, 2);
    model->ffn_hidden = 4 * model->hidden;
    model->head_dim = model->hidden / model->n_heads;
    model->is_tied = pick(rng, 2);
    p->f.job.seq = 128 << pick(rng, 2);
    p->f.job.global_batch = 8 * (1 + pick(rng, 4));
}

static bool draw_gpus(fr_rng *rng, problem *p)
{
    char xml[2048];
    draw_model(rng, p);
    snprintf(xml, sizeof xml, gpu_xml,
             pick(rng, 2) ? 81920 : 2100 + (int)pick(rng, 900),
             2 << pick(rng, 2), 100 << pick(rng, 3));
    if (!sim_fixture_cluster(&p->f, "gpus.xml", xml))
        return false;
    p->request = (fr_plan_space_request){
        .model = &p->f.model,
        .job = &p->f.job,
        .cluster = &p->f.cluster,
        .world = fr_cluster_slots(&p->f.cluster),
        .pins = FR_PIN(CP) | FR_PIN(TP_OVERLAP) | FR_PIN(OFFLOAD_OPTIMIZER) |
                FR_PIN(GATHER_OVERLAP) | FR_PIN(RANK_ORDER) | FR_PIN(ETP)};
    fr_plan_init(&p->request.base);
    p->request.base.precision = FR_DTYPE_BF16;
    p->request.base.is_flash = true;
    return true;
}

static bool tune(const problem *p, const char *name, int n_threads,
                 fr_tuning *out)
{
    fr_err err;
    fr_tune_options options = {.space = p->request,
                               .search = name,
                               .is_exact = name == NULL,
                               .n_alternatives = 3,
                               .n_threads = n_threads};
    return CHECK_OK(fr_tune(&options, p->f.costs, out, &err), &err);
}

typedef struct tally {
    int n, n_best, n_near, n_wrong_bound;
    double worst, plans, looks;
} tally;

static bool is_right_size(const problem *p)
{
    fr_plan_space space;
    fr_err err;
    if (!CHECK_OK(fr_plan_space_create(&p->request, NULL, NULL, &space, &err),
                  &err))
        return false;
    bool is_right = space.plans.n >= LEAST_PLANS && space.plans.n <= MOST_PLANS;
    fr_plan_space_release(&space);
    return is_right;
}

static void compare(const problem *p, tally *t)
{
    fr_tuning best, got;
    if (!is_right_size(p) || !tune(p, NULL, 2, &best))
        return;
    if (best.best.plan != NULL && tune(p, "random", 2, &got)) {
        const uint64_t n_looks = got.space.plans - got.space.pruned_by_bound;
        CHECK_INT(got.space.plans, best.space.plans);
        CHECK(got.best.plan != NULL);
        double ratio = got.best.prediction.expected_step_s /
                       best.best.prediction.expected_step_s;
        CHECK(ratio >= 1);
        CHECK(got.certificate.bound <= best.best.prediction.expected_step_s);
        CHECK(!got.certificate.optimal_in_space || ratio == 1);
        t->n++;
        t->n_best += ratio == 1;
        t->n_near += ratio <= 1.05;
        t->worst = fmax(t->worst, ratio);
        t->plans += (double)got.space.plans;
        t->looks += (double)n_looks;
        fr_tuning_release(&got);
    }
    fr_tuning_release(&best);
}

static void check_tally(const char *name, const tally *t, int n)
{
    printf("  %s: %d problems, %.0f plans each, %.0f of them looked at: %d the "
           "optimum, %d within 5 %%, worst %.3f of it\n",
           name, t->n, t->plans / t->n, t->looks / t->n, t->n_best, t->n_near,
           t->worst);
    CHECK_INT(t->n, n);
    CHECK(t->n_near * 10 >= t->n * 9);
}

static void try_all(const char *name, bool (*draw)(fr_rng *, problem *),
                    uint64_t seed, int n)
{
    fr_rng *rng = NULL;
    fr_err err;
    tally t = {0};
    static problem p;
    if (!CHECK_OK(fr_rng_create(seed, &rng, &err), &err))
        return;
    for (int i = 0; i < 40 * n && t.n < n; i++)
        if (draw(rng, &p)) {
            compare(&p, &t);
            sim_fixture_release(&p.f);
        }
    check_tally(name, &t, n);
    fr_rng_destroy(rng);
}

static void test_gpus(void)
{
    try_all("GPUs", draw_gpus, 2385, (int)check_slice_of(N_GPU));
}

/* One thread and three, to the byte. */
static void test_threads(void)
{
    fr_rng *rng = NULL;
    fr_err err;
    static problem p;
    char *text[2] = {NULL, NULL};
    if (!CHECK_OK(fr_rng_create(5, &rng, &err), &err) || !draw_gpus(rng, &p))
        return;
    for (int i = 0; i < 2; i++) {
        fr_tuning t;
        if (!tune(&p, "random", 1 + 2 * i, &t))
            continue;
        text[i] = tuning_text(&t);
        fr_tuning_release(&t);
    }
    CHECK_STR(text[0], text[1]);
    free(text[0]);
    free(text[1]);
    sim_fixture_release(&p.f);
    fr_rng_destroy(rng);
}

CHECK_MAIN({"gpus", test_gpus}, {"threads", test_threads})
