/*
 * transfer.h: a collective as a list of transfers between its members.
 */
#ifndef FR_PLAN_COLLECTIVE_TRANSFER_H
#define FR_PLAN_COLLECTIVE_TRANSFER_H

#include "core/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fr_transfer {
    uint32_t phase;    /* a member enters phase p+1 when its p-th is done */
    uint32_t src, dst; /* positions in the group; data move src -> dst.
                          n_group itself: the switch, whose working buffer
                          begins as the neutral element */
    uint64_t src_first, dst_first; /* elements, in the source's and the
                                      destination's working buffer */
    uint64_t n;                    /* elements */
    bool is_reduce;                /* dst += src (or max), else dst = src */
} fr_transfer;

typedef struct fr_transfer_list {
    fr_transfer *at;
    size_t n, cap;
    uint32_t n_phases;
} fr_transfer_list;

void fr_transfer_list_release(fr_transfer_list *list);
/* Appends; a transfer of no elements is left out. */
FR_CHECKED fr_status fr_transfer_list_add(fr_transfer_list *list,
                                          fr_transfer transfer, fr_err *err);

/* Elements [first, end) of a working buffer. */
typedef struct fr_slice {
    uint64_t first, end;
} fr_slice;

/* Appends what goes from one member to another in the phase that is being
 * written, to the place where it comes from. */
FR_CHECKED fr_status fr_transfer_list_move(fr_transfer_list *list, int64_t src,
                                           int64_t dst, fr_slice slice,
                                           bool is_reduce, fr_err *err);

/* Returns the begin of slice i of n elements, i = 0 .. n_group (the end), or
 * the slice. */
uint64_t fr_collective_part(uint64_t n, int64_t n_group, int64_t i);
fr_slice fr_collective_slice(uint64_t n, int64_t n_group, int64_t i);

/* The steps in which a group doubles from one member to all: log2, rounded
 * up. */
int fr_collective_levels(int64_t n_group);
bool fr_collective_is_power_of_2(int64_t n_group);

#endif
