/*
 * answers.h: one function for each question that is answered without starting
 * processes.
 *
 * Each builds *out, which is zero before and which the caller releases, also
 * after a failure.  A failure that is an answer too, such as the nearest plan
 * where none fits, leaves out->has_answer true and *out whole.  Files that the
 * request names (--output, --trace) are written.
 */
#ifndef FR_API_ANSWER_ANSWERS_H
#define FR_API_ANSWER_ANSWERS_H

#include "api/request/request.h"
#include "report/document/document.h"

#define FR_API_FUNCTION(name)                                                  \
    FR_CHECKED fr_status fr_api_##name(const fr_request *request,              \
                                       fr_document *out, fr_err *err)

FR_API_FUNCTION(simulate);
FR_API_FUNCTION(tune);
FR_API_FUNCTION(explain);
FR_API_FUNCTION(sweep);
FR_API_FUNCTION(goodput);
FR_API_FUNCTION(collective);
FR_API_FUNCTION(compare);
FR_API_FUNCTION(flows);
FR_API_FUNCTION(catalog);
FR_API_FUNCTION(export);
FR_API_FUNCTION(import);
FR_API_FUNCTION(validate);

/* Words that come first after import: kind i, NULL past the last. */
const char *fr_import_word(int i);

#undef FR_API_FUNCTION

#endif
