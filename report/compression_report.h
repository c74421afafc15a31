/* compression_report.h: where compressing gradients pays (docs/cli.md). */
#ifndef FR_REPORT_COMPRESSION_REPORT_H
#define FR_REPORT_COMPRESSION_REPORT_H

#include "report/document/document.h"
#include "spec/result/explanation.h"

/* The members `compression` and `compression_link`, both null without data
 * parallelism; for readers a table then, and nothing without it. */
void fr_report_compression(const fr_break_even *answer, fr_document *out);

#endif
