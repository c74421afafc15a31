/*
 * fit_advice.h: the verdict on a plan that does not fit, why it does not, and
 * the fewest changes with which it would.
 */
#ifndef FR_SPEC_RESULT_FIT_ADVICE_H
#define FR_SPEC_RESULT_FIT_ADVICE_H

#include "spec/result/tuning.h"

enum { FR_FIT_VERDICT = 128 };

/* Is the verdict about the hosts of a node, and not about the device? */
bool fr_fit_is_of_hosts(const fr_prediction *prediction);

/*
 * The verdict on a plan's memory, in the words of every command: "DOES NOT FIT:
 * needs 93.1 of 79.6 GiB (93 % sure)".  The memory is that of the tightest
 * rank, or of a node's hosts where more is offloaded than they hold.  Of a plan
 * that fits, but with less than --fit-confidence: "MAY NOT FIT: needs 75.8 of
 * 79.6 GiB (fits with 71 %, less than --fit-confidence)".  Returns buf.
 */
char *fr_fit_verdict(const fr_prediction *prediction, char *buf, size_t n_buf);

/* "1 of 8 points DOES NOT FIT", "3 of 8 points DO NOT FIT".  Returns buf. */
char *fr_fit_count(size_t n_too_large, size_t n, char *buf, size_t n_buf);

/* Part of what the tightest rank holds. */
typedef struct fr_fit_cause {
    char what[96]; /* "optimizer state, whole on every rank" */
    uint64_t n_bytes;
} fr_fit_cause;

/* One to three changes of the plan at once, which fit. */
typedef struct fr_fit_change {
    char what[160];           /* "zero 0 -> 1, micro-batch 4 -> 2" */
    char plan[FR_TUNED_NAME]; /* fr_plan_describe */
    int n_changes;
    double step_s, p_fits;
    uint64_t peak_bytes;
} fr_fit_change;

enum { FR_FIT_CAUSES = 3, FR_FIT_CHANGES = 9 };

typedef struct fr_fit_advice {
    char verdict[FR_FIT_VERDICT]; /* fr_fit_verdict */
    uint64_t short_by_bytes, capacity_bytes;
    fr_fit_cause causes[FR_FIT_CAUSES]; /* largest first */
    int n_causes;
    fr_fit_change changes[FR_FIT_CHANGES]; /* fewest first, of as many the
                                              fastest */
    int n_changes;
    bool is_searched;  /* for changes */
    bool is_of_search; /* of a search's nearest plan: all others are larger */
    int n_left_out;    /* that take too long to simulate */
} fr_fit_advice;

#endif
