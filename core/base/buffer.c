/* buffer.c: see buffer.h. */
#include "core/base/buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fr_buffer_init(fr_buffer *buffer)
{
    *buffer = (fr_buffer){0};
}

void fr_buffer_release(fr_buffer *buffer)
{
    free(buffer->data);
    fr_buffer_init(buffer);
}

/* Room for n more bytes and the NUL. */
static bool buffer_grow(fr_buffer *buffer, size_t n)
{
    size_t n_need, n_capacity;
    char *data;

    if (buffer->has_failed)
        return false;
    if (__builtin_add_overflow(buffer->n, n, &n_need) || n_need == SIZE_MAX)
        goto out_failed;
    if (n_need < buffer->capacity)
        return true;
    n_capacity = buffer->capacity < SIZE_MAX / 2 ? 2 * buffer->capacity : 0;
    if (n_capacity < n_need + 1)
        n_capacity = n_need + 1;
    if (n_capacity < 256)
        n_capacity = 256;
    data = realloc(buffer->data, n_capacity);
    if (data == NULL)
        goto out_failed;
    buffer->data = data;
    buffer->capacity = n_capacity;
    return true;
out_failed:
    buffer->has_failed = true;
    return false;
}

void fr_buffer_append(fr_buffer *buffer, const void *bytes, size_t n)
{
    if (!buffer_grow(buffer, n))
        return;
    if (n)
        memcpy(buffer->data + buffer->n, bytes, n);
    buffer->n += n;
    buffer->data[buffer->n] = '\0';
}

void fr_buffer_puts(fr_buffer *buffer, const char *text)
{
    fr_buffer_append(buffer, text, strlen(text));
}

void fr_buffer_putc(fr_buffer *buffer, char c)
{
    fr_buffer_append(buffer, &c, 1);
}

void fr_buffer_put_csv(fr_buffer *buffer, const char *text)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fr_buffer_puts(buffer, text);
        return;
    }
    fr_buffer_putc(buffer, '"');
    for (; *text != '\0'; text++) {
        if (*text == '"')
            fr_buffer_putc(buffer, '"');
        fr_buffer_putc(buffer, *text);
    }
    fr_buffer_putc(buffer, '"');
}

void fr_buffer_fill(fr_buffer *buffer, char c, size_t n)
{
    if (!buffer_grow(buffer, n))
        return;
    memset(buffer->data + buffer->n, c, n);
    buffer->n += n;
    buffer->data[buffer->n] = '\0';
}

void fr_buffer_vprintf(fr_buffer *buffer, const char *format, va_list args)
{
    va_list again;
    int n;

    va_copy(again, args);
    n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (n < 0) {
        buffer->has_failed = true;
        return;
    }
    if (!buffer_grow(buffer, (size_t)n))
        return;
    vsnprintf(buffer->data + buffer->n, (size_t)n + 1, format, args);
    buffer->n += (size_t)n;
}

void fr_buffer_printf(fr_buffer *buffer, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fr_buffer_vprintf(buffer, format, args);
    va_end(args);
}

const char *fr_buffer_text(const fr_buffer *buffer)
{
    return buffer->data != NULL ? buffer->data : "";
}

fr_status fr_buffer_check(const fr_buffer *buffer, fr_err *err)
{
    return buffer->has_failed ? fr_fail_no_memory(err) : FR_OK;
}
