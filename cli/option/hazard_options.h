/*
 * hazard_options.h: the options that say what interrupts a run, and what saving
 * it takes.
 */
#ifndef FR_CLI_OPTION_HAZARD_OPTIONS_H
#define FR_CLI_OPTION_HAZARD_OPTIONS_H

#include "cli/command.h"
#include "sim/run/run_hazards.h"

/* FR_USAGE: a rate that cannot be read. */
FR_CHECKED fr_status fr_cli_make_hazards(const fr_cli *cli, fr_run_hazards *out,
                                         fr_err *err);

#endif
