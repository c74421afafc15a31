/* fileio.c: see fileio.h. */
#include "core/system/fileio.h"

#include "core/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static fr_status fail_errno(fr_err *err, const char *path)
{
    return fr_fail(err, FR_IO, "%s: %s", path, strerror(errno));
}

/*
 * A pipe may be a file for people (<(...)), so it is read; opening one waits
 * for nobody, and who says nothing for so long has nothing to say.  A device
 * has no end.
 */
enum { PIPE_WAIT_MS = 10000 };

static fr_status open_to_read(const char *path, int *out, fr_err *err)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return fail_errno(err, path);
    bool is_null = false, is_known = fstat(fd, &info) == 0;
    if (is_known && S_ISCHR(info.st_mode))
        is_null = major(info.st_rdev) == 1 && minor(info.st_rdev) == 3;
    if (is_known && !is_null && !isatty(fd) &&
        (S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode))) {
        close(fd);
        return fr_fail(err, FR_INPUT, "%s: is a device, not a file", path);
    }
    *out = fd;
    return FR_OK;
}

/* Waits until there is something to read. */
static fr_status wait_for(int fd, const char *path, fr_err *err)
{
    struct pollfd at = {.fd = fd, .events = POLLIN};
    int n;
    do {
        n = poll(&at, 1, PIPE_WAIT_MS);
    } while (n < 0 && errno == EINTR);
    if (n == 0)
        return fr_fail(err, FR_INPUT, "%s: nobody wrote to it for %d s", path,
                       PIPE_WAIT_MS / 1000);
    return n < 0 ? fail_errno(err, path) : FR_OK;
}

/* The rest of fd into a growing block; pipes and /proc have no size. */
static fr_status read_all(int fd, const char *path, size_t max_bytes,
                          char **out, size_t *n_out, fr_err *err)
{
    size_t n = 0, n_capacity = 0;
    char *data = NULL;
    fr_status status;

    for (;;) {
        ssize_t n_got;

        if (n_capacity - n < 2) {
            char *larger;
            n_capacity = n_capacity ? 2 * n_capacity : 16384;
            larger = realloc(data, n_capacity);
            if (larger == NULL) {
                status = fr_fail_no_memory(err);
                goto out_free;
            }
            data = larger;
        }
        n_got = read(fd, data + n, n_capacity - n - 1);
        if (n_got < 0 && errno == EINTR)
            continue;
        if (n_got < 0 && errno == EAGAIN) {
            FR_TRY_GOTO(status, wait_for(fd, path, err), out_free);
            continue;
        }
        if (n_got < 0) {
            status = fail_errno(err, path);
            goto out_free;
        }
        if (n_got == 0)
            break;
        n += (size_t)n_got;
        if (max_bytes && n > max_bytes) {
            status = fr_fail(err, FR_INPUT, "%s: larger than %zu %s", path,
                             max_bytes >= 1 << 20 ? max_bytes >> 20 : max_bytes,
                             max_bytes >= 1 << 20 ? "MiB" : "bytes");
            goto out_free;
        }
    }
    data[n] = '\0';
    *out = data;
    if (n_out != NULL)
        *n_out = n;
    return FR_OK;
out_free:
    free(data);
    return status;
}

fr_status fr_file_read(const char *path, size_t max_bytes, char **out,
                       size_t *n_out, fr_err *err)
{
    int fd = -1;
    fr_status status;

    FR_TRY(open_to_read(path, &fd, err));
    status = read_all(fd, path, max_bytes, out, n_out, err);
    close(fd);
    return status;
}

static fr_status write_all(int fd, const char *path, const char *bytes,
                           size_t n, fr_err *err)
{
    while (n) {
        ssize_t n_put = write(fd, bytes, n);

        if (n_put < 0 && errno == EINTR)
            continue;
        if (n_put < 0)
            return fail_errno(err, path);
        bytes += n_put;
        n -= (size_t)n_put;
    }
    return FR_OK;
}

/* Not every file system can sync a directory: no error of ours. */
void fr_dir_sync(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
}

/* Devices and pipes (-o /dev/stdout) cannot be renamed over. */
static bool is_special(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && !S_ISREG(info.st_mode) &&
           !S_ISDIR(info.st_mode);
}

static fr_status write_special(const char *path, const void *bytes, size_t n,
                               fr_err *err)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    fr_status status;

    if (fd < 0)
        return fail_errno(err, path);
    status = write_all(fd, path, bytes, n, err);
    if (close(fd) != 0 && status == FR_OK)
        status = fail_errno(err, path);
    return status;
}

/* Beside `path`, made by us alone; not mkstemp, whose mode ignores umask. */
static int open_temporary(const char *path, char *temporary, size_t n,
                          fr_err *err)
{
    int fd = -1;

    for (int i = 0; i < 100; i++) {
        int n_text =
            snprintf(temporary, n, "%s.%ld-%d.tmp", path, (long)getpid(), i);
        if (n_text < 0 || (size_t)n_text >= n) {
            fr_fail(err, FR_IO, "%.100s...: the path is too long", path);
            return -1;
        }
        fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            break;
    }
    if (fd < 0)
        fail_errno(err, path);
    return fd;
}

fr_status fr_file_write(const char *path, const void *bytes, size_t n,
                        fr_err *err)
{
    char temporary[PATH_MAX], dir[PATH_MAX];
    struct stat old;
    fr_status status;
    int fd;

    if (is_special(path))
        return write_special(path, bytes, n, err);
    FR_TRY(fr_path_dir(path, dir, sizeof dir, err));
    fd = open_temporary(path, temporary, sizeof temporary, err);
    if (fd < 0)
        return FR_IO;
    status = write_all(fd, path, bytes, n, err);
    if (status == FR_OK && stat(path, &old) == 0 &&
        fchmod(fd, old.st_mode & 07777) != 0)
        status = fail_errno(err, path);
    if (status == FR_OK && fsync(fd) != 0)
        status = fail_errno(err, path);
    if (close(fd) != 0 && status == FR_OK)
        status = fail_errno(err, path);
    if (status == FR_OK && rename(temporary, path) != 0)
        status = fail_errno(err, path);
    if (status != FR_OK) {
        unlink(temporary);
        return status;
    }
    fr_dir_sync(dir);
    return FR_OK;
}

fr_status fr_file_check_writable(const char *path, fr_err *err)
{
    char temporary[PATH_MAX];

    if (fr_dir_exists(path))
        return fr_fail(err, FR_IO, "%s: is a directory", path);
    if (is_special(path))
        return access(path, W_OK) == 0 ? FR_OK : fail_errno(err, path);
    const int fd = open_temporary(path, temporary, sizeof temporary, err);
    if (fd < 0)
        return FR_IO;
    close(fd);
    unlink(temporary);
    return FR_OK;
}

fr_status fr_file_write_buffer(const char *path, fr_buffer *buffer, fr_err *err)
{
    fr_status status = fr_buffer_check(buffer, err);

    if (status == FR_OK)
        status = fr_file_write(path, fr_buffer_text(buffer), buffer->n, err);
    fr_buffer_release(buffer);
    return status;
}

bool fr_file_exists(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0;
}

bool fr_dir_exists(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

fr_status fr_dir_create(const char *path, fr_err *err)
{
    char part[PATH_MAX];
    size_t n = strlen(path);

    if (!fr_text_copy(part, sizeof part, path))
        return fr_fail(err, FR_IO, "%.100s...: the path is too long", path);
    for (size_t i = 1; i <= n; i++) {
        if (part[i] != '/' && part[i] != '\0')
            continue;
        part[i] = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return fail_errno(err, part);
        part[i] = path[i];
    }
    if (!fr_dir_exists(path))
        return fr_fail(err, FR_IO, "%s: is not a directory", path);
    return FR_OK;
}

static int remove_one(const char *path, const struct stat *info, int kind,
                      struct FTW *at)
{
    (void)info, (void)kind, (void)at;
    (void)remove(path);
    return 0;
}

void fr_dir_remove(const char *path)
{
    enum { MOST_OPEN = 16 };

    (void)nftw(path, remove_one, MOST_OPEN, FTW_DEPTH | FTW_PHYS);
}

fr_status fr_path_dir(const char *path, char *out, size_t n, fr_err *err)
{
    const char *slash = strrchr(path, '/');
    size_t n_dir = slash == path   ? 1
                   : slash != NULL ? (size_t)(slash - path)
                                   : 1;

    if (n_dir >= n)
        return fr_fail(err, FR_IO, "%.100s...: the path is too long", path);
    memcpy(out, slash != NULL ? path : ".", n_dir);
    out[n_dir] = '\0';
    return FR_OK;
}

const char *fr_path_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}
