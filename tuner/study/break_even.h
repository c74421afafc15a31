/*
 * break_even.h: from which bandwidth on it pays to compress gradients, found
 * by simulating the plan with and without on faster and slower links.
 */
#ifndef FR_TUNER_STUDY_BREAK_EVEN_H
#define FR_TUNER_STUDY_BREAK_EVEN_H

#include "tuner/study/explain_plan.h"

/*
 * Every compressor of the table against none, with the other decisions of the
 * request's plan (its own compressor is one of them, with its rank, density
 * and error feedback).  The links are those that gradients go through: of the
 * network, where any two ranks of a data-parallel group sit on different
 * nodes, else those inside a node.  A coarse scan of their rate finds the
 * changes of sign, which are then narrowed to half a percent; two of them
 * between neighbours of the scan (a factor of 4) are not seen.  out->n is 0
 * without data parallelism.  The same for any number of threads.
 */
FR_CHECKED fr_status fr_break_even_find(const fr_explain_request *request,
                                        fr_break_even *out, fr_err *err);

#endif
