/*
 * validate_shots.h: `validate --shots`: rows of a source learned from, the rest
 * of it predicted.
 */
#ifndef FR_CLI_MEASURED_VALIDATE_SHOTS_H
#define FR_CLI_MEASURED_VALIDATE_SHOTS_H

#include "cli/cli.h"
#include "spec/result/shots.h"
#include "spec/result/validation.h"

/* --shots, --draws and --seed into what is asked; FR_USAGE. */
FR_CHECKED fr_status fr_cli_shots_asked(const fr_cli *cli, fr_shots *out,
                                        fr_err *err);
/* Of the rows whose step time is scored. */
FR_CHECKED fr_status fr_cli_shots_make(const fr_validation *validation,
                                       fr_shots *shots, fr_err *err);

#endif
