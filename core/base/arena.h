/*
 * arena.h: memory of one document or one simulation, freed all at once.
 * Every allocation is zeroed and aligned to 16 bytes; NULL means out of
 * memory (turn it into fr_fail_no_memory(err)).  Not thread-safe.
 */
#ifndef FR_CORE_BASE_ARENA_H
#define FR_CORE_BASE_ARENA_H

#include "core/base/err.h"

typedef struct fr_arena_chunk fr_arena_chunk;

typedef struct fr_arena {
    fr_arena_chunk *chunks; /* newest first */
    size_t used_bytes;      /* of the newest chunk */
    size_t total_bytes;     /* handed out so far */
} fr_arena;

/* Allocates nothing, cannot fail. */
void fr_arena_init(fr_arena *arena);
/* Frees everything; the arena is as after init. */
void fr_arena_release(fr_arena *arena);

/* Zeroed; n_bytes == 0 gives a valid pointer. */
void *fr_arena_alloc(fr_arena *arena, size_t n_bytes)
    __attribute__((warn_unused_result));
/* n * item_bytes with the overflow checked. */
void *fr_arena_array(fr_arena *arena, size_t n, size_t item_bytes)
    __attribute__((warn_unused_result));
char *fr_arena_strdup(fr_arena *arena, const char *text)
    __attribute__((warn_unused_result));
/* n bytes of text and a terminating NUL. */
char *fr_arena_strndup(fr_arena *arena, const char *text, size_t n)
    __attribute__((warn_unused_result));
char *fr_arena_printf(fr_arena *arena, const char *format, ...) FR_PRINTF(2, 3)
    __attribute__((warn_unused_result));

#endif
