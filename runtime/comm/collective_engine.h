/*
 * collective_engine.h: carries out the communication instructions of a
 * program as state machines that never block.
 *
 * A lane has at most one instruction in flight: start() it, then progress()
 * it until it is done, from one thread at a time.  Where all members share
 * memory and the algorithm is FR_COLLECTIVE_DIRECT, members pull straight
 * from each other's slabs; everything else is messages.  Both carry out the
 * transfers that the algorithm's `emit` (collective.h) lists.
 *
 * REDUCE_SCATTER by messages leaves partial sums in the rest of src.
 */
#ifndef FR_RUNTIME_COMM_COLLECTIVE_ENGINE_H
#define FR_RUNTIME_COMM_COLLECTIVE_ENGINE_H

#include "plan/collective/collective.h"
#include "program/ir/program.h"
#include "runtime/comm/transport.h"

/* Largest piece of a transfer by message, and pieces in flight of one. */
#define FR_ENGINE_PIECE_BYTES ((uint64_t)256 << 10)
#define FR_ENGINE_WINDOW 4
/* Work between two looks at the other lanes. */
#define FR_ENGINE_SLICE_BYTES ((uint64_t)256 << 10)

/* The part of this rank in one communication instruction. */
typedef struct fr_engine_route {
    uint8_t op, dtype, axis, lane;
    bool is_max;
    bool is_shared; /* pulls from slabs; else messages */
    int64_t n_group, position;
    int64_t *ranks; /* [n_group] */
    int64_t peer;   /* P2P: the other rank; BROADCAST: root's position */
    uint32_t tag;
    uint64_t n; /* elements of the instruction */
    uint64_t element_bytes;
    uint32_t n_phases, n_moves;
    fr_transfer *moves; /* by phase: those that this rank pulls, or sends and
                           receives */
} fr_engine_route;

typedef struct fr_engine fr_engine;

/*
 * Prepares every instruction that the rank's program communicates with;
 * the program and the transport (with its slab open before the first start())
 * are borrowed.  All memory is made here.
 */
FR_CHECKED fr_status fr_engine_create(const fr_program *program,
                                      fr_transport *transport, fr_engine **out,
                                      fr_err *err);
void fr_engine_destroy(fr_engine *engine); /* takes NULL */

/* NULL: not a communication instruction of this rank. */
const fr_engine_route *fr_engine_route_of(const fr_engine *engine,
                                          uint32_t i_instr);

/* Operands as addresses in the own slab; dst of SEND and src of RECV NULL. */
void fr_engine_start(fr_engine *engine, uint32_t i_instr, void *src, void *dst);

/*
 * Goes on with the lane's instruction for about one slice of work.
 * *has_moved: something was done, worth calling again at once.  Errors: those
 * of the transport.
 */
FR_CHECKED fr_status fr_engine_progress(fr_engine *engine, fr_lane lane,
                                        bool *is_done, bool *has_moved,
                                        fr_err *err);

/* The rank that the lane's instruction waits for, -1: none. */
int64_t fr_engine_waits_for(const fr_engine *engine, fr_lane lane);

/* Bytes that came from other ranks since the engine was made; between
 * instructions. */
uint64_t fr_engine_received_bytes(const fr_engine *engine);

/* Does the lane wait for messages (which ring no doorbell)? */
bool fr_engine_has_messages(const fr_engine *engine, fr_lane lane);
/* Does it only wait for a message that nobody has begun to send? */
bool fr_engine_awaits_message(const fr_engine *engine, fr_lane lane);

/* dst[i] = sum (max) over src[j][i] in order of j; dst may be one of them.
 * BF16 adds in fp32 and rounds once.  U8: max only. */
void fr_reduce(void *dst, const void *const *src, int64_t n_src, uint64_t n,
               fr_dtype dtype, bool is_max);

#endif
