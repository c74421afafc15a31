/*
 * replan.h: another plan of the same model and job, for as many ranks as there
 * are places.
 */
#ifndef FR_API_RESOLVE_REPLAN_H
#define FR_API_RESOLVE_REPLAN_H

#include "api/request/request.h"
#include "plan/decide/plan_json.h"

/* The place where the plan is to run. */
typedef struct fr_replan_site {
    const fr_request *request;
    bool is_gpu; /* forerun's runtime for GPUs runs it, else that for CPUs */
    /* FR_INFEASIBLE where a plan does not fit the memory there. */
    fr_status (*check_fit)(const void *context, const fr_plan_file *file,
                           fr_err *err);
    const void *context;
} fr_replan_site;

/*
 * Finds the best plan that the tuner finds in a third of a second for the
 * cluster of the plan; if the cluster is not known, the plan with fewer or more
 * data-parallel ranks, else data parallelism alone.  At most n_places ranks, at
 * least `least`, and it fits the memory there. FR_INFEASIBLE: there is none.
 * Everything but the plan and its prediction is as in `from`, which owns it.
 */
FR_CHECKED fr_status fr_replan(const fr_replan_site *site,
                               const fr_plan_file *from, int64_t n_places,
                               int64_t least, fr_plan_file *out, fr_err *err);

#endif
