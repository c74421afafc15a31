/*
 * shots_report.h: the answer of `validate --shots`; its data are the member
 * `shots` of "forerun.validation/1".
 */
#ifndef FR_REPORT_VALIDATION_SHOTS_REPORT_H
#define FR_REPORT_VALIDATION_SHOTS_REPORT_H

#include "report/document/document.h"
#include "spec/result/shots.h"

/* Nothing where no shots were asked for. */
void fr_report_shots(const fr_shots *shots, fr_document *out);

#endif
