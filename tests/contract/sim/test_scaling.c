/*
 * test_scaling.c: efficiency of data parallel training against published
 * measurements (tests/validate/scaling.csv): throughput of n GPUs over n times
 * that of one, or against the smallest number that the source has.
 *
 * Throughputs themselves are printed beside; frameworks of 2017 are slower
 * than their kernels.  ROWS=1 in the environment: every row, not only those
 * beyond the bound.
 */
#include "tests/contract/sim/scaling_rows.h"
#include "tests/contract/sim/sim_fixture.h"

#include <math.h>

enum { MOST = 400, KEY = 400 };

/* The bound on the mean error, in points of efficiency. */
static const double bound_points = 8;

/*
 * GPUs of one kind are not equally fast: 8 % between the ends of the whiskers
 * of a box plot, on average over applications and clusters (Sinha et al., Not
 * All GPUs Are Created Equal, SC 2022, arXiv 2208.11035), which is 5.4
 * standard deviations of a normal distribution.  Whoever sums gradients waits
 * for the slowest (<jitter> of a cluster).
 */
static const double spread = 0.08 / 5.4;

typedef struct point {
    const fr_case *row;
    char model[48], key[KEY];
    int64_t n_gpus;
    double measured, predicted;     /* throughput */
    double measured_e, predicted_e; /* efficiency; measured_e 0: no smaller n */
    double alike_e, anchored_e;     /* see report() */
    bool has_run;
    char why[200];
} point;

typedef struct point_list {
    point at[MOST];
    int n;
} point_list;

/* The factors by which a prediction may be changed. */
typedef struct terms {
    double jitter;
    double speed; /* of GPUs against what their datasheet lets expect */
} terms;

static void apply(const terms *t, fr_cluster *cluster)
{
    fr_device_type *device = &cluster->devices[0];
    cluster->jitter_compute_frac = t->jitter;
    device->memory_Bps *= t->speed;
    for (int32_t i = 0; i < device->n_peaks; i++)
        device->peaks[i].flops *= t->speed;
}

/* Seconds for so many samples; 0: it cannot be run, for a reason. */
static double seconds_for(const scaling_setup *setup, double n_samples,
                          const terms *t)
{
    sim_fixture f;
    fr_prediction p = {0};
    fr_err err;

    memset(&f, 0, sizeof f);
    f.plan = setup->plan;
    f.job = setup->job;
    bool is_done =
        CHECK_OK(fr_model_load(NULL, setup->model, &f.model, &err), &err) &&
        CHECK_OK(fr_cluster_load(NULL, setup->cluster, &f.cluster, &err), &err);
    if (is_done)
        apply(t, &f.cluster);
    is_done = is_done &&
              CHECK_OK(fr_cost_model_create(NULL, &f.cluster, &f.costs, &err),
                       &err) &&
              sim_fixture_lower(&f, 0) &&
              sim_fixture_predict(&f, FR_REPLAY_AUTO, false, &p);
    fr_model_release(&f.model);
    sim_fixture_release(&f);
    return is_done ? n_samples / (double)setup->job.global_batch * p.step_s : 0;
}

/* Samples per second over all phases; 0: it cannot be run. */
static double predict(const point *p, int64_t n_gpus, const terms *t, char *why,
                      size_t n_why)
{
    double n_samples = 0, sum_s = 0;

    for (int i = 0; i < scaling_n_phases(p->row); i++) {
        const scaling_ask ask = {p->model, n_gpus, i};
        double n = scaling_phase_samples(p->row, i);
        scaling_setup setup;
        if (!scaling_setup_of(p->row, &ask, &setup, why, n_why))
            return 0;
        double s = seconds_for(&setup, n, t);
        if (s <= 0) {
            snprintf(why, n_why, "it failed");
            return 0;
        }
        n_samples += n;
        sum_s += s;
    }
    return n_samples / sum_s;
}

/* The speed of n_gpus relative to the reference of the same terms. */
static double efficiency(const point *p, const point *reference,
                         int64_t n_reference, const terms *t)
{
    char why[200];
    double many = predict(p, p->n_gpus, t, why, sizeof why);
    double few = predict(reference, n_reference, t, why, sizeof why);
    return many / few * (double)n_reference / (double)p->n_gpus;
}

static const terms usual = {spread, 1}, alike = {0, 1};

/* As measured, of a training by its minutes; 0: neither. */
static double measured_rate(const fr_case *row)
{
    double value = strtod(row->field[FR_CASE_THROUGHPUT], NULL), n = 0;
    const char *unit = row->field[FR_CASE_THROUGHPUT_UNIT];

    if (strstr(unit, "/s") != NULL)
        return value;
    if (strncmp(unit, "minutes", 7) != 0 ||
        row->field[FR_CASE_PHASE_SAMPLES][0] == '\0')
        return 0;
    for (int i = 0; i < scaling_n_phases(row); i++)
        n += scaling_phase_samples(row, i);
    return n / (60 * value);
}

/* A row with throughput. */
static void add_throughput(point_list *points, const fr_case *row)
{
    point *p = &points->at[points->n++];
    *p = (point){.row = row};
    snprintf(p->model, sizeof p->model, "%s", row->field[FR_CASE_MODEL]);
    scaling_key(row, p->key, sizeof p->key);
    p->n_gpus = strtol(row->field[FR_CASE_NUM_GPUS], NULL, 10);
    p->measured = measured_rate(row);
    if (p->measured <= 0) {
        snprintf(p->why, sizeof p->why, "%s is no throughput",
                 row->field[FR_CASE_THROUGHPUT_UNIT]);
        return;
    }
    p->predicted = predict(p, p->n_gpus, &usual, p->why, sizeof p->why);
    p->has_run = p->predicted > 0;
}

/* "90% / 68%" of "Inception V3 / VGG-16". */
static void add_scaling(point_list *points, const fr_case *row)
{
    const char *model = row->field[FR_CASE_MODEL];
    const char *share = row->field[FR_CASE_SCALING];
    while (*model != '\0' && *share != '\0') {
        point *p = &points->at[points->n++];
        int n = (int)strcspn(model, "/");
        *p = (point){.row = row,
                     .n_gpus = strtol(row->field[FR_CASE_NUM_GPUS], NULL, 10),
                     .measured_e = strtod(share, NULL) / 100};
        snprintf(p->model, sizeof p->model, "%.*s", n, model);
        p->predicted = predict(p, p->n_gpus, &usual, p->why, sizeof p->why);
        p->has_run = p->predicted > 0;
        if (p->has_run) {
            p->predicted_e = efficiency(p, p, 1, &usual);
            p->alike_e = efficiency(p, p, 1, &alike);
            p->anchored_e = p->predicted_e; /* nobody says how fast one was */
        }
        model += n;
        model += strspn(model, "/ ");
        share += strcspn(share, "/");
        share += strspn(share, "/ ");
    }
}

/* The row with the fewest GPUs of those it may be compared with. */
static const point *reference_of(const point_list *points, const point *p)
{
    const point *best = p;
    for (int i = 0; i < points->n; i++)
        if (p->key[0] != '\0' && strcmp(points->at[i].key, p->key) == 0 &&
            points->at[i].has_run && points->at[i].n_gpus < best->n_gpus)
            best = &points->at[i];
    return best;
}

static void find_efficiencies(point_list *points)
{
    for (int i = 0; i < points->n; i++) {
        point *p = &points->at[i];
        const point *reference = reference_of(points, p);
        double ratio = (double)reference->n_gpus / (double)p->n_gpus;
        if (!p->has_run || reference == p)
            continue;
        p->measured_e = p->measured / reference->measured * ratio;
        p->predicted_e = p->predicted / reference->predicted * ratio;
        p->alike_e = efficiency(p, reference, reference->n_gpus, &alike);
        const terms anchored = {spread,
                                reference->measured / reference->predicted};
        p->anchored_e = efficiency(p, reference, reference->n_gpus, &anchored);
    }
}

typedef struct sums {
    int n, n_beyond;
    double absolute, signed_;
} sums;

static void add(sums *s, double predicted_e, double measured_e)
{
    double points = 100 * (predicted_e - measured_e);
    s->n++;
    s->n_beyond += fabs(points) > bound_points;
    s->absolute += fabs(points);
    s->signed_ += points;
}

static void print_sums(const char *name, const sums *s)
{
    if (s->n > 0)
        printf("%-44s %4d rows  mean |error| %4.1f  mean error %+5.1f  "
               "beyond 8: %d\n",
               name, s->n, s->absolute / s->n, s->signed_ / s->n, s->n_beyond);
}

static void print_row(const point *p, bool is_all)
{
    const char *const *f = p->row->field;
    double points = 100 * (p->predicted_e - p->measured_e);
    if (!p->has_run) {
        printf("not run: %s, %s: %s\n", f[FR_CASE_SOURCE], f[FR_CASE_ROW],
               p->why);
        return;
    }
    if (!is_all && !(p->measured_e > 0 && fabs(points) > bound_points))
        return;
    printf("%-13.13s %-16.16s %-22.22s %-9.9s %-8.8s %4d ", p->model,
           f[FR_CASE_GPU], f[FR_CASE_SYNC_METHOD], f[FR_CASE_DATA],
           f[FR_CASE_PRECISION], (int)p->n_gpus);
    if (p->measured_e > 0)
        printf("%6.1f %% %6.1f %% %+6.1f ", 100 * p->measured_e,
               100 * p->predicted_e, points);
    else
        printf("%26s", "");
    printf(" %9.1f/s %9.1f/s\n", p->measured, p->predicted);
}

/* Rows of a model, by the beginning of its name. */
static void print_model(const point_list *points, const char *model)
{
    sums s = {0};
    for (int i = 0; i < points->n; i++) {
        const point *p = &points->at[i];
        if (p->has_run && p->measured_e > 0 &&
            strncmp(p->model, model, strlen(model)) == 0)
            add(&s, p->predicted_e, p->measured_e);
    }
    print_sums(model, &s);
}

/*
 * Beside the errors of the prediction those of three others: for GPUs without
 * a spread; with GPUs as fast as the reference of the row was measured to be,
 * which leaves communication to be judged; and of saying that nothing is lost.
 */
static void report(const point_list *points, bool is_all)
{
    sums all = {0}, same = {0}, anchored = {0}, nothing = {0}, synthetic = {0},
         servers = {0}, reduced = {0};
    printf("model         gpu              exchange               data      "
           "dtype    gpus measured predicted points   measured  predicted\n");
    for (int i = 0; i < points->n; i++) {
        const point *p = &points->at[i];
        print_row(p, is_all);
        if (!p->has_run || p->measured_e <= 0)
            continue;
        scaling_setup setup;
        char why[200];
        const scaling_ask ask = {p->model, p->n_gpus, 0};
        bool is_known = scaling_setup_of(p->row, &ask, &setup, why, sizeof why);
        bool is_server =
            is_known && setup.plan.collective == FR_COLLECTIVE_PARAMETER_SERVER;
        add(&all, p->predicted_e, p->measured_e);
        add(&same, p->alike_e, p->measured_e);
        add(&anchored, p->anchored_e, p->measured_e);
        add(&nothing, 1, p->measured_e);
        add(is_server ? &servers : &reduced, p->predicted_e, p->measured_e);
        if (strstr(p->row->field[FR_CASE_DATA], "real ImageNet") == NULL)
            add(&synthetic, p->predicted_e, p->measured_e);
    }
    print_sums("all", &all);
    print_sums("data not from files", &synthetic);
    print_sums("parameter servers, copies", &servers);
    print_sums("all-reduce", &reduced);
    print_model(points, "BERT");
    print_model(points, "ResNet");
    print_model(points, "Inception");
    print_model(points, "VGG");
    print_model(points, "AlexNet");
    print_sums("all, if GPUs were alike", &same);
    print_sums("all, GPUs as fast as the reference says", &anchored);
    print_sums("all, if nothing were ever lost", &nothing);
    CHECK(all.n > 100);
    CHECK(all.absolute / all.n <= bound_points);
    CHECK(all.absolute < nothing.absolute);
}

static void test_published(void)
{
    static point_list points;
    fr_cases cases;
    fr_err err;

    points.n = 0;
    if (!CHECK_OK(fr_cases_load("tests/validate/scaling.csv", &cases, &err),
                  &err))
        return;
    for (size_t i = 0; i < cases.n && points.n < MOST - 4; i++) {
        if (cases.at[i].field[FR_CASE_THROUGHPUT][0] != '\0')
            add_throughput(&points, &cases.at[i]);
        else
            add_scaling(&points, &cases.at[i]);
    }
    find_efficiencies(&points);
    report(&points, getenv("ROWS") != NULL);
    fr_cases_release(&cases);
}

/*
 * A worker of TensorFlow's own parameter servers for each GPU against a ring,
 * 128 P100, four on a node with 25 Gb/s: about half of the throughput was lost
 * to the servers, Horovod kept 88 % (Sergeev and Del Balso, arXiv 1802.05799,
 * section 5, for Inception-v3 and ResNet-101).
 */
static void test_servers_against_ring(void)
{
    static const char *const models[] = {"inception-v3", "resnet-101",
                                         "vgg-16"};
    printf("128 P100, RoCE 25 Gb/s: servers, as many as nodes, against the "
           "ring\n");
    for (int i = 0; i < 3; i++) {
        scaling_setup setup = {.cluster = "p100-4-roce:32"};
        double rate[2], one;
        snprintf(setup.model, sizeof setup.model, "%s", models[i]);
        fr_plan_init(&setup.plan);
        fr_job_init(&setup.job);
        setup.plan.micro_batch = 64;
        setup.plan.bucket_bytes = 64 * 1024 * 1024;
        setup.job.optimizer = FR_OPTIMIZER_SGD;
        setup.job.clip_norm = 0;
        setup.job.seq = 1;
        setup.job.global_batch = 64;
        one = seconds_for(&setup, 64, &usual);
        setup.plan.dp = 128;
        setup.job.global_batch = 128 * 64;
        for (int k = 0; k < 2; k++) {
            setup.plan.collective =
                k == 0 ? FR_COLLECTIVE_PARAMETER_SERVER : FR_COLLECTIVE_RING;
            setup.plan.server_place = FR_SERVER_WORKER;
            rate[k] = one / seconds_for(&setup, 128 * 64, &usual);
        }
        printf("%-13s servers %5.1f %%  ring %5.1f %%\n", models[i],
               100 * rate[0], 100 * rate[1]);
        CHECK(rate[0] < rate[1]);
    }
}

/* Servers on some nodes only: ranks that behave alike are still folded. */
static void test_folded(void)
{
    for (int place = 0; place < FR_SERVER_N; place++) {
        sim_fixture f;
        fr_prediction folded = {0}, whole = {0};
        sim_fixture_init(&f);
        f.plan.dp = 32;
        f.plan.bucket_bytes = 3000000;
        f.plan.collective = FR_COLLECTIVE_PARAMETER_SERVER;
        f.plan.server_place = (fr_server_place)place;
        f.plan.n_servers = 3;
        if (sim_fixture_cluster(&f, "p2.8xlarge:4", NULL) &&
            sim_fixture_lower(&f, 0) &&
            sim_fixture_predict(&f, FR_REPLAY_AUTO, false, &folded) &&
            sim_fixture_predict(&f, FR_REPLAY_AUTO, true, &whole)) {
            CHECK(folded.step_s == whole.step_s && folded.step_s > 0);
            CHECK(folded.breakdown_s[FR_PART_EXPOSED_DP] > 0);
            CHECK(folded.sim.ranks_simulated < whole.sim.ranks_simulated);
        }
        sim_fixture_release(&f);
    }
}

CHECK_MAIN({"published", test_published},
           {"servers against ring", test_servers_against_ring},
           {"folded", test_folded})
