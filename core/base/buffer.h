/*
 * buffer.h: growing text.  Failure is sticky: append freely, look at
 * fr_buffer_check() once at the end.
 */
#ifndef FR_CORE_BASE_BUFFER_H
#define FR_CORE_BASE_BUFFER_H

#include "core/base/err.h"

#include <stdarg.h>

typedef struct fr_buffer {
    char *data; /* NUL-terminated once something was appended; may be NULL */
    size_t n;
    size_t capacity;
    bool has_failed; /* out of memory */
} fr_buffer;

void fr_buffer_init(fr_buffer *buffer);
void fr_buffer_release(fr_buffer *buffer);
void fr_buffer_append(fr_buffer *buffer, const void *bytes, size_t n);
void fr_buffer_puts(fr_buffer *buffer, const char *text);
void fr_buffer_putc(fr_buffer *buffer, char c);
/* A field of a line of CSV: in quotes where it needs them (RFC 4180). */
void fr_buffer_put_csv(fr_buffer *buffer, const char *text);
void fr_buffer_printf(fr_buffer *buffer, const char *format, ...)
    FR_PRINTF(2, 3);
void fr_buffer_vprintf(fr_buffer *buffer, const char *format, va_list args)
    FR_PRINTF(2, 0);
/* `n` copies of c. */
void fr_buffer_fill(fr_buffer *buffer, char c, size_t n);
/* The text, never NULL. */
const char *fr_buffer_text(const fr_buffer *buffer);
/* FR_OK, or FR_NO_MEMORY when any append failed. */
FR_CHECKED fr_status fr_buffer_check(const fr_buffer *buffer, fr_err *err);

#endif
