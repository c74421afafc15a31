/*
 * Every layout trains the same model: eight steps of loss within 1e-4 of the
 * single process, gradients of the first step within 1e-5 of the largest (in
 * 16 bits: layout_loss_tolerance(), layout_gradient_tolerance()), and
 * every third layout run twice gives the same bits.
 *
 * The program starts itself under mpirun with four ranks; a layout of fewer
 * uses the first ones.  Takes some minutes of two cores; with a part of a name
 * in LAYOUT only those rows run, each of them twice.
 */
#include "program/lower/step/lower.h"
#include "runtime/comm/transport.h"
#include "runtime/launch/launch.h"
#include "runtime/run/run.h"
#include "tests/check.h"
#include "tests/contract/runtime/gradient_file.h"
#include "tests/contract/runtime/layouts/layout_rows.h"

#include <stdlib.h>
#include <unistd.h>

#define N_STEPS 8
#define N_LEARNING 20
#define EVAL_EVERY 5 /* of other windows, which leaves no trace */
#define N_LOSSES (N_STEPS + (N_STEPS - 1) / EVAL_EVERY + 1)
/* A result of one process that layouts are compared with. */
typedef struct reference {
    bool is_there;
    double loss[N_LOSSES]; /* of steps, then of evaluations */
    gradient_file gradients;
} reference;

/* The state of this process, and the only one of the tests. */
static struct {
    int rank;
    reference references[LAYOUT_VARIANTS][LAYOUT_FAMILIES][FR_OPTIMIZER_N];
} self;

static void dump_path(const char *what, char path[CHECK_PATH_BYTES])
{
    check_tmp_path(path, "test_layouts.%d.%s", (int)getpid(), what);
}

static fr_status lower(const layout_row *l, int64_t n_steps,
                       fr_transport *transport, fr_program **out, fr_err *err)
{
    fr_model model;
    fr_job job = layout_job(l, n_steps);
    fr_plan plan = layout_plan(l, LAYOUT_CPU);
    fr_placement placement = {.n_ranks = fr_plan_world(&plan)};

    if (transport != NULL)
        placement.node_of_rank = transport->node_of_rank;
    FR_TRY(layout_model(l, &model, err));
    fr_status status = fr_lower(&model, &job, &plan, &placement, out, err);
    fr_model_release(&model);
    return status;
}

/* Runs a layout on this rank; losses count on rank 0 alone. */
static fr_status run_layout(const layout_row *l, double loss[N_LOSSES],
                            const char *gradient_path, fr_err *err)
{
    int64_t world = layout_world(l);
    fr_program *program = NULL;
    fr_transport *transport = NULL;
    fr_run_options options;
    fr_run_result result = {0};
    fr_status status = FR_OK;

    fr_run_options_init(&options);
    options.is_gradient_dump = gradient_path != NULL;
    options.gradient_path = gradient_path;
    options.eval_data = "";
    options.eval_every = EVAL_EVERY;
    options.eval_batches = 2;
    if (world > 1) {
        FR_TRY(fr_transport_mpi_create(world, 60, &transport, err));
        if (transport == NULL)
            return FR_OK; /* not of this layout's ranks */
    } else if (self.rank != 0) {
        return FR_OK;
    }
    status = lower(l, N_STEPS, transport, &program, err);
    if (status == FR_OK)
        status =
            transport != NULL
                ? fr_run_over(transport, program, &options, NULL, &result, err)
                : fr_run(program, &options, NULL, &result, err);
    if (status == FR_OK && self.rank == 0 &&
        CHECK_INT(result.n_evaluations, N_LOSSES - N_STEPS)) {
        memcpy(loss, result.loss, N_STEPS * sizeof *loss);
        for (int i = N_STEPS; i < N_LOSSES; i++)
            loss[i] = result.evaluations[i - N_STEPS].loss;
    }
    fr_run_result_release(&result);
    fr_program_destroy(program);
    if (status == FR_OK)
        fr_transport_destroy(transport);
    return status;
}

static const reference *find_reference(const layout_row *l)
{
    reference *r = &self.references[layout_variant_of(l)][layout_family_of(l)]
                                   [l->optimizer];
    layout_row alone = layout_alone(l);
    fr_err err = {0};

    if (r->is_there)
        return r;
    char path[CHECK_PATH_BYTES];
    dump_path("reference", path);
    if (CHECK_OK(run_layout(&alone, r->loss, path, &err), &err) &&
        CHECK_OK(gradient_file_load(path, &r->gradients, &err), &err))
        r->is_there = true;
    (void)unlink(path);
    return r;
}

static double largest(const gradient_tensor *g)
{
    double most = 0;

    for (int64_t i = 0; i < g->rows * g->cols; i++)
        most = fmax(most, fabs((double)g->at[i]));
    return most;
}

static void compare_gradients(const layout_row *l, const gradient_file *mine,
                              const gradient_file *theirs)
{
    const double tolerance = layout_gradient_tolerance(l);
    double most = 0;

    if (!CHECK_INT(mine->n, theirs->n))
        return;
    for (size_t t = 0; t < theirs->n; t++)
        most = fmax(most, largest(&theirs->at[t]));
    CHECK(most > 1e-3);
    for (size_t t = 0; t < theirs->n; t++) {
        const gradient_tensor *a = &mine->at[t], *b = &theirs->at[t];
        /* A sum that cancels has the errors of its terms. */
        double worst = 0, scale = fmax(largest(b), 1e-3 * most);
        if (l->is_bf16)
            scale = most;
        if (!CHECK_STR(a->name, b->name) || !CHECK_INT(a->rows, b->rows) ||
            !CHECK_INT(a->cols, b->cols))
            return;
        for (int64_t i = 0; i < a->rows * a->cols; i++)
            worst = fmax(worst, fabs((double)a->at[i] - b->at[i]));
        check_that(worst <= tolerance * scale, __FILE__, __LINE__,
                   "%s: gradient of %s differs by %.3g of the largest", l->name,
                   a->name, worst / scale);
    }
}

/* A rounding decides at some step which of two rows has no room; from there on
 * the losses differ. */
static int n_compared(const layout_row *l)
{
    return l->family == LAYOUT_CAPPED ? N_STEPS / 2 : N_LOSSES;
}

static void check_layout(const layout_row *l, bool is_repeated)
{
    double loss[N_LOSSES] = {0}, again[N_LOSSES] = {0};
    char path[CHECK_PATH_BYTES];
    gradient_file gradients = {0};
    fr_err err = {0};

    dump_path("layout", path);
    bool is_ok = CHECK_OK(run_layout(l, loss, path, &err), &err);
    if (is_ok && is_repeated)
        is_ok = CHECK_OK(run_layout(l, again, NULL, &err), &err);
    if (!is_ok) {
        /* The others wait in a collective; mpirun ends them. */
        printf("%s: failed\n", l->name);
        fflush(stdout);
        _exit(1);
    }
    if (self.rank != 0)
        return;
    const reference *expected = find_reference(l);
    for (int i = 0; i < n_compared(l); i++) {
        double rel = fabs(loss[i] - expected->loss[i]) / expected->loss[i];
        check_that(rel <= layout_loss_tolerance(l), __FILE__, __LINE__,
                   "%s: step %d: loss %.9g, alone %.9g", l->name, i, loss[i],
                   expected->loss[i]);
    }
    check_that(!is_repeated || memcmp(loss, again, sizeof loss) == 0, __FILE__,
               __LINE__, "%s: the second run has other bits", l->name);
    if (CHECK_OK(gradient_file_load(path, &gradients, &err), &err))
        compare_gradients(l, &gradients, &expected->gradients);
    gradient_file_release(&gradients);
    (void)unlink(path);
}

static void test_layouts(void)
{
    for (int i = 0; i < layout_rows_n; i++)
        if (layout_is_chosen(&layout_rows[i]) &&
            !layout_is_refused(&layout_rows[i], LAYOUT_CPU))
            check_layout(&layout_rows[i], layout_part() != NULL || i % 3 == 0);
}

/* The single process learns within more steps than layouts are compared for:
 * their losses are no constants. */
static void check_learning(const layout_row *l)
{
    layout_row alone = layout_alone(l);
    fr_program *program = NULL;
    fr_run_options options;
    fr_run_result result = {0};
    fr_err err = {0};

    fr_run_options_init(&options);
    if (CHECK_OK(lower(&alone, N_LEARNING, NULL, &program, &err), &err) &&
        CHECK_OK(fr_run(program, &options, NULL, &result, &err), &err))
        check_that(result.loss[N_LEARNING - 1] < 0.97 * result.loss[0],
                   __FILE__, __LINE__, "%s: the loss fell from %g to %g only",
                   l->name, result.loss[0], result.loss[N_LEARNING - 1]);
    fr_run_result_release(&result);
    fr_program_destroy(program);
}

static void test_learning(void)
{
    bool is_done[LAYOUT_VARIANTS][LAYOUT_FAMILIES][FR_OPTIMIZER_N] = {0};

    for (int i = 0; self.rank == 0 && i < layout_rows_n; i++) {
        const layout_row *l = &layout_rows[i];
        bool *done = &is_done[layout_variant_of(l)][layout_family_of(l)]
                             [l->optimizer];
        if (!*done && layout_is_chosen(l))
            check_learning(l);
        *done = *done || layout_is_chosen(l);
    }
}

/* Different data must give different losses: the comparison can fail. */
static void test_negative_control(void)
{
    layout_row other = {.name = "other batch cut",
                        .micro_batch = 8,
                        .optimizer = FR_OPTIMIZER_SGD};

    if (self.rank != 0)
        return;
    const reference *sgd = find_reference(&other);
    other.optimizer = FR_OPTIMIZER_ADAMW;
    const reference *adamw = find_reference(&other);
    CHECK(fabs(sgd->loss[0] - adamw->loss[0]) < 1e-6);
    CHECK(fabs(sgd->loss[N_STEPS - 1] - adamw->loss[N_STEPS - 1]) > 1e-3);
}

/* The loss of validation after a step that changes nothing. */
static double loss_untrained(double dropout)
{
    const layout_row row = {.micro_batch = 8,
                            .is_flash = true,
                            .dropout = dropout,
                            .optimizer = FR_OPTIMIZER_SGD};
    fr_program *program = NULL;
    fr_run_options options;
    fr_run_result result = {0};
    double loss = NAN;
    fr_err err = {0};

    fr_run_options_init(&options);
    options.eval_data = "";
    if (CHECK_OK(lower(&row, 1, NULL, &program, &err), &err)) {
        program->job.lr = 0;
        if (CHECK_OK(fr_run(program, &options, NULL, &result, &err), &err) &&
            CHECK_INT(result.n_evaluations, 1)) {
            CHECK(result.loss[0] > 1);
            loss = result.evaluations[0].loss;
        }
    }
    fr_run_result_release(&result);
    fr_program_destroy(program);
    return loss;
}

/* Nothing is dropped where nothing is learned: the same bits as without. */
static void test_evaluation_drops_nothing(void)
{
    if (self.rank == 0)
        CHECK(loss_untrained(0.4) == loss_untrained(0));
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
        {"layouts", test_layouts},
        {"learning", test_learning},
        {"negative_control", test_negative_control},
        {"evaluation_drops_nothing", test_evaluation_drops_nothing}};
    fr_launch launch;
    int64_t rank = 0;
    fr_err err = {0};

    fr_launch_detect(&launch);
    if (launch.role != FR_LAUNCH_RANK)
        return start_ranks(argv);
    if (fr_run_join(LAYOUT_MAX_RANKS, &rank, NULL, &err) != FR_OK) {
        printf("%s\n", err.text);
        return 1;
    }
    self.rank = (int)rank;
    if (rank != 0 && freopen("/dev/null", "w", stdout) == NULL)
        return 1;
    int code = check_run(tests, sizeof tests / sizeof *tests, argc, argv);
    for (int i = 0; i < LAYOUT_VARIANTS * LAYOUT_FAMILIES; i++)
        for (int k = 0; k < FR_OPTIMIZER_N; k++)
            gradient_file_release(
                &self.references[i / LAYOUT_FAMILIES][i % LAYOUT_FAMILIES][k]
                     .gradients);
    fr_run_leave();
    return code;
}
