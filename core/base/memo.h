/*
 * memo.h: from the bytes of a key to what was computed for it.  Keys are
 * compared whole: two of them are never taken for one another, as hashes may
 * be.  A key is any bytes that are the same for the same thing: of a struct,
 * one that has no padding, or is all zero before its members are set.
 *
 * Values are copied in.  A pointer to one is good until the next is added.
 */
#ifndef FR_CORE_BASE_MEMO_H
#define FR_CORE_BASE_MEMO_H

#include "core/base/err.h"

typedef struct fr_memo_slot {
    uint32_t tag; /* of the hash */
    uint32_t at;  /* word of its record, plus one; 0: free */
} fr_memo_slot;

/* All zero but for value_bytes: empty. */
typedef struct fr_memo {
    size_t value_bytes;
    size_t n; /* entries */
    /* Records one after the other: bytes of the key, key, value. */
    uint64_t *words;
    size_t n_words, max_words;
    fr_memo_slot *slots;
    size_t n_slots; /* a power of two */
} fr_memo;

/* The value; NULL: none. */
void *fr_memo_find(const fr_memo *memo, const void *key, size_t n_bytes);
/* Adds a key that is not in the memo yet.  Returns its value in the memo, NULL:
 * out of memory, and nothing has changed. */
void *fr_memo_add(fr_memo *memo, const void *key, size_t n_bytes,
                  const void *value);
/* The value added after this one, NULL after the last; the first of NULL. */
void *fr_memo_next(const fr_memo *memo, const void *value);
void fr_memo_release(fr_memo *memo);

/* The number of a key, from 0 in the order of first asking; of a memo whose
 * values are of type uint32_t. */
FR_CHECKED fr_status fr_memo_number(fr_memo *memo, const void *key,
                                    size_t n_bytes, uint32_t *out, fr_err *err);

#endif
