/* bound_seeds.c: see bound_seeds.h. */
#include "tuner/search/bound_seeds.h"

#include <stdlib.h>
#include <string.h>

/* ---- families ------------------------------------------------------------ */

typedef struct family {
    int64_t layout;  /* the distribution of layers and of state over ranks */
    size_t n_before; /* of it, whose estimates are lower */
    size_t i;
} family;

int64_t fr_seeds_layout(const fr_plan_space_request *request,
                        const fr_candidate *candidate)
{
    fr_plan plan;
    fr_plan_space_plan(request, candidate, &plan);
    int64_t layout = plan.tp;
    layout = layout * 4096 + plan.pp;
    layout = layout * 4096 + plan.cp;
    layout = layout * 4096 + plan.ep;
    return layout * 4 + plan.zero_stage;
}

static int by_rank_in_family(const void *a, const void *b)
{
    const family *x = a, *y = b;
    if (x->n_before != y->n_before)
        return x->n_before < y->n_before ? -1 : 1;
    return x->i < y->i ? -1 : x->i > y->i;
}

fr_status fr_seeds_interleave(const fr_plan_space_request *request,
                              fr_bounded_list *list, fr_err *err)
{
    size_t n = list->n;
    family *ranked = calloc(n + 1, sizeof *ranked);
    fr_bounded *sorted = malloc((n + 1) * sizeof *sorted);
    if (ranked == NULL || sorted == NULL) {
        free(ranked);
        free(sorted);
        return fr_fail_no_memory(err);
    }
    for (size_t i = 0; i < n; i++) {
        ranked[i].i = i;
        ranked[i].layout = fr_seeds_layout(request, &list->items[i].candidate);
        for (size_t k = 0; k < i; k++)
            ranked[i].n_before += ranked[k].layout == ranked[i].layout;
    }
    qsort(ranked, n, sizeof *ranked, by_rank_in_family);
    for (size_t i = 0; i < n; i++)
        sorted[i] = list->items[ranked[i].i];
    if (n > 0)
        memcpy(list->items, sorted, n * sizeof *sorted);
    free(ranked);
    free(sorted);
    return FR_OK;
}

/* ---- plans that are simulated in little time ----------------------------- */

fr_status fr_seeds_list_cheap(const fr_plan_space_request *request,
                              const fr_bounded_list *seeds, int64_t few_steps,
                              fr_bounded_list *out, fr_err *err)
{
    const int64_t first = seeds->n > 0 ? seeds->items[0].n_steps : 0;
    for (size_t i = 0; i < seeds->n; i++)
        if ((seeds->items[i].n_steps <= first / 4 ||
             seeds->items[i].n_steps <= few_steps) &&
            fr_vec_push(out, seeds->items[i]) != FR_OK)
            return fr_fail_no_memory(err);
    return fr_seeds_interleave(request, out, err);
}

fr_status fr_seeds_alternate(const fr_bounded_list *with, fr_bounded_list *list,
                             fr_err *err)
{
    fr_bounded_list all = *list;
    fr_status status = FR_OK;
    memset(list, 0, sizeof *list);
    for (size_t i = 0; status == FR_OK && i < all.n; i++)
        if (fr_vec_push(list, all.items[i]) != FR_OK ||
            (i < with->n && fr_vec_push(list, with->items[i]) != FR_OK))
            status = fr_fail_no_memory(err);
    fr_vec_release(&all);
    return status;
}

/* ---- plans that fit ------------------------------------------------------ */

void fr_seeds_likely_first(fr_bounded_list *list)
{
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++)
        if (list->items[i].seems_to_fit) {
            const fr_bounded at = list->items[i];
            memmove(&list->items[n + 1], &list->items[n],
                    (i - n) * sizeof *list->items);
            list->items[n++] = at;
        }
}
