/*
 * plan_json.h: plan files, schema "forerun.plan/2" (docs/formats.md).
 *
 * A plan file is all that a run needs: the plan, its whole model and job,
 * which cluster and profile it was made for (by hash), where each rank goes,
 * and what was predicted.  The same contents give the same bytes.  Files of
 * version 1, whose "plan" holds the facts of "execution" too and which have
 * other names of frameworks, are read.
 */
#ifndef FR_PLAN_DECIDE_PLAN_JSON_H
#define FR_PLAN_DECIDE_PLAN_JSON_H

#include "core/document/json.h"
#include "plan/decide/plan.h"
#include "spec/result/prediction.h"

/* Version 1 has the facts of execution in "plan", and other names of
 * frameworks. */
#define FR_PLAN_SCHEMA "forerun.plan/2"
#define FR_PLAN_SCHEMA_1 "forerun.plan/1"

enum { FR_FRAMEWORK_NAME = 32 };

typedef struct fr_plan_file {
    fr_plan plan;
    fr_model model; /* owned */
    fr_job job;
    char backend[16]; /* "cpu", "cuda" */
    /* The framework whose defaults the plan has, "": none.  The name is only
     * printed: the plan itself has the values. */
    char framework[FR_FRAMEWORK_NAME];
    char cluster[512];     /* as the user named it, "": none */
    uint64_t cluster_hash; /* fr_cluster_hash, 0: none */
    uint64_t profile_hash; /* fr_profile_hash, 0: costs of the datasheet */
    int32_t *node_of_rank; /* [world], owned; NULL: as the launcher places */
    bool has_prediction;
    fr_prediction prediction; /* without `sim`: that is of one run only */
} fr_plan_file;

/* Defaults of plan and job, no model, backend cpu. */
void fr_plan_file_init(fr_plan_file *file);
void fr_plan_file_release(fr_plan_file *file); /* takes NULL */

/*
 * Strict: unknown keys, a `world` that is not the product of the plan,
 * whatever fr_plan_check refuses: FR_INPUT with "path:line: ...".  What is
 * left out of "plan", "execution" and "job" has the defaults of fr_plan_init()
 * and fr_job_init().
 */
FR_CHECKED fr_status fr_plan_file_load(const char *path, fr_plan_file *out,
                                       fr_err *err);
FR_CHECKED fr_status fr_plan_file_parse(const char *name, const char *text,
                                        size_t n_text, fr_plan_file *out,
                                        fr_err *err);
/* Atomic; the file can be read back to the same contents. */
FR_CHECKED fr_status fr_plan_file_save(const fr_plan_file *file,
                                       const char *path, fr_err *err);
void fr_plan_file_write(const fr_plan_file *file, fr_json_writer *json);

/* "plan" and "execution", two members of an object that has begun. */
void fr_plan_json_put(const fr_plan *plan, fr_json_writer *json);
/* Their values; execution NULL: all stands in the other, as before version 2.
 */
FR_CHECKED fr_status fr_plan_json_read(const fr_json_value *decisions,
                                       const fr_json_value *execution,
                                       fr_plan *out, fr_err *err);

/* The job, one value. */
void fr_job_json_write(const fr_job *job, fr_json_writer *json);
FR_CHECKED fr_status fr_job_json_read(const fr_json_value *object, fr_job *out,
                                      fr_err *err);

#endif
