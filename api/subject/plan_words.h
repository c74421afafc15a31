/*
 * plan_words.h: which words of a command are the model, the cluster and the
 * plan: MODEL CLUSTER, and with a plan that there is already MODEL CLUSTER
 * PLAN, PLAN CLUSTER, or with --from CLUSTER alone.
 */
#ifndef FR_API_SUBJECT_PLAN_WORDS_H
#define FR_API_SUBJECT_PLAN_WORDS_H

#include "api/request/request.h"

typedef struct fr_plan_words {
    const char *model; /* NULL: the plan's, or that of --from */
    const char *cluster;
    const char *plan; /* NULL: none, or that of --from */
} fr_plan_words;

/* FR_USAGE where one is missing, or --model says what a word says. */
FR_CHECKED fr_status fr_plan_words_of(const fr_request *request,
                                      fr_plan_words *out, fr_err *err);

/* A file that says it is a plan; a model is one by its name or its keys. */
bool fr_plan_words_is_plan(const char *path);

#endif
