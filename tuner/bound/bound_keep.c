/* bound_keep.c: see bound_keep.h. */
#include "tuner/bound/bound_keep.h"

#include <stdlib.h>

static bool has_lower(const fr_bounded *a, const fr_bounded *b, double key_a,
                      double key_b)
{
    if (key_a != key_b)
        return key_a < key_b;
    return fr_candidate_compare(&a->candidate, &b->candidate) < 0;
}

bool fr_bounded_is_lower(const fr_bounded *a, const fr_bounded *b)
{
    return has_lower(a, b, a->bound, b->bound);
}

bool fr_bounded_has_lower_estimate(const fr_bounded *a, const fr_bounded *b)
{
    return has_lower(a, b, a->estimate, b->estimate);
}

bool fr_bounded_is_nearer(const fr_bounded *a, const fr_bounded *b)
{
    return has_lower(a, b, (double)a->short_by_bytes,
                     (double)b->short_by_bytes);
}

fr_status fr_bound_keep_init(fr_bound_keep *keep, size_t n_max,
                             fr_bounded_before_fn is_before, fr_err *err)
{
    if (keep->at == NULL)
        keep->at = malloc(n_max * sizeof *keep->at);
    if (keep->at == NULL)
        return fr_fail_no_memory(err);
    keep->n = 0;
    keep->n_max = n_max;
    keep->is_before = is_before;
    keep->has_dropped = false;
    return FR_OK;
}

static void sift_up(fr_bound_keep *keep, size_t i)
{
    fr_bounded entry = keep->at[i];
    while (i > 0 && keep->is_before(&keep->at[(i - 1) / 2], &entry)) {
        keep->at[i] = keep->at[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    keep->at[i] = entry;
}

static void sift_down(fr_bound_keep *keep, size_t i)
{
    fr_bounded entry = keep->at[i];
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= keep->n)
            break;
        if (child + 1 < keep->n &&
            keep->is_before(&keep->at[child], &keep->at[child + 1]))
            child++;
        if (!keep->is_before(&entry, &keep->at[child]))
            break;
        keep->at[i] = keep->at[child];
        i = child;
    }
    keep->at[i] = entry;
}

void fr_bound_keep_offer(fr_bound_keep *keep, const fr_bounded *entry)
{
    if (keep->n < keep->n_max) {
        keep->at[keep->n] = *entry;
        sift_up(keep, keep->n++);
        return;
    }
    keep->has_dropped = true;
    if (!keep->is_before(entry, &keep->at[0]))
        return;
    keep->at[0] = *entry;
    sift_down(keep, 0);
}

void fr_bound_keep_merge(fr_bound_keep *keep, const fr_bound_keep *other)
{
    for (size_t i = 0; i < other->n; i++)
        fr_bound_keep_offer(keep, &other->at[i]);
    keep->has_dropped = keep->has_dropped || other->has_dropped;
}

fr_status fr_bound_keep_take(fr_bound_keep *keep, fr_bounded_list *out,
                             fr_err *err)
{
    size_t first = out->n;
    if (fr_vec_reserve(out, keep->n) != FR_OK)
        return fr_fail_no_memory(err);
    out->n += keep->n;
    while (keep->n > 0) {
        out->items[first + keep->n - 1] = keep->at[0];
        keep->at[0] = keep->at[--keep->n];
        sift_down(keep, 0);
    }
    return FR_OK;
}

void fr_bound_keep_release(fr_bound_keep *keep)
{
    free(keep->at);
    keep->at = NULL;
    keep->n = 0;
}

void fr_walk_result_release(fr_walk_result *result)
{
    fr_vec_release(&result->by_bound);
    fr_vec_release(&result->by_estimate);
    fr_vec_release(&result->nearest);
}
