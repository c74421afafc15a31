/*
 * infile.h: files that are too large for memory, read from their begin to
 * their end in blocks.  What was packed by gzip is unpacked on the way.
 */
#ifndef FR_CORE_STREAM_INFILE_H
#define FR_CORE_STREAM_INFILE_H

#include "core/base/err.h"

typedef struct fr_infile fr_infile;

/* FR_IO "path: No such file", FR_INPUT for a folder or a device.  A pipe is
 * read, but not waited for when nobody writes. */
FR_CHECKED fr_status fr_infile_open(const char *path, fr_infile **out,
                                    fr_err *err);
/* The same from n bytes, which are borrowed: for tests of what reads it. */
FR_CHECKED fr_status fr_infile_parse(const char *name, const void *bytes,
                                     size_t n, fr_infile **out, fr_err *err);
void fr_infile_close(fr_infile *stream); /* takes NULL */
const char *fr_infile_name(const fr_infile *stream);

/* Up to n bytes; *n_out 0: the end.  FR_INPUT where gzip's checks fail or its
 * data end too early. */
FR_CHECKED fr_status fr_infile_read(fr_infile *stream, void *bytes, size_t n,
                                    size_t *n_out, fr_err *err);

#endif
