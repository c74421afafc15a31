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

fr_status fr_transfer_list_move(fr_transfer_list *list, int64_t src,
                                int64_t dst, fr_slice slice, bool is_reduce,
                                fr_err *err)
{
    return fr_transfer_list_add(list,
                                (fr_transfer){.phase = list->n_phases,
                                              .src = (uint32_t)src,
                                              .dst = (uint32_t)dst,
                                              .src_first = slice.first,
                                              .dst_first = slice.first,
                                              .n = slice.end - slice.first,
                                              .is_reduce = is_reduce},
                                err);
}

uint64_t fr_collective_part(uint64_t n, int64_t n_group, int64_t i)
{
    uint64_t g = (uint64_t)n_group, k = (uint64_t)i;
    return n / g * k + n % g * k / g;
}

fr_slice fr_collective_slice(uint64_t n, int64_t n_group, int64_t i)
{
    return (fr_slice){fr_collective_part(n, n_group, i),
                      fr_collective_part(n, n_group, i + 1)};
}

int fr_collective_levels(int64_t n_group)
{
    int levels = 0;

    while (((int64_t)1 << levels) < n_group)
        levels++;
    return levels;
}

bool fr_collective_is_power_of_2(int64_t n_group)
{
    return n_group >= 1 &&
           ((int64_t)1 << fr_collective_levels(n_group)) == n_group;
}
