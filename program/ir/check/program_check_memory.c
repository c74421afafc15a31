/*
 * program_check_memory.c: the shadow of a rank's slab.
 *
 * The calls of a rank program are walked in program order (dependencies only
 * point backwards, so that is a possible order).  The shadow knows of every
 * byte which block owns it, whether it has been written in this block's life,
 * who wrote it last and who has read it since.  Two accesses of which one
 * writes must be ordered by lanes and dependencies, which vector clocks tell
 * (as in race detectors: Flanagan and Freund, PLDI 2009).
 */
#include "core/base/vec.h"
#include "program/ir/check/program_check_internal.h"

#include <stdlib.h>
#include <string.h>

#define NO_BLOCK UINT32_MAX

/* Calls are numbered from 1; 0: none. */
typedef struct marks {
    uint32_t at[FR_LANE_N];
} marks;

typedef struct cell {
    uint64_t begin; /* up to the next cell's begin */
    uint32_t block;
    bool is_written;
    uint32_t writer;
    marks readers;
} cell;

typedef struct shadow {
    const fr_program *program;
    const fr_rank_program *rank_program;
    uint32_t i_stage;
    bool is_last; /* coordinate */
    fr_vec(cell) cells;
    marks *before;      /* per call, from 1: what is done when it starts */
    uint32_t *starting; /* blocks by first call */
    check_report *report;
} shadow;

static uint8_t lane_of(const shadow *s, uint32_t call)
{
    return s->program->segments[s->rank_program->calls[call - 1].i_segment]
        .lane;
}

/* before[call]: per lane the latest call that is done when `call` starts. */
static bool make_clocks(shadow *s)
{
    const fr_rank_program *rank_program = s->rank_program;
    uint32_t previous[FR_LANE_N] = {0};
    s->before = calloc((size_t)rank_program->n_calls + 1, sizeof *s->before);
    if (s->before == NULL)
        return false;
    for (uint32_t now = 1; now <= rank_program->n_calls; now++) {
        const fr_call *call = &rank_program->calls[now - 1];
        uint8_t lane = lane_of(s, now);
        for (uint32_t d = 0; d <= call->n_deps; d++) {
            uint32_t dep = d < call->n_deps
                               ? rank_program->deps[call->first_dep + d] + 1
                               : previous[lane];
            if (dep == 0)
                continue;
            for (int i = 0; i < FR_LANE_N; i++)
                if (s->before[dep].at[i] > s->before[now].at[i])
                    s->before[now].at[i] = s->before[dep].at[i];
            if (dep > s->before[now].at[lane_of(s, dep)])
                s->before[now].at[lane_of(s, dep)] = dep;
        }
        previous[lane] = now;
    }
    return true;
}

/* Index of the cell that holds `at`. */
static size_t find(const shadow *s, uint64_t at)
{
    size_t low = 0, high = s->cells.n;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (s->cells.items[middle].begin <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Makes a cell begin at `at`; returns its index. */
static size_t split(shadow *s, uint64_t at)
{
    size_t i = find(s, at);
    if (s->cells.items[i].begin == at)
        return i;
    if (fr_vec_reserve(&s->cells, 1) != FR_OK) {
        s->report->is_out_of_memory = true;
        return i;
    }
    memmove(&s->cells.items[i + 1], &s->cells.items[i],
            (s->cells.n - i) * sizeof s->cells.items[0]);
    s->cells.n++;
    s->cells.items[i + 1].begin = at;
    return i + 1;
}

/* The cells of [begin, end): first and one past the last. */
static size_t cut(shadow *s, uint64_t begin, uint64_t end, size_t *past)
{
    split(s, begin);
    *past = split(s, end);
    return find(s, begin);
}

static void complain(shadow *s, uint32_t now, const char *what, int space,
                     uint64_t at, uint32_t other)
{
    char here[128], there[128] = "";
    check_place(s->program, s->i_stage, now - 1, here, sizeof here);
    if (other > 0)
        check_place(s->program, s->i_stage, other - 1, there, sizeof there);
    uint64_t base = fr_call_base_bytes(s->rank_program,
                                       &s->rank_program->calls[now - 1], space);
    check_problem(s->report, "%s: %s %s+%lld%s%s", here, what,
                  fr_space_name((fr_space)space), (long long)(at - base),
                  other > 0 ? " of " : "", there);
}

/* Is `other` done before `now` starts (or the same call)? */
static bool is_ordered(const shadow *s, uint32_t other, uint32_t now)
{
    return other == 0 || other == now ||
           s->before[now].at[lane_of(s, other)] >= other;
}

/* Blocks of the host are numbered behind the others. */
static const fr_block *block_of(const shadow *s, uint32_t i)
{
    const fr_rank_program *rank_program = s->rank_program;
    return i < rank_program->n_blocks
               ? &rank_program->blocks[i]
               : &rank_program->host_blocks[i - rank_program->n_blocks];
}

static bool is_owned(const shadow *s, const cell *c, uint32_t now)
{
    return c->block != NO_BLOCK && block_of(s, c->block)->first_call < now &&
           block_of(s, c->block)->last_call >= now - 1;
}

typedef struct access {
    uint64_t begin, end;
    int space;
    bool is_padded; /* holes between what is written do no harm */
} access;

/* An operand lies in one block that lives. */
static bool is_in_one_block(shadow *s, uint32_t now, access a, size_t first,
                            size_t past)
{
    for (size_t i = first; i < past; i++) {
        const cell *c = &s->cells.items[i];
        if (!is_owned(s, c, now)) {
            complain(s, now, "operand outside any living block at", a.space,
                     c->begin, 0);
            return false;
        }
        if (c->block != s->cells.items[first].block) {
            complain(s, now, "operand leaves its block at", a.space, c->begin,
                     0);
            return false;
        }
    }
    return true;
}

static void read_range(shadow *s, uint32_t now, access a)
{
    size_t past, first = cut(s, a.begin, a.end, &past);
    if (!is_in_one_block(s, now, a, first, past))
        return;
    bool is_any_written = false;
    for (size_t i = first; i < past; i++)
        is_any_written = is_any_written || s->cells.items[i].is_written;
    for (size_t i = first; i < past; i++) {
        cell *c = &s->cells.items[i];
        if (!c->is_written && (!a.is_padded || !is_any_written)) {
            complain(s, now, "reads before it is written", a.space, c->begin,
                     0);
            return;
        }
        if (!is_ordered(s, c->writer, now)) {
            complain(s, now, "reads beside the write", a.space, c->begin,
                     c->writer);
            return;
        }
        if (c->readers.at[lane_of(s, now)] < now)
            c->readers.at[lane_of(s, now)] = now;
    }
}

static void write_range(shadow *s, uint32_t now, access a)
{
    size_t past, first = cut(s, a.begin, a.end, &past);
    if (!is_in_one_block(s, now, a, first, past))
        return;
    for (size_t i = first; i < past; i++) {
        cell *c = &s->cells.items[i];
        uint32_t racing = is_ordered(s, c->writer, now) ? 0 : c->writer;
        for (int lane = 0; lane < FR_LANE_N; lane++)
            if (!is_ordered(s, c->readers.at[lane], now))
                racing = c->readers.at[lane];
        if (racing > 0) {
            complain(s, now, "writes beside the use", a.space, c->begin,
                     racing);
            return;
        }
        c->is_written = true;
        c->writer = now;
        memset(&c->readers, 0, sizeof c->readers);
    }
}

/* A scatter in place leaves only the own part whole. */
static void spoil_range(shadow *s, access a)
{
    size_t past;
    for (size_t i = cut(s, a.begin, a.end, &past); i < past; i++)
        s->cells.items[i].is_written = false;
}

/* Returns the shard that an operand means for its first or last owner. */
static int64_t shard_of(const shadow *s, const fr_ref *ref, int64_t n_owners)
{
    int64_t coordinate = s->is_last ? n_owners - 1 : 0;
    if (ref->n_turns == 0)
        return coordinate;
    return (coordinate - ref->turn + ref->n_turns) % ref->n_turns;
}

/* The bytes of an operand; false where it is absent or outside the slab. */
static bool locate(shadow *s, uint32_t now, const fr_instr *instr, int i_ref,
                   access *out)
{
    const fr_ref *ref = &instr->ref[i_ref];
    int64_t n_group = check_group_size(&s->program->plan, instr->axis);
    int64_t n_owners =
        instr->shard_axis != FR_AXIS_NONE
            ? check_group_size(&s->program->plan, instr->shard_axis)
            : n_group;
    uint64_t bytes = fr_instr_ref_bytes(instr, i_ref, (int)n_group);
    /* The host's memory follows the slab; what is before it is not its. */
    uint64_t least =
        ref->space == FR_SPACE_HOST ? s->rank_program->slab_bytes : 0;
    uint64_t slab = s->rank_program->slab_bytes +
                    (least > 0 ? s->rank_program->host_bytes : 0);
    uint64_t begin = fr_call_base_bytes(
        s->rank_program, &s->rank_program->calls[now - 1], ref->space);
    if (ref->space == FR_SPACE_NONE || bytes == 0)
        return false;
    if (ref->is_sharded)
        begin += (uint64_t)shard_of(s, ref, n_owners) *
                 (instr->shard_bytes >> (ref->is_sharded - 1));
    if (begin < least || ref->offset_bytes > slab ||
        begin > slab - ref->offset_bytes ||
        bytes > slab - ref->offset_bytes - begin) {
        complain(s, now, "operand outside the slab at", ref->space,
                 begin + ref->offset_bytes, 0);
        return false;
    }
    begin += ref->offset_bytes;
    *out = (access){begin, begin + bytes, ref->space,
                    instr->op == FR_OP_HOST_COPY};
    return true;
}

/* To the host a buffer is read, back from there it is written. */
static char access_of(const fr_instr *instr, int i_ref)
{
    char access_kind = fr_op_access((fr_op)instr->op, i_ref);
    if (instr->op == FR_OP_HOST_COPY && access_kind != 0)
        return (instr->copy.is_to_host != 0) == (i_ref == FR_HOST_COPY_BUFFER)
                   ? 'r'
                   : 'w';
    return access_kind;
}

static void run_instr(shadow *s, uint32_t now, const fr_instr *instr)
{
    access at;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < FR_INSTR_REFS; i++) {
            char access_kind = access_of(instr, i);
            if (access_kind == 0)
                break;
            bool is_added =
                access_kind == 'w' && instr->flags & FR_INSTR_ACCUMULATE;
            bool is_read = access_kind != 'w' || is_added;
            if (!(pass == 0 ? is_read : access_kind != 'r') ||
                !locate(s, now, instr, i, &at))
                continue;
            if (pass == 0)
                read_range(s, now, at);
            else
                write_range(s, now, at);
        }
        if (pass == 0 && instr->op == FR_OP_REDUCE_SCATTER &&
            instr->ref[FR_REDUCE_SCATTER_DST].is_sharded &&
            locate(s, now, instr, FR_REDUCE_SCATTER_SRC, &at))
            spoil_range(s, at);
    }
}

/* A block begins to live: nobody else may own its bytes. */
static void start_block(shadow *s, uint32_t i_block, uint32_t now)
{
    const fr_block *block = block_of(s, i_block);
    size_t past;
    if (block->n_bytes == 0)
        return;
    /* Parameters and optimizer state come from the step before. */
    bool is_kept =
        block->is_persistent && (block->kind == FR_MEMORY_PARAMETERS ||
                                 block->kind == FR_MEMORY_OPTIMIZER);
    for (size_t i = cut(s, block->offset_bytes,
                        block->offset_bytes + block->n_bytes, &past);
         i < past; i++) {
        cell *c = &s->cells.items[i];
        if (is_owned(s, c, now))
            check_problem(
                s->report, "stage %u: blocks %u and %u overlap while both live",
                (unsigned)s->i_stage, (unsigned)c->block, (unsigned)i_block);
        c->block = i_block;
        c->is_written = is_kept;
    }
}

static int compare_u64(const void *va, const void *vb)
{
    uint64_t a = *(const uint64_t *)va, b = *(const uint64_t *)vb;
    return a < b ? -1 : a > b;
}

static void walk(shadow *s, const uint64_t *starts, uint32_t n_blocks)
{
    const fr_rank_program *rank_program = s->rank_program;
    uint32_t next = 0;
    for (uint32_t now = 1; now <= rank_program->n_calls; now++) {
        const fr_segment *segment =
            &s->program->segments[rank_program->calls[now - 1].i_segment];
        while (next < n_blocks && starts[next] >> 32 < now)
            start_block(s, (uint32_t)starts[next++], now);
        for (uint32_t i = 0; i < segment->n_instrs; i++)
            run_instr(s, now, &s->program->instrs[segment->first_instr + i]);
        if (s->report->is_out_of_memory ||
            s->report->n_problems > CHECK_MAX_PROBLEMS)
            return;
    }
}

void check_memory(const fr_program *program, uint32_t i_stage, bool is_last,
                  check_report *report)
{
    const fr_rank_program *rank_program = &program->rank_programs[i_stage];
    shadow s = {.program = program,
                .rank_program = rank_program,
                .i_stage = i_stage,
                .is_last = is_last,
                .report = report};
    const cell empty = {.block = NO_BLOCK};
    const uint32_t n_blocks =
        rank_program->n_blocks + rank_program->n_host_blocks;
    uint64_t *starts = calloc((size_t)n_blocks + 1, sizeof *starts);
    /* The second cell is the end of the slab and never looked at. */
    if (starts == NULL || fr_vec_push(&s.cells, empty) != FR_OK ||
        !make_clocks(&s)) {
        report->is_out_of_memory = true;
    } else {
        for (uint32_t i = 0; i < n_blocks; i++)
            starts[i] = (uint64_t)block_of(&s, i)->first_call << 32 | i;
        qsort(starts, n_blocks, sizeof *starts, compare_u64);
        walk(&s, starts, n_blocks);
    }
    free(starts);
    free(s.before);
    fr_vec_release(&s.cells);
}
