/*
 * no_effect.h: notes that name the options that were given although the answer
 * does not depend on them, with the reason.
 */
#ifndef FR_API_RESOLVE_NO_EFFECT_H
#define FR_API_RESOLVE_NO_EFFECT_H

#include "api/inputs.h"
#include "api/request/request.h"
#include "spec/cluster/cluster.h"
#include "spec/model/model.h"
#include "tuner/study/run_sweep.h"

/* Passes a note that the options `names` ("--seq, --dropout") are ignored. */
void fr_note_ignored(const fr_request *request, const char *names,
                     const char *why);

/* Passes one note for each reason, in a command that predicts. */
void fr_note_no_effect(const fr_request *request, const fr_job *job,
                       const fr_model *model, const fr_cluster *cluster);

/* Returns whether the option has no effect, given or not. */
bool fr_has_no_effect(const fr_request *request, fr_option option,
                      const fr_job *job, const fr_model *model,
                      const fr_cluster *cluster);

/* Passes one note that names the options without which `plan`, which has that
 * prediction, would take the same time and the same memory. */
void fr_note_idle_options(const fr_request *request, const fr_inputs *inputs,
                          const fr_model *model, const fr_job *job,
                          const fr_plan *plan, const fr_prediction *prediction);

/* The same for a sweep that keeps its plans, after it has run: options of
 * features that no point's plan has. */
void fr_note_idle_in_sweep(const fr_request *request, const fr_inputs *inputs,
                           const fr_sweep_case *cases, size_t n);

/* Passes one note that names the options that the plan of a search does not
 * use, such as the schedule of a pipeline of one stage; `asked`: a plan with
 * the values of the options. */
void fr_note_untaken_options(const fr_request *request,
                             const fr_cluster *cluster, const fr_plan *asked,
                             const fr_plan *found);

#endif
