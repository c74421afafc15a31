/*
 * framework_options.h: --framework: the defaults of a training framework, above
 * those of forerun and the plan file, below the options.
 */
#ifndef FR_API_RESOLVE_FRAMEWORK_OPTIONS_H
#define FR_API_RESOLVE_FRAMEWORK_OPTIONS_H

#include "api/request/request.h"
#include "frameworks/framework.h"
#include "plan/decide/plan_json.h"
#include "spec/cluster/cluster.h"

/* NULL: not given, or of CPUs, on which forerun itself trains. */
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
 * Lays what the framework of --framework does over plan, job and the model's
 * vocabulary where no option says it.  Without --framework the vocabulary alone
 * changes, to that of the file's own framework.  It may be called again when
 * the degrees have changed.
 */
void fr_request_apply_framework(const fr_request *request,
                                const fr_cluster *cluster, fr_plan_file *file);

#endif
