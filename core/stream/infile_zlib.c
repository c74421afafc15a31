/* infile_zlib.c: a file, a pipe or bytes; gzip's members are unpacked. */
#include "core/stream/infile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { BLOCK = 1 << 16, GZIP_WINDOW = 15 + 16 };

struct fr_infile {
    char *name;
    int fd;               /* -1: bytes in memory */
    const uint8_t *bytes; /* borrowed */
    size_t n_bytes;
    bool is_gzip, is_inflating; /* within a member of a gzip file */
    bool is_ended;
    z_stream zip;
    uint8_t *block; /* of the file as it is: [at, n_block) is still unread */
    size_t at, n_block;
};

/* The next block of the file as it is; n_block 0: the end. */
static fr_status fill(fr_infile *s, fr_err *err)
{
    ssize_t n = 0;
    s->at = s->n_block = 0;
    if (s->fd < 0) {
        n = (ssize_t)(s->n_bytes < BLOCK ? s->n_bytes : BLOCK);
        if (n > 0)
            memcpy(s->block, s->bytes, (size_t)n);
        s->bytes += n;
        s->n_bytes -= (size_t)n;
    } else {
        do
            n = read(s->fd, s->block, BLOCK);
        while (n < 0 && errno == EINTR);
        if (n < 0)
            return fr_fail(err, FR_IO, "%s: %s", s->name, strerror(errno));
    }
    s->n_block = (size_t)n;
    return FR_OK;
}

/* Looks at the first two bytes: 1f 8b is gzip (RFC 1952, 2.3.1). */
static fr_status begin(fr_infile *s, fr_err *err)
{
    FR_TRY(fill(s, err));
    while (s->fd >= 0 && s->n_block == 1) {
        ssize_t n = read(s->fd, s->block + 1, BLOCK - 1);
        if (n <= 0)
            break;
        s->n_block += (size_t)n;
    }
    s->is_gzip = s->n_block >= 2 && s->block[0] == 0x1f && s->block[1] == 0x8b;
    if (!s->is_gzip)
        return FR_OK;
    if (inflateInit2(&s->zip, GZIP_WINDOW) != Z_OK)
        return fr_fail_no_memory(err);
    s->is_inflating = true;
    return FR_OK;
}

static fr_status open_any(const char *name, int fd, const void *bytes, size_t n,
                          fr_infile **out, fr_err *err)
{
    fr_infile *s = calloc(1, sizeof *s);
    char *copy = strdup(name);
    uint8_t *block = malloc(BLOCK);
    fr_status status = FR_OK;
    if (s == NULL || copy == NULL || block == NULL) {
        free(s);
        free(copy);
        free(block);
        if (fd >= 0)
            close(fd);
        return fr_fail_no_memory(err);
    }
    s->name = copy;
    s->fd = fd;
    s->bytes = bytes;
    s->n_bytes = n;
    s->block = block;
    status = begin(s, err);
    if (status != FR_OK)
        fr_infile_close(s);
    else
        *out = s;
    return status;
}

fr_status fr_infile_open(const char *path, fr_infile **out, fr_err *err)
{
    struct stat about;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &about) != 0) {
        fr_status status = fr_fail(err, FR_IO, "%s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return status;
    }
    if (!S_ISREG(about.st_mode) && !S_ISFIFO(about.st_mode)) {
        close(fd);
        return fr_fail(err, FR_INPUT, "%s: is a folder or a device, no file",
                       path);
    }
    /* The writer of a pipe may be slow. */
    if (fcntl(fd, F_SETFL, 0) != 0) {
        close(fd);
        return fr_fail(err, FR_IO, "%s: %s", path, strerror(errno));
    }
    return open_any(path, fd, NULL, 0, out, err);
}

fr_status fr_infile_parse(const char *name, const void *bytes, size_t n,
                          fr_infile **out, fr_err *err)
{
    return open_any(name, -1, bytes, n, out, err);
}

void fr_infile_close(fr_infile *s)
{
    if (s == NULL)
        return;
    if (s->is_gzip)
        inflateEnd(&s->zip);
    if (s->fd >= 0)
        close(s->fd);
    free(s->block);
    free(s->name);
    free(s);
}

const char *fr_infile_name(const fr_infile *s)
{
    return s->name;
}

static fr_status fail_gzip(const fr_infile *s, const char *what, fr_err *err)
{
    return fr_fail(err, FR_INPUT, "%s: %s; gunzip -t says the same", s->name,
                   what);
}

/* One call of zlib; *n_out may be 0 though there is more. */
static fr_status inflate_some(fr_infile *s, void *bytes, size_t n,
                              size_t *n_out, fr_err *err)
{
    *n_out = 0;
    if (s->at == s->n_block)
        FR_TRY(fill(s, err));
    if (s->n_block == 0) {
        s->is_ended = true;
        return s->is_inflating ? fail_gzip(s, "the gzip file is cut off", err)
                               : FR_OK;
    }
    if (!s->is_inflating) { /* another member, or zeros to pad a tape */
        if (s->block[s->at] == 0) {
            s->at++;
            return FR_OK;
        }
        if (inflateReset(&s->zip) != Z_OK)
            return fail_gzip(s, "the gzip file is damaged", err);
        s->is_inflating = true;
    }
    s->zip.next_in = s->block + s->at;
    s->zip.avail_in = (uInt)(s->n_block - s->at);
    s->zip.next_out = bytes;
    s->zip.avail_out = (uInt)n;
    int code = inflate(&s->zip, Z_NO_FLUSH);
    if (code == Z_MEM_ERROR)
        return fr_fail_no_memory(err);
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
        return fail_gzip(s, "the gzip file is damaged", err);
    s->at = s->n_block - s->zip.avail_in;
    *n_out = n - s->zip.avail_out;
    if (code == Z_STREAM_END)
        s->is_inflating = false;
    return FR_OK;
}

fr_status fr_infile_read(fr_infile *s, void *bytes, size_t n, size_t *n_out,
                         fr_err *err)
{
    size_t n_read = 0;
    n = n > BLOCK ? BLOCK : n;
    while (s->is_gzip && n_read == 0 && !s->is_ended)
        FR_TRY(inflate_some(s, bytes, n, &n_read, err));
    if (!s->is_gzip) {
        if (s->at == s->n_block)
            FR_TRY(fill(s, err));
        n_read = s->n_block - s->at < n ? s->n_block - s->at : n;
        memcpy(bytes, s->block + s->at, n_read);
        s->at += n_read;
    }
    *n_out = n_read;
    return FR_OK;
}
