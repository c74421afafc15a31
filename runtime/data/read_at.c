/* read_at.c: see read_at.h. */
#include "runtime/data/read_at.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

fr_status fr_read_at(int fd, const char *path, uint64_t offset, void *bytes,
                     size_t n, fr_err *err)
{
    size_t n_read = 0;

    while (n_read < n) {
        ssize_t got = pread(fd, (char *)bytes + n_read, n - n_read,
                            (off_t)(offset + n_read));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fr_fail(err, FR_IO, "%s: %s", path, strerror(errno));
        if (got == 0)
            return fr_fail(err, FR_IO, "%s: the file became shorter", path);
        n_read += (size_t)got;
    }
    return FR_OK;
}
