/*
 * plan_refusals.h: what the runtime cannot train, and why: one table, which the
 * checks of plans, the tuner (a target like any other), `catalog` and the tests
 * of docs/limits.md read.
 */
#ifndef FR_PLAN_DECIDE_PLAN_REFUSALS_H
#define FR_PLAN_DECIDE_PLAN_REFUSALS_H

#include "plan/decide/plan_fields.h"

/* The runtimes that refuse, as bits. */
typedef enum fr_runtime {
    FR_RUNTIME_CPU = 1,
    FR_RUNTIME_GPU = 2,
    FR_RUNTIME_BOTH = FR_RUNTIME_CPU | FR_RUNTIME_GPU,
    /* There are instructions for CPUs, and nothing that obeys them. */
    FR_RUNTIME_CPU_START = 4
} fr_runtime;

typedef struct fr_plan_refusal {
    const char *what; /* "dropout" */
    const char *mend; /* "choose dropout 0" */
    unsigned on;      /* fr_runtime of those that refuse it */
    uint64_t fields;  /* of the plan that it looks at; 0: at the model, the job
                         and facts of execution alone */
    bool (*is_met)(const fr_plan *plan, const fr_model *model,
                   const fr_job *job);
} fr_plan_refusal;

extern const fr_plan_refusal fr_plan_refusals[];
extern const int fr_n_plan_refusals;

/*
 * Is something due to be asked that looks at `fields`: at one of those that are
 * `asked` for and at none outside asked | known?  A search asks for what it has
 * just decided, others for FR_PLAN_BITS_ALL.
 */
bool fr_plan_fields_are_due(uint64_t fields, uint64_t asked, uint64_t known);

/* FR_INPUT with the first row that the plan meets, of those that are due and
 * that one of the runtimes `on` refuses. */
FR_CHECKED fr_status fr_plan_check_refusals(unsigned on, uint64_t asked,
                                            uint64_t known, const fr_plan *plan,
                                            const fr_model *model,
                                            const fr_job *job, fr_err *err);

#endif
