/* arena.c: see arena.h.  Chunks double up to 1 MiB; what is larger gets a
 * chunk of its own behind the newest one, which stays in use. */
#include "core/base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ALIGNMENT = 16,
    FIRST_CHUNK_BYTES = 4096,
    LARGEST_CHUNK_BYTES = 1 << 20
};

struct fr_arena_chunk {
    fr_arena_chunk *older;
    size_t n_bytes;
    _Alignas(16) unsigned char bytes[];
};

void fr_arena_init(fr_arena *arena)
{
    *arena = (fr_arena){0};
}

void fr_arena_release(fr_arena *arena)
{
    fr_arena_chunk *chunk = arena->chunks;

    while (chunk != NULL) {
        fr_arena_chunk *older = chunk->older;
        free(chunk);
        chunk = older;
    }
    fr_arena_init(arena);
}

static fr_arena_chunk *chunk_create(size_t n_bytes)
{
    fr_arena_chunk *chunk;

    if (n_bytes > SIZE_MAX - sizeof *chunk)
        return NULL;
    chunk = calloc(1, sizeof *chunk + n_bytes);
    if (chunk != NULL)
        chunk->n_bytes = n_bytes;
    return chunk;
}

static size_t next_chunk_bytes(const fr_arena *arena)
{
    size_t n_bytes =
        arena->chunks ? 2 * arena->chunks->n_bytes : FIRST_CHUNK_BYTES;

    return n_bytes > LARGEST_CHUNK_BYTES ? LARGEST_CHUNK_BYTES : n_bytes;
}

void *fr_arena_alloc(fr_arena *arena, size_t n_bytes)
{
    fr_arena_chunk *chunk = arena->chunks;
    size_t n_aligned;
    void *out;

    if (n_bytes > SIZE_MAX - ALIGNMENT)
        return NULL;
    n_aligned = (n_bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    if (n_aligned == 0)
        n_aligned = ALIGNMENT;
    if (chunk == NULL || n_aligned > chunk->n_bytes - arena->used_bytes) {
        size_t n_chunk = next_chunk_bytes(arena);
        bool is_large = n_aligned > n_chunk / 4;

        chunk = chunk_create(is_large ? n_aligned : n_chunk);
        if (chunk == NULL)
            return NULL;
        if (is_large && arena->chunks != NULL) {
            chunk->older = arena->chunks->older;
            arena->chunks->older = chunk;
            arena->total_bytes += n_aligned;
            return chunk->bytes;
        }
        chunk->older = arena->chunks;
        arena->chunks = chunk;
        arena->used_bytes = 0;
    }
    out = chunk->bytes + arena->used_bytes;
    arena->used_bytes += n_aligned;
    arena->total_bytes += n_aligned;
    return out;
}

void *fr_arena_array(fr_arena *arena, size_t n, size_t item_bytes)
{
    size_t n_bytes;

    if (__builtin_mul_overflow(n, item_bytes, &n_bytes))
        return NULL;
    return fr_arena_alloc(arena, n_bytes);
}

char *fr_arena_strndup(fr_arena *arena, const char *text, size_t n)
{
    char *out;

    if (n == SIZE_MAX)
        return NULL;
    out = fr_arena_alloc(arena, n + 1);
    if (out != NULL)
        memcpy(out, text, n);
    return out;
}

char *fr_arena_strdup(fr_arena *arena, const char *text)
{
    return fr_arena_strndup(arena, text, strlen(text));
}

char *fr_arena_printf(fr_arena *arena, const char *format, ...)
{
    va_list args;
    int n;
    char *out;

    va_start(args, format);
    n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0)
        return NULL;
    out = fr_arena_alloc(arena, (size_t)n + 1);
    if (out == NULL)
        return NULL;
    va_start(args, format);
    vsnprintf(out, (size_t)n + 1, format, args);
    va_end(args);
    return out;
}
