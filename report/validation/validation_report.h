/*
 * validation_report.h: the answer of validate; its data are the members of
 * "forerun.validation/1".
 */
#ifndef FR_REPORT_VALIDATION_VALIDATION_REPORT_H
#define FR_REPORT_VALIDATION_VALIDATION_REPORT_H

#include "report/document/document.h"
#include "spec/result/validation.h"

/*
 * For readers: tables by source, the `n_worst` rows that are furthest off, or
 * all rows (`is_every_row`), and why rows could not be run.
 */
void fr_report_validation(const fr_validation *validation, size_t n_worst,
                          bool is_every_row, fr_document *out);

#endif
