/* memo.c: open addressing, linear probing, at most half full. */
#include "core/base/memo.h"

#include <stdlib.h>
#include <string.h>

static uint64_t load(const unsigned char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

static uint64_t mixed(uint64_t h, uint64_t word, uint64_t odd)
{
    h = (h ^ word) * odd;
    return h ^ h >> 32;
}

/* A quick hash that no file knows: four words at a time, in products that do
 * not wait for each other. */
static inline uint64_t hash_of(const void *key, size_t n_bytes)
{
    const uint64_t o = UINT64_C(0xbf58476d1ce4e5b9);
    const uint64_t p = UINT64_C(0x94d049bb133111eb);
    const unsigned char *at = key;
    uint64_t a = n_bytes, b = 0, c = 0, d = 0;
    for (; n_bytes >= 32; n_bytes -= 32, at += 32) {
        a = mixed(a, load(at), o);
        b = mixed(b, load(at + 8), p);
        c = mixed(c, load(at + 16), o);
        d = mixed(d, load(at + 24), p);
    }
    for (; n_bytes >= 8; n_bytes -= 8, at += 8)
        a = mixed(a, load(at), p);
    for (; n_bytes > 0; n_bytes--)
        b = mixed(b, *at++, o);
    return mixed(mixed(a, b, o), mixed(c, d, p), o);
}

static bool is_same(const void *a, const void *b, size_t n_bytes)
{
    const unsigned char *x = a, *y = b;
    for (; n_bytes >= 8; n_bytes -= 8, x += 8, y += 8)
        if (load(x) != load(y))
            return false;
    return n_bytes == 0 || memcmp(x, y, n_bytes) == 0;
}

static size_t words_of(size_t n_bytes)
{
    return (n_bytes + 7) / 8;
}

void *fr_memo_find(const fr_memo *memo, const void *key, size_t n_bytes)
{
    if (memo->n == 0)
        return NULL;
    const uint64_t hash = hash_of(key, n_bytes);
    for (size_t i = (size_t)hash & (memo->n_slots - 1);;
         i = (i + 1) & (memo->n_slots - 1)) {
        const fr_memo_slot *slot = &memo->slots[i];
        if (slot->at == 0)
            return NULL;
        if (slot->tag != (uint32_t)(hash >> 32))
            continue;
        uint64_t *record = &memo->words[slot->at - 1];
        if (record[0] == n_bytes && is_same(record + 1, key, n_bytes))
            return record + 1 + words_of(n_bytes);
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
    if (2 * memo->n < memo->n_slots)
        return true;
    fr_memo_slot *slots = calloc(n, sizeof *slots);
    if (slots == NULL)
        return false;
    for (size_t at = 0; at < memo->n_words;) {
        const size_t n_bytes = (size_t)memo->words[at];
        put(slots, n, hash_of(&memo->words[at + 1], n_bytes),
            (uint32_t)(at + 1));
        at += 1 + words_of(n_bytes) + words_of(memo->value_bytes);
    }
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
    uint64_t *out = record + 1 + words_of(n_bytes);
    record[0] = n_bytes;
    memcpy(record + 1, key, n_bytes);
    memcpy(out, value, memo->value_bytes);
    put(memo->slots, memo->n_slots, hash_of(key, n_bytes),
        (uint32_t)(memo->n_words + 1));
    memo->n_words += n;
    memo->n++;
    return out;
}

void *fr_memo_next(const fr_memo *memo, const void *value)
{
    const uint64_t *now = value;
    size_t at = 0; /* of the next record */
    if (now != NULL)
        at = (size_t)(now - memo->words) + words_of(memo->value_bytes);
    return at < memo->n_words
               ? memo->words + at + 1 + words_of((size_t)memo->words[at])
               : NULL;
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
