/*
 * The builder: dependencies between lanes, reuse of memory, packing.
 */
#include "program/ir/builder.h"
#include "program/memory/memory_pack.h"
#include "program/memory/memory_sweep.h"
#include "tests/check.h"

#include <stdlib.h>

static fr_err err;

static void release(fr_rank_program *rank_program)
{
    free(rank_program->calls);
    free(rank_program->deps);
    free(rank_program->bases);
    free(rank_program->blocks);
    free(rank_program->host_blocks);
}

static bool depends(const fr_rank_program *rank_program, uint32_t call,
                    uint32_t on)
{
    const fr_call *c = &rank_program->calls[call];
    for (uint32_t i = 0; i < c->n_deps; i++)
        if (rank_program->deps[c->first_dep + i] == on)
            return true;
    return false;
}

static void add(fr_builder *b, fr_lane lane, uint32_t block, char access)
{
    fr_builder_add_call(b, 0, lane, -1, -1, -1);
    fr_builder_bind(b, FR_SPACE_IN, block, access);
}

static void test_hazards(void)
{
    fr_builder *b = NULL;
    fr_rank_program rank_program = {0};
    if (!CHECK_OK(fr_builder_create(&b, &err), &err))
        return;
    uint32_t x = fr_builder_add_block(b, FR_MEMORY_BUFFERS, true, 100);
    uint32_t y = fr_builder_add_block(b, FR_MEMORY_BUFFERS, true, 100);
    add(b, FR_LANE_COMPUTE, x, 'w'); /* 0 */
    add(b, FR_LANE_DP, x, 'r');      /* 1: read after write */
    add(b, FR_LANE_IO, x, 'r');      /* 2: the same */
    add(b, FR_LANE_COMPUTE, x, 'm'); /* 3: write after both reads */
    add(b, FR_LANE_DP, y, 'w');      /* 4: nothing */
    add(b, FR_LANE_DP, x, 'w');      /* 5: write after write */
    fr_builder_use(b, y, 'r');
    add(b, FR_LANE_COMPUTE, y, 'w'); /* 6: after 5, which covers 4 */
    add(b, FR_LANE_IO, y, 'r');      /* 7: after 6, which covers 5 */
    fr_builder_use(b, x, 'r');
    CHECK_OK(fr_builder_finish(b, &rank_program, &err), &err);
    CHECK_INT(rank_program.n_calls, 8);
    CHECK_INT(rank_program.calls[0].n_deps, 0);
    CHECK(rank_program.calls[1].n_deps == 1 && depends(&rank_program, 1, 0));
    CHECK(rank_program.calls[2].n_deps == 1 && depends(&rank_program, 2, 0));
    CHECK(rank_program.calls[3].n_deps == 2 && depends(&rank_program, 3, 1) &&
          depends(&rank_program, 3, 2));
    CHECK_INT(rank_program.calls[4].n_deps, 0);
    CHECK(rank_program.calls[5].n_deps == 1 && depends(&rank_program, 5, 3));
    CHECK(rank_program.calls[6].n_deps == 1 && depends(&rank_program, 6, 5));
    CHECK(rank_program.calls[7].n_deps == 1 && depends(&rank_program, 7, 6));
    CHECK_INT(fr_builder_offset(b, y) % 64, 0);
    CHECK(fr_builder_offset(b, y) >= fr_builder_offset(b, x) + 100);
    release(&rank_program);
    fr_builder_destroy(b);
}

/* As above, but every block has memory of its own. */
static void test_apart(void)
{
    fr_builder *b = NULL;
    fr_rank_program rank_program = {0};
    if (!CHECK_OK(fr_builder_create(&b, &err), &err))
        return;
    fr_builder_set_apart(b);
    fr_builder_reset(b);
    uint32_t old = fr_builder_add_block(b, FR_MEMORY_BUFFERS, false, 8192);
    uint32_t fresh = fr_builder_add_block(b, FR_MEMORY_BUFFERS, false, 8192);
    add(b, FR_LANE_COMPUTE, old, 'w');   /* 0 */
    add(b, FR_LANE_PP_SEND, old, 'r');   /* 1: last user of old */
    add(b, FR_LANE_COMPUTE, fresh, 'w'); /* 2: does not wait for it */
    CHECK_OK(fr_builder_finish(b, &rank_program, &err), &err);
    CHECK_INT(fr_builder_offset(b, old), 0);
    CHECK_INT(fr_builder_offset(b, fresh), 8192);
    CHECK_INT(rank_program.calls[2].n_deps, 0);
    CHECK_INT(rank_program.slab_bytes, 16384);
    release(&rank_program);
    fr_builder_destroy(b);
}

/* Instructions that wait for a lane, whatever they use. */
static void test_follow(void)
{
    fr_builder *b = NULL;
    fr_rank_program rank_program = {0};
    if (!CHECK_OK(fr_builder_create(&b, &err), &err))
        return;
    uint32_t x = fr_builder_add_block(b, FR_MEMORY_BUFFERS, true, 64);
    uint32_t y = fr_builder_add_block(b, FR_MEMORY_BUFFERS, true, 64);
    add(b, FR_LANE_PP_RECV, y, 'w'); /* 0: there is nothing to follow */
    fr_builder_follow(b, FR_LANE_COMPUTE);
    add(b, FR_LANE_COMPUTE, x, 'w'); /* 1 */
    add(b, FR_LANE_COMPUTE, x, 'r'); /* 2 */
    add(b, FR_LANE_PP_RECV, y, 'w'); /* 3: after 2, the last one there */
    fr_builder_follow(b, FR_LANE_COMPUTE);
    CHECK_OK(fr_builder_finish(b, &rank_program, &err), &err);
    CHECK_INT(rank_program.calls[0].n_deps, 0);
    CHECK(rank_program.calls[3].n_deps == 1 && depends(&rank_program, 3, 2));
    release(&rank_program);
    fr_builder_destroy(b);
}

/* A new block in the memory of a dead one waits for its last users. */
static void test_reuse(void)
{
    fr_builder *b = NULL;
    fr_rank_program rank_program = {0};
    if (!CHECK_OK(fr_builder_create(&b, &err), &err))
        return;
    uint32_t old = fr_builder_add_block(b, FR_MEMORY_BUFFERS, false, 8192);
    uint32_t fresh = fr_builder_add_block(b, FR_MEMORY_BUFFERS, false, 8192);
    uint32_t kept = fr_builder_add_block(b, FR_MEMORY_BUFFERS, false, 8192);
    add(b, FR_LANE_COMPUTE, old, 'w');   /* 0 */
    add(b, FR_LANE_PP_SEND, old, 'r');   /* 1: last user of old */
    add(b, FR_LANE_COMPUTE, fresh, 'w'); /* 2: takes its memory */
    fr_builder_keep(b, fresh);
    add(b, FR_LANE_COMPUTE, kept, 'w'); /* 3: does not: fresh is kept */
    fr_builder_keep(b, fresh);
    CHECK_OK(fr_builder_finish(b, &rank_program, &err), &err);
    CHECK(fr_builder_offset(b, old) == fr_builder_offset(b, fresh));
    CHECK(fr_builder_offset(b, kept) != fr_builder_offset(b, fresh));
    CHECK(depends(&rank_program, 2, 1));
    CHECK_INT(rank_program.calls[3].n_deps, 0);
    CHECK_INT(rank_program.slab_bytes, 16384);
    CHECK_INT(rank_program.blocks[1].last_call, 3);
    release(&rank_program);
    fr_builder_destroy(b);
}

static bool do_overlap(const fr_pack_item *a, const fr_pack_item *b)
{
    return a->first <= b->last && b->first <= a->last &&
           a->offset_bytes < b->offset_bytes + b->n_bytes &&
           b->offset_bytes < a->offset_bytes + a->n_bytes;
}

typedef fr_status (*pack_fn)(fr_pack_item *items, size_t n,
                             uint64_t *total_bytes, fr_err *error);

/* Nothing overlaps, and the slab is at most `most` times what is alive. */
static void check_random(pack_fn pack, double most)
{
    enum { N = 160 };
    uint64_t random = 0x2f6e2b1d9c37a5e1U;
    double worst = 0;
    for (int round = 0; round < 40; round++) {
        fr_pack_item items[N];
        uint64_t total = 0, live_peak = 0;
        for (int i = 0; i < N; i++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            uint32_t first = (uint32_t)(random >> 8) % 300;
            items[i] =
                (fr_pack_item){.n_bytes = 64 * (1 + (random >> 40) % 900),
                               .first = first,
                               .last = first + (uint32_t)(random >> 20) % 40};
        }
        CHECK_OK(pack(items, N, &total, &err), &err);
        for (int i = 0; i < N; i++) {
            uint64_t live = 0;
            CHECK(items[i].offset_bytes + items[i].n_bytes <= total);
            for (int k = 0; k < N; k++) {
                CHECK(k == i || !do_overlap(&items[i], &items[k]));
                if (items[k].first <= items[i].first &&
                    items[k].last >= items[i].first)
                    live += items[k].n_bytes;
            }
            live_peak = live > live_peak ? live : live_peak;
        }
        CHECK(total >= live_peak);
        worst = fmax(worst, (double)total / (double)live_peak);
    }
    printf("# packing: worst slab / live bytes %.3f\n", worst);
    CHECK(worst < most);
}

static void test_pack_random(void)
{
    check_random(fr_memory_pack, 1.25);
    check_random(fr_memory_sweep, 1.6); /* made for speed */
}

/* Nested lives pack without loss. */
static void test_pack_stack(void)
{
    fr_pack_item items[12];
    uint64_t total = 0;
    for (uint32_t i = 0; i < 12; i++)
        items[i] = (fr_pack_item){
            .n_bytes = 64 * (i % 5 + 1), .first = i, .last = 40 - i};
    CHECK_OK(fr_memory_pack(items, 12, &total, &err), &err);
    CHECK_INT(total, 64 * (1 + 2 + 3 + 4 + 5 + 1 + 2 + 3 + 4 + 5 + 1 + 2));
    CHECK_OK(fr_memory_pack(items, 0, &total, &err), &err);
    CHECK_INT(total, 0);
}

/* Two lists that take turns at each call on one lane: what they wait for, and
 * how long blocks live, is as in the merged order. */
static void test_interleave(void)
{
    fr_builder *b = NULL;
    fr_rank_program rank_program = {0};
    uint32_t block[2];
    if (!CHECK_OK(fr_builder_create(&b, &err), &err))
        return;
    uint32_t both = fr_builder_add_block(b, FR_MEMORY_BUFFERS, true, 100);
    add(b, FR_LANE_COMPUTE, both, 'w');
    const uint32_t first = fr_builder_n_calls(b);
    uint32_t middle = first;
    for (int i = 0; i < 2; i++) {
        middle = i == 1 ? fr_builder_n_calls(b) : first;
        block[i] = fr_builder_add_block(b, FR_MEMORY_BUFFERS, false, 64);
        add(b, FR_LANE_COMPUTE, block[i], 'w');
        add(b, FR_LANE_EP, block[i], 'm');
        add(b, FR_LANE_COMPUTE, block[i], 'r');
        add(b, FR_LANE_TP, both, 'r');
        fr_builder_follow(b, FR_LANE_COMPUTE);
        if (i == 1)
            add(b, FR_LANE_EP, block[i], 'r');
    }
    fr_builder_interleave(b, first, middle, FR_LANE_EP);
    CHECK_OK(fr_builder_finish(b, &rank_program, &err), &err);
    /* 0; a: 1 2(EP) | b: 3 4(EP) | a: 5 6 | b: 7 8 9(EP) */
    CHECK_INT(rank_program.n_calls, 10);
    CHECK(depends(&rank_program, 2, 1) && depends(&rank_program, 4, 3));
    CHECK(depends(&rank_program, 5, 2) && !depends(&rank_program, 5, 4));
    CHECK(depends(&rank_program, 7, 4) && !depends(&rank_program, 7, 2));
    CHECK(depends(&rank_program, 6, 5) && depends(&rank_program, 8, 7));
    CHECK_INT(rank_program.n_blocks, 3);
    CHECK_INT(rank_program.blocks[1].first_call, 1);
    CHECK_INT(rank_program.blocks[1].last_call, 5);
    CHECK_INT(rank_program.blocks[2].first_call, 3);
    CHECK_INT(rank_program.blocks[2].last_call, 9);
    CHECK(rank_program.blocks[1].offset_bytes !=
          rank_program.blocks[2].offset_bytes);
    release(&rank_program);
    fr_builder_destroy(b);
}

CHECK_MAIN({"hazards", test_hazards}, {"interleave", test_interleave},
           {"reuse", test_reuse}, {"apart", test_apart},
           {"follow", test_follow}, {"pack_random", test_pack_random},
           {"pack_stack", test_pack_stack})
