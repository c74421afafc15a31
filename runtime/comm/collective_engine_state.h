/*
 * collective_engine_state.h: what the parts of the engine share: the state of
 * the instruction that a lane is carrying out.  Inside
 * runtime/comm/collective_engine*.c only.
 */
#ifndef FR_RUNTIME_COMM_COLLECTIVE_ENGINE_STATE_H
#define FR_RUNTIME_COMM_COLLECTIVE_ENGINE_STATE_H

#include "runtime/comm/collective_engine.h"

/* One transfer by message, in pieces. */
typedef struct fr_stream {
    const fr_transfer *move;
    bool is_send;
    int tag;
    uint64_t n_pieces, i_posted, i_done;
    fr_message request[FR_ENGINE_WINDOW];
} fr_stream;

/* The instruction that a lane is carrying out, and how far it is. */
typedef struct fr_lane_work {
    const fr_engine_route *route; /* NULL: the lane is idle */
    fr_lane lane;
    unsigned char *src, *dst;
    unsigned char barrier[8]; /* operand of a BARRIER */
    uint32_t phase;
    uint32_t i_move; /* next move of the route */
    /* By pulling from the members' slabs: */
    uint8_t stage;
    uint64_t moved_bytes;          /* of the current move */
    uint64_t *peer_src, *peer_dst; /* [world] operand offsets of members */
    uint64_t count;                /* of the synchronisation waited for */
    int64_t i_member;              /* first member not seen there yet */
    const void **sources;          /* [world] of one fused reduction */
    fr_shm_post *found;            /* the neighbour's post, being copied */
    /* By messages: */
    unsigned char *send_base, *recv_base;
    bool is_awaited;    /* RECV: nothing of the message is there yet */
    fr_stream *streams; /* [max_streams] */
    uint32_t n_streams;
    unsigned char *staging; /* FR_ENGINE_WINDOW pieces; NULL: no reductions */
    uint64_t sync_count[FR_AXIS_N]; /* of this lane, kept between starts */
    uint64_t received_bytes;        /* from others, likewise */
} fr_lane_work;

struct fr_engine {
    fr_transport *transport;
    uint32_t n_instrs;
    fr_engine_route *
        *routes; /* [n_instrs], NULL where nothing is communicated */
    fr_lane_work lanes[FR_LANE_N];
};

/* Bytes of one member's part of a gather or scatter. */
static inline uint64_t fr_route_part_bytes(const fr_engine_route *route)
{
    return route->n / (uint64_t)route->n_group * route->element_bytes;
}

void fr_shared_start(fr_engine *engine, fr_lane_work *work);
void fr_shared_progress(fr_engine *engine, fr_lane_work *work, bool *is_done,
                        bool *has_moved);
int64_t fr_shared_waits_for(const fr_engine *engine, const fr_lane_work *work);

void fr_message_start(fr_engine *engine, fr_lane_work *work);
FR_CHECKED fr_status fr_message_progress(fr_engine *engine, fr_lane_work *work,
                                         bool *is_done, bool *has_moved,
                                         fr_err *err);
int64_t fr_message_waits_for(const fr_lane_work *work);

#endif
