/*
 * no_effect.h: options that were given and that the answer does not depend on
 * are named, with the reason.
 */
#ifndef FR_CLI_OPTION_NO_EFFECT_H
#define FR_CLI_OPTION_NO_EFFECT_H

#include "cli/command.h"
#include "spec/cluster/cluster.h"
#include "spec/model/model.h"

/* One note on stderr for each reason, of a command that predicts. */
void fr_note_no_effect(const fr_cli *cli, const fr_model *model,
                       const fr_cluster *cluster);

/* Is the option among those, given or not? */
bool fr_has_no_effect(const fr_cli *cli, fr_option option,
                      const fr_model *model, const fr_cluster *cluster);

#endif
