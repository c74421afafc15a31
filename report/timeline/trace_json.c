/* trace_json.c: the writer; formats as in the Trace Event Format document. */
#include "report/timeline/trace_json.h"

#include "plan/decide/grid.h"
#include "program/ir/step_breakdown.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct writer {
    const fr_program *program;
    const fr_trace_part *part;
    int64_t pid;
    fr_buffer *out;
} writer;

/* Microseconds with all picoseconds. */
static void put_us(fr_buffer *out, const char *key, int64_t ps)
{
    fr_buffer_printf(out, ",\"%s\":%lld.%06lld", key, (long long)(ps / 1000000),
                     (long long)(ps % 1000000));
}

static void begin_event(const writer *w, const char *name, const char *phase,
                        int tid)
{
    fr_buffer_printf(w->out,
                     ",\n{\"name\":\"%s\",\"ph\":\"%s\",\"pid\":%lld,"
                     "\"tid\":%d",
                     name, phase, (long long)w->pid, tid);
}

static void put_metadata(const writer *w, int32_t rank, int64_t sort_index)
{
    begin_event(w, "process_name", "M", 0);
    fr_buffer_printf(w->out, ",\"args\":{\"name\":\"rank %d %s\"}}", rank,
                     w->part->label);
    begin_event(w, "process_sort_index", "M", 0);
    fr_buffer_printf(w->out, ",\"args\":{\"sort_index\":%lld}}",
                     (long long)sort_index);
    for (int lane = 0; lane < FR_LANE_N; lane++) {
        begin_event(w, "thread_name", "M", lane);
        fr_buffer_printf(w->out, ",\"args\":{\"name\":\"%s\"}}",
                         fr_lane_name((fr_lane)lane));
        begin_event(w, "thread_sort_index", "M", lane);
        fr_buffer_printf(w->out, ",\"args\":{\"sort_index\":%d}}", lane);
    }
}

static void put_call(const writer *w, const fr_span *first, const fr_span *last)
{
    const fr_rank_program *rank_program =
        fr_program_of_rank(w->program, first->rank);
    const fr_call *call = &rank_program->calls[first->i_call];
    begin_event(w, w->program->segments[call->i_segment].name, "X",
                first->lane);
    fr_buffer_puts(w->out, ",\"cat\":\"call\"");
    put_us(w->out, "ts", first->begin_ps);
    put_us(w->out, "dur", last->end_ps - first->begin_ps);
    fr_buffer_printf(w->out, ",\"args\":{\"call\":%u", first->i_call);
    if (call->layer >= 0)
        fr_buffer_printf(w->out, ",\"layer\":%d", call->layer);
    if (call->micro_batch >= 0)
        fr_buffer_printf(w->out, ",\"micro_batch\":%d", call->micro_batch);
    if (call->chunk >= 0)
        fr_buffer_printf(w->out, ",\"chunk\":%d", call->chunk);
    fr_buffer_puts(w->out, "}}");
}

static void put_instr(const writer *w, const fr_span *span)
{
    const fr_instr *instr = &w->program->instrs[span->i_instr];
    fr_op_class class = fr_op_class_of((fr_op)instr->op);
    begin_event(w, fr_op_name((fr_op)instr->op), "X", span->lane);
    fr_buffer_printf(w->out, ",\"cat\":\"%s\"",
                     fr_part_name(fr_step_part_of(instr)));
    put_us(w->out, "ts", span->begin_ps);
    put_us(w->out, "dur", span->end_ps - span->begin_ps);
    if (class == FR_OP_CLASS_COMPUTE) {
        fr_buffer_printf(w->out, ",\"args\":{\"flop\":%llu}}",
                         (unsigned long long)fr_instr_flop(instr));
        return;
    }
    fr_buffer_printf(w->out, ",\"args\":{\"bytes\":%llu,\"axis\":\"%s\"}}",
                     (unsigned long long)fr_instr_payload_bytes(instr),
                     fr_axis_name((fr_axis)instr->axis));
}

/*
 * Arrows need one number that sender and receiver derive alike: axis, tag and
 * both ranks; a repeated tag gives arrows that share a number, which viewers
 * join in order.
 */
static void put_flow(const writer *w, const fr_span *span)
{
    const fr_instr *instr = &w->program->instrs[span->i_instr];
    bool is_send = instr->op == FR_OP_SEND;
    if ((!is_send && instr->op != FR_OP_RECV) || instr->axis != FR_AXIS_PP)
        return;
    fr_coord coord = fr_plan_coord(&w->program->plan, span->rank);
    coord.pp = instr->peer;
    int64_t peer = fr_plan_rank(&w->program->plan, coord);
    if (w->part->timeline->spans_of_rank != NULL)
        peer = w->part->timeline->spans_of_rank[peer];
    begin_event(w, "pp", is_send ? "s" : "f", span->lane);
    fr_buffer_printf(w->out, ",\"cat\":\"pp\",\"id\":\"%s.%u.%lld.%lld\"",
                     w->part->label, instr->tag,
                     (long long)(is_send ? span->rank : peer),
                     (long long)(is_send ? peer : span->rank));
    if (!is_send)
        fr_buffer_puts(w->out, ",\"bp\":\"e\"");
    /* A nanosecond inside, so that viewers bind the end to this span. */
    int64_t last_ps = span->end_ps - 1000 > span->begin_ps ? span->end_ps - 1000
                                                           : span->begin_ps;
    put_us(w->out, "ts", is_send ? span->begin_ps : last_ps);
    fr_buffer_puts(w->out, "}");
}

/* One lane of one rank: spans[0..n) in time order. */
static fr_status put_lane(const writer *w, const fr_span **spans, size_t n,
                          fr_err *err)
{
    for (size_t i = 0; i < n;) {
        size_t end = i + 1;
        while (end < n && spans[end]->i_call == spans[i]->i_call &&
               spans[end]->begin_ps >= spans[end - 1]->end_ps)
            end++;
        if (end < n && spans[end]->begin_ps < spans[end - 1]->end_ps)
            return fr_fail(err, FR_CHECK,
                           "%s timeline: rank %d lane %s: call %u begins "
                           "before call %u ends",
                           w->part->label, spans[i]->rank,
                           fr_lane_name((fr_lane)spans[i]->lane),
                           spans[end]->i_call, spans[end - 1]->i_call);
        put_call(w, spans[i], spans[end - 1]);
        for (; i < end; i++) {
            put_instr(w, spans[i]);
            put_flow(w, spans[i]);
        }
    }
    return FR_OK;
}

static fr_status put_part(const fr_program *program, const fr_trace_part *parts,
                          int n_parts, int i_part, fr_buffer *out, fr_err *err)
{
    const fr_timeline *timeline = parts[i_part].timeline;
    int64_t n_ranks = fr_plan_world(&program->plan);
    const fr_span **spans = malloc((timeline->n + 1) * sizeof *spans);
    if (spans == NULL)
        return fr_fail_no_memory(err);
    size_t n = 0;
    for (size_t i = 0; i < timeline->n; i++)
        if (timeline->at[i].step == parts[i_part].step)
            spans[n++] = &timeline->at[i];
    qsort(spans, n, sizeof *spans, fr_span_compare);
    fr_status status = FR_OK;
    size_t n_most = FR_TRACE_SPANS_MAX / (size_t)n_parts, n_left_out = 0;
    int32_t last_rank = -1;
    for (size_t i = 0, end; i < n; i = end) {
        int32_t rank = spans[i]->rank;
        for (end = i + 1; end < n && spans[end]->rank == rank &&
                          spans[end]->lane == spans[i]->lane;)
            end++;
        if (rank != last_rank && end > n_most) {
            n_left_out = n - i;
            break;
        }
        /* One timeline: pid = rank.  More: the ranks of each after those of
         * the one before; the sort index puts them beside each other. */
        writer w = {program, &parts[i_part], i_part * n_ranks + rank, out};
        if (rank != last_rank)
            put_metadata(&w, rank, (int64_t)rank * n_parts + i_part);
        last_rank = rank;
        FR_TRY_GOTO(status, put_lane(&w, spans + i, end - i, err), out_spans);
    }
    if (n_left_out > 0) {
        writer w = {program, &parts[i_part], i_part * n_ranks, out};
        begin_event(&w, "left_out", "M", 0);
        fr_buffer_printf(out, ",\"args\":{\"spans\":%zu}}", n_left_out);
    }
out_spans:
    free(spans);
    return status;
}

fr_status fr_trace_json(const fr_program *program, const fr_trace_part *parts,
                        int n_parts, fr_buffer *out, fr_err *err)
{
    char name[256];
    fr_buffer_printf(out,
                     "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"schema\":"
                     "\"forerun.trace/1\",\"plan\":\"%s\"},\n"
                     "\"traceEvents\":[\n{\"name\":\"forerun\",\"ph\":\"M\","
                     "\"pid\":0,\"tid\":0,\"args\":{}}",
                     fr_plan_describe(&program->plan, name, sizeof name));
    for (int i = 0; i < n_parts; i++)
        FR_TRY(put_part(program, parts, n_parts, i, out, err));
    fr_buffer_puts(out, "\n]}\n");
    return fr_buffer_check(out, err);
}
