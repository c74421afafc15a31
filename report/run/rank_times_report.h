/*
 * rank_times_report.h: which ranks computed longer than others, and who held
 * the run up.
 */
#ifndef FR_REPORT_RUN_RANK_TIMES_REPORT_H
#define FR_REPORT_RUN_RANK_TIMES_REPORT_H

#include "report/run/run_report.h"

/* "monitoring_s", "stragglers" and "ranks" of an object that is open; what is
 * not known is null. */
void fr_report_rank_times_json(const fr_run_report *report,
                               fr_json_writer *json);
/* A line a straggler, and a heat map of the ranks, dp across and pipeline
 * stages down: nothing where there is nothing to say. */
void fr_report_rank_times_text(const fr_run_report *report, fr_document *out);

#endif
