/*
 * fuzz.h: a fuzz target is one file fuzz_NAME.c with this function, and a
 * folder corpus/NAME of inputs.  A reader must end with FR_OK or with one
 * line of error for any bytes: fuzz_check_error() says so.
 */
#ifndef FR_TESTS_FUZZ_H
#define FR_TESTS_FUZZ_H

#include "core/base/err.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* The same where a reader says all that is wrong: each line names the input. */
static inline void fuzz_check_lines(fr_status status, const fr_err *err,
                                    const char *name)
{
    const char *at = err->text;
    if (status == FR_OK)
        return;
    if (err->status != status)
        abort();
    for (; at != NULL; at = strchr(at, '\n'), at = at ? at + 1 : NULL)
        if (strncmp(at, name, strlen(name)) != 0)
            abort();
}

/* One line; of XML that is not well-formed several, each with its place in
 * what every target calls "input". */
static inline void fuzz_check_error(fr_status status, const fr_err *err)
{
    if (status == FR_OK)
        return;
    if (err->status != status || err->text[0] == '\0')
        abort();
    if (strchr(err->text, '\n') != NULL)
        fuzz_check_lines(status, err, "input:");
}

#endif
