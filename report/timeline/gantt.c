/* gantt.c: spans are summed into cells, the largest kind gives the glyph. */
#include "report/timeline/gantt.h"

#include "core/base/units.h"
#include "program/ir/step_breakdown.h"
#include "report/timeline/span_wait.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum cell_kind {
    CELL_IDLE,
    CELL_FORWARD,
    CELL_BACKWARD,
    CELL_OPTIMIZER,
    CELL_COMMUNICATION,
    CELL_WAITING,
    CELL_OTHER,
    CELL_N
} cell_kind;

static const struct {
    const char *unicode, *ascii, *title;
} cells[CELL_N] = {
    [CELL_IDLE] = {"·", ".", "idle"},
    [CELL_FORWARD] = {"▒", "f", "forward"},
    [CELL_BACKWARD] = {"█", "b", "backward"},
    [CELL_OPTIMIZER] = {"◆", "o", "optimizer"},
    [CELL_COMMUNICATION] = {"━", "=", "communication"},
    [CELL_WAITING] = {"╌", "-", "waiting for another rank"},
    [CELL_OTHER] = {"░", "x", "other"},
};

static cell_kind kind_of(const fr_program *program, const fr_span *span)
{
    const fr_instr *instr = &program->instrs[span->i_instr];
    fr_op_class class = fr_op_class_of((fr_op)instr->op);
    if (class == FR_OP_CLASS_COLLECTIVE || class == FR_OP_CLASS_P2P)
        return CELL_COMMUNICATION;
    if (fr_step_part_of(instr) == FR_PART_OPTIMIZER)
        return CELL_OPTIMIZER;
    const fr_rank_program *rank_program =
        fr_program_of_rank(program, span->rank);
    const fr_call *call = &rank_program->calls[span->i_call];
    switch ((fr_segment_role)program->segments[call->i_segment].role) {
    case FR_SEGMENT_BACKWARD:
    case FR_SEGMENT_WEIGHTS:
    case FR_SEGMENT_EMBED_BACKWARD:
        return CELL_BACKWARD;
    case FR_SEGMENT_FORWARD:
    case FR_SEGMENT_EMBED:
        return CELL_FORWARD;
    default:
        break;
    }
    /* Segments that do both: by the instruction. */
    switch (fr_op_pass_of((fr_op)instr->op)) {
    case FR_OP_PASS_BACKWARD:
        return CELL_BACKWARD;
    case FR_OP_PASS_FORWARD:
        return CELL_FORWARD;
    default:
        return CELL_OTHER;
    }
}

typedef struct picture {
    int n_cells;
    int n_ranks;      /* that have a line */
    int32_t *ranks;   /* [n_ranks] */
    int64_t n_others; /* that would have one */
    int64_t end_ps;
    int64_t *busy_ps; /* [n_ranks][FR_LANE_N][n_cells][CELL_N] */
    bool *is_used;    /* [n_ranks][FR_LANE_N] */
} picture;

static int64_t *cell_at(const picture *p, int rank, int lane, int cell)
{
    return p->busy_ps +
           (((size_t)rank * FR_LANE_N + (size_t)lane) * (size_t)p->n_cells +
            (size_t)cell) *
               CELL_N;
}

/* Where cell i begins: end * i / n without overflow. */
static int64_t edge_ps(const picture *p, int i)
{
    return p->end_ps / p->n_cells * i + p->end_ps % p->n_cells * i / p->n_cells;
}

/* The line of a rank; -1: it has none. */
static int line_of(const picture *p, int32_t rank)
{
    int low = 0, high = p->n_ranks;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (p->ranks[middle] < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < p->n_ranks && p->ranks[low] == rank ? low : -1;
}

/* [begin_ps, end_ps] of a line's lane. */
static void paint(picture *p, int line, int lane, int64_t begin_ps,
                  int64_t end_ps, cell_kind kind)
{
    double frac = (double)begin_ps / (double)p->end_ps;
    int first = (int)(frac * p->n_cells) - 1; /* one early: rounding */
    for (int i = first < 0 ? 0 : first; i < p->n_cells; i++) {
        int64_t low_ps = edge_ps(p, i), high_ps = edge_ps(p, i + 1);
        if (low_ps >= end_ps)
            break;
        int64_t from = begin_ps > low_ps ? begin_ps : low_ps;
        int64_t to = end_ps < high_ps ? end_ps : high_ps;
        if (to > from)
            cell_at(p, line, lane, i)[kind] += to - from;
    }
    p->is_used[line * FR_LANE_N + lane] = true;
}

/* Waiting first, then the work. */
static void paint_span(picture *p, int line, const fr_program *program,
                       const fr_span *span, int64_t work_ps)
{
    paint(p, line, span->lane, span->begin_ps, work_ps, CELL_WAITING);
    paint(p, line, span->lane, work_ps, span->end_ps, kind_of(program, span));
}

static cell_kind longest(const picture *p, int rank, int lane, int cell)
{
    const int64_t *busy_ps = cell_at(p, rank, lane, cell);
    int best = CELL_IDLE;
    int64_t all_ps = 0;
    for (int k = 1; k < CELL_N; k++) {
        all_ps += busy_ps[k];
        if (busy_ps[k] > busy_ps[best])
            best = k;
    }
    /* Idle wins where the lane stood still for most of the cell. */
    return 2 * all_ps * p->n_cells < p->end_ps ? CELL_IDLE : (cell_kind)best;
}

static void print_line(const picture *p, int line, int lane, bool is_unicode,
                       bool *is_seen, fr_buffer *out)
{
    fr_buffer_printf(out, "%4d %-8s ", (int)p->ranks[line],
                     fr_lane_name((fr_lane)lane));
    for (int i = 0; i < p->n_cells; i++) {
        cell_kind kind = longest(p, line, lane, i);
        is_seen[kind] = true;
        fr_buffer_puts(out,
                       is_unicode ? cells[kind].unicode : cells[kind].ascii);
    }
    fr_buffer_putc(out, '\n');
}

static void print_picture(const picture *p, const fr_gantt_options *options,
                          bool is_folded, fr_buffer *out)
{
    char time[FR_FORMAT_MAX];
    bool is_seen[CELL_N] = {false};
    fr_buffer_printf(out, "rank lane     0%*s\n", p->n_cells - 1,
                     fr_format_s(time, sizeof time, 1e-12 * (double)p->end_ps));
    for (int line = 0; line < p->n_ranks; line++)
        for (int lane = 0; lane < FR_LANE_N; lane++)
            if (p->is_used[line * FR_LANE_N + lane])
                print_line(p, line, lane, options->is_unicode, is_seen, out);
    if (p->n_others > 0)
        fr_buffer_printf(out, "... and %lld ranks more\n",
                         (long long)p->n_others);
    if (is_folded)
        fr_buffer_puts(out, "(one rank for all that do the same)\n");
    fr_buffer_puts(out, "             ");
    for (int k = 0; k < CELL_N; k++)
        if (is_seen[k])
            fr_buffer_printf(out, " %s %s",
                             options->is_unicode ? cells[k].unicode
                                                 : cells[k].ascii,
                             cells[k].title);
    fr_buffer_putc(out, '\n');
}

fr_status fr_gantt_text(const fr_program *program, const fr_timeline *timeline,
                        const fr_gantt_options *options, fr_buffer *out,
                        fr_err *err)
{
    enum { LABEL_COLUMNS = 14 };
    int64_t world = fr_plan_world(&program->plan);
    picture p = {.n_cells = options->n_columns - LABEL_COLUMNS};
    fr_span_waits waits = {0};
    fr_status status = FR_OK;
    for (size_t i = 0; i < timeline->n; i++)
        if (timeline->at[i].step == options->step &&
            timeline->at[i].end_ps > p.end_ps)
            p.end_ps = timeline->at[i].end_ps;
    if (p.end_ps == 0)
        return fr_fail(err, FR_INPUT, "the timeline has no step %d",
                       options->step);
    p.ranks = malloc(((size_t)options->n_ranks_max + 1) * sizeof *p.ranks);
    if (p.ranks == NULL)
        return fr_fail_no_memory(err);
    const int32_t *spans_of_rank = timeline->spans_of_rank;
    for (int32_t rank = 0; rank < world; rank++) {
        if (spans_of_rank != NULL && spans_of_rank[rank] != rank)
            continue;
        if (p.n_ranks < options->n_ranks_max)
            p.ranks[p.n_ranks++] = rank;
        else
            p.n_others++;
    }
    size_t n_lines = (size_t)p.n_ranks * FR_LANE_N;
    p.busy_ps = calloc(n_lines * (size_t)p.n_cells * CELL_N, sizeof *p.busy_ps);
    p.is_used = calloc(n_lines, sizeof *p.is_used);
    if (p.busy_ps == NULL || p.is_used == NULL) {
        status = fr_fail_no_memory(err);
        goto out_picture;
    }
    FR_TRY_GOTO(
        status,
        fr_span_waits_create(program, timeline, options->step, &waits, err),
        out_picture);
    for (size_t i = 0; i < timeline->n; i++) {
        const fr_span *span = &timeline->at[i];
        int line = span->step == options->step ? line_of(&p, span->rank) : -1;
        if (line >= 0)
            paint_span(&p, line, program, span, fr_span_wait_end_ps(&waits, i));
    }
    print_picture(&p, options, spans_of_rank != NULL, out);
    status = fr_buffer_check(out, err);
out_picture:
    fr_span_waits_release(&waits);
    free(p.ranks);
    free(p.busy_ps);
    free(p.is_used);
    return status;
}
