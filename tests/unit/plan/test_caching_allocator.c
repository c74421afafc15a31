/* The rules of the caching allocator on rank programs made by hand: what is
 * worked out on paper from the documentation's rules stands in each case. */
#include "program/memory/caching_allocator.h"
#include "tests/check.h"

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)

enum { MAX_BLOCKS = 8 };

static fr_allocator_use reserve(const fr_block *blocks, uint32_t n_blocks,
                                uint32_t n_calls)
{
    fr_block copy[MAX_BLOCKS];
    fr_rank_program rank_program = {
        .n_calls = n_calls, .n_blocks = n_blocks, .blocks = copy};
    fr_allocator_use use = {0};
    fr_err err;
    memcpy(copy, blocks, n_blocks * sizeof *copy);
    CHECK_OK(fr_rank_program_reserve(NULL, &rank_program, NULL, 0, &use, &err),
             &err);
    return use;
}

static void test_sizes(void)
{
    /* 700 bytes take 1024 of a segment of 2 MiB. */
    fr_block small = {.n_bytes = 700, .first_call = 0, .last_call = 1};
    fr_allocator_use use = reserve(&small, 1, 2);
    CHECK_INT(use.allocated_bytes, 1024);
    CHECK_INT(use.reserved_bytes, 2 * MIB);
    /* 3 MiB: a segment of 20; 11.5 MiB: one of 12, not split. */
    fr_block large[2] = {
        {.n_bytes = 3 * MIB, .first_call = 0, .last_call = 1},
        {.n_bytes = 11 * MIB + 512 * KIB, .first_call = 0, .last_call = 1}};
    use = reserve(large, 1, 2);
    CHECK_INT(use.reserved_bytes, 20 * MIB);
    CHECK_INT(use.allocated_bytes, 3 * MIB);
    use = reserve(large + 1, 1, 2);
    CHECK_INT(use.reserved_bytes, 12 * MIB);
    CHECK_INT(use.allocated_bytes, 12 * MIB); /* 512 KiB are not split off */
    /* Both: the second finds 17 MiB left of the first's segment. */
    use = reserve(large, 2, 2);
    CHECK_INT(use.reserved_bytes, 20 * MIB);
}

/* A hole of 40 MiB between live blocks takes 30, but not 50. */
static void test_fragmentation(void)
{
    fr_block blocks[4] = {
        {.n_bytes = 40 * MIB, .first_call = 0, .last_call = 1},
        {.n_bytes = 40 * MIB, .first_call = 0, .last_call = 3},
        {.n_bytes = 30 * MIB, .first_call = 2, .last_call = 3},
        {.n_bytes = 50 * MIB, .first_call = 2, .last_call = 3}};
    fr_allocator_use use = reserve(blocks, 4, 4);
    CHECK_INT(use.allocated_bytes, 120 * MIB);
    CHECK_INT(use.reserved_bytes, 130 * MIB);
}

/* Neighbouring blocks that are freed become one piece again; persistent blocks
 * stay. */
static void test_join(void)
{
    fr_block blocks[5] = {
        {.is_persistent = true, .n_bytes = 5 * MIB, .last_call = 3},
        {.n_bytes = 4 * MIB, .first_call = 0, .last_call = 0},
        {.n_bytes = 4 * MIB, .first_call = 0, .last_call = 1},
        {.n_bytes = 4 * MIB, .first_call = 0, .last_call = 0},
        {.n_bytes = 15 * MIB, .first_call = 2, .last_call = 3}};
    fr_allocator_use use = reserve(blocks, 5, 4);
    CHECK_INT(use.reserved_bytes, 20 * MIB);
    CHECK_INT(use.allocated_bytes, 20 * MIB);
}

/* Never less than what is alive, and the order of equal calls is fixed. */
static void test_random(void)
{
    uint64_t seed = 2385;
    for (int trial = 0; trial < 200; trial++) {
        fr_block blocks[MAX_BLOCKS] = {0};
        uint64_t live[6] = {0}, peak = 0;
        for (int i = 0; i < MAX_BLOCKS; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            blocks[i].n_bytes = seed >> 40;
            blocks[i].first_call = (uint32_t)(seed >> 20) % 6;
            blocks[i].last_call =
                blocks[i].first_call +
                (uint32_t)(seed >> 10) % (6 - blocks[i].first_call);
            for (uint32_t c = blocks[i].first_call; c <= blocks[i].last_call;
                 c++)
                live[c] += blocks[i].n_bytes;
        }
        for (int c = 0; c < 6; c++)
            peak = live[c] > peak ? live[c] : peak;
        fr_allocator_use use = reserve(blocks, MAX_BLOCKS, 6);
        CHECK(use.allocated_bytes >= peak);
        CHECK(use.reserved_bytes >= use.allocated_bytes);
        fr_allocator_use again = reserve(blocks, MAX_BLOCKS, 6);
        CHECK_INT(again.reserved_bytes, use.reserved_bytes);
    }
}

/* Scratch of 12 MiB fills holes of 8 and 4 if it is two tensors. */
static void test_tensors(void)
{
    fr_instr instr = {
        .ref = {{.space = FR_SPACE_TEMP},
                {.space = FR_SPACE_TEMP, .offset_bytes = 8 * MIB}}};
    fr_segment segment = {.n_instrs = 1};
    fr_program program = {
        .instrs = &instr, .n_instrs = 1, .segments = &segment, .n_segments = 1};
    fr_call calls[3] = {{.i_segment = 0}};
    enum { SCRATCH = 4 };
    fr_block blocks[] = {{.n_bytes = 8 * MIB, .first_call = 0, .last_call = 1},
                         {.n_bytes = 12 * MIB, .first_call = 0, .last_call = 2},
                         {.n_bytes = 4 * MIB, .first_call = 0, .last_call = 1},
                         {.n_bytes = 16 * MIB, .first_call = 0, .last_call = 2},
                         {.n_bytes = 12 * MIB,
                          .first_call = 2,
                          .last_call = 2,
                          .offset_bytes = 64 * MIB}};
    fr_rank_program rank_program = {.n_calls = 3,
                                    .calls = calls,
                                    .blocks = blocks,
                                    .n_blocks =
                                        sizeof blocks / sizeof blocks[0]};
    fr_allocator_use whole = {0}, cut = {0};
    fr_err err;
    calls[2].spaces = 1u << FR_SPACE_TEMP;
    rank_program.bases = &blocks[SCRATCH].offset_bytes;
    rank_program.n_bases = 1;
    CHECK_OK(
        fr_rank_program_reserve(NULL, &rank_program, NULL, 0, &whole, &err),
        &err);
    CHECK_OK(
        fr_rank_program_reserve(&program, &rank_program, NULL, 0, &cut, &err),
        &err);
    /* 8 and 12 fill a segment of 20, 4 and 16 another. */
    CHECK_INT(cut.reserved_bytes, 40 * MIB);
    CHECK_INT(whole.reserved_bytes, 52 * MIB);
}

CHECK_MAIN({"sizes", test_sizes}, {"fragmentation", test_fragmentation},
           {"join", test_join}, {"random", test_random},
           {"tensors", test_tensors})
