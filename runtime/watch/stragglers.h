/*
 * stragglers.h: finds who holds a run up, from what each rank says after each
 * step: how long it computed, how long it waited in collectives.
 *
 * A slow rank computes longer than the ranks of its stage while they wait for
 * it; slow links make all members of a group wait, the last to come too.  A
 * verdict needs nearly all of a window of steps: the median of the quotients
 * is well above 1 and far from it by its own error (a robust z), so steps that
 * something else held up make no straggler.
 */
#ifndef FR_RUNTIME_WATCH_STRAGGLERS_H
#define FR_RUNTIME_WATCH_STRAGGLERS_H

#include "core/base/vec.h"
#include "plan/decide/plan.h"
#include "spec/run/straggler.h"

typedef struct fr_stragglers fr_stragglers;

typedef fr_vec(fr_straggler) fr_straggler_list;

/* is_crowded: ranks share cores. */
FR_CHECKED fr_status fr_stragglers_create(const fr_plan *plan, bool is_crowded,
                                          fr_stragglers **out, fr_err *err);
void fr_stragglers_destroy(fr_stragglers *stragglers); /* takes NULL */

/* One more step, which took step_s: rank r spent part_s[r * FR_PART_N + part]
 * in a part. */
FR_CHECKED fr_status fr_stragglers_add(fr_stragglers *stragglers,
                                       int64_t i_step, double step_s,
                                       const double *part_s, fr_err *err);

/* All that were found so far, oldest first; belongs to `stragglers`. */
const fr_straggler_list *fr_stragglers_found(const fr_stragglers *stragglers);

#endif
