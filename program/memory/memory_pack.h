/*
 * memory_pack.h: static offsets for buffers with known lifetimes.
 */
#ifndef FR_PROGRAM_MEMORY_MEMORY_PACK_H
#define FR_PROGRAM_MEMORY_MEMORY_PACK_H

#include "core/base/err.h"

typedef struct fr_pack_item {
    uint64_t n_bytes;      /* a multiple of the alignment */
    uint32_t first, last;  /* inclusive */
    uint64_t offset_bytes; /* out */
} fr_pack_item;

/*
 * Gives every item an offset such that items that live at the same time do
 * not overlap; returns in *total_bytes the end of the highest one.  The
 * problem (dynamic storage allocation) is NP-hard; here items are placed one
 * after the other, each into the smallest gap that holds it, in four orders
 * (longest life, largest, largest area, first come), and the best is taken.
 */
FR_CHECKED fr_status fr_memory_pack(fr_pack_item *items, size_t n,
                                    uint64_t *total_bytes, fr_err *err);

#endif
