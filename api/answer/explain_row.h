/*
 * explain_row.h: `validate --explain-row ID`: how the cells of a row are read.
 */
#ifndef FR_API_ANSWER_EXPLAIN_ROW_H
#define FR_API_ANSWER_EXPLAIN_ROW_H

#include "api/request/request.h"
#include "interop/case/case.h"
#include "report/document/document.h"

/* Shows how the row of that name among rows[n] is read; FR_INPUT: there is
 * none, or it is not understood. */
FR_CHECKED fr_status fr_explain_row(const fr_request *request,
                                    const fr_case *rows, size_t n,
                                    fr_document *out, fr_err *err);

#endif
