/*
 * run_length.h: the tokens of a job, or --steps, of a command that predicts one
 * plan: the run that its step makes, as tune counts it.
 */
#ifndef FR_CLI_GOODPUT_RUN_LENGTH_H
#define FR_CLI_GOODPUT_RUN_LENGTH_H

#include "cli/command.h"
#include "report/run_length_report.h"
#include "report/setup_report.h"
#include "spec/result/prediction.h"
#include "tuner/goal/goal.h"

/* FR_USAGE: they cannot be read.  The others take them as they are. */
FR_CHECKED fr_status fr_cli_check_run_length(const fr_cli *cli, fr_err *err);

/* Is the length of the run asked for?  The default steps of a job are those of
 * a trial. */
bool fr_cli_has_length(const fr_cli *cli, const fr_job *job);

/* Nothing where it is not. */
FR_CHECKED fr_status fr_cli_run_length_text(const fr_cli *cli,
                                            const fr_report_setup *setup,
                                            const fr_prediction *prediction,
                                            fr_buffer *out, fr_err *err);
void fr_cli_run_length_json(const fr_cli *cli, const fr_report_setup *setup,
                            const fr_prediction *prediction,
                            fr_json_writer *json);

/* What the runs of a goal count on a cluster; energy is told of up to so many
 * nodes (0: of none). */
fr_run_counts fr_cli_run_counts(const fr_goal *goal, const fr_cluster *cluster,
                                int64_t n_powered_nodes);

#endif
