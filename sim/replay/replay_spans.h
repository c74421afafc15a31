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
 * What the breakdown of the step needs, and no more: the rank that ends last
 * with a span for each part of a run, and everybody's sends.
 */
FR_CHECKED fr_status fr_replay_spans_of_last(const fr_replay *replay,
                                             fr_timeline *out, fr_err *err);

/*
 * Of a program that repeats these spans have the calls of one in which the rank
 * that ends last has every round that was replayed.  It borrows all else from
 * the replay's.
 */
FR_CHECKED fr_status fr_replay_unroll_last(const fr_replay *replay,
                                           fr_program *out, fr_err *err);
void fr_replay_unroll_release(const fr_replay *replay, fr_program *unrolled);

#endif
