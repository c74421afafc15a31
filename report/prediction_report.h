/*
 * prediction_report.h: a prediction in an answer, and its members, which are
 * those of "forerun.prediction/1" (docs/cli.md); they are also read back from
 * plan files and from what simulate printed.
 */
#ifndef FR_REPORT_PREDICTION_REPORT_H
#define FR_REPORT_PREDICTION_REPORT_H

#include "report/document/document.h"
#include "spec/model/model.h"
#include "spec/result/prediction.h"

/* Members of an object that is already open, `schema` not among them. */
void fr_report_prediction_json(const fr_prediction *prediction,
                               fr_json_writer *json);

/* "parameters_bytes" to "device_bytes": what the memory is made of. */
void fr_report_memory_parts_json(const fr_prediction *prediction,
                                 fr_json_writer *json);

/* "step_s": {"compute": ...}: all parts, zeros too. */
void fr_report_breakdown_json(const char *key,
                              const double breakdown_s[FR_PART_N],
                              fr_json_writer *json);

/* Time by part, then memory by component, and the members.  An answer about a
 * plan that does not fit has said so in its first line (fr_report_verdict). */
void fr_report_prediction(const fr_model *model,
                          const fr_prediction *prediction, fr_document *out);

/* "2474 tokens/s"; "41 images/s" or "41 samples/s" of a model that counts these
 * (fr_model_counted). */
void fr_report_rate(const fr_model *model, double tokens_per_s,
                    double samples_per_s, fr_document *out);

/* "exposed_dp" -> "exposed dp"; returns buf. */
char *fr_report_part_title(fr_part part, char *buf, size_t n_buf);

#endif
