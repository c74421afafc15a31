/*
 * hazard_options.h: the options that say what interrupts a run, and what saving
 * it takes.
 */
#ifndef FR_API_RESOLVE_HAZARD_OPTIONS_H
#define FR_API_RESOLVE_HAZARD_OPTIONS_H

#include "api/request/request.h"
#include "reliability/run_hazards.h"
#include "spec/profile/profile.h"

/* FR_USAGE: a rate that cannot be read. */
FR_CHECKED fr_status fr_request_make_hazards(const fr_request *request,
                                             fr_run_hazards *out, fr_err *err);

/* What a profile of CPUs says of runs on the first n_nodes, where nobody says
 * it: storage, starts, what a checkpoint takes at least.  profile: NULL, none.
 */
void fr_hazards_take_profile(const fr_profile *profile,
                             const fr_cluster *cluster, int64_t n_nodes,
                             fr_run_hazards *hazards);

#endif
