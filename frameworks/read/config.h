/*
 * config.h: configurations of training frameworks, read as a plan and a job:
 * what a user runs today.  A format is one file config_NAME.c with one const
 * fr_config_format and a row of the list in config_list.h.
 *
 * Readers are strict ("path:line: what; the mend").  What a file says and a
 * plan has no place for, and what is taken because the file is silent, is
 * noted, a line each.
 */
#ifndef FR_INTEROP_CONFIG_CONFIG_H
#define FR_INTEROP_CONFIG_CONFIG_H

#include "core/base/buffer.h"
#include "frameworks/framework.h"
#include "plan/decide/plan_json.h"

typedef struct fr_config_request {
    const char *path; /* stands in messages */
    const char *text; /* n_text bytes and a NUL after them */
    size_t n_text;
    /* Values that the user gave with it; NULL and 0: the file must have it, or
     * the error names the option that would. */
    const fr_model *model; /* --model */
    int64_t world;         /* --ranks, or the places of the cluster */
    int64_t seq;           /* --seq */
} fr_config_request;

typedef struct fr_config {
    fr_plan_file file; /* plan, model, job; no cluster, no prediction */
    fr_buffer notes;
} fr_config;

typedef struct fr_config_format {
    const fr_framework *framework; /* whose it is; `import` finds it by that */
    const char *summary;
    /* Does a text look like it?  For files whose kind nobody named. */
    bool (*looks_like)(const char *text, size_t n);
    FR_CHECKED fr_status (*read)(const fr_config_request *request,
                                 fr_config *out, fr_err *err);
} fr_config_format;

/* Name of format i, NULL past the last. */
const char *fr_config_name(int i);
/* Returns the format of a framework, or of one of its names; NULL: it has none.
 */
const fr_config_format *fr_config_of(const fr_framework *framework);
const fr_config_format *fr_config_find(const char *name);
const fr_config_format *fr_config_guess(const char *text, size_t n);

/*
 * Reads, and checks that what came out is a legal plan (fr_plan_check).
 * FR_INPUT on anything wrong.  fr_config_release() frees what came out.
 */
FR_CHECKED fr_status fr_config_read(const fr_config_format *format,
                                    const fr_config_request *request,
                                    fr_config *out, fr_err *err);
void fr_config_release(fr_config *config);

#endif
