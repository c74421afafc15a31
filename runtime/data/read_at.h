/* read_at.h: bytes of an open file, all of them or an error. */
#ifndef FR_RUNTIME_DATA_READ_AT_H
#define FR_RUNTIME_DATA_READ_AT_H

#include "core/base/err.h"

/* Bytes [offset, offset + n); `path` is for the message.  FR_IO: also where the
 * file has become shorter. */
FR_CHECKED fr_status fr_read_at(int fd, const char *path, uint64_t offset,
                                void *bytes, size_t n, fr_err *err);

#endif
