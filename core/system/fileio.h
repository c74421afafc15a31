/*
 * fileio.h: whole files.  Writing is atomic: the old file stays until the new
 * one is complete on disk.
 */
#ifndef FR_CORE_SYSTEM_FILEIO_H
#define FR_CORE_SYSTEM_FILEIO_H

#include "core/base/buffer.h"
#include "core/base/err.h"

/* The largest size of a document: files of people and programs are far smaller.
 * Only traces have a separate limit. */
#define FR_FILE_BYTES_MAX ((size_t)64 << 20)

/*
 * The whole file, with a NUL after it; free() it.  FR_IO "path: No such
 * file", FR_INPUT when it is larger than max_bytes (0: no limit) or a device.
 * A pipe is read, but not waited for when nobody writes.  *n_out may be NULL.
 */
FR_CHECKED fr_status fr_file_read(const char *path, size_t max_bytes,
                                  char **out, size_t *n_out, fr_err *err);
/* Temporary file beside it, fsync, rename, fsync of the directory. */
FR_CHECKED fr_status fr_file_write(const char *path, const void *bytes,
                                   size_t n, fr_err *err);
/* Before there is anything to write: FR_IO, as fr_file_write() would say, where
 * no file can be made there.  Nothing is changed. */
FR_CHECKED fr_status fr_file_check_writable(const char *path, fr_err *err);
/* All that was appended; releases the buffer, also on failure. */
FR_CHECKED fr_status fr_file_write_buffer(const char *path, fr_buffer *buffer,
                                          fr_err *err);
bool fr_file_exists(const char *path); /* anything of that name */
bool fr_dir_exists(const char *path);
/* Like mkdir -p; an existing directory is fine. */
FR_CHECKED fr_status fr_dir_create(const char *path, fr_err *err);
/* Its names are on the disk, as far as the file system can tell. */
void fr_dir_sync(const char *path);
/* Like rm -rf, as far as it goes; links are not followed. */
void fr_dir_remove(const char *path);
/* `path` with its last part cut off: "a/b" -> "a", "b" -> ".". */
FR_CHECKED fr_status fr_path_dir(const char *path, char *out, size_t n,
                                 fr_err *err);
/* The last part, borrowed from `path`. */
const char *fr_path_name(const char *path);

#endif
