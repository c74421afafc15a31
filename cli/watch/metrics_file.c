/* metrics_file.c: see metrics_file.h. */
#include "cli/watch/metrics_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static fr_status fail(const char *path, fr_err *err)
{
    return fr_fail(err, FR_IO, "--metrics %s: %s", path, strerror(errno));
}

/* Drops the lines of an earlier run with the first line of this one, since this
 * run may be refused until then. */
static bool drop_old_lines(fr_metrics_file *file)
{
    struct stat info;

    if (!file->is_replaced)
        return true;
    if (fstat(file->fd, &info) != 0 ||
        (S_ISREG(info.st_mode) && ftruncate(file->fd, 0) != 0))
        return false;
    file->is_replaced = false;
    return true;
}

/* A pipe without a reader would end the run, or hold it up. */
static fr_status open_path(const char *path, int *out, fr_err *err)
{
    struct stat info;
    int fd = open(
        path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
        0666);

    if (fd < 0 || fstat(fd, &info) != 0) {
        fr_status status = fail(path, err);
        if (fd >= 0)
            (void)close(fd);
        return status;
    }
    if (!S_ISREG(info.st_mode) && !S_ISCHR(info.st_mode)) {
        (void)close(fd);
        return fr_fail(err, FR_IO, "--metrics %s: not a regular file", path);
    }
    *out = fd;
    return FR_OK;
}

fr_status fr_metrics_file_check(const char *path, fr_err *err)
{
    int fd = -1;

    FR_TRY(open_path(path, &fd, err));
    (void)close(fd);
    return FR_OK;
}

fr_status fr_metrics_file_open(fr_metrics_file *file, const char *path,
                               bool is_appended, fr_err *err)
{
    int fd = -1;

    if (path != NULL)
        FR_TRY(open_path(path, &fd, err));
    *file = (fr_metrics_file){
        .path = path, .fd = fd, .is_replaced = path != NULL && !is_appended};
    return FR_OK;
}

void fr_metrics_file_close(fr_metrics_file *file)
{
    if (file->fd >= 0)
        (void)close(file->fd);
    file->fd = -1;
}

fr_status fr_metrics_file_add(fr_metrics_file *file, const fr_buffer *line,
                              fr_err *err)
{
    if (file->path == NULL)
        return FR_OK;
    const bool is_begun = drop_old_lines(file);
    off_t end = lseek(file->fd, 0, SEEK_END);
    ssize_t n = is_begun ? write(file->fd, line->data, line->n) : -1;
    if (n == (ssize_t)line->n)
        return FR_OK;
    if (n >= 0) {
        /* The rest of a line would be one that nobody can read. */
        if (end >= 0 && ftruncate(file->fd, end) != 0)
            return fail(file->path, err);
        errno = ENOSPC;
    }
    if (file->has_failed)
        return FR_OK;
    file->has_failed = true;
    return fail(file->path, err);
}
