/* step_breakdown.c: one rank's step, walked back where its compute lane waits.
 */
#include "program/ir/step_breakdown.h"

#include "plan/decide/grid.h"

#include <stdlib.h>
#include <string.h>

fr_part fr_step_part_of(const fr_instr *instr)
{
    switch ((fr_op)instr->op) {
    case FR_OP_OPT_NORMS:
    case FR_OP_OPT_STEP:
    case FR_OP_GRAD_SQSUM:
    case FR_OP_CLIP:
        return FR_PART_OPTIMIZER;
    case FR_OP_COMPRESS:
    case FR_OP_DECOMPRESS:
        return FR_PART_EXPOSED_DP;
    case FR_OP_LOAD_TOKENS:
        return FR_PART_DATA;
    case FR_OP_HOST_COPY: /* a copy has no axis and no kernel */
        return FR_PART_EXPOSED_OFFLOAD;
    default:
        break;
    }
    if (fr_op_class_of((fr_op)instr->op) == FR_OP_CLASS_COMPUTE)
        return FR_PART_COMPUTE;
    switch ((fr_axis)instr->axis) {
    case FR_AXIS_TP:
    case FR_AXIS_ETP:
        return FR_PART_EXPOSED_TP;
    case FR_AXIS_CP:
        return FR_PART_EXPOSED_CP;
    case FR_AXIS_EP:
        return FR_PART_EXPOSED_EP;
    case FR_AXIS_DP:
    case FR_AXIS_SHARD:
    case FR_AXIS_REPLICA:
    case FR_AXIS_EDP:
        return FR_PART_EXPOSED_DP;
    case FR_AXIS_PP:
    case FR_AXIS_EMBED: /* tied embedding: between the end stages */
        return FR_PART_EXPOSED_PP;
    default: /* sums of norms over a replica or the world */
        return FR_PART_OPTIMIZER;
    }
}

#define NO_SPAN SIZE_MAX

/* The spans of one rank and step, lane by lane, in time order. */
typedef struct rank_spans {
    const fr_program *program;
    const fr_timeline *timeline;
    const fr_rank_program *rank_program;
    int32_t rank, step;
    const fr_span **at;
    size_t n;
    size_t *first_of_call, *last_of_call; /* [n_calls], NO_SPAN: none */
    const fr_span **sends; /* of all ranks in this step, by rank, then begin */
    size_t n_sends;
} rank_spans;

static void rank_spans_release(rank_spans *spans)
{
    free(spans->at);
    free(spans->first_of_call);
    free(spans->last_of_call);
    free(spans->sends);
}

static int compare_sends(const void *a, const void *b)
{
    const fr_span *x = *(const fr_span *const *)a;
    const fr_span *y = *(const fr_span *const *)b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->begin_ps != y->begin_ps)
        return x->begin_ps < y->begin_ps ? -1 : 1;
    return x < y ? -1 : x > y;
}

static fr_status list_sends(rank_spans *s, fr_err *err)
{
    size_t n = 0;
    for (size_t i = 0; i < s->timeline->n; i++)
        n += s->timeline->at[i].op == FR_OP_SEND;
    s->sends = malloc((n + 1) * sizeof *s->sends);
    if (s->sends == NULL)
        return fr_fail_no_memory(err);
    for (size_t i = 0; i < s->timeline->n; i++)
        if (s->timeline->at[i].op == FR_OP_SEND &&
            s->timeline->at[i].step == s->step)
            s->sends[s->n_sends++] = &s->timeline->at[i];
    qsort(s->sends, s->n_sends, sizeof *s->sends, compare_sends);
    return FR_OK;
}

static fr_status index_calls(rank_spans *s, fr_err *err)
{
    size_t n_calls = s->rank_program->n_calls;
    for (size_t i = 0; i < n_calls; i++)
        s->first_of_call[i] = s->last_of_call[i] = NO_SPAN;
    for (size_t i = 0; i < s->n; i++) {
        const fr_span *span = s->at[i];
        if (span->i_call >= n_calls || span->i_instr >= s->program->n_instrs)
            return fr_fail(err, FR_INPUT,
                           "the timeline is of another program: rank %d has "
                           "no call %u",
                           s->rank, span->i_call);
        if (s->first_of_call[span->i_call] == NO_SPAN)
            s->first_of_call[span->i_call] = i;
        s->last_of_call[span->i_call] = i;
    }
    return FR_OK;
}

static fr_status rank_spans_init(const fr_program *program,
                                 const fr_timeline *timeline, int32_t rank,
                                 int32_t step, rank_spans *out, fr_err *err)
{
    rank_spans s = {
        .program = program, .timeline = timeline, .rank = rank, .step = step};
    s.rank_program = fr_program_of_rank(program, rank);
    size_t n = 0, n_calls = s.rank_program->n_calls + 1;
    for (size_t i = 0; i < timeline->n; i++)
        n += timeline->at[i].rank == rank && timeline->at[i].step == step;
    s.at = malloc((n + 1) * sizeof *s.at);
    s.first_of_call = malloc(n_calls * sizeof *s.first_of_call);
    s.last_of_call = malloc(n_calls * sizeof *s.last_of_call);
    fr_status status = FR_OK;
    if (s.at == NULL || s.first_of_call == NULL || s.last_of_call == NULL) {
        status = fr_fail_no_memory(err);
        goto out_spans;
    }
    for (size_t i = 0; i < timeline->n; i++)
        if (timeline->at[i].rank == rank && timeline->at[i].step == step)
            s.at[s.n++] = &timeline->at[i];
    qsort(s.at, s.n, sizeof *s.at, fr_span_compare);
    status = list_sends(&s, err);
    if (status == FR_OK)
        status = index_calls(&s, err);
out_spans:
    if (status != FR_OK)
        rank_spans_release(&s);
    else
        *out = s;
    return status;
}

/* Returns the time at which the peer of a RECV span began to send, or the begin
 * of the span itself if that is unknown. */
static int64_t peer_begin_ps(const rank_spans *s, const fr_span *recv)
{
    const fr_instr *instr = &s->program->instrs[recv->i_instr];
    const fr_plan *plan = &s->program->plan;
    fr_coord coord = fr_plan_coord(plan, s->rank);
    int32_t own = coord.pp;
    coord.pp = instr->peer;
    int32_t peer = (int32_t)fr_plan_rank(plan, coord);
    if (s->timeline->spans_of_rank != NULL)
        peer = s->timeline->spans_of_rank[peer];
    /* Behind the last send that the peer began before this ended. */
    size_t low = 0, high = s->n_sends;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const fr_span *span = s->sends[middle];
        if (span->rank < peer ||
            (span->rank == peer && span->begin_ps <= recv->end_ps))
            low = middle + 1;
        else
            high = middle;
    }
    /* A send that is matched ends within its receive; of those with the tag
     * take the last one that began before this receive ended. */
    while (low-- > 0 && s->sends[low]->rank == peer &&
           s->sends[low]->begin_ps > recv->begin_ps) {
        const fr_span *span = s->sends[low];
        const fr_instr *send = &s->program->instrs[span->i_instr];
        if (send->tag == instr->tag && send->peer == own &&
            send->axis == instr->axis)
            return span->begin_ps < recv->end_ps ? span->begin_ps
                                                 : recv->end_ps;
    }
    return recv->begin_ps;
}

static double seconds(const rank_spans *s, int64_t from_ps, int64_t until_ps)
{
    return fr_skip_seconds(&s->timeline->skip, from_ps, until_ps);
}

/* Are the members of the group that a collective is over in one pipeline stage?
 * The others wait for the passes of other stages: that is the bubble. */
static bool is_inside_stage(const fr_plan *plan, fr_axis axis)
{
    switch (axis) {
    case FR_AXIS_TP:
    case FR_AXIS_ETP:
    case FR_AXIS_CP:
    case FR_AXIS_EP:
    case FR_AXIS_DP:
    case FR_AXIS_SHARD:
    case FR_AXIS_REPLICA:
    case FR_AXIS_EDP:
        return true;
    default:
        return plan->pp == 1;
    }
}

/* Adds what lies before `until_ps` to a part; the begin of the rest. */
static int64_t take(const rank_spans *s, int64_t from_ps, int64_t until_ps,
                    int64_t high_ps, double *part_s)
{
    until_ps = until_ps > high_ps ? high_ps : until_ps;
    until_ps = until_ps < from_ps ? from_ps : until_ps;
    *part_s += seconds(s, from_ps, until_ps);
    return until_ps;
}

/* Adds the part of a span that lies in (low_ps, high_ps]. */
static void attribute(const rank_spans *s, const fr_span *span, int64_t low_ps,
                      int64_t high_ps, double *breakdown_s)
{
    const fr_instr *instr = &s->program->instrs[span->i_instr];
    fr_part part = fr_step_part_of(instr);
    int64_t from_ps = span->begin_ps > low_ps ? span->begin_ps : low_ps;
    if (instr->op == FR_OP_RECV && instr->axis == FR_AXIS_PP) {
        from_ps = take(s, from_ps, peer_begin_ps(s, span), high_ps,
                       &breakdown_s[FR_PART_BUBBLE]);
    }
    if (span->wait_ps > 0 || span->late_ps > 0) {
        fr_part waits = is_inside_stage(&s->program->plan, (fr_axis)instr->axis)
                            ? FR_PART_STRAGGLERS
                            : FR_PART_BUBBLE;
        int64_t met_ps = span->begin_ps + span->wait_ps;
        from_ps = take(s, from_ps, met_ps, high_ps, &breakdown_s[waits]);
        from_ps = take(s, from_ps, met_ps + span->late_ps, high_ps,
                       &breakdown_s[FR_PART_STRAGGLERS]);
    }
    breakdown_s[part] += seconds(s, from_ps, high_ps);
}

/* Finds the span that span i waited for: the later of the one before on its
 * lane and of its dependencies. */
static size_t predecessor(const rank_spans *s, size_t i)
{
    const fr_span *span = s->at[i];
    size_t best = NO_SPAN;
    if (i > 0 && s->at[i - 1]->lane == span->lane)
        best = i - 1;
    if (s->first_of_call[span->i_call] != i)
        return best; /* inside a call only the lane counts */
    const fr_call *call = &s->rank_program->calls[span->i_call];
    for (uint32_t d = 0; d < call->n_deps; d++) {
        size_t last =
            s->last_of_call[s->rank_program->deps[call->first_dep + d]];
        if (last == NO_SPAN || last == i)
            continue;
        if (best == NO_SPAN || s->at[last]->end_ps > s->at[best]->end_ps)
            best = last;
    }
    return best;
}

/*
 * Explains (low_ps, high_ps] of the compute lane, in which it stood still,
 * by the chain that ends in span i (which is not on the compute lane).
 */
static void explain_gap(const rank_spans *s, size_t i, int64_t low_ps,
                        int64_t high_ps, double *breakdown_s)
{
    /* Each step goes strictly back or is the last, so n steps are enough. */
    for (size_t k = 0; k < s->n && i != NO_SPAN && high_ps > low_ps; k++) {
        const fr_span *span = s->at[i];
        if (span->lane == FR_LANE_COMPUTE)
            break;
        int64_t end_ps = span->end_ps < high_ps ? span->end_ps : high_ps;
        if (end_ps <= low_ps)
            break;
        breakdown_s[FR_PART_HOST] += seconds(s, end_ps, high_ps);
        attribute(s, span, low_ps, end_ps, breakdown_s);
        high_ps = span->begin_ps < end_ps ? span->begin_ps : end_ps;
        i = predecessor(s, i);
    }
    breakdown_s[FR_PART_HOST] += seconds(s, low_ps, high_ps);
}

static size_t last_to_end(const rank_spans *s)
{
    size_t last = 0;
    for (size_t i = 1; i < s->n; i++)
        if (s->at[i]->end_ps > s->at[last]->end_ps)
            last = i;
    return last;
}

static void walk(const rank_spans *s, double *breakdown_s)
{
    int64_t done_ps = 0; /* everything before is attributed */
    for (size_t i = 0; i < s->n && s->at[i]->lane == FR_LANE_COMPUTE; i++) {
        const fr_span *span = s->at[i];
        if (span->begin_ps > done_ps) {
            size_t before = predecessor(s, i);
            explain_gap(s, before, done_ps, span->begin_ps, breakdown_s);
            done_ps = span->begin_ps;
        }
        if (span->end_ps <= done_ps)
            continue;
        attribute(s, span, done_ps, span->end_ps, breakdown_s);
        done_ps = span->end_ps;
    }
    size_t last = last_to_end(s);
    explain_gap(s, last, done_ps, s->at[last]->end_ps, breakdown_s);
}

fr_status fr_step_breakdown(const fr_program *program,
                            const fr_timeline *timeline, int32_t step,
                            double breakdown_s[FR_PART_N], double *step_s,
                            fr_err *err)
{
    const fr_span *last = NULL;
    int64_t world = fr_plan_world(&program->plan);
    for (size_t i = 0; i < timeline->n; i++) {
        const fr_span *span = &timeline->at[i];
        if (span->step != step)
            continue;
        if (span->rank < 0 || span->rank >= world)
            return fr_fail(err, FR_INPUT, "the timeline has a rank %d of %lld",
                           span->rank, (long long)world);
        if (last == NULL || span->end_ps > last->end_ps ||
            (span->end_ps == last->end_ps && span->rank < last->rank))
            last = span;
    }
    if (last == NULL)
        return fr_fail(err, FR_INPUT, "the timeline has no step %d", step);
    rank_spans spans;
    double parts_s[FR_PART_N] = {0};
    FR_TRY(rank_spans_init(program, timeline, last->rank, step, &spans, err));
    walk(&spans, parts_s);
    rank_spans_release(&spans);
    memcpy(breakdown_s, parts_s, sizeof parts_s);
    *step_s = fr_skip_seconds(&timeline->skip, 0, last->end_ps);
    return FR_OK;
}

/* The number of the recorded step that follows `step`; INT32_MAX: none does. */
static int32_t next_step(const fr_timeline *timeline, int64_t step)
{
    int32_t next = INT32_MAX;
    for (size_t i = 0; i < timeline->n; i++)
        if (timeline->at[i].step > step && timeline->at[i].step < next)
            next = timeline->at[i].step;
    return next;
}

fr_status fr_step_breakdown_mean(const fr_program *program,
                                 const fr_timeline *timeline, double step_s,
                                 double breakdown_s[FR_PART_N], fr_err *err)
{
    double sum_s[FR_PART_N] = {0}, all_s = 0, one_s[FR_PART_N], length_s;
    int n_steps = 0;
    for (int32_t step = next_step(timeline, INT64_MIN); step != INT32_MAX;
         step = next_step(timeline, step)) {
        FR_TRY(
            fr_step_breakdown(program, timeline, step, one_s, &length_s, err));
        for (int i = 0; i < FR_PART_N; i++)
            sum_s[i] += one_s[i];
        all_s += length_s;
        n_steps++;
    }
    if (n_steps == 0 || all_s <= 0)
        return fr_fail(err, FR_INPUT, "the timeline is empty");
    double scale = step_s > 0 ? step_s / all_s : 1.0 / n_steps;
    for (int i = 0; i < FR_PART_N; i++)
        breakdown_s[i] = sum_s[i] * scale;
    return FR_OK;
}

typedef struct step_length {
    int32_t step;
    int64_t end_ps;
} step_length;

static int compare_lengths(const void *a, const void *b)
{
    const step_length *x = a, *y = b;
    if (x->end_ps != y->end_ps)
        return x->end_ps < y->end_ps ? -1 : 1;
    return x->step < y->step ? -1 : x->step > y->step;
}

int32_t fr_step_median(const fr_timeline *timeline)
{
    enum { MANY = 256 }; /* the first steps; a trace of more is no use */
    step_length at[MANY];
    int n = 0;
    for (int32_t step = next_step(timeline, INT64_MIN);
         step != INT32_MAX && n < MANY; step = next_step(timeline, step)) {
        at[n] = (step_length){step, 0};
        for (size_t i = 0; i < timeline->n; i++)
            if (timeline->at[i].step == step &&
                timeline->at[i].end_ps > at[n].end_ps)
                at[n].end_ps = timeline->at[i].end_ps;
        n++;
    }
    if (n == 0)
        return -1;
    qsort(at, (size_t)n, sizeof *at, compare_lengths);
    return at[(n - 1) / 2].step;
}
