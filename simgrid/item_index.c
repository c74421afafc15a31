/* item_index.c: see item_index.h. */
#include "simgrid/item_index.h"

#include <string.h>

static void put(fr_item_index *index, fr_index_slot slot)
{
    size_t i = slot.hash & (index->n_slots - 1);
    while (index->slots[i].item != FR_NO_INDEX)
        i = (i + 1) & (index->n_slots - 1);
    index->slots[i] = slot;
}

uint32_t fr_item_index_find(const fr_item_index *index, uint64_t hash,
                            fr_has_key_fn has_key, const void *owner,
                            const void *key)
{
    for (size_t i = hash; index->n > 0; i++) {
        const fr_index_slot *slot = &index->slots[i & (index->n_slots - 1)];
        if (slot->item == FR_NO_INDEX ||
            (slot->hash == hash && has_key(owner, slot->item, key)))
            return slot->item;
    }
    return FR_NO_INDEX;
}

fr_status fr_item_index_add(fr_item_index *index, uint64_t hash, uint32_t item,
                            fr_err *err)
{
    if (2 * (index->n + 1) > index->n_slots) {
        fr_item_index old = *index;
        index->n_slots = old.n_slots > 0 ? 2 * old.n_slots : 64;
        index->slots = malloc(index->n_slots * sizeof *index->slots);
        if (index->slots == NULL) {
            *index = old;
            return fr_fail_no_memory(err);
        }
        memset(index->slots, 0xff, index->n_slots * sizeof *index->slots);
        for (size_t i = 0; i < old.n_slots; i++)
            if (old.slots[i].item != FR_NO_INDEX)
                put(index, old.slots[i]);
        free(old.slots);
    }
    put(index, (fr_index_slot){hash, item});
    index->n++;
    return FR_OK;
}

void fr_item_index_release(fr_item_index *index)
{
    free(index->slots);
    *index = (fr_item_index){0};
}
