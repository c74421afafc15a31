/* search_exhaustive.c: the strategy that cannot miss. */
#include "tuner/search_exhaustive.h"

#include <math.h>
#include <stdlib.h>

typedef struct exhaustive {
    fr_plan_space space;
    size_t next;
} exhaustive;

static bool fits(const fr_plan_space_request *request)
{
    (void)request;
    return true;
}

/* Simulations of all take minutes beyond. */
enum { MOST_PLANS = 10000 };

static bool suits(const fr_plan_space_request *request)
{
    fr_plan_space space;
    fr_err err;
    if (fr_plan_space_create(request, NULL, NULL, &space, &err) != FR_OK)
        return true; /* create() will say so */
    bool is_small = space.n <= MOST_PLANS;
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
    *out = search;
    return FR_OK;
}

static fr_status ask(void *state, size_t n_max, fr_candidate *candidates,
                     size_t *n, fr_err *err)
{
    exhaustive *search = state;
    (void)err;
    for (*n = 0; *n < n_max && search->next < search->space.n; ++*n)
        candidates[*n] = search->space.at[search->next++];
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
    tuning->space.plans += search->space.n;
    tuning->space.illegal += search->space.n_illegal;
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
