/* gantt.c: spans of the lanes of the first ranks; see gantt.h. */
#include "report/timeline/gantt.h"

#include "program/ir/step_breakdown.h"
#include "report/timeline/span_wait.h"

#include <stdlib.h>

static fr_lane_use use_of(const fr_program *program, const fr_span *span)
{
    const fr_instr *instr = &program->instrs[span->i_instr];
    fr_op_class class = fr_op_class_of((fr_op)instr->op);
    if (class == FR_OP_CLASS_COLLECTIVE || class == FR_OP_CLASS_P2P)
        return FR_USE_COMMUNICATION;
    if (fr_step_part_of(instr) == FR_PART_OPTIMIZER)
        return FR_USE_OPTIMIZER;
    const fr_rank_program *rank_program =
        fr_program_of_rank(program, span->rank);
    const fr_call *call = &rank_program->calls[span->i_call];
    switch ((fr_segment_role)program->segments[call->i_segment].role) {
    case FR_SEGMENT_BACKWARD:
    case FR_SEGMENT_WEIGHTS:
    case FR_SEGMENT_EMBED_BACKWARD:
        return FR_USE_BACKWARD;
    case FR_SEGMENT_FORWARD:
    case FR_SEGMENT_EMBED:
        return FR_USE_FORWARD;
    default:
        break;
    }
    /* Segments that do both: by the instruction. */
    switch (fr_op_pass_of((fr_op)instr->op)) {
    case FR_OP_PASS_BACKWARD:
        return FR_USE_BACKWARD;
    case FR_OP_PASS_FORWARD:
        return FR_USE_FORWARD;
    default:
        return FR_USE_OTHER;
    }
}

/* Ranks that have rows, and all rows, used or not: [n][FR_LANE_N]. */
typedef struct grid {
    int n;
    int32_t ranks[FR_GANTT_RANKS];
    fr_lanes *lanes;
} grid;

/* Returns the row of a rank; -1: it has none. */
static int place_of(const grid *g, int32_t rank)
{
    int low = 0, high = g->n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (g->ranks[middle] < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < g->n && g->ranks[low] == rank ? low : -1;
}

static fr_status push(fr_lane_row *row, int64_t begin_ps, int64_t end_ps,
                      fr_lane_use use, fr_err *err)
{
    const fr_lane_span span = {begin_ps, end_ps, use};
    FR_TRY_PUSH(&row->spans, span, err);
    return FR_OK;
}

static void choose_ranks(const fr_program *program, const fr_timeline *timeline,
                         grid *g)
{
    const int64_t world = fr_plan_world(&program->plan);
    const int32_t *spans_of_rank = timeline->spans_of_rank;
    g->lanes->is_folded = spans_of_rank != NULL;
    for (int32_t rank = 0; rank < world; rank++) {
        if (spans_of_rank != NULL && spans_of_rank[rank] != rank)
            continue;
        if (g->n < FR_GANTT_RANKS)
            g->ranks[g->n++] = rank;
        else
            g->lanes->n_others++;
    }
}

/* Waiting first, then the work. */
static fr_status add_spans(const fr_program *program,
                           const fr_timeline *timeline, int32_t step, grid *g,
                           fr_err *err)
{
    fr_span_waits waits = {0};
    fr_status status;
    FR_TRY(fr_span_waits_create(program, timeline, step, &waits, err));
    status = FR_OK;
    for (size_t i = 0; i < timeline->n && status == FR_OK; i++) {
        const fr_span *span = &timeline->at[i];
        const int place = span->step == step ? place_of(g, span->rank) : -1;
        if (place < 0)
            continue;
        fr_lane_row *row = &g->lanes->rows[place * FR_LANE_N + span->lane];
        const int64_t work_ps = fr_span_wait_end_ps(&waits, i);
        status = push(row, span->begin_ps, work_ps, FR_USE_WAITING, err);
        if (status == FR_OK)
            status =
                push(row, work_ps, span->end_ps, use_of(program, span), err);
    }
    fr_span_waits_release(&waits);
    return status;
}

/* Rows without a span go. */
static void drop_idle(fr_lanes *lanes)
{
    size_t n = 0;
    for (size_t i = 0; i < lanes->n; i++)
        if (lanes->rows[i].spans.n > 0)
            lanes->rows[n++] = lanes->rows[i];
    lanes->n = n;
}

static fr_status fill(const fr_program *program, const fr_timeline *timeline,
                      int32_t step, grid *g, fr_err *err)
{
    fr_lanes *lanes = g->lanes;
    for (size_t i = 0; i < timeline->n; i++)
        if (timeline->at[i].step == step &&
            timeline->at[i].end_ps > lanes->end_ps)
            lanes->end_ps = timeline->at[i].end_ps;
    if (lanes->end_ps == 0)
        return fr_fail(err, FR_INPUT, "the timeline has no step %d", step);
    choose_ranks(program, timeline, g);
    FR_TRY_CALLOC(lanes->rows, (size_t)g->n * FR_LANE_N + 1, err);
    lanes->n = (size_t)g->n * FR_LANE_N;
    for (size_t i = 0; i < lanes->n; i++) {
        lanes->rows[i].rank = g->ranks[i / FR_LANE_N];
        lanes->rows[i].name = fr_lane_name((fr_lane)(i % FR_LANE_N));
    }
    FR_TRY(add_spans(program, timeline, step, g, err));
    drop_idle(lanes);
    return FR_OK;
}

fr_status fr_report_gantt(const fr_program *program,
                          const fr_timeline *timeline, int32_t step,
                          fr_document *out, fr_err *err)
{
    grid g = {.n = 0};
    FR_TRY_CALLOC(g.lanes, 1, err);
    const fr_status status = fill(program, timeline, step, &g, err);
    if (status == FR_OK)
        fr_document_lanes(out, g.lanes);
    else
        fr_lanes_destroy(g.lanes);
    return status;
}
