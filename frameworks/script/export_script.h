/*
 * export_script.h: training scripts in Python, from the templates of
 * interop/export/template.
 *
 * A template is a Python file that is compiled in (see the Makefile).  Two
 * comments in it are orders: "# forerun: include NAME" stands for another
 * template, "# forerun: plan" for the numbers: dictionaries MODEL, JOB and
 * PLAN with the keys of plan files, those that the script reads, and
 * ENVIRONMENT with NCCL's variables.
 */
#ifndef FR_FRAMEWORKS_SCRIPT_EXPORT_SCRIPT_H
#define FR_FRAMEWORKS_SCRIPT_EXPORT_SCRIPT_H

#include "frameworks/write/export.h"

/* Why their files have no checkpoints. */
#define FR_SCRIPT_SAVES_WEIGHTS                                                \
    "the script saves the weights alone, at its end (--save-weights FILE); "   \
    "a run that stops before begins again"
#define FR_SCRIPT_SAVES_NOTHING                                                \
    "the script saves none; a run that stops begins again"

typedef struct fr_script_template {
    const char *name; /* of its file */
    const unsigned char *text;
    size_t n;
} fr_script_template;

/* Made by the Makefile; text NULL at the end. */
extern const fr_script_template fr_script_templates[];

/* Adds the script of a template, under its name, for an exporter of
 * `target`. */
FR_CHECKED fr_status fr_script_write(const fr_export_request *request,
                                     const fr_target *target, const char *name,
                                     fr_export_files *out, fr_err *err);

#endif
