/* err.c: see err.h. */
#include "core/base/err.h"

#include "core/base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const int exit_codes[FR_STATUS_N] = {
#define FR_STATUS_ROW(symbol, exit_code) exit_code,
    FR_STATUS_LIST(FR_STATUS_ROW)
#undef FR_STATUS_ROW
};

/* Returns whether a terminal shows a character unchanged: it is no control
 * character of ASCII or of Unicode (U+0080 to U+009F), and does not change the
 * direction of a line. */
static bool is_shown(const unsigned char *c, size_t n)
{
    if (n == 1)
        return c[0] >= 0x20 && c[0] != 0x7f;
    if (n == 2)
        return c[0] != 0xc2 || c[1] >= 0xa0;
    if (n != 3 || c[0] != 0xe2)
        return true;
    return !(c[1] == 0x80 && c[2] >= 0xaa && c[2] <= 0xae) &&
           !(c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9);
}

/* The bytes of the character at `text`; 0: it is broken UTF-8. */
static size_t character_bytes(const char *text)
{
    unsigned char c = (unsigned char)*text;
    size_t n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;

    return fr_text_utf8_valid(text, strnlen(text, n)) >= n ? n : 0;
}

/* An error is one line of what can be printed, whatever a file name or a
 * string in it holds; the rest stands there as \xNN. */
static void make_one_line(char *text, size_t n_text)
{
    char out[sizeof((fr_err *)0)->text];
    size_t used = 0;

    /* Most are plain ASCII, and a search writes many that nobody reads. */
    while (text[used] >= 0x20 && text[used] < 0x7f)
        used++;
    if (text[used] == '\0')
        return;
    memcpy(out, text, used);
    for (const char *at = text + used; *at != '\0';) {
        size_t n = character_bytes(at);
        bool is_plain = n > 0 && is_shown((const unsigned char *)at, n);
        bool is_blank = *at == '\n' || *at == '\t';
        size_t n_out = is_plain ? n : is_blank ? 1 : 4;
        if (used + n_out >= n_text)
            break;
        if (is_plain)
            memcpy(out + used, at, n);
        else if (is_blank)
            out[used] = ' ';
        else
            (void)snprintf(out + used, 5, "\\x%02x",
                           (unsigned)(unsigned char)*at);
        used += n_out;
        at += is_plain ? n : 1;
    }
    memcpy(text, out, used);
    text[used] = '\0';
}

void fr_err_write(fr_err *err, fr_status status, const char *format, ...)
{
    va_list args;
    char text[sizeof err->text]; /* err->text may be an argument */

    if (err == NULL)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    make_one_line(text, sizeof text);
    memcpy(err->text, text, strlen(text) + 1);
    err->status = status;
}

static bool add_line(fr_err *err, size_t n_free, const char *format,
                     va_list args)
{
    char text[sizeof err->text];
    size_t n = strlen(err->text);
    vsnprintf(text, sizeof text, format, args);
    make_one_line(text, sizeof text);
    if (n + 1 + strlen(text) + n_free >= sizeof err->text)
        return false;
    err->text[n] = '\n';
    memcpy(err->text + n + 1, text, strlen(text) + 1);
    return true;
}

bool fr_err_add_line(fr_err *err, const char *format, ...)
{
    enum { LAST_LINE = 100 };
    va_list args;
    if (err == NULL)
        return false;
    va_start(args, format);
    bool is_added = add_line(err, LAST_LINE, format, args);
    va_end(args);
    return is_added;
}

void fr_err_add_last_line(fr_err *err, const char *format, ...)
{
    va_list args;
    if (err == NULL)
        return;
    va_start(args, format);
    (void)add_line(err, 0, format, args);
    va_end(args);
}

void fr_err_prefix(fr_err *err, const char *format, ...)
{
    char prefix[sizeof err->text];
    char whole[2 * sizeof err->text + 3];
    va_list args;

    if (err == NULL)
        return;
    va_start(args, format);
    vsnprintf(prefix, sizeof prefix, format, args);
    va_end(args);
    make_one_line(prefix, sizeof prefix);
    snprintf(whole, sizeof whole, "%s: %s", prefix, err->text);
    memcpy(err->text, whole, sizeof err->text - 1);
    err->text[sizeof err->text - 1] = '\0';
}

int fr_status_exit_code(fr_status status)
{
    return (unsigned)status < FR_STATUS_N ? exit_codes[status] : 1;
}
