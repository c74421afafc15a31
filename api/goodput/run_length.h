/*
 * run_length.h: the tokens of a job, or --steps, of a command that predicts one
 * plan: the run that its step makes, as tune counts it.
 */
#ifndef FR_API_GOODPUT_RUN_LENGTH_H
#define FR_API_GOODPUT_RUN_LENGTH_H

#include "api/request/request.h"
#include "report/run_length_report.h"
#include "report/setup_report.h"
#include "spec/result/prediction.h"
#include "tuner/goal/goal.h"

/* FR_USAGE: they cannot be read.  The others take them as they are. */
FR_CHECKED fr_status fr_request_check_run_length(const fr_request *request,
                                                 fr_err *err);

/* Is the length of the run asked for?  The default steps of a job are those of
 * a trial. */
bool fr_request_has_length(const fr_request *request, const fr_job *job);

/* Adds the run to an answer where its length is asked for. */
void fr_request_run_length(const fr_request *request,
                           const fr_report_setup *setup,
                           const fr_prediction *prediction, fr_document *out);

/* Returns the quantities that runs for a goal include on a cluster; energy is
 * known for up to n_powered_nodes nodes. */
fr_run_counts fr_run_counts_of(const fr_goal *goal, const fr_cluster *cluster,
                               int64_t n_powered_nodes);

#endif
