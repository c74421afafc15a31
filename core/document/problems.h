/*
 * problems.h: all that is wrong with a document, so that who wrote it mends it
 * in one go.  What was collected becomes one error: a line for a single
 * problem, else a count and a line for each, in the order of the document.
 */
#ifndef FR_CORE_DOCUMENT_PROBLEMS_H
#define FR_CORE_DOCUMENT_PROBLEMS_H

#include "core/base/err.h"
#include "core/base/vec.h"

typedef struct fr_problem {
    int line;
    char *text;
} fr_problem;

/* Starts as zeros. */
typedef struct fr_problems {
    fr_vec(fr_problem) list; /* the first of them; texts owned */
    size_t n_all;
} fr_problems;

/*
 * Takes what a reader of the element at `line` came back with: FR_OK for FR_OK,
 * for FR_INPUT, whose text (once) joins the list, and for FR_SKIPPED: a
 * consequence of what stands in the list already.  Any other status goes to
 * *err.
 */
FR_CHECKED fr_status fr_problems_take(fr_problems *problems, int line,
                                      fr_status status, const fr_err *problem,
                                      fr_err *err);

/* FR_OK where there is none, else FR_INPUT; `name` is the document's. */
FR_CHECKED fr_status fr_problems_check(fr_problems *problems, const char *name,
                                       fr_err *err);
void fr_problems_release(fr_problems *problems);

#endif
