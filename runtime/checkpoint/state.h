/*
 * state.h: a rank's slab, wherever it lies, as checkpoints see it; the longest
 * path of a checkpoint's files.
 */
#ifndef FR_RUNTIME_CHECKPOINT_STATE_H
#define FR_RUNTIME_CHECKPOINT_STATE_H

#include "core/base/err.h"

/* At most so much at once. */
#define FR_STATE_PIECE_BYTES ((uint64_t)256 << 10)

enum { FR_CHECKPOINT_PATH = 1024 };

typedef struct fr_state {
    void *context;
    /* The address of the state, for readers of more than a piece, also from
     * several threads; NULL: it is not in this process's memory. */
    const unsigned char *memory;
    /* The bytes stay valid until the next call. */
    fr_status (*view)(void *context, uint64_t offset_bytes, uint64_t n_bytes,
                      const void **out, fr_err *err);
    fr_status (*store)(void *context, uint64_t offset_bytes, uint64_t n_bytes,
                       const void *bytes, fr_err *err);
} fr_state;

/* Returns the state of a slab in this process's memory, which is borrowed. */
fr_state fr_state_of_memory(unsigned char *slab);

#endif
