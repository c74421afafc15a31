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
double fr_rng_uniform(fr_rng *rng);             /* [0, 1) */
double fr_rng_normal(fr_rng *rng);              /* mean 0, deviation 1 */
double fr_rng_exponential(fr_rng *rng, double mean);
double fr_rng_lognormal(fr_rng *rng, double mu, double sigma);
double fr_rng_weibull(fr_rng *rng, double scale, double shape);
double fr_rng_gamma(fr_rng *rng, double shape, double scale);
/* Fisher-Yates over n items of item_bytes (at most 256). */
void fr_rng_shuffle(fr_rng *rng, void *items, size_t n, size_t item_bytes);

#endif
