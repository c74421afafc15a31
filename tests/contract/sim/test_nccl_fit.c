/*
 * The constants of links (fr_link_fit) fitted again, by weighted least squares
 * of the logarithms, to the rows that they were taken from: they must come out
 * as they stand in fabric_links.c, and no better by much.  Fitted without the
 * rows of one machine each, they predict that machine.
 */
#include "core/numbers/fit.h"
#include "core/system/fileio.h"
#include "cost_models/link/fabric_links.h"
#include "cost_models/link/nccl_model.h"
#include "tests/contract/plan/collective_rows.h"

enum { N_ROWS_MAX = 200, N_FITTED = 6 };

/* In the order of N_FITTED, as factors of what is known. */
static const char *const names[N_FITTED] = {"link_share",      "pair_share",
                                            "peers_share",     "step_s, Ampere",
                                            "LL128 of Ampere", "nvls_fill"};

typedef struct sample {
    const fr_gpu_fabric *fabric;
    fr_comm_scope scope;
    fr_nccl_ask ask;
    double seconds;
    int machine;
    double weight; /* 10 % over the error aimed at: 10, below 16 MB 25 */
} sample;

typedef struct data {
    fr_cluster clusters[N_MACHINES];
    fr_gpu_fabric fabrics[N_MACHINES];
    sample samples[N_ROWS_MAX];
    size_t n;
    int left_out; /* machine; -1: none */
} data;

static fr_link_fit with_factors(const double *log_factor)
{
    fr_link_fit fit = fr_link_fit_known;
    fit.link_share *= exp(log_factor[0]);
    fit.pair_share *= exp(log_factor[1]);
    fit.peers_share *= exp(log_factor[2]);
    fit.step_s[0] *= exp(log_factor[3]);
    fit.ll128_share[0] *= exp(log_factor[4]);
    fit.nvls_fill *= exp(log_factor[5]);
    return fit;
}

static void residuals(const double *x, double *out, void *context)
{
    const data *d = context;
    fr_link_fit fit = with_factors(x);
    for (size_t i = 0; i < d->n; i++) {
        const sample *s = &d->samples[i];
        out[i] = 0;
        if (s->machine == d->left_out)
            continue;
        fr_gpu_fabric fabric = *s->fabric;
        fr_nccl_time time = {0};
        fabric.fit = &fit;
        fr_group_links links = fr_group_links_of(&fabric, &s->scope);
        CHECK(fr_nccl_time_of(&fabric, &links, &s->ask, &time));
        out[i] = s->weight *
                 log((host_call_s + time.latency_s + time.work_s) / s->seconds);
    }
}

static double root_mean_square(data *d, const double *x)
{
    double out[N_ROWS_MAX], sum = 0;
    residuals(x, out, d);
    for (size_t i = 0; i < d->n; i++)
        sum += out[i] * out[i];
    return sqrt(sum / (double)d->n);
}

/* The first entry of the same GPUs of the same source: one machine. */
static int machine_like(int i)
{
    int first = 0;
    while (strcmp(machines[first].source, machines[i].source) != 0 ||
           strcmp(machines[first].gpu, machines[i].gpu) != 0)
        first++;
    return first;
}

static void add_row(data *d, char *const *row)
{
    flaw why;
    double seconds = measured_s(row, &why);
    int i = machine_of(row), n = atoi(row[GPUS]), n_nodes = atoi(row[NODES]);
    if (why != USABLE || i < 0 || machines[i].is_guess ||
        strcmp(row[ALGO], "RING") == 0)
        return;
    d->samples[d->n++] = (sample){
        .fabric = &d->fabrics[i],
        .scope = {.n_group = n, .n_nodes = n_nodes},
        .ask = {.op = strcmp(row[OP], "all_to_all") == 0 ? FR_OP_ALL_TO_ALL
                                                         : FR_OP_ALL_REDUCE,
                .n_bytes = atof(row[SIZE])},
        .seconds = seconds,
        .machine = machine_like(i),
        .weight = atof(row[SIZE]) >= 16e6 ? 1.0 : 0.4};
}

static bool load_rows(data *d)
{
    d->n = 0;
    d->left_out = -1;
    fr_err err = {0};
    char *text = NULL, *save = NULL, *row[N_COLUMNS];
    if (!CHECK_OK(fr_file_read(CSV, 0, &text, NULL, &err), &err))
        return false;
    for (int i = 0; i < N_MACHINES; i++) {
        const char *name = machines[i].cluster;
        fr_cluster *cluster = &d->clusters[i];
        if (name[0] == '<')
            CHECK_OK(
                fr_cluster_parse("x.xml", name, strlen(name), cluster, &err),
                &err);
        else
            CHECK_OK(fr_cluster_load(NULL, name, cluster, &err), &err);
        d->fabrics[i] = fr_gpu_fabric_of(cluster, 0);
    }
    char *line = strtok_r(text, "\n", &save); /* the header */
    while ((line = strtok_r(NULL, "\n", &save)) != NULL && d->n < N_ROWS_MAX)
        if (split(line, row) == N_COLUMNS)
            add_row(d, row);
    free(text);
    return true;
}

static void test_again(void)
{
    /* Shares of rates are sharp; a step and a fill less so. */
    static const double tolerance[N_FITTED] = {.03, .05, .05, .1, .1, .2};
    static data d;
    fr_err err = {0};
    double x[N_FITTED] = {0}, known = 0, best = 0;
    if (!load_rows(&d))
        return;
    CHECK(d.n > 130);
    known = root_mean_square(&d, x);
    CHECK_OK(fr_fit_nonlinear(residuals, &d, d.n, x, N_FITTED, &err), &err);
    best = root_mean_square(&d, x);
    printf(
        "# %zu rows: weighted root mean square of errors %.3f as they stand, "
        "%.3f fitted\n",
        d.n, known, best);
    for (int i = 0; i < N_FITTED; i++) {
        printf("# %-16s %+5.1f %%\n", names[i], 100 * (exp(x[i]) - 1));
        CHECK(fabs(x[i]) <= tolerance[i]);
    }
    CHECK(best <= known && known <= best * 1.1);
    for (int i = 0; i < N_MACHINES; i++)
        fr_cluster_release(&d.clusters[i]);
}

/* ---- without a machine --------------------------------------------------- */

/* Constants that no measurement determines stay near their values without one:
 * shares are whole. */
static void residuals_left(const double *x, double *out, void *context)
{
    const data *d = context;
    const fr_link_fit *known = &fr_link_fit_known;
    const double untold[N_FITTED] = {
        -log(known->link_share),     -log(known->pair_share),
        -log(known->peers_share),    0,
        -log(known->ll128_share[0]), -log(known->nvls_fill)};
    residuals(x, out, context);
    for (int i = 0; i < N_FITTED; i++)
        out[d->n + (size_t)i] = 0.02 * (x[i] - untold[i]);
}

/* Sums over rows of 16 MB and more, and of smaller ones. */
typedef struct errors {
    double sum[2];
    int n[2];
} errors;

static errors errors_of(data *d, const double *x, int i_machine)
{
    double out[N_ROWS_MAX + N_FITTED];
    errors e = {.n = {0}};
    d->left_out = -1;
    residuals(x, out, d);
    for (size_t i = 0; i < d->n; i++) {
        const sample *s = &d->samples[i];
        int is_small = s->weight < 1;
        if (s->machine != i_machine)
            continue;
        e.sum[is_small] += fabs(exp(out[i] / s->weight) - 1);
        e.n[is_small]++;
    }
    return e;
}

static double mean_of(const errors *e, int is_small)
{
    return e->n[is_small] > 0 ? e->sum[is_small] / e->n[is_small] : 0;
}

static void test_left_out(void)
{
    static data d;
    errors all = {.n = {0}};
    fr_err err = {0};
    if (!load_rows(&d))
        return;
    for (int m = 0; m < N_MACHINES; m++) {
        double x[N_FITTED] = {0};
        d.left_out = m;
        CHECK_OK(fr_fit_nonlinear(residuals_left, &d, d.n + N_FITTED, x,
                                  N_FITTED, &err),
                 &err);
        errors e = errors_of(&d, x, m);
        if (e.n[0] + e.n[1] == 0)
            continue;
        printf("# without it, %-24s 16 MB and more %5.1f %% (%2d), smaller "
               "%5.1f %% (%2d)\n",
               machines[m].label, 100 * mean_of(&e, 0), e.n[0],
               100 * mean_of(&e, 1), e.n[1]);
        for (int k = 0; k < 2; k++) {
            all.sum[k] += e.sum[k];
            all.n[k] += e.n[k];
        }
    }
    printf("# out of sample: 16 MB and more %.1f %%, smaller %.1f %%\n",
           100 * mean_of(&all, 0), 100 * mean_of(&all, 1));
    CHECK(mean_of(&all, 0) < 0.15 && mean_of(&all, 1) < 0.30);
    for (int i = 0; i < N_MACHINES; i++)
        fr_cluster_release(&d.clusters[i]);
}

CHECK_MAIN({"again", test_again}, {"left_out", test_left_out})
