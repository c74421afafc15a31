/* repeat.c: finds periods of calls by comparing them; writes them out. */
#include "program/lower/step/repeat.h"

#include <stdlib.h>

/* Periods that a program must have at least: some before and after the one
 * that is repeated. */
enum { LEAST_PERIODS = 8 };

/* Does call `later` do what call `before` did? */
static bool is_same(const fr_rank_program *p, uint32_t before, uint32_t later,
                    int32_t micro_step)
{
    const fr_call *a = &p->calls[before], *b = &p->calls[later];
    const uint32_t period = later - before;
    bool is_alike =
        a->i_segment == b->i_segment && a->layer == b->layer &&
        a->chunk == b->chunk && a->spaces == b->spaces &&
        a->n_deps == b->n_deps &&
        (a->micro_batch < 0 ? b->micro_batch < 0
                            : a->micro_batch + micro_step == b->micro_batch);
    for (uint32_t d = 0; is_alike && d < a->n_deps; d++)
        is_alike =
            p->deps[a->first_dep + d] + period == p->deps[b->first_dep + d];
    return is_alike;
}

/* The next call after `before` that is of the same segment as `call`, for the
 * micro-batch micro_step later; the number of all calls: there is none. */
static uint32_t find_next(const fr_rank_program *p, uint32_t call,
                          uint32_t before, int32_t micro_step)
{
    const fr_call *a = &p->calls[call];
    uint32_t next = before + 1;
    for (; next < p->n_calls; next++) {
        const fr_call *b = &p->calls[next];
        if (b->i_segment == a->i_segment && b->layer == a->layer &&
            b->chunk == a->chunk &&
            b->micro_batch == a->micro_batch + micro_step)
            break;
    }
    return next;
}

/* All calls around `from` that are the same a period later. */
static fr_repeat extend(const fr_rank_program *p, uint32_t from,
                        uint32_t period, int32_t micro_step)
{
    uint32_t first = from, end = from;
    while (end + period < p->n_calls &&
           is_same(p, end, end + period, micro_step))
        end++;
    while (first > 0 && is_same(p, first - 1, first - 1 + period, micro_step))
        first--;
    return (fr_repeat){first, end + period - first, period};
}

bool fr_repeat_find(const fr_program *program, const fr_rank_program *p,
                    int32_t micro_step, fr_repeat *out)
{
    enum { MOST_TRIES = 16 }; /* a segment may be called twice for a layer */
    uint32_t from = p->n_calls / 2;
    while (
        from < p->n_calls &&
        (p->calls[from].micro_batch < 0 ||
         program->segments[p->calls[from].i_segment].lane != FR_LANE_COMPUTE))
        from++;
    for (uint32_t i = 0, next = from; i < MOST_TRIES && next < p->n_calls;
         i++) {
        next = find_next(p, from, next, micro_step);
        if (next >= p->n_calls)
            return false;
        *out = extend(p, from, next - from, micro_step);
        if (out->n_calls / out->period >= LEAST_PERIODS)
            return true;
    }
    return false;
}

fr_status fr_repeat_unroll(const fr_program *program, const fr_rank_program *p,
                           uint32_t first, uint32_t n, fr_rank_program *out,
                           fr_err *err)
{
    const fr_repeat *repeat = &p->repeat;
    const uint32_t end = first + repeat->period;
    const size_t n_calls = p->n_calls + (size_t)n * repeat->period;
    size_t n_deps = p->n_deps, at = 0, at_dep = 0;
    for (uint32_t i = first; i < end; i++)
        n_deps += (size_t)n * p->calls[i].n_deps;
    fr_rank_program made = *p;
    made.calls = malloc((n_calls + 1) * sizeof *made.calls);
    made.deps = malloc((n_deps + 1) * sizeof *made.deps);
    if (made.calls == NULL || made.deps == NULL) {
        free(made.calls);
        free(made.deps);
        return fr_fail_no_memory(err);
    }
    uint32_t time = 0;
    for (uint32_t i = 0; i < p->n_calls; at++) {
        fr_call *call = &made.calls[at];
        *call = p->calls[i];
        call->first_dep = (uint32_t)at_dep;
        if (call->micro_batch >= 0)
            call->micro_batch += (int32_t)time * program->repeat_micro;
        for (uint32_t d = 0; d < call->n_deps; d++)
            made.deps[at_dep++] = (uint32_t)fr_repeat_dep(
                repeat, p->deps[p->calls[i].first_dep + d],
                i < first ? 0 : time);
        if (++i == end && time < n) {
            time++;
            i = first;
        }
    }
    made.n_calls = (uint32_t)n_calls;
    made.n_deps = (uint32_t)n_deps;
    *out = made;
    return FR_OK;
}
