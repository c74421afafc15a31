/* search_exhaustive.c: the strategy that cannot miss. */
#include "tuner/search_exhaustive.h"

#include <stdlib.h>

typedef struct exhaustive {
    size_t next, n;
} exhaustive;

static void *create(const fr_plan_space *space, fr_err *err)
{
    exhaustive *search = malloc(sizeof *search);
    if (search == NULL) {
        fr_fail_no_memory(err);
        return NULL;
    }
    *search = (exhaustive){0, space->n};
    return search;
}

static size_t ask(void *state, size_t n_max, size_t *candidates)
{
    exhaustive *search = state;
    size_t n = 0;
    while (n < n_max && search->next < search->n)
        candidates[n++] = search->next++;
    return n;
}

static void tell(void *state, size_t candidate, double cost)
{
    (void)state;
    (void)candidate;
    (void)cost;
}

const fr_search fr_search_exhaustive = {
    .name = "exhaustive",
    .summary = "simulate every plan that fits",
    .is_exhaustive = true,
    .create = create,
    .ask = ask,
    .tell = tell,
    .destroy = free,
};
