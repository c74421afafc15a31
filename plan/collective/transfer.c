/* transfer.c: lists of transfers, and the slices that they carry. */
#include "plan/collective/transfer.h"

#include <stdlib.h>

void fr_transfer_list_release(fr_transfer_list *list)
{
    free(list->at);
    *list = (fr_transfer_list){0};
}

fr_status fr_transfer_list_add(fr_transfer_list *list, fr_transfer transfer,
                               fr_err *err)
{
    if (transfer.n == 0)
        return FR_OK;
    if (list->n == list->cap) {
        size_t cap = list->cap ? 2 * list->cap : 64;
        fr_transfer *at = realloc(list->at, cap * sizeof *at);
        if (at == NULL)
            return fr_fail_no_memory(err);
        list->at = at;
        list->cap = cap;
    }
    list->at[list->n++] = transfer;
    return FR_OK;
}

uint64_t fr_collective_part(uint64_t n, int64_t n_group, int64_t i)
{
    uint64_t g = (uint64_t)n_group, k = (uint64_t)i;
    return n / g * k + n % g * k / g;
}
