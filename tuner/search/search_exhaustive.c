/* search_exhaustive.c: the strategy that cannot miss. */
#include "tuner/search/search_exhaustive.h"

#include "core/system/clock.h"
#include "tuner/bound/ideal_bound.h"

#include <math.h>
#include <stdlib.h>

typedef struct exhaustive {
    fr_search_input in;
    fr_plan_space space;
    size_t next;
    double begin_s;
} exhaustive;

static bool fits(const fr_plan_space_request *request)
{
    (void)request;
    return true;
}

/* Simulations of all take minutes beyond. */
enum { MOST_PLANS = 10000 };

static bool has_budget(const fr_search_input *in)
{
    return in->budget_s > 0 && !in->is_exact;
}

/* Cut short it has seen one end of the space alone: then a random order. */
static bool suits(const fr_search_input *in)
{
    fr_plan_space space;
    fr_err err;
    if (has_budget(in))
        return false;
    if (fr_plan_space_create(in->request, NULL, NULL, &space, &err) != FR_OK)
        return true; /* create() will say so */
    bool is_small = space.plans.n <= MOST_PLANS;
    fr_plan_space_release(&space);
    return is_small;
}

static fr_status create(const fr_search_input *in, void **out, fr_err *err)
{
    exhaustive *search = calloc(1, sizeof *search);
    if (search == NULL)
        return fr_fail_no_memory(err);
    fr_status status = fr_plan_space_create(in->request, in->on_illegal,
                                            in->context, &search->space, err);
    if (status != FR_OK) {
        free(search);
        return status;
    }
    search->in = *in;
    search->begin_s = fr_clock_s();
    *out = search;
    return FR_OK;
}

static fr_status ask(void *state, size_t n_max, fr_candidate *candidates,
                     size_t *n, fr_err *err)
{
    exhaustive *search = state;
    (void)err;
    *n = 0;
    if (search->next > 0 && has_budget(&search->in) &&
        fr_clock_s() - search->begin_s >= search->in.budget_s)
        return FR_OK;
    for (; *n < n_max && search->next < search->space.plans.n; ++*n)
        candidates[*n] = search->space.plans.items[search->next++];
    return FR_OK;
}

static void tell(void *state, const fr_candidate *candidate, double value,
                 bool fits_memory)
{
    (void)state;
    (void)candidate;
    (void)value;
    (void)fits_memory;
}

static void report(const void *state, fr_tuning *tuning)
{
    const exhaustive *search = state;
    tuning->space.plans += search->space.plans.n;
    tuning->space.illegal += search->space.n_illegal;
    if (search->next < search->space.plans.n)
        tuning->certificate.bound =
            fmin(tuning->certificate.bound, fr_ideal_bound(&search->in));
}

static void destroy(void *state)
{
    exhaustive *search = state;
    fr_plan_space_release(&search->space);
    free(search);
}

const fr_search fr_search_exhaustive = {
    .name = "exhaustive",
    .summary = "simulate every plan that fits",
    .fits = fits,
    .suits = suits,
    .create = create,
    .ask = ask,
    .tell = tell,
    .report = report,
    .destroy = destroy,
};
