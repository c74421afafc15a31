/*
 * framework_options.h: --framework: the habits of a training framework, over
 * defaults and plan file, under the options that say otherwise.
 */
#ifndef FR_CLI_OPTION_FRAMEWORK_OPTIONS_H
#define FR_CLI_OPTION_FRAMEWORK_OPTIONS_H

#include "cli/command.h"
#include "plan/target/target.h"
#include "program/lower/framework/framework.h"
#include "spec/cluster/cluster.h"

/* NULL: not given, or of CPUs, on which forerun itself trains. */
const fr_framework *fr_cli_framework(const fr_cli *cli,
                                     const fr_cluster *cluster);

/* Names of --for: forerun, any, then the targets. */
const char *fr_cli_executor_name(int i);
/* Whose plans a search keeps to, NULL: anybody's; --for, else --framework's,
 * else on this machine forerun's. */
const fr_target *fr_cli_executor(const fr_cli *cli, const fr_cluster *cluster);
/* What its plans are checked by, in its newest version; NULL: by nothing, or
 * the framework is. */
const fr_target *fr_cli_framework_target(const fr_framework *framework);

/* Fields of the plan that options say: bits FR_PLAN_X; *facts gets those of its
 * execution. */
uint64_t fr_cli_given(const fr_cli *cli, fr_execution_bits *facts);

/*
 * Lays what the framework does over plan, job and the model's vocabulary where
 * no option says it; nothing where none is given.  It may be called again
 * when the degrees have changed.
 */
void fr_cli_apply_framework(const fr_cli *cli, const fr_cluster *cluster,
                            fr_plan *plan, fr_job *job, fr_model *model);

#endif
