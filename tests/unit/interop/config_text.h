/* config_text.h: configurations that a test writes in place. */
#ifndef FR_TESTS_UNIT_INTEROP_CONFIG_TEXT_H
#define FR_TESTS_UNIT_INTEROP_CONFIG_TEXT_H

#include "frameworks/read/config.h"
#include "tests/check.h"

#include <string.h>

/* Reads a text without being told whose it is; it is the framework's. */
static inline bool config_text_read(const char *text, const char *framework,
                                    int64_t world, fr_config *out, fr_err *err)
{
    const fr_config_request request = {
        .path = "c.yaml", .text = text, .n_text = strlen(text), .world = world};
    const fr_framework *found = fr_config_guess(text, strlen(text));
    CHECK(found != NULL && strcmp(found->name, framework) == 0);
    if (found == NULL)
        return false;
    return CHECK_OK(fr_config_read(found, &request, out, err), err);
}

/* The text is refused, with this in the message. */
static inline void config_text_refused(const char *text, const char *framework,
                                       const char *why)
{
    fr_config config;
    fr_err err;
    const fr_config_request request = {
        .path = "c.yaml", .text = text, .n_text = strlen(text), .world = 8};
    CHECK_FAILS(
        fr_config_read(fr_config_find(framework), &request, &config, &err),
        FR_INPUT, &err);
    CHECK_HAS(err.text, why);
}

#endif
