/*
 * The CUDA kernels train the layouts of the table as one CPU rank does:
 * losses within 1e-4 in float32, several ranks on one device staged through
 * the host.  Compiled twice: for the emulation, on fake devices (make check),
 * and for a GPU (tests/gpu/run, which starts the parts of the table side by
 * side).  With a part of a name in LAYOUT all rows of such names run.
 */
#include "core/system/clock.h"
#include "tests/check.h"
#include "tests/contract/runtime/layouts/layout_rows.h"
#include "tests/gpu/cuda_show.h"

/* Emulated kernels take their time: two steps of some layouts. */
#ifdef FR_EMULATED
enum { N_STEPS = 2, EVERY = 12 };
#else
enum { N_STEPS = 8, EVERY = 1 };
#endif

enum { N_PARTS = 8 };

/* The results of one CPU rank, once for each model and optimizer. */
typedef struct reference {
    bool is_there;
    double loss[N_STEPS];
} reference;

static struct {
    reference references[LAYOUT_VARIANTS][LAYOUT_FAMILIES][FR_OPTIMIZER_N];
} self;

static void prepare(gpu_show *show, const layout_row *l, layout_target target)
{
    gpu_show_init(show);
    show->model_text = layout_model_text(l);
    show->job = layout_job(l, N_STEPS);
    show->plan = layout_plan(l, target);
}

static const reference *find_reference(const layout_row *l)
{
    reference *r = &self.references[layout_variant_of(l)][layout_family_of(l)]
                                   [l->optimizer];
    layout_row alone = layout_alone(l);
    gpu_show show;

    if (r->is_there)
        return r;
    prepare(&show, &alone, LAYOUT_CPU);
    r->is_there = gpu_show_perform_well(&show);
    if (r->is_there)
        memcpy(r->loss, show.result.loss, sizeof r->loss);
    gpu_show_release(&show);
    return r;
}

/* false: the device was given up, and takes no more runs. */
static bool check_layout(const layout_row *l)
{
    gpu_show show;
    gpu_fake fake;
    const double begin_s = fr_clock_s();

    prepare(&show, l, LAYOUT_GPU);
    show.is_shared = true;
    gpu_fake_init(&fake, 1);
    const bool is_well =
        gpu_show_on_cuda(&show, &fake) && gpu_show_perform_well(&show);
    if (is_well) {
        const reference *expected = find_reference(l);
        for (int i = 0; i < N_STEPS; i++)
            check_that(fabs(show.result.loss[i] / expected->loss[i] - 1) <=
                           layout_loss_tolerance(l),
                       __FILE__, __LINE__, "%s: step %d: loss %.9g, CPU %.9g",
                       l->name, i, show.result.loss[i], expected->loss[i]);
    }
    gpu_show_release(&show);
    gpu_fake_release(&fake);
    printf("# %s: %s, %.2f s\n", l->name, is_well ? "ran" : "broke off",
           fr_clock_s() - begin_s);
    fflush(stdout);
    return is_well;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    return b == 0 ? a : common_divisor(b, a % b);
}

/*
 * Every N_PARTS-th of the rows that this program runs, in an order that has
 * rows of all kinds among its first: with so many seconds in LAYOUT_S no row
 * begins after them.
 */
static void test_part(int part)
{
    const int every = layout_part() != NULL ? 1 : EVERY;
    const int64_t n = ((layout_rows_n - 1) / every - part) / N_PARTS + 1;
    const char *limit = getenv("LAYOUT_S");
    const double end_s = fr_clock_s() + (limit != NULL ? atof(limit) : 1e9);
    int64_t step = 5, n_ran = 0, n_refused = 0;
    bool is_well = true;

    while (common_divisor(n, step) > 1)
        step++;
    for (int64_t k = 0; is_well && k < n && fr_clock_s() < end_s; k++) {
        const layout_row *l =
            &layout_rows[every * (part + N_PARTS * (k * step % n))];
        if (!layout_is_chosen(l) || layout_is_refused(l, LAYOUT_GPU) ||
            !layout_can_share(l)) {
            n_refused++;
            continue;
        }
        is_well = check_layout(l);
        n_ran += is_well;
    }
    printf("# part %d: %lld rows ran, %lld were not asked for or are refused, "
           "of %lld\n",
           part, (long long)n_ran, (long long)n_refused, (long long)n);
}

#define TEST_PART(part)                                                        \
    static void test_part_##part(void)                                         \
    {                                                                          \
        test_part(part);                                                       \
    }
TEST_PART(0)
TEST_PART(1)
TEST_PART(2)
TEST_PART(3)
TEST_PART(4)
TEST_PART(5)
TEST_PART(6)
TEST_PART(7)

CHECK_MAIN({"part-0", test_part_0}, {"part-1", test_part_1},
           {"part-2", test_part_2}, {"part-3", test_part_3},
           {"part-4", test_part_4}, {"part-5", test_part_5},
           {"part-6", test_part_6}, {"part-7", test_part_7})
