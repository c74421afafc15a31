/*
 * replay_spans.h: a replay as a timeline.
 */
#ifndef FR_SIM_REPLAY_REPLAY_SPANS_H
#define FR_SIM_REPLAY_REPLAY_SPANS_H

#include "sim/replay/replay.h"
#include "spec/result/timeline.h"

/*
 * Appends a span for every instruction that was replayed (of a program that
 * does not repeat), those of runs laid
 * out in them by what they take alone.  A folded replay has the spans of one
 * rank for all that are alike; out->spans_of_rank tells which.
 */
FR_CHECKED fr_status fr_replay_spans(const fr_replay *replay, fr_timeline *out,
                                     fr_err *err);

/*
 * Writes only the spans that the breakdown of the step needs: the rank that
 * ends last with a span for each part of a run, and the sends of all ranks.
 */
FR_CHECKED fr_status fr_replay_spans_of_last(const fr_replay *replay,
                                             fr_timeline *out, fr_err *err);

/*
 * Makes the program that these spans refer to if the replayed program repeats:
 * in it the rank that ends last has every round that was replayed.  It borrows
 * all other parts from the replay's program.
 */
FR_CHECKED fr_status fr_replay_unroll_last(const fr_replay *replay,
                                           fr_program *out, fr_err *err);
void fr_replay_unroll_release(const fr_replay *replay, fr_program *unrolled);

#endif
