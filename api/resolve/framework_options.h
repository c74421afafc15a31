/*
 * framework_options.h: the defaults of the training framework that executes the
 * plan: that of --framework lies over those of forerun and the plan file, that
 * of --for below a plan file, whose facts of execution alone become its own;
 * options lie over all.
 */
#ifndef FR_API_RESOLVE_FRAMEWORK_OPTIONS_H
#define FR_API_RESOLVE_FRAMEWORK_OPTIONS_H

#include "api/request/request.h"
#include "frameworks/framework.h"
#include "plan/decide/plan_json.h"
#include "spec/cluster/cluster.h"

/* Returns the framework of --framework, else of --for; NULL: neither is given,
 * or it is of CPUs, on which forerun itself trains. */
const fr_framework *fr_request_framework(const fr_request *request,
                                         const fr_cluster *cluster);

/* Returns the target whose plans a search is restricted to: that of --for, else
 * of --framework, else forerun on this machine; NULL: any plan. */
const fr_target *fr_request_executor(const fr_request *request,
                                     const fr_cluster *cluster);

/* Returns the fields of the plan that options give: bits FR_PLAN_X; *facts gets
 * those of its execution. */
uint64_t fr_request_given_fields(const fr_request *request,
                                 fr_execution_bits *facts);

/*
 * Lays the defaults of the framework over plan, job (--framework alone) and the
 * model's vocabulary where no option gives a value.  Otherwise the vocabulary
 * alone changes, to that of the file's own framework.  is_given: the plan comes
 * from a file.  It may be called again when the degrees have changed.
 */
void fr_request_apply_framework(const fr_request *request,
                                const fr_cluster *cluster, bool is_given,
                                fr_plan_file *file);

#endif
