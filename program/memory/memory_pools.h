/*
 * memory_pools.h: offsets for very many buffers, most of them alike: what
 * each layer and micro-batch keeps.
 *
 * Items of one size take turns in slots of that size, as many as live at
 * once; those that live for one call lie above, all calls in the same place.
 * Near the least possible where all sizes have their peak together, as in a
 * pipeline.  Time grows with the number of items.
 */
#ifndef FR_PROGRAM_MEMORY_MEMORY_POOLS_H
#define FR_PROGRAM_MEMORY_MEMORY_POOLS_H

#include "program/memory/memory_pack.h"

#include <stdbool.h>

/* As fr_memory_pack().  *is_good: the total is within 2 % of what lives at
 * once; else offsets mean nothing. */
FR_CHECKED fr_status fr_memory_pools(fr_pack_item *items, size_t n,
                                     uint64_t *total_bytes, bool *is_good,
                                     fr_err *err);

#endif
