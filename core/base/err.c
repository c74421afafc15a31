/* err.c: see err.h. */
#include "core/base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const int exit_codes[FR_STATUS_N] = {
#define FR_STATUS_ROW(symbol, exit_code) exit_code,
    FR_STATUS_LIST(FR_STATUS_ROW)
#undef FR_STATUS_ROW
};

/* An error is one line whatever a file name or a string in it holds. */
static void make_one_line(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = ' ';
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
    make_one_line(text);
    memcpy(err->text, text, strlen(text) + 1);
    err->status = status;
}

static bool add_line(fr_err *err, size_t n_free, const char *format,
                     va_list args)
{
    char text[sizeof err->text];
    size_t n = strlen(err->text);
    vsnprintf(text, sizeof text, format, args);
    make_one_line(text);
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
    make_one_line(prefix);
    snprintf(whole, sizeof whole, "%s: %s", prefix, err->text);
    memcpy(err->text, whole, sizeof err->text - 1);
    err->text[sizeof err->text - 1] = '\0';
}

int fr_status_exit_code(fr_status status)
{
    return (unsigned)status < FR_STATUS_N ? exit_codes[status] : 1;
}
