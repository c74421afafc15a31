/* hash.c: see hash.h. */
#include "core/base/hash.h"

#include <string.h>

static const uint64_t fnv_prime = 0x100000001b3u;
static const uint64_t fnv_offset = 0xcbf29ce484222325u;

/* Little-endian whatever the machine. */
static uint64_t load_word(const unsigned char *p, size_t n)
{
    uint64_t word = 0;

    for (size_t i = 0; i < n; i++)
        word |= (uint64_t)p[i] << (8 * i);
    return word;
}

/* The same of 8 bytes, in the form that compilers know as one load. */
static uint64_t load_8(const unsigned char *p)
{
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 |
           (uint64_t)p[3] << 24 | (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 |
           (uint64_t)p[6] << 48 | (uint64_t)p[7] << 56;
}

uint64_t fr_hash_bytes(const void *bytes, size_t n, uint64_t seed)
{
    const unsigned char *p = bytes;
    uint64_t hash = fnv_offset ^ fr_hash_mix(seed + 0x9e3779b97f4a7c15u);
    size_t n_left = n;

    for (; n_left >= 8; n_left -= 8, p += 8) {
        hash = (hash ^ load_8(p)) * fnv_prime;
        /* A plain product never moves high bits down. */
        hash ^= hash >> 32;
    }
    if (n_left)
        hash = (hash ^ load_word(p, n_left)) * fnv_prime;
    return fr_hash_mix(hash ^ n);
}

uint64_t fr_hash_text(const char *text, uint64_t seed)
{
    return fr_hash_bytes(text, strlen(text), seed);
}

void fr_hash_format(uint64_t hash, char out[17])
{
    for (int i = 0; i < 16; i++)
        out[i] = "0123456789abcdef"[hash >> (60 - 4 * i) & 15];
    out[16] = '\0';
}

bool fr_hash_parse(const char *text, uint64_t *out)
{
    uint64_t hash = 0;

    for (int i = 0; i < 16; i++) {
        static const char digits[] = "0123456789abcdef";
        char c =
            text[i] >= 'A' && text[i] <= 'F' ? (char)(text[i] + 32) : text[i];
        const char *digit = c ? strchr(digits, c) : NULL;
        if (digit == NULL)
            return false;
        hash = hash << 4 | (uint64_t)(digit - digits);
    }
    if (text[16])
        return false;
    *out = hash;
    return true;
}
