/*
 * builder.h: makes one rank program out of calls in program order.
 *
 * A caller adds blocks (pieces of memory) and calls, and says which blocks
 * each call reads and writes.  From that alone the builder derives lifetimes,
 * static offsets, and the dependencies between lanes: read after write, write
 * after read, write after write, and reuse of the memory of a dead block.  So
 * what it builds is free of races by construction.
 *
 * Errors stick (out of memory) and are reported by fr_builder_finish().
 */
#ifndef FR_PROGRAM_IR_BUILDER_H
#define FR_PROGRAM_IR_BUILDER_H

#include "program/ir/program.h"

typedef struct fr_builder fr_builder;

#define FR_BLOCK_NONE UINT32_MAX
enum { FR_BLOCK_ALIGN = 64 }; /* bytes */

FR_CHECKED fr_status fr_builder_create(fr_builder **out, fr_err *err);
void fr_builder_destroy(fr_builder *builder);
/* Makes the builder as new for the next rank program, but keeps its memory. */
void fr_builder_reset(fr_builder *builder);
/*
 * From here on no two blocks share memory, in this and all later rank programs:
 * each has addresses of its own, and no call waits for memory.  For programs
 * whose memory an allocator finds at run time.
 */
void fr_builder_set_apart(fr_builder *builder);

/*
 * A block of the rank program; its number.  Persistent blocks lie at the bottom
 * of the slab in the order of their making, each at a multiple of 64 bytes,
 * after fr_builder_align_page() the next at a multiple of 4096.  The others
 * live from the first to the last call that uses them.
 */
uint32_t fr_builder_add_block(fr_builder *builder, fr_memory_kind kind,
                              bool is_persistent, uint64_t n_bytes);
/* The same in the host's memory, whose addresses follow those of the slab. */
uint32_t fr_builder_add_host_block(fr_builder *builder, fr_memory_kind kind,
                                   bool is_persistent, uint64_t n_bytes);
void fr_builder_align_page(fr_builder *builder);

/* Appends a call; the functions below are about the last one. */
void fr_builder_add_call(fr_builder *builder, uint32_t i_segment, fr_lane lane,
                         int32_t layer, int64_t micro_batch, int32_t chunk);

/* The base of `space` is the block; access 'r', 'w' or 'm' (both). */
void fr_builder_bind(fr_builder *builder, fr_space space, uint32_t block,
                     char access);
/* The base alone: what is used is told by fr_builder_use(). */
void fr_builder_set_base(fr_builder *builder, fr_space space, uint32_t block);
/* The call uses a block that another space's base reaches. */
void fr_builder_use(fr_builder *builder, uint32_t block, char access);

/* The call waits for who wrote the block last, and nobody for the call. */
void fr_builder_after(fr_builder *builder, uint32_t block);

/* The call also waits for what was added to `lane` before it. */
void fr_builder_follow(fr_builder *builder, fr_lane lane);

uint32_t fr_builder_n_calls(const fr_builder *builder);
/*
 * Merges the calls [first, middle) and those from middle on, each in its own
 * order: from the first list up to its next call on `lane`, then from the
 * second up to its next one, and so on.  What they use and for how long is as
 * if they had been added so.
 */
void fr_builder_interleave(fr_builder *builder, uint32_t first, uint32_t middle,
                           fr_lane lane);

/* The block's memory is not given away before the last call is over, though
 * nobody waits for that: a send in flight keeps its data. */
void fr_builder_keep(fr_builder *builder, uint32_t block);

/* Fills calls, deps, blocks and their bytes of *out, which owns them. */
FR_CHECKED fr_status fr_builder_finish(fr_builder *builder,
                                       fr_rank_program *out, fr_err *err);

/* Returns the offset of a block in the slab, once the rank program is
 * finished. */
uint64_t fr_builder_offset(const fr_builder *builder, uint32_t block);

#endif
