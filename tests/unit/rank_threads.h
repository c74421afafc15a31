/*
 * rank_threads.h: a tiny GPT-2 of two layers whose ranks are threads of this
 * process, which meet over a loopback.
 */
#ifndef FR_TESTS_RANK_THREADS_H
#define FR_TESTS_RANK_THREADS_H

#include "program/lower/step/lower.h"
#include "runtime/comm/transport.h"

enum { RANK_THREADS_MAX = 4 };

/* The work of a rank; its transport is closed behind it. */
typedef fr_status (*rank_part_fn)(void *context, const fr_program *program,
                                  int64_t rank, fr_transport *transport,
                                  fr_err *err);

/* The outcome on each rank. */
typedef struct rank_threads {
    fr_status status[RANK_THREADS_MAX];
    fr_err err[RANK_THREADS_MAX];
} rank_threads;

/* All ranks of a plan do their part; node_of_rank NULL: all on one node.
 * false: there is no program for it (said as a failed check). */
bool rank_threads_play(const fr_plan *plan, const fr_job *job,
                       const int32_t *node_of_rank, rank_part_fn part,
                       void *context, rank_threads *out);
/* Did all ranks end well?  Those that did not are failed checks. */
bool rank_threads_are_well(const fr_plan *plan, const rank_threads *ranks);

#endif
