/*
 * idle_options.h: options of the plan that were given and change nothing: found
 * by predicting the plan without them, whatever the reason is.
 */
#ifndef FR_CLI_OPTION_IDLE_OPTIONS_H
#define FR_CLI_OPTION_IDLE_OPTIONS_H

#include "cli/inputs.h"
#include "tuner/study/run_sweep.h"

/* One note on stderr that names those without which `plan`, whose prediction
 * that is, would take the same time and the same memory. */
void fr_note_idle_options(const fr_cli *cli, const fr_inputs *inputs,
                          const fr_model *model, const fr_job *job,
                          const fr_plan *plan, const fr_prediction *prediction);

/* The same of a sweep that keeps its plans, once it has run: those that belong
 * to what no point's plan has. */
void fr_note_idle_in_sweep(const fr_cli *cli, const fr_inputs *inputs,
                           const fr_sweep_case *cases, size_t n);

#endif
