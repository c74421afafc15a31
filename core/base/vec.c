/* vec.c: see vec.h. */
#include "core/base/vec.h"

#include <string.h>

fr_status fr_vec_grow(void *vec, size_t item_bytes, size_t n_more)
{
    /* The layout of every fr_vec(type); copied, because the type of the first
     * member differs. */
    struct head {
        void *items;
        size_t n, capacity;
    } head;
    size_t n_need, n_bytes;
    void *items;

    memcpy(&head, vec, sizeof head);
    if (__builtin_add_overflow(head.n, n_more, &n_need))
        return FR_NO_MEMORY;
    if (n_need <= head.capacity)
        return FR_OK;
    if (n_need < 8)
        n_need = 8;
    if (n_need < head.capacity + head.capacity / 2)
        n_need = head.capacity + head.capacity / 2;
    if (__builtin_mul_overflow(n_need, item_bytes, &n_bytes))
        return FR_NO_MEMORY;
    items = realloc(head.items, n_bytes);
    if (items == NULL)
        return FR_NO_MEMORY;
    head.items = items;
    head.capacity = n_need;
    memcpy(vec, &head, sizeof head);
    return FR_OK;
}
