/* bound_keep.h: the first n of any number of entries, by an order. */
#ifndef FR_TUNER_BOUND_BOUND_KEEP_H
#define FR_TUNER_BOUND_BOUND_KEEP_H

#include "tuner/bound/bound_walk.h"

typedef bool (*fr_bounded_before_fn)(const fr_bounded *a, const fr_bounded *b);

/* By bound, by estimate, by what is lacking; then by choices. */
bool fr_bounded_is_lower(const fr_bounded *a, const fr_bounded *b);
bool fr_bounded_has_lower_estimate(const fr_bounded *a, const fr_bounded *b);
bool fr_bounded_is_nearer(const fr_bounded *a, const fr_bounded *b);

/* A heap whose top comes last. */
typedef struct fr_bound_keep {
    fr_bounded *at; /* [n_max] */
    size_t n, n_max;
    fr_bounded_before_fn is_before;
    bool has_dropped; /* there were more */
} fr_bound_keep;

/* Empties it; what it holds is allocated once. */
FR_CHECKED fr_status fr_bound_keep_init(fr_bound_keep *keep, size_t n_max,
                                        fr_bounded_before_fn is_before,
                                        fr_err *err);
void fr_bound_keep_offer(fr_bound_keep *keep, const fr_bounded *entry);
void fr_bound_keep_merge(fr_bound_keep *keep, const fr_bound_keep *other);
/* Appends all in order, and empties it. */
FR_CHECKED fr_status fr_bound_keep_take(fr_bound_keep *keep,
                                        fr_bounded_list *out, fr_err *err);
void fr_bound_keep_release(fr_bound_keep *keep);

#endif
