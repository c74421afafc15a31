/*
 * sweep_report.h: a sweep as a table, as CSV, as the JSON of
 * "forerun.sweep/1" (docs/cli.md), and its scaling curves as a picture.
 */
#ifndef FR_REPORT_SWEEP_REPORT_H
#define FR_REPORT_SWEEP_REPORT_H

#include "core/document/json.h"
#include "spec/result/sweep.h"

/* Members of an object that is already open. */
void fr_report_sweep_json(const fr_sweep *sweep, fr_json_writer *json);

/* A row per point; columns that would be empty are left out. */
FR_CHECKED fr_status fr_report_sweep_text(const fr_sweep *sweep, fr_buffer *out,
                                          fr_err *err);

/* The same in SI units, with a heading line; what is not known is empty. */
FR_CHECKED fr_status fr_report_sweep_csv(const fr_sweep *sweep, fr_buffer *out,
                                         fr_err *err);

/* Throughput over devices, one picture per curve; the line of points is what
 * the base's devices would do without loss. */
FR_CHECKED fr_status fr_report_sweep_plot(const fr_sweep *sweep,
                                          bool is_unicode, fr_buffer *out,
                                          fr_err *err);

#endif
