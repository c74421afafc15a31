/*
 * checkpoint_lock.c: see checkpoint_lock.h.
 *
 * The lock is of the open file description (fcntl(2), F_OFD_SETLK): one of the
 * process would be lost with any other descriptor of the file that it closes.
 * On NFS it is the server's, like every lock of fcntl (nfs(5), "local_lock").
 */
#include "runtime/checkpoint/checkpoint_lock.h"

#include "core/base/text.h"
#include "core/system/clock.h"
#include "runtime/checkpoint/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOOK_NS 50000000 /* between two tries */
#define OWNER_BYTES 128

static bool is_held_by_another(int code)
{
    return code == EAGAIN || code == EACCES;
}

/* A file system without locks, or whose server does not answer for them. */
static bool has_no_locks(int code)
{
    return code == ENOLCK || code == EOPNOTSUPP || code == ENOSYS ||
           code == EINVAL;
}

/* 0, or errno. */
static int try_lock(int fd, double wait_s)
{
    const struct timespec nap = {.tv_nsec = LOOK_NS};
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    const double begin_s = fr_clock_s();

    while (fcntl(fd, F_OFD_SETLK, &whole) != 0) {
        const int code = errno;
        const bool is_waiting =
            is_held_by_another(code) && fr_clock_s() - begin_s < wait_s;
        if (code != EINTR && !is_waiting)
            return code;
        if (code != EINTR)
            (void)nanosleep(&nap, NULL);
    }
    return 0;
}

/* Reads the text of the lock's holder: "4711 on host".  It may not be written
 * yet. */
static void read_owner(int fd, char out[OWNER_BYTES])
{
    const ssize_t n = pread(fd, out, OWNER_BYTES - 1, 0);

    out[n > 0 ? n : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
}

/* Writes the owner, so that a message can name the process that holds the
 * lock. */
static bool write_owner(int fd)
{
    char host[64] = "", text[OWNER_BYTES];

    (void)gethostname(host, sizeof host - 1);
    const int n = snprintf(text, sizeof text, "%ld on %s\n", (long)getpid(),
                           host[0] != '\0' ? host : "?");
    return ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)n, 0) == n;
}

static fr_status fail_held(const char *dir, int fd, fr_err *err)
{
    char owner[OWNER_BYTES];

    read_owner(fd, owner);
    return fr_fail(err, FR_INPUT,
                   "%s: %s%s is using it; wait until it has ended, or give "
                   "another directory",
                   dir, owner[0] != '\0' ? "process " : "another run", owner);
}

static bool name_lock(const char *dir, char path[FR_CHECKPOINT_PATH])
{
    const int n = snprintf(path, FR_CHECKPOINT_PATH, "%s/lock", dir);

    return n >= 0 && n < FR_CHECKPOINT_PATH;
}

fr_status fr_checkpoint_lock(const char *dir, double wait_s, int *out,
                             fr_err *err)
{
    char path[FR_CHECKPOINT_PATH];

    if (!name_lock(dir, path))
        return fr_fail(err, FR_INPUT, "%.100s...: the path is too long", dir);
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return fr_fail(err, FR_IO, "%s: %s", path, strerror(errno));
    const int code = try_lock(fd, wait_s);
    fr_status status = FR_OK;
    if (is_held_by_another(code))
        status = fail_held(dir, fd, err);
    else if (code != 0 && !has_no_locks(code))
        status = fr_fail(err, FR_IO, "%s: %s", path, strerror(code));
    else if (code == 0 && !write_owner(fd))
        status = fr_fail(err, FR_IO, "%s: %s", path, strerror(errno));
    if (status != FR_OK || code != 0)
        (void)close(fd);
    if (status == FR_OK)
        *out = code == 0 ? fd : -1;
    return status;
}

/* The file stays: who removed it could remove one that another run has locked
 * since. */
void fr_checkpoint_unlock(int lock)
{
    if (lock < 0)
        return;
    (void)!ftruncate(lock, 0);
    (void)close(lock);
}

bool fr_checkpoint_is_locked(const char *dir)
{
    char path[FR_CHECKPOINT_PATH];
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    const int fd = name_lock(dir, path) ? open(path, O_RDWR | O_CLOEXEC) : -1;

    if (fd < 0)
        return false;
    const bool is_locked =
        fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
    (void)close(fd);
    return is_locked;
}
