/*
 * The CUDA kernels train the layouts of the table as one CPU rank does:
 * losses within 1e-4 in float32, several ranks on one device staged through
 * the host.  Compiled twice: for the emulation, on fake devices (make check),
 * and for a GPU (tests/gpu/run).  With a part of a name in LAYOUT all rows of
 * such names run.
 */
#include "tests/check.h"
#include "tests/contract/runtime/layouts/layout_rows.h"
#include "tests/gpu/cuda_show.h"

/* Emulated kernels take their time: two steps of some layouts. */
#ifdef FR_EMULATED
enum { N_STEPS = 2, EVERY = 12 };
#else
enum { N_STEPS = 8, EVERY = 1 };
#endif

/* What one CPU rank gives, once for each model and optimizer. */
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

static void check_layout(const layout_row *l)
{
    gpu_show show;
    gpu_fake fake;

    prepare(&show, l, LAYOUT_GPU);
    show.is_shared = true;
    gpu_fake_init(&fake, 1);
    if (gpu_show_on_cuda(&show, &fake) && gpu_show_perform_well(&show)) {
        const reference *expected = find_reference(l);
        for (int i = 0; i < N_STEPS; i++)
            check_that(fabs(show.result.loss[i] / expected->loss[i] - 1) <=
                           layout_loss_tolerance(l),
                       __FILE__, __LINE__, "%s: step %d: loss %.9g, CPU %.9g",
                       l->name, i, show.result.loss[i], expected->loss[i]);
    }
    gpu_show_release(&show);
    gpu_fake_release(&fake);
}

static void test_layouts(void)
{
    for (int i = 0; i < layout_rows_n; i += layout_part() != NULL ? 1 : EVERY)
        if (layout_is_chosen(&layout_rows[i]) &&
            !layout_is_refused(&layout_rows[i], LAYOUT_GPU))
            check_layout(&layout_rows[i]);
}

CHECK_MAIN({"layouts", test_layouts})
