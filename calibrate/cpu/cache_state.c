/* cache_state.c: see cache_state.h. */
#include "calibrate/cpu/cache_state.h"

#include "core/numbers/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

enum { PATTERN_FLOATS = 16384, LINE_BYTES = 64 };

struct fr_cache_state {
    unsigned char *pool;
    uint64_t pool_bytes, next_byte;
    float pattern[PATTERN_FLOATS];
};

uint64_t fr_cache_pool_bytes(const fr_fingerprint *machine)
{
    uint64_t n = 2 * machine->llc_bytes;

    return n > 0 ? n : (uint64_t)64 << 20;
}

fr_status fr_cache_state_create(const fr_fingerprint *machine, void *pool,
                                fr_cache_state **out, fr_err *err)
{
    fr_cache_state *state;

    FR_TRY_CALLOC(state, 1, err);
    state->pool = pool;
    state->pool_bytes = fr_cache_pool_bytes(machine);
    for (uint64_t i = 0; i < PATTERN_FLOATS; i++)
        state->pattern[i] =
            (float)(0.02 * fabs(fr_hash_normal(2385, i, 0, 0)) + 1e-6);
    *out = state;
    return FR_OK;
}

void fr_cache_state_destroy(fr_cache_state *state)
{
    free(state);
}

/* Part i of n of n_bytes: bytes [first, last), whole lines. */
static void part_of(uint64_t n_bytes, int i, int n, uint64_t *first,
                    uint64_t *last)
{
    uint64_t n_lines = (n_bytes + LINE_BYTES - 1) / LINE_BYTES;

    *first = n_lines * (uint64_t)i / (uint64_t)n * LINE_BYTES;
    *last = n_lines * ((uint64_t)i + 1) / (uint64_t)n * LINE_BYTES;
    if (*last > n_bytes)
        *last = n_bytes;
}

void fr_cache_write(const fr_cache_state *state, void *bytes, uint64_t n_bytes,
                    int n_threads)
{
#pragma omp parallel for num_threads(n_threads) schedule(static, 1)
    for (int i = 0; i < n_threads; i++) {
        uint64_t first, last;
        part_of(n_bytes, i, n_threads, &first, &last);
        while (first < last) {
            uint64_t n = last - first;
            if (n > sizeof state->pattern)
                n = sizeof state->pattern;
            memcpy((char *)bytes + first, state->pattern, (size_t)n);
            first += n;
        }
    }
}

#if defined(__x86_64__)
__attribute__((target("clflushopt"))) static void
flush_lines(char *bytes, uint64_t first, uint64_t last)
{
    for (; first < last; first += LINE_BYTES)
        _mm_clflushopt(bytes + first);
    _mm_mfence();
}

static bool has_flush(void)
{
    unsigned a, b, c, d;

    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 &&
           (b & (1u << 23)) != 0;
}
#else
static void flush_lines(char *bytes, uint64_t first, uint64_t last)
{
    (void)bytes;
    (void)first;
    (void)last;
}

static bool has_flush(void)
{
    return false;
}
#endif

void fr_cache_evict(void *bytes, uint64_t n_bytes, int n_threads)
{
    if (!has_flush())
        return;
#pragma omp parallel for num_threads(n_threads) schedule(static, 1)
    for (int i = 0; i < n_threads; i++) {
        uint64_t first, last;
        part_of(n_bytes, i, n_threads, &first, &last);
        flush_lines(bytes, first, last);
    }
}

void fr_cache_dirty(fr_cache_state *state, uint64_t n_bytes, int n_threads)
{
    uint64_t begin = state->next_byte, size = state->pool_bytes;

    if (!has_flush() || n_bytes > size)
        n_bytes = size;
#pragma omp parallel for num_threads(n_threads) schedule(static, 1)
    for (int i = 0; i < n_threads; i++) {
        uint64_t first, last;
        part_of(n_bytes, i, n_threads, &first, &last);
        for (; first < last; first += LINE_BYTES) {
            volatile unsigned char *line = &state->pool[(begin + first) % size];
            *line = (unsigned char)(*line + 1);
        }
    }
    state->next_byte = (begin + n_bytes) % size / LINE_BYTES * LINE_BYTES;
}
