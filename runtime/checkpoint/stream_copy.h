/*
 * stream_copy.h: copies of what nobody reads soon.
 */
#ifndef FR_RUNTIME_CHECKPOINT_STREAM_COPY_H
#define FR_RUNTIME_CHECKPOINT_STREAM_COPY_H

#include <stddef.h>

/*
 * As memcpy(), past the caches where the processor can: the destination is not
 * read before it is written, and caches keep what they hold.  For megabytes.
 */
void fr_stream_copy(void *dst, const void *src, size_t n_bytes);

#endif
