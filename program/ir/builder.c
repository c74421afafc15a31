/*
 * builder.c: lifetimes, offsets and dependencies from lists of accesses.
 */
#include "program/ir/builder.h"

#include "program/ir/builder_state.h"
#include "program/memory/memory_pack.h"

#include <string.h>

enum { PAGE = 4096 };

fr_status fr_builder_create(fr_builder **out, fr_err *err)
{
    fr_builder *builder = calloc(1, sizeof *builder);
    if (builder == NULL)
        return fr_fail_no_memory(err);
    *out = builder;
    return FR_OK;
}

void fr_builder_destroy(fr_builder *builder)
{
    if (builder == NULL)
        return;
    fr_vec_release(&builder->blocks);
    fr_vec_release(&builder->calls);
    fr_vec_release(&builder->uses);
    fr_vec_release(&builder->dead);
    fr_vec_release(&builder->deps);
    fr_vec_release(&builder->clocks);
    free(builder);
}

void fr_builder_reset(fr_builder *builder)
{
    builder->blocks.n = builder->calls.n = builder->uses.n = 0;
    builder->dead.n = builder->deps.n = builder->clocks.n = 0;
    builder->slab_bytes = builder->host_bytes = 0;
    builder->n_host_blocks = 0;
    builder->is_next_page_aligned = builder->is_out_of_memory = false;
}

void fr_builder_set_apart(fr_builder *builder)
{
    builder->is_apart = true;
}

uint32_t fr_builder_add_block(fr_builder *builder, fr_memory_kind kind,
                              bool is_persistent, uint64_t n_bytes)
{
    builder_block block = {
        .n_bytes =
            (n_bytes + FR_BLOCK_ALIGN - 1) / FR_BLOCK_ALIGN * FR_BLOCK_ALIGN,
        .kind = kind,
        .is_persistent = is_persistent,
        .is_page_aligned = is_persistent && builder->is_next_page_aligned,
    };
    if (is_persistent)
        builder->is_next_page_aligned = false;
    if (fr_vec_push(&builder->blocks, block) != FR_OK) {
        builder->is_out_of_memory = true;
        return FR_BLOCK_NONE;
    }
    return (uint32_t)(builder->blocks.n - 1);
}

uint32_t fr_builder_add_host_block(fr_builder *builder, fr_memory_kind kind,
                                   bool is_persistent, uint64_t n_bytes)
{
    bool is_next_aligned = builder->is_next_page_aligned;
    uint32_t at = fr_builder_add_block(builder, kind, is_persistent, n_bytes);
    if (at == FR_BLOCK_NONE)
        return at;
    builder->is_next_page_aligned = is_next_aligned;
    builder->blocks.items[at].is_page_aligned = false;
    builder->blocks.items[at].is_on_host = true;
    builder->n_host_blocks++;
    return at;
}

void fr_builder_align_page(fr_builder *builder)
{
    builder->is_next_page_aligned = true;
}

void fr_builder_add_call(fr_builder *builder, uint32_t i_segment, fr_lane lane,
                         int32_t layer, int64_t micro_batch, int32_t chunk)
{
    builder_call call = {.i_segment = i_segment,
                         .layer = layer,
                         .micro_batch = (int32_t)micro_batch,
                         .chunk = chunk,
                         .lane = lane,
                         .first_use = (uint32_t)builder->uses.n};
    if (fr_vec_push(&builder->calls, call) != FR_OK)
        builder->is_out_of_memory = true;
}

/* Adds a use to the last call; false: there is no such block, or no memory. */
static bool add_use(fr_builder *builder, fr_space space, uint32_t block,
                    char access)
{
    builder_use use = {block, (uint8_t)space, access};
    if (block == FR_BLOCK_NONE)
        return false;
    if (builder->is_out_of_memory || builder->calls.n == 0 ||
        fr_vec_push(&builder->uses, use) != FR_OK) {
        builder->is_out_of_memory = true;
        return false;
    }
    builder->calls.items[builder->calls.n - 1].n_uses++;
    return true;
}

void fr_builder_bind(fr_builder *builder, fr_space space, uint32_t block,
                     char access)
{
    if (add_use(builder, space, block, access))
        builder_live_on(builder, block, (uint32_t)builder->calls.n);
}

void fr_builder_use(fr_builder *builder, uint32_t block, char access)
{
    fr_builder_bind(builder, FR_SPACE_NONE, block, access);
}

void fr_builder_set_base(fr_builder *builder, fr_space space, uint32_t block)
{
    (void)add_use(builder, space, block, 0);
}

void fr_builder_follow(fr_builder *builder, fr_lane lane)
{
    uint32_t now = (uint32_t)builder->calls.n;
    if (!builder->is_out_of_memory && now > 0)
        builder->calls.items[now - 1].follows =
            builder_last_before(builder, now, lane);
}

void fr_builder_keep(fr_builder *builder, uint32_t block)
{
    if (add_use(builder, FR_SPACE_NONE, block, BUILDER_KEPT))
        builder->blocks.items[block].last_call = (uint32_t)builder->calls.n;
}

void fr_builder_after(fr_builder *builder, uint32_t block)
{
    add_use(builder, FR_SPACE_NONE, block, BUILDER_AFTER);
}

uint32_t fr_builder_n_calls(const fr_builder *builder)
{
    return (uint32_t)builder->calls.n;
}

uint64_t fr_builder_offset(const fr_builder *builder, uint32_t block)
{
    return block < builder->blocks.n ? builder->blocks.items[block].offset_bytes
                                     : 0;
}

static bool is_transient(const builder_block *block, bool is_on_host)
{
    return !block->is_persistent && block->first_call > 0 &&
           block->n_bytes > 0 && block->is_on_host == is_on_host;
}

static uint64_t to_page(uint64_t n_bytes)
{
    return (n_bytes + PAGE - 1) / PAGE * PAGE;
}

static uint64_t place_persistent(fr_builder *builder, uint64_t bottom,
                                 bool is_on_host)
{
    for (size_t i = 0; i < builder->blocks.n; i++) {
        builder_block *block = &builder->blocks.items[i];
        if (!block->is_persistent || block->is_on_host != is_on_host)
            continue;
        if (block->is_page_aligned)
            bottom = to_page(bottom);
        block->offset_bytes = bottom;
        bottom += block->n_bytes;
    }
    return to_page(bottom);
}

/* Places blocks one behind the other from `begin` on; returns their end. */
static uint64_t line_up(fr_builder *builder, uint64_t begin, bool is_on_host)
{
    for (size_t i = 0; i < builder->blocks.n; i++) {
        builder_block *block = &builder->blocks.items[i];
        if (!is_transient(block, is_on_host))
            continue;
        block->offset_bytes = begin;
        begin += block->n_bytes;
    }
    return begin;
}

/* Places blocks in the same memory where their lives allow it. */
static fr_status share_memory(fr_builder *builder, uint64_t begin,
                              bool is_on_host, uint64_t *end, fr_err *err)
{
    fr_pack_item *items = calloc(builder->blocks.n + 1, sizeof *items);
    uint64_t top = 0;
    size_t n_items = 0;
    if (items == NULL)
        return fr_fail_no_memory(err);
    for (size_t i = 0; i < builder->blocks.n; i++) {
        const builder_block *block = &builder->blocks.items[i];
        if (is_transient(block, is_on_host))
            items[n_items++] = (fr_pack_item){.n_bytes = block->n_bytes,
                                              .first = block->first_call,
                                              .last = block->last_call};
    }
    fr_status status = fr_memory_pack(items, n_items, &top, err);
    n_items = 0;
    for (size_t i = 0; status == FR_OK && i < builder->blocks.n; i++) {
        builder_block *block = &builder->blocks.items[i];
        if (is_transient(block, is_on_host))
            block->offset_bytes = begin + items[n_items++].offset_bytes;
    }
    *end = begin + top;
    free(items);
    return status;
}

static fr_status place_blocks(fr_builder *builder, uint64_t begin,
                              bool is_on_host, uint64_t *n_bytes, fr_err *err)
{
    uint64_t end, bottom = place_persistent(builder, begin, is_on_host);
    if (builder->is_apart)
        end = line_up(builder, bottom, is_on_host);
    else
        FR_TRY(share_memory(builder, bottom, is_on_host, &end, err));
    *n_bytes = to_page(end) - begin;
    return FR_OK;
}

static void raise_marks(lane_marks *marks, const lane_marks *other)
{
    for (int lane = 0; lane < FR_LANE_N; lane++) {
        uint32_t a = marks->at[lane], b = other->at[lane];
        marks->at[lane] = a > b ? a : b;
    }
}

static void raise_mark(lane_marks *marks, fr_lane lane, uint32_t call)
{
    if (call > marks->at[lane])
        marks->at[lane] = call;
}

/* Finds the first dead range that ends after `begin`. */
static size_t find_dead(const fr_builder *builder, uint64_t begin)
{
    size_t low = 0, high = builder->dead.n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (builder->dead.items[middle].end <= begin)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Gives [begin, end) to a new block, which waits for those who used it last. */
static void take_memory(const fr_builder *builder, const builder_block *block,
                        lane_marks *wanted)
{
    uint64_t end = block->offset_bytes + block->n_bytes;
    for (size_t i = find_dead(builder, block->offset_bytes);
         i < builder->dead.n && builder->dead.items[i].begin < end; i++)
        raise_marks(wanted, &builder->dead.items[i].users);
}

/* Notes that a block has died: its memory now belongs to its last users. */
static void leave_memory(fr_builder *builder, const builder_block *block)
{
    dead_range fresh = {block->offset_bytes,
                        block->offset_bytes + block->n_bytes, block->users};
    if (block->n_bytes == 0 || builder->is_apart)
        return;
    if (fr_vec_reserve(&builder->dead, 2) != FR_OK) {
        builder->is_out_of_memory = true;
        return;
    }
    size_t first = find_dead(builder, fresh.begin), last = first;
    dead_range *at = builder->dead.items;
    while (last < builder->dead.n && at[last].begin < fresh.end)
        last++;
    dead_range kept[3];
    size_t n_kept = 0;
    if (first < last && at[first].begin < fresh.begin) {
        kept[n_kept] = at[first];
        kept[n_kept++].end = fresh.begin;
    }
    kept[n_kept++] = fresh;
    if (first < last && at[last - 1].end > fresh.end) {
        kept[n_kept] = at[last - 1];
        kept[n_kept++].begin = fresh.end;
    }
    memmove(at + first + n_kept, at + last,
            (builder->dead.n - last) * sizeof *at);
    memcpy(at + first, kept, n_kept * sizeof *at);
    builder->dead.n = builder->dead.n - (last - first) + n_kept;
}

/* Lists the calls that call `now` has to wait for because of its accesses. */
static void collect_wanted(fr_builder *builder, uint32_t now,
                           lane_marks *wanted)
{
    const builder_call *call = &builder->calls.items[now - 1];
    if (call->follows > 0)
        raise_mark(wanted, builder->calls.items[call->follows - 1].lane,
                   call->follows);
    for (uint32_t u = 0; u < call->n_uses; u++) {
        builder_use use = builder->uses.items[call->first_use + u];
        builder_block *block = &builder->blocks.items[use.block];
        if (use.access == BUILDER_AFTER && block->writer > 0)
            raise_mark(wanted, builder->calls.items[block->writer - 1].lane,
                       block->writer);
        if (!builder_is_access(use))
            continue;
        if (block->first_call == now && !block->is_persistent)
            take_memory(builder, block, wanted);
        if (block->writer > 0)
            raise_mark(wanted, builder->calls.items[block->writer - 1].lane,
                       block->writer);
        if (use.access != 'r')
            raise_marks(wanted, &block->readers);
    }
    for (uint32_t u = 0; u < call->n_uses; u++) {
        builder_use use = builder->uses.items[call->first_use + u];
        builder_block *block = &builder->blocks.items[use.block];
        if (!builder_is_access(use))
            continue;
        block->users.at[call->lane] = now;
        if (use.access != 'r') {
            block->writer = now;
            memset(&block->readers, 0, sizeof block->readers);
        } else if (block->writer != now) {
            block->readers.at[call->lane] = now;
        }
    }
}

/* Is this call done anyway once another one is that is waited for, too? */
static bool is_implied(const fr_builder *builder, const lane_marks *wanted,
                       int own_lane, int lane)
{
    for (int other = 0; other < FR_LANE_N; other++)
        if (other != lane && other != own_lane && wanted->at[other] > 0 &&
            builder->clocks.items[wanted->at[other]].at[lane] >=
                wanted->at[lane])
            return true;
    return false;
}

/* Leaves out what the lane's order or another dependency already says. */
static void add_deps(fr_builder *builder, uint32_t now, uint32_t previous,
                     const lane_marks *wanted)
{
    builder_call *call = &builder->calls.items[now - 1];
    const lane_marks *clocks = builder->clocks.items;
    lane_marks clock = clocks[previous];
    call->first_dep = (uint32_t)builder->deps.n;
    for (int lane = 0; lane < FR_LANE_N; lane++) {
        uint32_t dep = wanted->at[lane];
        if (lane == (int)call->lane || dep <= clocks[previous].at[lane] ||
            is_implied(builder, wanted, (int)call->lane, lane))
            continue;
        if (fr_vec_push(&builder->deps, dep - 1) != FR_OK)
            builder->is_out_of_memory = true;
        call->n_deps++;
    }
    for (int lane = 0; lane < FR_LANE_N; lane++)
        if (wanted->at[lane] > 0)
            raise_marks(&clock, &clocks[wanted->at[lane]]);
    clock.at[call->lane] = now;
    builder->clocks.items[now] = clock;
}

/* Lists transient blocks by the end of their life; FR_BLOCK_NONE ends the
 * list. */
static uint32_t *sort_by_last_call(const fr_builder *builder)
{
    size_t n_calls = builder->calls.n, n_blocks = builder->blocks.n;
    uint32_t *list = malloc((n_blocks + 1) * sizeof *list);
    uint32_t *end = calloc(n_calls + 2, sizeof *end); /* counting sort */
    if (list == NULL || end == NULL) {
        free(list);
        free(end);
        return NULL;
    }
    for (size_t i = 0; i < n_blocks; i++)
        if (!builder->blocks.items[i].is_persistent)
            end[builder->blocks.items[i].last_call]++;
    for (size_t i = 1; i <= n_calls; i++)
        end[i] += end[i - 1];
    list[end[n_calls]] = FR_BLOCK_NONE;
    for (size_t i = n_blocks; i-- > 0;)
        if (!builder->blocks.items[i].is_persistent)
            list[--end[builder->blocks.items[i].last_call]] = (uint32_t)i;
    free(end);
    return list;
}

static fr_status order_calls(fr_builder *builder, fr_err *err)
{
    uint32_t previous[FR_LANE_N] = {0};
    uint32_t *leaving = sort_by_last_call(builder);
    uint32_t *next = leaving;
    if (leaving == NULL ||
        fr_vec_reserve(&builder->clocks, builder->calls.n + 1) != FR_OK) {
        free(leaving);
        return fr_fail_no_memory(err);
    }
    builder->clocks.items[0] = (lane_marks){{0}};
    for (uint32_t now = 1; now <= builder->calls.n; now++) {
        lane_marks wanted = {{0}};
        fr_lane lane = builder->calls.items[now - 1].lane;
        for (; *next != FR_BLOCK_NONE &&
               builder->blocks.items[*next].last_call < now;
             next++)
            leave_memory(builder, &builder->blocks.items[*next]);
        collect_wanted(builder, now, &wanted);
        add_deps(builder, now, previous[lane], &wanted);
        previous[lane] = now;
    }
    free(leaving);
    return builder->is_out_of_memory ? fr_fail_no_memory(err) : FR_OK;
}

/* Neighbouring persistent blocks of one kind become one. */
static uint32_t merge_blocks(const fr_builder *builder, bool is_on_host,
                             fr_block *out)
{
    uint32_t n = 0, n_calls = (uint32_t)builder->calls.n;
    for (size_t i = 0; i < builder->blocks.n; i++) {
        const builder_block *block = &builder->blocks.items[i];
        if (block->n_bytes == 0 || block->is_on_host != is_on_host ||
            (!block->is_persistent && block->first_call == 0))
            continue;
        fr_block *last = n > 0 ? &out[n - 1] : NULL;
        if (block->is_persistent && last != NULL && last->is_persistent &&
            last->kind == (uint8_t)block->kind &&
            last->offset_bytes + last->n_bytes == block->offset_bytes) {
            last->n_bytes += block->n_bytes;
            continue;
        }
        out[n++] = (fr_block){
            .kind = (uint8_t)block->kind,
            .is_persistent = block->is_persistent,
            .offset_bytes = block->offset_bytes,
            .n_bytes = block->n_bytes,
            .first_call = block->is_persistent ? 0 : block->first_call - 1,
            .last_call =
                block->is_persistent ? n_calls - 1 : block->last_call - 1,
        };
    }
    return n;
}

/* Writes the call, and its bases behind those that there are. */
static void write_call(const fr_builder *builder, const builder_call *call,
                       fr_call *out, fr_rank_program *rank_program)
{
    uint64_t base[FR_SPACE_N];
    *out = (fr_call){.i_segment = call->i_segment,
                     .layer = call->layer,
                     .micro_batch = call->micro_batch,
                     .chunk = call->chunk,
                     .first_dep = call->first_dep,
                     .n_deps = call->n_deps,
                     .first_base = rank_program->n_bases};
    for (uint32_t u = 0; u < call->n_uses; u++) {
        builder_use use = builder->uses.items[call->first_use + u];
        if (use.space == FR_SPACE_NONE)
            continue;
        base[use.space] = builder->blocks.items[use.block].offset_bytes;
        out->spaces |= 1u << use.space;
    }
    for (int space = 0; out->spaces >> space != 0; space++)
        if (out->spaces >> space & 1)
            rank_program->bases[rank_program->n_bases++] = base[space];
}

fr_status fr_builder_finish(fr_builder *builder, fr_rank_program *out,
                            fr_err *err)
{
    if (builder->is_out_of_memory)
        return fr_fail_no_memory(err);
    FR_TRY(place_blocks(builder, 0, false, &builder->slab_bytes, err));
    if (builder->n_host_blocks > 0)
        FR_TRY(place_blocks(builder, builder->slab_bytes, true,
                            &builder->host_bytes, err));
    FR_TRY(order_calls(builder, err));
    fr_rank_program made = *out;
    made.calls = malloc((builder->calls.n + 1) * sizeof *made.calls);
    made.deps = malloc((builder->deps.n + 1) * sizeof *made.deps);
    made.bases = malloc((builder->uses.n + 1) * sizeof *made.bases);
    made.blocks = malloc((builder->blocks.n + 1) * sizeof *made.blocks);
    made.host_blocks =
        malloc((builder->n_host_blocks + 1) * sizeof *made.host_blocks);
    if (made.calls == NULL || made.deps == NULL || made.bases == NULL ||
        made.blocks == NULL || made.host_blocks == NULL) {
        free(made.calls);
        free(made.deps);
        free(made.bases);
        free(made.blocks);
        free(made.host_blocks);
        return fr_fail_no_memory(err);
    }
    made.n_bases = 0;
    for (size_t i = 0; i < builder->calls.n; i++)
        write_call(builder, &builder->calls.items[i], &made.calls[i], &made);
    if (builder->deps.n)
        memcpy(made.deps, builder->deps.items,
               builder->deps.n * sizeof *made.deps);
    made.n_calls = (uint32_t)builder->calls.n;
    made.n_deps = (uint32_t)builder->deps.n;
    made.n_blocks = merge_blocks(builder, false, made.blocks);
    made.n_host_blocks = builder->n_host_blocks > 0
                             ? merge_blocks(builder, true, made.host_blocks)
                             : 0;
    made.slab_bytes = builder->slab_bytes;
    made.host_bytes = builder->host_bytes;
    *out = made;
    return FR_OK;
}
