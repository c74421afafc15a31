/*
 * sweep_report.h: the answer of sweep, whose data are the members of
 * "forerun.sweep/1" (docs/cli.md), and its scaling curves.
 */
#ifndef FR_REPORT_SWEEP_REPORT_H
#define FR_REPORT_SWEEP_REPORT_H

#include "report/document/document.h"
#include "spec/result/sweep.h"

/* A row per point, a legend below, and the members. */
void fr_report_sweep(const fr_sweep *sweep, fr_document *out);

/* Throughput over devices, one plot per curve; its guide is what the base's
 * devices would do without loss. */
FR_CHECKED fr_status fr_report_sweep_plot(const fr_sweep *sweep,
                                          fr_document *out, fr_err *err);

#endif
