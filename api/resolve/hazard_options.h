/*
 * hazard_options.h: the options for the interruptions of a run and the cost of
 * its checkpoints.
 */
#ifndef FR_API_RESOLVE_HAZARD_OPTIONS_H
#define FR_API_RESOLVE_HAZARD_OPTIONS_H

#include "api/request/request.h"
#include "reliability/run_hazards.h"
#include "spec/profile/profile.h"

/* FR_USAGE: a rate that cannot be read. */
FR_CHECKED fr_status fr_request_make_hazards(const fr_request *request,
                                             fr_run_hazards *out, fr_err *err);

/* Fills values that no option gives from a profile of CPUs, for runs on the
 * first n_nodes: storage, starts, the least time of a checkpoint.  profile:
 * NULL, none.
 */
void fr_hazards_take_profile(const fr_profile *profile,
                             const fr_cluster *cluster, int64_t n_nodes,
                             fr_run_hazards *hazards);

#endif
