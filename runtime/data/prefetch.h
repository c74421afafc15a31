/*
 * prefetch.h: loads the samples of the next step in a thread of its own while
 * this one is computed.  Steps ask for the same samples again and again, so
 * what a step asked for is what the next will.
 */
#ifndef FR_RUNTIME_DATA_PREFETCH_H
#define FR_RUNTIME_DATA_PREFETCH_H

#include "core/base/err.h"
#include "program/ir/sequence_share.h"

typedef struct fr_prefetch fr_prefetch;

/* The request: samples [first, first + n) of a step, this share of each;
 * n_values numbers of it. */
typedef struct fr_batch_request {
    int64_t i_step, first, n;
    fr_sequence_share share;
    size_t n_values;
} fr_batch_request;

/* Loads; called by the thread (is_ahead), or by who asks. */
typedef fr_status (*fr_batch_load_fn)(void *context, bool is_ahead,
                                      const fr_batch_request *request,
                                      int32_t *out, fr_err *err);

FR_CHECKED fr_status fr_prefetch_create(fr_batch_load_fn load, void *context,
                                        fr_prefetch **out, fr_err *err);
void fr_prefetch_destroy(fr_prefetch *prefetch); /* takes NULL */
bool fr_prefetch_is_over(const fr_prefetch *prefetch);

/* The numbers of a request, as `load` gives them. */
FR_CHECKED fr_status fr_prefetch_get(fr_prefetch *prefetch,
                                     const fr_batch_request *request,
                                     int32_t *out, fr_err *err);

#endif
