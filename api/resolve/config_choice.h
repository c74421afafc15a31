/*
 * config_choice.h: a configuration of a framework as model, job and plan,
 * completed by --model, --ranks and --seq.
 */
#ifndef FR_API_RESOLVE_CONFIG_CHOICE_H
#define FR_API_RESOLVE_CONFIG_CHOICE_H

#include "api/request/request.h"
#include "frameworks/read/config.h"

/* A file that was read. */
typedef struct fr_config_source {
    const fr_framework *framework;
    const char *path;
    const char *text; /* n_text bytes and a NUL */
    size_t n_text;
    const fr_model *model; /* NULL: --model */
    int64_t world; /* where neither --ranks nor the file says it; 0: unknown */
} fr_config_source;

/*
 * Reads the file of --from, whatever its format, and passes its notes on.
 * `world`: the number of ranks if neither an option nor the file gives it;
 * `model` may be NULL.  The caller calls fr_config_release() on *out.
 */
FR_CHECKED fr_status fr_config_choice_from(const fr_request *request,
                                           const fr_model *model, int64_t world,
                                           fr_config *out, fr_err *err);

/* Reads that file with the values of the options.  The caller calls
 * fr_config_release() on *out. */
FR_CHECKED fr_status fr_config_choice_read(const fr_request *request,
                                           const fr_config_source *source,
                                           fr_config *out, fr_err *err);

#endif
