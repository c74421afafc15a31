/* span_wait.c: see span_wait.h. */
#include "report/timeline/span_wait.h"

#include "plan/decide/grid.h"

#include <stdlib.h>
#include <string.h>

/* Spans in which the ranks of a group do the same have the same axis, tag and
 * number. */
typedef struct fr_comm_span {
    int32_t rank, peer; /* of SEND: who it is for, as a rank; else -1 */
    uint32_t tag;
    uint8_t axis, op;
    int32_t number; /* so many of the same before it in the step */
    size_t i;       /* of the timeline */
    int64_t begin_ps;
} fr_comm_span;

static int compare_keys(const fr_comm_span *x, const fr_comm_span *y)
{
    if (x->op != y->op)
        return x->op < y->op ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->peer != y->peer)
        return x->peer < y->peer ? -1 : 1;
    if (x->axis != y->axis)
        return x->axis < y->axis ? -1 : 1;
    if (x->tag != y->tag)
        return x->tag < y->tag ? -1 : 1;
    return 0;
}

static int compare_times(const void *a, const void *b)
{
    const fr_comm_span *x = a, *y = b;
    int by_key = compare_keys(x, y);
    if (by_key != 0)
        return by_key;
    if (x->begin_ps != y->begin_ps)
        return x->begin_ps < y->begin_ps ? -1 : 1;
    return x->i < y->i ? -1 : x->i > y->i;
}

static int compare_numbers(const void *a, const void *b)
{
    const fr_comm_span *x = a, *y = b;
    int by_key = compare_keys(x, y);
    return by_key != 0 ? by_key
                       : (x->number > y->number) - (x->number < y->number);
}

static int32_t stand_in(const fr_timeline *timeline, int64_t rank)
{
    return timeline->spans_of_rank != NULL ? timeline->spans_of_rank[rank]
                                           : (int32_t)rank;
}

/* The rank at the other end of a send or a receive. */
static int32_t peer_of(const fr_program *program, const fr_span *span)
{
    fr_coord coord = fr_plan_coord(&program->plan, span->rank);
    coord.pp = program->instrs[span->i_instr].peer;
    return (int32_t)fr_plan_rank(&program->plan, coord);
}

static bool is_p2p(uint8_t op)
{
    return fr_op_class_of((fr_op)op) == FR_OP_CLASS_P2P;
}

/* A receive looks for the send that has its peer and itself as the ends. */
static fr_comm_span describe(const fr_program *program,
                             const fr_timeline *timeline, size_t i)
{
    const fr_span *span = &timeline->at[i];
    const fr_instr *instr = &program->instrs[span->i_instr];
    fr_comm_span out = {.rank = span->rank,
                        .peer = -1,
                        .tag = instr->tag,
                        .axis = instr->axis,
                        .op = instr->op,
                        .i = i,
                        .begin_ps = span->begin_ps};
    if (is_p2p(instr->op))
        out.peer = stand_in(timeline, peer_of(program, span));
    return out;
}

fr_status fr_span_waits_create(const fr_program *program,
                               const fr_timeline *timeline, int32_t step,
                               fr_span_waits *out, fr_err *err)
{
    int64_t world = fr_plan_world(&program->plan);
    fr_span_waits waits = {.program = program, .timeline = timeline};
    waits.at = malloc((timeline->n + 1) * sizeof *waits.at);
    waits.group = malloc(((size_t)world + 1) * sizeof *waits.group);
    if (waits.at == NULL || waits.group == NULL) {
        fr_span_waits_release(&waits);
        return fr_fail_no_memory(err);
    }
    for (size_t i = 0; i < timeline->n; i++) {
        const fr_span *span = &timeline->at[i];
        fr_op_class class = fr_op_class_of((fr_op)span->op);
        if (span->step == step &&
            (class == FR_OP_CLASS_COLLECTIVE || class == FR_OP_CLASS_P2P))
            waits.at[waits.n++] = describe(program, timeline, i);
    }
    qsort(waits.at, waits.n, sizeof *waits.at, compare_times);
    for (size_t i = 0; i < waits.n; i++)
        waits.at[i].number =
            i > 0 && compare_keys(&waits.at[i - 1], &waits.at[i]) == 0
                ? waits.at[i - 1].number + 1
                : 0;
    *out = waits;
    return FR_OK;
}

void fr_span_waits_release(fr_span_waits *waits)
{
    free(waits->at);
    free(waits->group);
    *waits = (fr_span_waits){0};
}

/* The span itself among those of its key, -1 when there is none. */
static int32_t number_of(const fr_span_waits *waits, const fr_comm_span *key)
{
    size_t low = 0, high = waits->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_times(&waits->at[middle], key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < waits->n && waits->at[low].i == key->i ? waits->at[low].number
                                                        : -1;
}

static const fr_comm_span *find(const fr_span_waits *waits,
                                const fr_comm_span *key)
{
    return bsearch(key, waits->at, waits->n, sizeof *waits->at,
                   compare_numbers);
}

int64_t fr_span_wait_end_ps(const fr_span_waits *waits, size_t i)
{
    const fr_span *span = &waits->timeline->at[i];
    fr_comm_span key = describe(waits->program, waits->timeline, i);
    int64_t last_ps = span->begin_ps;
    key.number = number_of(waits, &key);
    if (key.number < 0 || key.op == FR_OP_SEND)
        return last_ps;
    if (key.op == FR_OP_RECV) {
        key.op = FR_OP_SEND;
        key.rank = key.peer;
        key.peer = span->rank;
        const fr_comm_span *send = find(waits, &key);
        last_ps = send != NULL ? send->begin_ps : last_ps;
    } else {
        int64_t n = fr_plan_group(&waits->program->plan, span->rank,
                                  (fr_axis)key.axis, waits->group, NULL);
        for (int64_t k = 0; k < n; k++) {
            key.rank = stand_in(waits->timeline, waits->group[k]);
            const fr_comm_span *other = find(waits, &key);
            if (other != NULL && other->begin_ps > last_ps)
                last_ps = other->begin_ps;
        }
    }
    if (last_ps < span->begin_ps)
        return span->begin_ps;
    return last_ps < span->end_ps ? last_ps : span->end_ps;
}
