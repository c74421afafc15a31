/*
 * rng.h: random numbers under a seed.
 *
 * fr_hash_* are counter-based: a pure function of (seed, a, b, c), so any
 * thread or rank can draw any element in any order and gets the same bits.
 * fr_rng is a sequential generator (GSL's mt19937) for one thread.
 */
#ifndef FR_CORE_NUMBERS_RNG_H
#define FR_CORE_NUMBERS_RNG_H

#include "core/base/err.h"

uint64_t fr_hash_u64(uint64_t seed, uint64_t a, uint64_t b, uint64_t c);
/* Uniform in [0, 1), 53 bits. */
double fr_hash_uniform(uint64_t seed, uint64_t a, uint64_t b, uint64_t c);
/* Standard normal (Box-Muller of two words of the same counter). */
double fr_hash_normal(uint64_t seed, uint64_t a, uint64_t b, uint64_t c);

typedef struct fr_rng fr_rng;
FR_CHECKED fr_status fr_rng_create(uint64_t seed, fr_rng **out, fr_err *err);
void fr_rng_destroy(fr_rng *rng);               /* takes NULL */
uint64_t fr_rng_below(fr_rng *rng, uint64_t n); /* 0..n-1, n >= 1, unbiased */

#endif
