/*
 * no_effect.h: options that were given and that the answer does not depend on
 * are named, with the reason.
 */
#ifndef FR_API_RESOLVE_NO_EFFECT_H
#define FR_API_RESOLVE_NO_EFFECT_H

#include "api/inputs.h"
#include "api/request/request.h"
#include "spec/cluster/cluster.h"
#include "spec/model/model.h"
#include "tuner/study/run_sweep.h"

/* Notes on stderr that the options `names` ("--seq, --dropout") are ignored. */
void fr_note_ignored(const fr_request *request, const char *names,
                     const char *why);

/* One note on stderr for each reason, of a command that predicts. */
void fr_note_no_effect(const fr_request *request, const fr_job *job,
                       const fr_model *model, const fr_cluster *cluster);

/* Is the option among those, given or not? */
bool fr_has_no_effect(const fr_request *request, fr_option option,
                      const fr_job *job, const fr_model *model,
                      const fr_cluster *cluster);

/* One note on stderr that names those without which `plan`, whose prediction
 * that is, would take the same time and the same memory. */
void fr_note_idle_options(const fr_request *request, const fr_inputs *inputs,
                          const fr_model *model, const fr_job *job,
                          const fr_plan *plan, const fr_prediction *prediction);

/* The same of a sweep that keeps its plans, once it has run: those that belong
 * to what no point's plan has. */
void fr_note_idle_in_sweep(const fr_request *request, const fr_inputs *inputs,
                           const fr_sweep_case *cases, size_t n);

/* One note on stderr that names those that the plan which a search found does
 * without, such as the schedule of a pipeline of one stage; `asked`: a plan
 * with what the options say. */
void fr_note_untaken_options(const fr_request *request,
                             const fr_cluster *cluster, const fr_plan *asked,
                             const fr_plan *found);

#endif
