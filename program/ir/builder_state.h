/*
 * builder_state.h: what a builder has of its calls and blocks before it is
 * finished.  For builder*.c alone.
 */
#ifndef FR_PROGRAM_IR_BUILDER_STATE_H
#define FR_PROGRAM_IR_BUILDER_STATE_H

#include "core/base/vec.h"
#include "program/ir/builder.h"

/* The access of a use that only makes the block live on. */
#define BUILDER_KEPT 'k'
/* The access of a use that only waits for who wrote the block. */
#define BUILDER_AFTER 'a'

/* Calls are numbered from 1 here; 0: none. */
typedef struct lane_marks {
    uint32_t at[FR_LANE_N];
} lane_marks;

typedef struct builder_block {
    uint64_t n_bytes, offset_bytes;
    uint32_t first_call, last_call; /* from 1 */
    fr_memory_kind kind;
    bool is_persistent, is_page_aligned, is_on_host;
    uint32_t writer;    /* last call that wrote */
    lane_marks readers; /* last reader of each lane since then */
    lane_marks users;   /* last user of each lane */
} builder_block;

typedef struct builder_use {
    uint32_t block;
    uint8_t space; /* whose base it is; NONE: it is used alone */
    char access;   /* 0: it is a base alone; KEPT, AFTER */
} builder_use;

/* Is the block's memory read or written? */
static inline bool builder_is_access(builder_use use)
{
    return use.access != 0 && use.access != BUILDER_KEPT &&
           use.access != BUILDER_AFTER;
}

typedef struct builder_call {
    uint32_t i_segment;
    int32_t layer, micro_batch, chunk;
    uint32_t first_use, n_uses;
    uint32_t first_dep, n_deps;
    uint32_t follows; /* a call that it waits for whatever they use; 0: none */
    fr_lane lane;
} builder_call;

/* Memory that has been used and is dead: who used it last. */
typedef struct dead_range {
    uint64_t begin, end;
    lane_marks users;
} dead_range;

struct fr_builder {
    fr_vec(builder_block) blocks;
    fr_vec(builder_call) calls;
    fr_vec(builder_use) uses;
    fr_vec(dead_range) dead; /* ascending, disjoint */
    fr_vec(uint32_t) deps;
    fr_vec(lane_marks) clocks; /* [calls + 1]: what is done once it is done */
    uint64_t slab_bytes, host_bytes;
    uint32_t n_host_blocks;
    bool is_next_page_aligned, is_out_of_memory;
    bool is_apart; /* no two blocks share memory */
};

/* Extends the life of a block to a use of it. */
static inline void builder_live_on(fr_builder *builder, uint32_t block,
                                   uint32_t now)
{
    builder_block *used = &builder->blocks.items[block];
    if (used->first_call == 0)
        used->first_call = now;
    used->last_call = now;
}

/* The last call on `lane` before a call (from 1); 0: none. */
static inline uint32_t builder_last_before(const fr_builder *builder,
                                           uint32_t call, fr_lane lane)
{
    uint32_t before = call - 1;
    while (before > 0 && builder->calls.items[before - 1].lane != lane)
        before--;
    return before;
}

#endif
