/*
 * compare_traces.h: `compare` of traces: where the time went, side by side.
 */
#ifndef FR_API_ANSWER_COMPARE_TRACES_H
#define FR_API_ANSWER_COMPARE_TRACES_H

#include "api/answer/answers.h"

/* positional[0]: a trace, a plan or what simulate printed; the others: traces
 * of ranks, or folders of them. */
FR_CHECKED fr_status fr_compare_traces(const fr_request *request,
                                       fr_document *out, fr_err *err);

#endif
