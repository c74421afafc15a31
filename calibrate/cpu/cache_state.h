/*
 * cache_state.h: puts bytes into caches and out of them, the way the threads
 * of a kernel share them (contiguous parts).
 */
#ifndef FR_CALIBRATE_CPU_CACHE_STATE_H
#define FR_CALIBRATE_CPU_CACHE_STATE_H

#include "spec/profile/profile.h"

typedef struct fr_cache_state fr_cache_state;

/* Bytes of the pool that fr_cache_dirty() walks: twice the last level. */
uint64_t fr_cache_pool_bytes(const fr_fingerprint *machine);

/* `pool` (of that many bytes) stays the caller's. */
FR_CHECKED fr_status fr_cache_state_create(const fr_fingerprint *machine,
                                           void *pool, fr_cache_state **out,
                                           fr_err *err);
void fr_cache_state_destroy(fr_cache_state *state); /* takes NULL */

/* Fills bytes with fp32 data: positive, half-normal, deviation 0.02. */
void fr_cache_write(const fr_cache_state *state, void *bytes, uint64_t n_bytes,
                    int n_threads);

/* Writes the bytes back and removes them from every cache.  Does nothing where
 * the CPU has no such instruction; then only fr_cache_dirty() of the pool
 * evicts them. */
void fr_cache_evict(void *bytes, uint64_t n_bytes, int n_threads);

/* Reads and writes the next n_bytes of the pool (at most all of it). */
void fr_cache_dirty(fr_cache_state *state, uint64_t n_bytes, int n_threads);

#endif
