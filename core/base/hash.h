/*
 * hash.h: 64-bit hashes, the same on every machine.  fr_hash_bytes is
 * FNV-1a over 8-byte words with a final mix; not against an adversary.
 */
#ifndef FR_CORE_BASE_HASH_H
#define FR_CORE_BASE_HASH_H

#include "core/base/err.h"

/* Bijective mix (splitmix64's finalizer, Steele et al. 2014). */
static inline uint64_t fr_hash_mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9U;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebU;
    return x ^ x >> 31;
}
/* Chain blocks by giving the last result as the seed. */
uint64_t fr_hash_bytes(const void *bytes, size_t n, uint64_t seed);
uint64_t fr_hash_text(const char *text, uint64_t seed);
/* 16 lower-case hexadecimal digits and a NUL. */
void fr_hash_format(uint64_t hash, char out[17]);
/* Exactly 16 hexadecimal digits; false when it is something else. */
bool fr_hash_parse(const char *text, uint64_t *out);

#endif
