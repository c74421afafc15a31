/*
 * item_index.h: finds the items of an array by a key that they hold, such as
 * hosts by name.  The index keeps hashes and numbers of items; what a key is,
 * and whether an item has it, the owner of the array says.
 */
#ifndef FR_SIMGRID_ITEM_INDEX_H
#define FR_SIMGRID_ITEM_INDEX_H

#include "core/base/vec.h"

#define FR_NO_INDEX UINT32_MAX

typedef struct fr_index_slot {
    uint64_t hash;
    uint32_t item; /* FR_NO_INDEX: empty */
} fr_index_slot;

typedef struct fr_item_index {
    fr_index_slot *slots; /* open addressing, a power of two of them */
    size_t n_slots, n;
} fr_item_index;

/* Has item i of the owner's array this key? */
typedef bool (*fr_has_key_fn)(const void *owner, uint32_t i, const void *key);

/* The item with the key, FR_NO_INDEX when there is none. */
uint32_t fr_item_index_find(const fr_item_index *index, uint64_t hash,
                            fr_has_key_fn has_key, const void *owner,
                            const void *key);
/* The item is not in yet. */
FR_CHECKED fr_status fr_item_index_add(fr_item_index *index, uint64_t hash,
                                       uint32_t item, fr_err *err);
void fr_item_index_release(fr_item_index *index);

#endif
