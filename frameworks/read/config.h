/*
 * config.h: configurations of training frameworks, read as a plan and a job:
 * what a user runs today.  A format is one const fr_config_format in the folder
 * of its framework, whose row names it.
 *
 * Readers are strict ("path:line: what; the mend").  What a file says and a
 * plan has no place for, and what is taken because the file is silent, is
 * noted, a line each.
 */
#ifndef FR_FRAMEWORKS_READ_CONFIG_H
#define FR_FRAMEWORKS_READ_CONFIG_H

#include "core/base/buffer.h"
#include "frameworks/framework.h"
#include "plan/decide/plan_json.h"

typedef struct fr_config_request {
    const char *path; /* stands in messages */
    const char *text; /* n_text bytes and a NUL after them */
    size_t n_text;
    const char
        *configs; /* the folder of named models; NULL: near the program */
    /* Values that the user gave with it; NULL and 0: the file must have it, or
     * the error names the option that would. */
    const fr_model *model; /* --model */
    int64_t world;         /* --ranks, or the places of the cluster */
    bool *lacks_world; /* becomes true where `world` is 0 and the file does not
                          say it, which is the error then; NULL: not asked */
    int64_t seq;       /* --seq */
    /* Reads a file of the folder that the configuration names; free() the text.
     * NULL: the folder is that of `path`. */
    fr_status (*read_file)(const void *context, const char *name, char **text,
                           size_t *n_text, fr_err *err);
    const void *context; /* of read_file */
    /* --set NAME=VALUE: variables of a script, and 1=VALUE its arguments. */
    const char *const *settings;
    size_t n_settings;
} fr_config_request;

typedef struct fr_config {
    const fr_framework *framework; /* whose configuration it is */
    fr_execution_bits said; /* facts that the file says, not the framework */
    fr_plan_file file;      /* plan, model, job; no cluster, no prediction */
    fr_buffer notes;
} fr_config;

typedef struct fr_config_format {
    const char *summary;
    /* Does a text look like it?  For files whose kind nobody named. */
    bool (*looks_like)(const char *text, size_t n);
    FR_CHECKED fr_status (*read)(const fr_config_request *request,
                                 fr_config *out, fr_err *err);
} fr_config_format;

/* Name of framework i among those with a reader, NULL past the last. */
const char *fr_config_name(int i);
/* Returns the framework with a reader that has a name, or whose configuration a
 * text looks like; NULL: none. */
const fr_framework *fr_config_find(const char *name);
const fr_framework *fr_config_guess(const char *text, size_t n);

/*
 * Reads a configuration of a framework with a reader, and checks that what came
 * out is a legal plan (fr_plan_check).  FR_INPUT on anything wrong.
 * fr_config_release() frees what came out.
 */
FR_CHECKED fr_status fr_config_read(const fr_framework *framework,
                                    const fr_config_request *request,
                                    fr_config *out, fr_err *err);
void fr_config_release(fr_config *config);

#endif
