/* state.c: see state.h. */
#include "runtime/checkpoint/state.h"

#include <string.h>

static fr_status view(void *context, uint64_t offset_bytes, uint64_t n_bytes,
                      const void **out, fr_err *err)
{
    (void)n_bytes;
    (void)err;
    *out = (const unsigned char *)context + offset_bytes;
    return FR_OK;
}

static fr_status store(void *context, uint64_t offset_bytes, uint64_t n_bytes,
                       const void *bytes, fr_err *err)
{
    (void)err;
    memcpy((unsigned char *)context + offset_bytes, bytes, n_bytes);
    return FR_OK;
}

fr_state fr_state_of_memory(unsigned char *slab)
{
    return (fr_state){slab, slab, view, store};
}
