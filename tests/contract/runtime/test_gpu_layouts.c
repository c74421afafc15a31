/*
 * Every layout on fake GPUs gives what one CPU rank gives: the program becomes
 * streams, events, graphs and communicators without losing a dependency.
 * Each runs with graphs and communicators, every sixth again with launches
 * and communication staged through the host.  With a part of a name in LAYOUT
 * only those rows run, both ways.
 */
#include "tests/check.h"
#include "tests/contract/runtime/gradient_file.h"
#include "tests/contract/runtime/layouts/layout_rows.h"
#include "tests/unit/runtime/gpu_show.h"

#include <stdlib.h>
#include <unistd.h>

#define N_STEPS 4

/* The results of one CPU rank, once for each model and optimizer. */
typedef struct reference {
    bool is_there;
    double loss[N_STEPS];
    gradient_file gradients;
} reference;

static struct {
    reference references[LAYOUT_VARIANTS][LAYOUT_FAMILIES][FR_OPTIMIZER_N];
    char path[CHECK_PATH_BYTES];
} self;

static void prepare(gpu_show *show, const layout_row *l, layout_target target)
{
    gpu_show_init(show);
    show->model_text = layout_model_text(l);
    show->job = layout_job(l, N_STEPS);
    show->plan = layout_plan(l, target);
    show->options.is_gradient_dump = true;
    show->options.gradient_path = self.path;
}

static const reference *find_reference(const layout_row *l)
{
    reference *r = &self.references[layout_variant_of(l)][layout_family_of(l)]
                                   [l->optimizer];
    layout_row alone = layout_alone(l);
    gpu_show show;
    fr_err err = {0};

    if (r->is_there)
        return r;
    prepare(&show, &alone, LAYOUT_CPU);
    r->is_there =
        gpu_show_perform_well(&show) &&
        CHECK_OK(gradient_file_load(self.path, &r->gradients, &err), &err);
    if (r->is_there)
        memcpy(r->loss, show.result.loss, sizeof r->loss);
    gpu_show_release(&show);
    return r;
}

static void compare_gradients(const layout_row *l, const gradient_file *a,
                              const gradient_file *b)
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
    check_that(worst <= layout_gradient_tolerance(l) * most, __FILE__, __LINE__,
               "%s: a gradient differs by %g of the largest", l->name,
               worst / most);
}

static void check_way(const layout_row *l, bool is_shared, gpu_fake *fake)
{
    gradient_file gradients = {0};
    gpu_show show;
    fr_err err = {0};

    prepare(&show, l, LAYOUT_GPU);
    show.fake = fake;
    show.is_shared = show.is_launched = is_shared;
    if (gpu_show_perform_well(&show) &&
        CHECK_OK(gradient_file_load(self.path, &gradients, &err), &err)) {
        const reference *expected = find_reference(l);
        for (int i = 0; i < N_STEPS; i++)
            check_that(fabs(show.result.loss[i] / expected->loss[i] - 1) <=
                           layout_loss_tolerance(l),
                       __FILE__, __LINE__, "%s: step %d: loss %.9g, alone %.9g",
                       l->name, i, show.result.loss[i], expected->loss[i]);
        compare_gradients(l, &gradients, &expected->gradients);
        CHECK_INT(show.result.peak_bytes - show.result.baseline_bytes,
                  show.result.slab_bytes);
        CHECK(show.timeline.n > 0);
    }
    gradient_file_release(&gradients);
    gpu_show_release(&show);
}

static void check_layout(const layout_row *l, bool is_staged)
{
    int world = layout_world(l);
    gpu_fake fake;

    gpu_fake_init(&fake, world);
    check_way(l, false, &fake);
    /* Step 0 shows gradients, the last is traced, the others are one graph. */
    CHECK_INT(atomic_load(&fake.n_graphs), world);
    CHECK_INT(atomic_load(&fake.n_graph_launches), world * (N_STEPS - 2));
    gpu_fake_release(&fake);
    if (!is_staged || !layout_can_share(l))
        return;
    gpu_fake_init(&fake, 1);
    check_way(l, true, &fake);
    CHECK_INT(atomic_load(&fake.n_graphs), 0);
    CHECK_INT(atomic_load(&fake.n_exchanges), 0);
    gpu_fake_release(&fake);
}

static void test_layouts(void)
{
    for (int i = 0; i < layout_rows_n; i++)
        if (layout_is_chosen(&layout_rows[i]) &&
            !layout_is_refused(&layout_rows[i], LAYOUT_GPU))
            check_layout(&layout_rows[i], layout_part() != NULL || i % 6 == 0);
}

int main(int argc, char **argv)
{
    static const check_test tests[] = {{"layouts", test_layouts}};

    check_tmp_path(self.path, "test_gpu_layouts.%d", (int)getpid());
    int code = check_run(tests, sizeof tests / sizeof *tests, argc, argv);
    for (int i = 0; i < LAYOUT_VARIANTS * LAYOUT_FAMILIES; i++)
        for (int k = 0; k < FR_OPTIMIZER_N; k++)
            gradient_file_release(
                &self.references[i / LAYOUT_FAMILIES][i % LAYOUT_FAMILIES][k]
                     .gradients);
    (void)unlink(self.path);
    return code;
}
