/*
 * shots_report.h: what `validate --shots` says, as text and as the member
 * `shots` of "forerun.validation/1".
 */
#ifndef FR_REPORT_VALIDATION_SHOTS_REPORT_H
#define FR_REPORT_VALIDATION_SHOTS_REPORT_H

#include "core/document/json.h"
#include "spec/result/shots.h"

/* Nothing where no shots were asked for. */
void fr_report_shots_json(const fr_shots *shots, fr_json_writer *json);
FR_CHECKED fr_status fr_report_shots_text(const fr_shots *shots, fr_buffer *out,
                                          fr_err *err);

#endif
