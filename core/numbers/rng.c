/* rng.c: see rng.h. */
#include "core/numbers/rng.h"

#include "core/base/hash.h"

#include <assert.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdlib.h>

static const uint64_t golden = 0x9e3779b97f4a7c15u; /* 2^64 / golden ratio */

uint64_t fr_hash_u64(uint64_t seed, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t x = fr_hash_mix(seed + golden);

    x = fr_hash_mix((x ^ a) + golden);
    x = fr_hash_mix((x ^ b) + golden);
    return fr_hash_mix((x ^ c) + golden);
}

/* The upper 53 bits. */
static double unit_interval(uint64_t word)
{
    return (double)(word >> 11) * 0x1p-53;
}

double fr_hash_uniform(uint64_t seed, uint64_t a, uint64_t b, uint64_t c)
{
    return unit_interval(fr_hash_u64(seed, a, b, c));
}

double fr_hash_normal(uint64_t seed, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t word = fr_hash_u64(seed, a, b, c);
    /* In (0, 1]: the logarithm is finite. */
    double radius = 1 - unit_interval(word);
    double angle = unit_interval(fr_hash_mix(word + golden));

    return sqrt(-2 * log(radius)) * cos(2 * M_PI * angle);
}

struct fr_rng {
    gsl_rng *gsl;
};

fr_status fr_rng_create(uint64_t seed, fr_rng **out, fr_err *err)
{
    fr_rng *rng = malloc(sizeof *rng);

    if (rng == NULL)
        return fr_fail_no_memory(err);
    gsl_set_error_handler_off();
    rng->gsl = gsl_rng_alloc(gsl_rng_mt19937);
    if (rng->gsl == NULL) {
        free(rng);
        return fr_fail_no_memory(err);
    }
    /* mt19937 takes 32 bits of a seed, and 0 as its default. */
    gsl_rng_set(rng->gsl, fr_hash_mix(seed + golden) >> 32 | 1u);
    *out = rng;
    return FR_OK;
}

void fr_rng_destroy(fr_rng *rng)
{
    if (rng == NULL)
        return;
    gsl_rng_free(rng->gsl);
    free(rng);
}

uint64_t fr_rng_below(fr_rng *rng, uint64_t n)
{
    /* Words below the remainder of 2^64 divided by n are drawn again. */
    uint64_t least = n ? -n % n : 0, word;

    assert(n > 0);
    do {
        word = (uint64_t)gsl_rng_get(rng->gsl) << 32;
        word |= gsl_rng_get(rng->gsl);
    } while (word < least);
    return word % n;
}
