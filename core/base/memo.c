/* memo.c: open addressing, linear probing, at most half full. */
#include "core/base/memo.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"

static size_t words_of(size_t n_bytes)
{
    return (n_bytes + 7) / 8;
}

/* Where a record's value begins, and its key behind it. */
static uint64_t *value_of(const fr_memo *memo, const fr_memo_slot *slot)
{
    return &memo->words[slot->at];
}

void *fr_memo_find(const fr_memo *memo, const void *key, size_t n_bytes)
{
    if (memo->n == 0)
        return NULL;
    const uint64_t hash = fr_hash_bytes(key, n_bytes, 0);
    const size_t value_words = words_of(memo->value_bytes);
    for (size_t i = (size_t)hash & (memo->n_slots - 1);;
         i = (i + 1) & (memo->n_slots - 1)) {
        const fr_memo_slot *slot = &memo->slots[i];
        if (slot->at == 0)
            return NULL;
        uint64_t *value = value_of(memo, slot);
        if (slot->tag == (uint32_t)(hash >> 32) && value[-1] == n_bytes &&
            memcmp(value + value_words, key, n_bytes) == 0)
            return value;
    }
}

static void put(fr_memo_slot *slots, size_t n_slots, uint64_t hash, uint32_t at)
{
    size_t i = (size_t)hash & (n_slots - 1);
    while (slots[i].at != 0)
        i = (i + 1) & (n_slots - 1);
    slots[i] = (fr_memo_slot){(uint32_t)(hash >> 32), at};
}

static bool grow_slots(fr_memo *memo)
{
    const size_t n = memo->n_slots > 0 ? 2 * memo->n_slots : 64;
    const size_t value_words = words_of(memo->value_bytes);
    if (2 * memo->n < memo->n_slots)
        return true;
    fr_memo_slot *slots = calloc(n, sizeof *slots);
    if (slots == NULL)
        return false;
    for (const uint64_t *value = fr_memo_next(memo, NULL); value != NULL;
         value = fr_memo_next(memo, value))
        put(slots, n, fr_hash_bytes(value + value_words, (size_t)value[-1], 0),
            (uint32_t)(value - memo->words));
    free(memo->slots);
    memo->slots = slots;
    memo->n_slots = n;
    return true;
}

static bool grow_words(fr_memo *memo, size_t n_more)
{
    size_t n = memo->max_words > 0 ? memo->max_words : 256;
    while (n < memo->n_words + n_more)
        n *= 2;
    if (n == memo->max_words)
        return true;
    if (n > UINT32_MAX)
        return false;
    uint64_t *words = realloc(memo->words, n * sizeof *words);
    if (words == NULL)
        return false;
    memo->words = words;
    memo->max_words = n;
    return true;
}

void *fr_memo_add(fr_memo *memo, const void *key, size_t n_bytes,
                  const void *value)
{
    const size_t value_words = words_of(memo->value_bytes);
    const size_t n = 1 + value_words + words_of(n_bytes);
    if (!grow_slots(memo) || !grow_words(memo, n))
        return NULL;
    uint64_t *record = memo->words + memo->n_words;
    record[0] = n_bytes;
    memcpy(record + 1, value, memo->value_bytes);
    memcpy(record + 1 + value_words, key, n_bytes);
    put(memo->slots, memo->n_slots, fr_hash_bytes(key, n_bytes, 0),
        (uint32_t)(memo->n_words + 1));
    memo->n_words += n;
    memo->n++;
    return record + 1;
}

void *fr_memo_next(const fr_memo *memo, const void *value)
{
    if (memo->n == 0)
        return NULL;
    if (value == NULL)
        return memo->words + 1;
    const uint64_t *now = value;
    const size_t next = (size_t)(now - memo->words) +
                        words_of(memo->value_bytes) + words_of((size_t)now[-1]);
    return next < memo->n_words ? memo->words + next + 1 : NULL;
}

fr_status fr_memo_number(fr_memo *memo, const void *key, size_t n_bytes,
                         uint32_t *out, fr_err *err)
{
    const uint32_t *known = fr_memo_find(memo, key, n_bytes);
    const uint32_t fresh = (uint32_t)memo->n;
    if (known == NULL && fr_memo_add(memo, key, n_bytes, &fresh) == NULL)
        return fr_fail_no_memory(err);
    *out = known != NULL ? *known : fresh;
    return FR_OK;
}

void fr_memo_release(fr_memo *memo)
{
    free(memo->words);
    free(memo->slots);
    *memo = (fr_memo){.value_bytes = memo->value_bytes};
}
