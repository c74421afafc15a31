/*
 * vec.h: a typed growable array.
 *
 *     fr_vec(double) v = {0};
 *     FR_TRY(fr_vec_push(&v, 2.385));      FR_OK or FR_NO_MEMORY
 *     for (size_t i = 0; i < v.n; i++) use(v.items[i]);
 *     fr_vec_release(&v);
 *
 * fr_vec_push and fr_vec_reserve give a status without a text: they are to be
 * used where the caller writes it (fr_fail_no_memory).  Named types:
 * `typedef fr_vec(double) fr_doubles;`.  A failed push changes nothing.
 */
#ifndef FR_CORE_BASE_VEC_H
#define FR_CORE_BASE_VEC_H

#include "core/base/err.h"

#include <stdlib.h>

/* clang-format off */
#define fr_vec(type) struct { type *items; size_t n, capacity; }
/* clang-format on */

/*
 * Room for n_more items beyond n; for the macros below.  `vec` points at a
 * fr_vec(...), whose layout is that of {pointer, n, capacity}.
 */
FR_CHECKED fr_status fr_vec_grow(void *vec, size_t item_bytes, size_t n_more);

#define fr_vec_reserve(vec, n_more)                                            \
    ((vec)->capacity - (vec)->n >= (n_more)                                    \
         ? FR_OK                                                               \
         : fr_vec_grow((vec), sizeof *(vec)->items, (n_more)))

#define fr_vec_push(vec, item)                                                 \
    (((vec)->n < (vec)->capacity || fr_vec_reserve((vec), 1) == FR_OK)         \
         ? ((vec)->items[(vec)->n++] = (item), FR_OK)                          \
         : FR_NO_MEMORY)

/* Pushes; returns from the caller when there is no memory left. */
#define FR_TRY_PUSH(vec, item, err)                                            \
    do {                                                                       \
        if (fr_vec_push((vec), item) != FR_OK)                                 \
            return fr_fail_no_memory(err);                                     \
    } while (0)

#define fr_vec_release(vec)                                                    \
    do {                                                                       \
        free((vec)->items);                                                    \
        (vec)->items = NULL;                                                   \
        (vec)->n = (vec)->capacity = 0;                                        \
    } while (0)

#endif
