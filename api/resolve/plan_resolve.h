/*
 * plan_resolve.h: makes the model, the job and the plan of a request from a
 * list of layers, each laid over those before it (plan_resolve.c): defaults, a
 * plan file or a framework's configuration, options, values that the machine
 * and the framework imply, and the sizes that nobody gave.
 */
#ifndef FR_API_RESOLVE_PLAN_RESOLVE_H
#define FR_API_RESOLVE_PLAN_RESOLVE_H

#include "api/resolve/plan_choice.h"

typedef enum fr_plan_purpose {
    FR_PLAN_TO_PREDICT, /* one plan, complete: it has all of its sizes */
    FR_PLAN_TO_SEARCH   /* where a search starts; the sizes are its axes */
} fr_plan_purpose;

typedef struct fr_plan_question {
    fr_plan_purpose purpose;
    /* The model: by name or path, or one that the caller keeps while the answer
     * is used.  Both NULL: that of the plan file or of --from. */
    const char *model_word;
    const fr_model *model;
    const char *plan_path; /* NULL: no plan file */
    const fr_cluster *cluster;
    const fr_inputs *inputs; /* NULL where the purpose is a search */
    /* A search: ranks of its largest plan, each of which gets a sequence at
     * least where nobody gave a batch. */
    int64_t n_ranks_max;
    bool is_quiet; /* no notes on options without effect */
} fr_plan_question;

/*
 * FR_USAGE: options contradict each other or the plan's number of ranks;
 * FR_INPUT: a file cannot be read.  Whether the plan is legal is for
 * fr_plan_check().  fr_plan_choice_release() frees, also after a failure.
 */
FR_CHECKED fr_status fr_plan_resolve(const fr_request *request,
                                     const fr_plan_question *question,
                                     fr_plan_choice *out, fr_err *err);

/* A plan of one rank with the defaults for a cluster: on GPUs 16 bits, where
 * all have them, and fused attention. */
void fr_plan_init_for(const fr_cluster *cluster, fr_plan *plan);

#endif
