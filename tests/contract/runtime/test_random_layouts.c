/*
 * Any plan that a backend trains gives what one rank gives: plans drawn over
 * all fields (random_layouts.h), losses within 1e-4 and gradients of the first
 * step within 1e-5 of the largest; lanes of every second one wait at random.
 * Some are run twice, with and without such waits, and some resumed from a
 * checkpoint, for the same bits.
 *
 *   test_random_layouts                a few of them
 *   RANDOM_LAYOUTS="SEED FIRST N [cpu|gpu]" test_random_layouts
 *                                      layouts FIRST to FIRST + N - 1 of a seed
 */
#include "tests/check.h"
#include "tests/contract/runtime/gradient_file.h"
#include "tests/contract/runtime/random_layouts.h"
#include "tests/contract/runtime/rounding.h"
#include "tests/unit/runtime/gpu_show.h"

#include <stdlib.h>
#include <unistd.h>

enum { N_STEPS = 4, N_USUALLY = 20, TIMEOUT_S = 60 };

/* The options of the tests. */
static struct {
    uint64_t seed, first, n;
    bool is_cpu, is_gpu;
    char gradients[CHECK_PATH_BYTES], checkpoint[CHECK_PATH_BYTES];
} self = {.seed = 2385, .n = N_USUALLY, .is_cpu = true, .is_gpu = true};

/* The outcome of a run. */
typedef struct outcome {
    double loss[N_STEPS];
    gradient_file gradients;
} outcome;

static fr_status performed(const gpu_show *show, fr_err *err)
{
    for (int64_t i = 0; i < fr_plan_world(&show->plan); i++)
        if (show->status[i] != FR_OK) {
            *err = show->err[i];
            return fr_status_same(show->status[i]);
        }
    return FR_OK;
}

static fr_status perform(const random_layout *l, const fr_run_options *options,
                         outcome *out, fr_err *err)
{
    gpu_show show;
    gpu_fake fake;

    gpu_show_init(&show);
    gpu_fake_init(&fake, (int)fr_plan_world(&l->plan));
    show.options = *options;
    show.options.timeout_s = TIMEOUT_S;
    show.model = &l->model;
    show.plan = l->plan;
    show.job = l->job;
    show.node_of_rank = l->node_of_rank;
    if (l->is_gpu)
        show.fake = &fake;
    fr_status status = gpu_show_perform(&show)
                           ? performed(&show, err)
                           : fr_fail(err, FR_CHECK, "it has no program");
    if (status == FR_OK && options->is_gradient_dump)
        status = gradient_file_load(self.gradients, &out->gradients, err);
    for (int64_t i = 0; status == FR_OK && i < show.result.n_steps; i++)
        out->loss[show.result.resumed_from_step + i] = show.result.loss[i];
    gpu_show_release(&show);
    gpu_fake_release(&fake);
    (void)unlink(self.gradients);
    return status;
}

static fr_run_options plain_options(bool is_gradient_dump)
{
    fr_run_options options;

    fr_run_options_init(&options);
    options.is_gradient_dump = is_gradient_dump;
    options.gradient_path = self.gradients;
    return options;
}

/* The largest error that a compressor may make in gradients. */
static double compressed_tolerance(const fr_plan *plan)
{
    switch (plan->compressor) {
    case FR_COMPRESSOR_NONE:
        return 1e-5;
    case FR_COMPRESSOR_BF16:
        /* Each rank's share and each sum of them is rounded to 8 bits, by half
         * a unit of at most twice the largest. */
        return 0x1p-8 * plan->dp;
    default:
        return INFINITY;
    }
}

/* The same of 16 bits. */
static double gradient_tolerance(const random_layout *l)
{
    double tolerance = compressed_tolerance(&l->plan);
    if (fr_plan_storage_dtype(&l->plan) == FR_DTYPE_BF16)
        tolerance =
            fmax(tolerance, rounding_of_gradients((double)l->model.n_layers));
    if (l->plan.grad_dtype == FR_DTYPE_BF16)
        tolerance +=
            rounding_of_sums((double)(l->job.global_batch * l->job.seq));
    return tolerance;
}

static double loss_tolerance(const random_layout *l)
{
    const double n_tokens = (double)(l->job.global_batch * l->job.seq);
    return fr_plan_storage_dtype(&l->plan) == FR_DTYPE_BF16
               ? rounding_of_loss((double)l->model.n_layers, n_tokens)
               : 1e-5;
}

static fr_status compare_gradients(const gradient_file *a,
                                   const gradient_file *b, double tolerance,
                                   fr_err *err)
{
    const char *name = "";
    double worst = 0, most = 0;

    if (a->n != b->n)
        return fr_fail(err, FR_CHECK, "%zu gradients, alone %zu", a->n, b->n);
    for (size_t t = 0; t < b->n; t++)
        for (int64_t i = 0; i < b->at[t].rows * b->at[t].cols; i++) {
            double x = a->at[t].at[i], y = b->at[t].at[i];
            most = fmax(most, fabs(y));
            if (fabs(x - y) <= worst)
                continue;
            worst = fabs(x - y); /* also what is no number */
            name = b->at[t].name;
        }
    return worst <= tolerance * most
               ? FR_OK
               : fr_fail(err, FR_CHECK,
                         "gradient of %s differs by %.3g of the largest", name,
                         worst / most);
}

static fr_status compare(const random_layout *l, const outcome *mine,
                         const outcome *alone, fr_err *err)
{
    const double tolerance = gradient_tolerance(l);

    FR_TRY(
        compare_gradients(&mine->gradients, &alone->gradients, tolerance, err));
    for (int i = 0; i < N_STEPS; i++) {
        double rel = fabs(mine->loss[i] / alone->loss[i] - 1);
        double most = i == 0                ? loss_tolerance(l)
                      : isfinite(tolerance) ? fmax(1e-4, tolerance)
                                            : 0.5;
        if (!(rel <= most))
            return fr_fail(err, FR_CHECK, "step %d: loss %.9g, alone %.9g", i,
                           mine->loss[i], alone->loss[i]);
    }
    return FR_OK;
}

static fr_status check_same(const outcome *a, const outcome *b,
                            const char *what, fr_err *err)
{
    return memcmp(a->loss, b->loss, sizeof a->loss) == 0
               ? FR_OK
               : fr_fail(err, FR_CHECK,
                         "%s it has other bits: %.9g, not %.9g in the end",
                         what, b->loss[N_STEPS - 1], a->loss[N_STEPS - 1]);
}

static fr_status check_again(const random_layout *l, const outcome *first,
                             bool was_shaken, fr_err *err)
{
    fr_run_options options = plain_options(false);
    outcome again = {0};

    options.shake_seed = was_shaken ? 0 : 1;
    FR_TRY(perform(l, &options, &again, err));
    return check_same(first, &again, "run twice", err);
}

static fr_status check_resumed(const random_layout *l, const outcome *whole,
                               fr_err *err)
{
    char command[CHECK_PATH_BYTES + 16];
    fr_run_options options = plain_options(false);
    outcome parts = {0};

    options.checkpoint_dir = self.checkpoint;
    options.n_steps = N_STEPS / 2;
    fr_status status = perform(l, &options, &parts, err);
    options.is_resumed = true;
    options.n_steps = N_STEPS;
    if (status == FR_OK)
        status = perform(l, &options, &parts, err);
    (void)snprintf(command, sizeof command, "rm -rf '%s'", self.checkpoint);
    CHECK(system(command) == 0);
    return status == FR_OK ? check_same(whole, &parts, "resumed", err) : status;
}

/* Whatever is looked at of layout i. */
static fr_status try_layout(const random_layout *l, uint64_t i, fr_err *err)
{
    enum { EVERY_TWICE = 5, EVERY_RESUMED = 4 };
    const random_layout one = random_layout_alone(l);
    const bool is_shaken = i % 2 == 1;
    fr_run_options options = plain_options(true);
    outcome mine = {0}, alone = {0};

    options.shake_seed = is_shaken ? i : 0;
    fr_status status = perform(l, &options, &mine, err);
    options.shake_seed = 0;
    if (status == FR_OK)
        status = perform(&one, &options, &alone, err);
    if (status == FR_OK)
        status = compare(l, &mine, &alone, err);
    if (status == FR_OK && i % EVERY_TWICE == 0)
        status = check_again(l, &mine, is_shaken, err);
    if (status == FR_OK && i % EVERY_RESUMED == 0)
        status = check_resumed(l, &mine, err);
    gradient_file_release(&mine.gradients);
    gradient_file_release(&alone.gradients);
    return status;
}

/* Takes away what it fails without. */
static void shrink(uint64_t i, random_layout *l, fr_err *err)
{
    random_layout less;

    for (int k = 0; random_layout_simpler(l, k, &less); k++) {
        fr_err other = {0};
        if (memcmp(l, &less, sizeof less) != 0 &&
            try_layout(&less, i, &other) != FR_OK) {
            *l = less;
            *err = other;
        }
    }
}

static void check_layout(uint64_t i, bool is_gpu)
{
    random_layout layout;
    char text[1200], least[1200];
    fr_err err = {0};

    if (!CHECK_OK(random_layout_draw(self.seed, i, is_gpu, &layout, &err),
                  &err))
        return;
    random_layout_describe(&layout, text, sizeof text);
    if (self.n == 1)
        printf("%s\n", text);
    if (try_layout(&layout, i, &err) == FR_OK)
        return;
    printf("%s\n", err.text);
    shrink(i, &layout, &err);
    random_layout_describe(&layout, least, sizeof least);
    check_that(false, __FILE__, __LINE__,
               "RANDOM_LAYOUTS=\"%llu %llu 1 %s\": %s\n  of %s\n  so does %s",
               (unsigned long long)self.seed, (unsigned long long)i,
               is_gpu ? "gpu" : "cpu", err.text, text, least);
}

static void test_cpu(void)
{
    for (uint64_t i = 0; self.is_cpu && i < check_slice_of(self.n); i++)
        check_layout(self.first + i, false);
}

static void test_gpu(void)
{
    for (uint64_t i = 0; self.is_gpu && i < check_slice_of(self.n); i++)
        check_layout(self.first + i, true);
}

int main(int argc, char **argv)
{
    static const check_test tests[] = {{"cpu", test_cpu}, {"gpu", test_gpu}};
    const char *asked = getenv("RANDOM_LAYOUTS");
    unsigned long long seed, first, n;
    char backend[8] = "";

    if (asked != NULL) {
        if (sscanf(asked, "%llu %llu %llu %7s", &seed, &first, &n, backend) <
            3) {
            printf("RANDOM_LAYOUTS is \"SEED FIRST N [cpu|gpu]\"\n");
            return 1;
        }
        self.seed = seed;
        self.first = first;
        self.n = n;
        self.is_cpu = strcmp(backend, "gpu") != 0;
        self.is_gpu = strcmp(backend, "cpu") != 0;
    }
    check_tmp_path(self.gradients, "test_random_layouts.%d", (int)getpid());
    check_tmp_path(self.checkpoint, "test_random_layouts.%d.d", (int)getpid());
    return check_run(tests, sizeof tests / sizeof *tests, argc, argv);
}
