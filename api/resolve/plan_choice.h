/*
 * plan_choice.h: model, job and plan as the command line asks for them: flags
 * over environment over plan file over defaults.
 */
#ifndef FR_API_RESOLVE_PLAN_CHOICE_H
#define FR_API_RESOLVE_PLAN_CHOICE_H

#include "api/inputs.h"
#include "api/request/request.h"
#include "spec/result/tuning.h"

typedef struct fr_plan_choice {
    fr_model model;
    fr_job job;
    fr_plan plan;
    uint64_t pins; /* FR_PIN() of the options that were given */
    char framework[FR_FRAMEWORK_NAME]; /* whose habits it has; "": of none */
    bool has_model;
    bool is_given; /* the plan: by a file of forerun's or a framework's */
    /* What the plan file was made for, "": no file, or it does not say. */
    char cluster[512];
    uint64_t cluster_hash;
} fr_plan_choice;

/*
 * `model`: name or path; NULL: that of the plan file or of --from.  plan_path
 * may be NULL.  Threads per rank that nobody
 * chose are those of fr_default_threads().  fr_plan_choice_release()
 * frees, also after a failure.
 */
FR_CHECKED fr_status fr_plan_choice_load(const fr_request *request,
                                         const char *model,
                                         const char *plan_path,
                                         const fr_inputs *inputs,
                                         fr_plan_choice *out, fr_err *err);
void fr_plan_choice_release(fr_plan_choice *choice);
/* A plan of one rank, of which nobody said anything. */
void fr_plan_choice_usual(const fr_cluster *cluster, fr_plan *plan);

/* Says on stderr what of the plan its prediction leaves out; fr_..._load()
 * does. */
void fr_plan_choice_note(const fr_request *request, const fr_cluster *cluster,
                         const fr_plan *plan);

/* Job and plan alone, for choice->model on a cluster. */
FR_CHECKED fr_status fr_plan_choice_make(const fr_request *request,
                                         const char *plan_path,
                                         const fr_cluster *cluster,
                                         fr_plan_choice *choice, fr_err *err);

/* --framework, again: once the degrees of the plan are decided. */
void fr_plan_choice_apply_framework(const fr_request *request,
                                    const fr_cluster *cluster,
                                    fr_plan_choice *choice);

/* --layer-split auto, --batch-shares auto: those of a whole plan; nothing else
 * was asked for: nothing. */
FR_CHECKED fr_status fr_plan_choice_balance(const fr_request *request,
                                            const fr_inputs *inputs,
                                            const fr_model *model,
                                            const fr_job *job, fr_plan *plan,
                                            fr_err *err);

/* Writes a plan file that can be run. */
FR_CHECKED fr_status fr_plan_choice_save(const fr_plan_choice *choice,
                                         const fr_inputs *inputs,
                                         const fr_prediction *prediction,
                                         const char *path, fr_err *err);

#endif
