/* replay_spans.c: records as spans; what happens inside a run. */
#include "sim/replay/replay_spans.h"

#include "program/lower/step/repeat.h"

#include <stdlib.h>
#include <string.h>

/* A call as fr_replay_unrolled() numbers it. */
static uint32_t number_of(const fr_replay *replay, const fr_replay_record *rec,
                          uint32_t i_call)
{
    const fr_replay_context *c = replay->context;
    const fr_replay_loop *loop =
        &c->orders[c->layout.program_of_rank[rec->rank]].loop;
    uint32_t round = rec->round;
    if (round == FR_REPLAY_LAST_ROUND)
        round =
            i_call < loop->first_call + loop->n_calls ? 0 : replay->n_rounds;
    return i_call + round * loop->n_calls;
}

static fr_span span_of(const fr_replay *replay, const fr_replay_record *rec)
{
    const fr_program *program = replay->context->layout.program;
    bool meets = fr_op_class_of((fr_op)program->instrs[rec->i_instr].op) ==
                 FR_OP_CLASS_COLLECTIVE;
    return (fr_span){.rank = rec->rank,
                     .lane = rec->lane,
                     .op = program->instrs[rec->i_instr].op,
                     .i_call = number_of(replay, rec, rec->i_call),
                     .i_instr = rec->i_instr,
                     .begin_ps = rec->ready_ps,
                     .end_ps = rec->end_ps,
                     .wait_ps = meets ? rec->start_ps - rec->ready_ps : 0,
                     .late_ps = rec->late_ps};
}

static fr_status add_piece(const fr_replay *replay, fr_span span,
                           uint32_t i_call, uint32_t i_instr, int64_t begin_ps,
                           int64_t end_ps, fr_timeline *out, fr_err *err)
{
    span.i_call = i_call;
    span.i_instr = i_instr;
    span.wait_ps = span.late_ps = 0;
    span.op = replay->context->layout.program->instrs[i_instr].op;
    span.begin_ps = begin_ps;
    span.end_ps = end_ps;
    return fr_timeline_add(out, span, err);
}

/* Returns the time at which the work of a record begins: all members have
 * arrived, the slowest too. */
static int64_t work_begin_ps(const fr_replay_record *rec)
{
    return rec->start_ps + rec->late_ps;
}

/* Returns the time in a record at which the first `done` of `all` picoseconds
 * of work are over. */
static int64_t place_in(const fr_replay_record *rec, int64_t done, int64_t all)
{
    int64_t begin_ps = work_begin_ps(rec);
    if (all <= 0)
        return rec->end_ps;
    return begin_ps + (int64_t)((fr_work)(rec->end_ps - begin_ps) *
                                (fr_work)done / (fr_work)all);
}

/* Shows the wait for the others as a part of the first collective. */
static fr_status add_wait(const fr_replay *replay, const fr_replay_record *rec,
                          fr_timeline *out, fr_err *err)
{
    fr_span span = span_of(replay, rec);
    if (work_begin_ps(rec) == rec->ready_ps ||
        rec->run->i_collective == UINT32_MAX)
        return FR_OK;
    span.i_instr = rec->run->i_collective;
    span.op = replay->context->layout.program->instrs[span.i_instr].op;
    span.end_ps = work_begin_ps(rec);
    span.wait_ps = rec->start_ps - rec->ready_ps;
    return fr_timeline_add(out, span, err);
}

static uint32_t last_call(const fr_replay_record *rec)
{
    return rec->i_call + (rec->n_calls > 0 ? rec->n_calls - 1 : 0);
}

/*
 * The parts of a run one after the other.  The first piece carries the run's
 * first call, the others its last: that is where dependencies begin and end.
 */
static fr_status add_parts(const fr_replay *replay, const fr_replay_record *rec,
                           fr_timeline *out, fr_err *err)
{
    const fr_run_cost *run = rec->run;
    fr_span span = span_of(replay, rec);
    int64_t done_ps = 0, at_ps = work_begin_ps(rec);
    uint32_t i_call = span.i_call;
    FR_TRY(add_wait(replay, rec, out, err));
    /* One at its begin, so that there are two at least. */
    FR_TRY(
        add_piece(replay, span, i_call, rec->i_instr, at_ps, at_ps, out, err));
    i_call = number_of(replay, rec, last_call(rec));
    for (int part = 0; part < FR_PART_N; part++) {
        if (run->part_ps[part] == 0)
            continue;
        done_ps += run->part_ps[part];
        int64_t end_ps = place_in(rec, done_ps, run->solo_ps);
        FR_TRY(add_piece(replay, span, i_call, run->part_instr[part], at_ps,
                         end_ps, out, err));
        at_ps = end_ps;
    }
    return FR_OK;
}

/* Adds a span for every instruction of a run. */
static fr_status add_instrs(const fr_replay *replay,
                            const fr_replay_record *rec, fr_timeline *out,
                            fr_err *err)
{
    fr_replay_context *c = replay->context;
    const fr_rank_program *rank_program =
        &c->layout.program->rank_programs[c->layout.program_of_rank[rec->rank]];
    int32_t color = c->fold.color_of_rank[rec->rank];
    int64_t done_ps = 0, at_ps = work_begin_ps(rec);
    FR_TRY(add_wait(replay, rec, out, err));
    for (uint32_t i = rec->i_call; i <= last_call(rec); i++) {
        uint32_t s = rank_program->calls[i].i_segment;
        const fr_segment *segment = &c->layout.program->segments[s];
        for (uint32_t k = 0; k < segment->n_instrs; k++) {
            uint32_t i_instr = segment->first_instr + k;
            int64_t ps;
            FR_TRY(fr_replay_cost_solo(&c->costs, color, i_instr, &ps, err));
            done_ps += ps;
            int64_t end_ps = place_in(rec, done_ps, rec->run->solo_ps);
            end_ps = end_ps < rec->end_ps ? end_ps : rec->end_ps;
            FR_TRY(add_piece(replay, span_of(replay, rec), i, i_instr, at_ps,
                             end_ps, out, err));
            at_ps = end_ps;
        }
    }
    return FR_OK;
}

static fr_status set_ranks(const fr_replay *replay, fr_timeline *out,
                           fr_err *err)
{
    const fr_replay_context *c = replay->context;
    size_t n = (size_t)c->layout.n_ranks;
    out->n_ranks = (int32_t)n;
    free(out->spans_of_rank);
    out->spans_of_rank = NULL;
    if (!c->actors.is_folded || c->actors.n == c->layout.n_ranks)
        return FR_OK;
    FR_TRY_CALLOC(out->spans_of_rank, n, err);
    for (size_t r = 0; r < n; r++)
        out->spans_of_rank[r] = c->fold.rank_of_color[c->fold.color_of_rank[r]];
    return FR_OK;
}

fr_status fr_replay_unroll_last(const fr_replay *replay, fr_program *out,
                                fr_err *err)
{
    const fr_replay_context *c = replay->context;
    fr_program unrolled = *c->layout.program;
    int32_t i =
        c->layout.program_of_rank[replay->records.items[replay->last].rank];
    FR_TRY_CALLOC(unrolled.rank_programs, unrolled.n_rank_programs, err);
    memcpy(unrolled.rank_programs, c->layout.program->rank_programs,
           unrolled.n_rank_programs * sizeof *unrolled.rank_programs);
    fr_status status =
        fr_repeat_unroll(&unrolled, &c->layout.program->rank_programs[i],
                         c->orders[i].loop.first_call, replay->n_rounds,
                         &unrolled.rank_programs[i], err);
    if (status != FR_OK)
        free(unrolled.rank_programs);
    else
        *out = unrolled;
    return status;
}

void fr_replay_unroll_release(const fr_replay *replay, fr_program *unrolled)
{
    const fr_replay_context *c = replay->context;
    int32_t i =
        c->layout.program_of_rank[replay->records.items[replay->last].rank];
    free(unrolled->rank_programs[i].calls);
    free(unrolled->rank_programs[i].deps);
    free(unrolled->rank_programs);
}

fr_status fr_replay_spans(const fr_replay *replay, fr_timeline *out,
                          fr_err *err)
{
    for (size_t i = 0; i < replay->records.n; i++) {
        const fr_replay_record *rec = &replay->records.items[i];
        if (rec->run == NULL)
            FR_TRY(fr_timeline_add(out, span_of(replay, rec), err));
        else
            FR_TRY(add_instrs(replay, rec, out, err));
    }
    return set_ranks(replay, out, err);
}

fr_status fr_replay_spans_of_last(const fr_replay *replay, fr_timeline *out,
                                  fr_err *err)
{
    const fr_program *program = replay->context->layout.program;
    if (replay->last == FR_REPLAY_NONE)
        return FR_OK;
    out->skip = replay->skip;
    int32_t rank = replay->records.items[replay->last].rank;
    for (size_t i = 0; i < replay->records.n; i++) {
        const fr_replay_record *rec = &replay->records.items[i];
        bool is_send = program->instrs[rec->i_instr].op == FR_OP_SEND;
        if (rec->rank != rank && !(is_send && rec->run == NULL))
            continue;
        if (rec->run == NULL)
            FR_TRY(fr_timeline_add(out, span_of(replay, rec), err));
        else
            FR_TRY(add_parts(replay, rec, out, err));
    }
    return set_ranks(replay, out, err);
}
