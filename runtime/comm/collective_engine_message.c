/*
 * collective_engine_message.c: collectives and transfers as messages.
 *
 * The transfers of a phase are streams of pieces.  All sends and all plain
 * receives of a phase run at once, straight from and to the buffers; received
 * summands go through a staging area, one stream after the other in the order
 * of the list, so that sums have one order.  Every sender sends all the time,
 * so taking the summands one by one cannot deadlock.
 */
#include "runtime/comm/collective_engine_state.h"

#include <string.h>

/*
 * Transfers of one pair in one phase run side by side and must not mix; those
 * of different phases cannot meet, a pair sends one phase after the other.
 */
static int stream_tag(const fr_lane_work *work, const fr_transfer *move)
{
    const fr_engine_route *route = work->route;
    int i_pair = 0;

    if (route->op == FR_OP_SEND || route->op == FR_OP_RECV)
        return FR_TAG_FIRST + 2 * (int)route->tag;
    for (uint32_t i = 0; i < work->n_streams; i++)
        i_pair += work->streams[i].move->src == move->src &&
                  work->streams[i].move->dst == move->dst;
    return FR_TAG_FIRST + 1 +
           2 * ((i_pair * FR_AXIS_N + route->axis) * FR_LANE_N +
                (int)work->lane);
}

static uint64_t piece_elements(const fr_engine_route *route)
{
    return FR_ENGINE_PIECE_BYTES / route->element_bytes;
}

static uint64_t piece_n(const fr_engine_route *route, const fr_stream *stream,
                        uint64_t i_piece)
{
    uint64_t first = i_piece * piece_elements(route);
    uint64_t n_left = stream->move->n - first;

    return n_left < piece_elements(route) ? n_left : piece_elements(route);
}

/* Sets the streams of the current phase up. */
static void open_phase(fr_lane_work *work)
{
    const fr_engine_route *route = work->route;
    uint64_t piece = piece_elements(route);

    work->n_streams = 0;
    for (; work->i_move < route->n_moves &&
           route->moves[work->i_move].phase == work->phase;
         work->i_move++) {
        const fr_transfer *move = &route->moves[work->i_move];
        work->streams[work->n_streams] =
            (fr_stream){.move = move,
                        .is_send = move->src == (uint32_t)route->position,
                        .tag = stream_tag(work, move),
                        .n_pieces = (move->n + piece - 1) / piece};
        work->n_streams++;
    }
}

static fr_status post_piece(fr_engine *engine, fr_lane_work *work,
                            fr_stream *stream, fr_err *err)
{
    const fr_engine_route *route = work->route;
    const fr_transfer *move = stream->move;
    const fr_transport_ops *ops = engine->transport->ops;
    uint64_t i_slot = stream->i_posted % FR_ENGINE_WINDOW;
    fr_message *request = &stream->request[i_slot];
    uint64_t at = stream->i_posted * FR_ENGINE_PIECE_BYTES;
    uint64_t n_bytes =
        piece_n(route, stream, stream->i_posted) * route->element_bytes;

    if (stream->is_send) {
        FR_TRY(ops->isend(
            engine->transport, route->ranks[move->dst], stream->tag,
            work->send_base + move->src_first * route->element_bytes + at,
            n_bytes, request, err));
    } else {
        unsigned char *to =
            work->recv_base + move->dst_first * route->element_bytes + at;
        if (move->is_reduce)
            to = work->staging + i_slot * FR_ENGINE_PIECE_BYTES;
        FR_TRY(ops->irecv(engine->transport, route->ranks[move->src],
                          stream->tag, to, n_bytes, request, err));
    }
    stream->i_posted++;
    return FR_OK;
}

static void add_piece(fr_lane_work *work, const fr_stream *stream)
{
    const fr_engine_route *route = work->route;
    uint64_t i_slot = stream->i_done % FR_ENGINE_WINDOW;
    unsigned char *to = work->recv_base +
                        stream->move->dst_first * route->element_bytes +
                        stream->i_done * FR_ENGINE_PIECE_BYTES;
    const void *summands[2] = {to,
                               work->staging + i_slot * FR_ENGINE_PIECE_BYTES};

    fr_reduce(to, summands, 2, piece_n(route, stream, stream->i_done),
              (fr_dtype)route->dtype, route->is_max);
}

/* Asks whether the awaited message has begun to arrive. */
static fr_status has_come(fr_engine *engine, fr_lane_work *work,
                          const fr_stream *stream, fr_err *err)
{
    bool is_there = false;

    FR_TRY(engine->transport->ops->probe(engine->transport,
                                         work->route->ranks[stream->move->src],
                                         stream->tag, &is_there, err));
    work->is_awaited = !is_there;
    return FR_OK;
}

static fr_status progress_stream(fr_engine *engine, fr_lane_work *work,
                                 fr_stream *stream, bool *has_moved,
                                 fr_err *err)
{
    if (work->is_awaited) {
        FR_TRY(has_come(engine, work, stream, err));
        if (work->is_awaited)
            return FR_OK;
    }
    while (stream->i_posted < stream->n_pieces &&
           stream->i_posted - stream->i_done < FR_ENGINE_WINDOW) {
        FR_TRY(post_piece(engine, work, stream, err));
        *has_moved = true;
    }
    if (stream->i_done == stream->i_posted)
        return FR_OK;
    bool is_done = false;
    FR_TRY(engine->transport->ops->test(
        engine->transport, &stream->request[stream->i_done % FR_ENGINE_WINDOW],
        &is_done, err));
    if (!is_done)
        return FR_OK;
    if (!stream->is_send && stream->move->is_reduce)
        add_piece(work, stream);
    if (!stream->is_send)
        work->received_bytes += piece_n(work->route, stream, stream->i_done) *
                                work->route->element_bytes;
    stream->i_done++;
    *has_moved = true;
    return FR_OK;
}

/* Moves the result to where it belongs after the last phase. */
static void finish(const fr_lane_work *work)
{
    const fr_engine_route *route = work->route;

    if (route->op != FR_OP_REDUCE_SCATTER)
        return;
    uint64_t part = fr_route_part_bytes(route);
    const unsigned char *own = work->src + (uint64_t)route->position * part;
    if (own != work->dst)
        memmove(work->dst, own, part);
}

static void copy_own(fr_lane_work *work)
{
    const fr_engine_route *route = work->route;
    uint64_t n_bytes = route->n * route->element_bytes;
    uint64_t part = route->n_group > 0 ? fr_route_part_bytes(route) : n_bytes;
    uint64_t first = (uint64_t)route->position * part;

    switch (route->op) {
    case FR_OP_ALL_REDUCE:
        if (work->dst != work->src)
            memmove(work->dst, work->src, n_bytes);
        break;
    case FR_OP_BROADCAST:
        if (route->position == route->peer && work->dst != work->src)
            memmove(work->dst, work->src, n_bytes);
        break;
    case FR_OP_ALL_GATHER:
        if (work->dst + first != work->src)
            memmove(work->dst + first, work->src, part);
        break;
    case FR_OP_ALL_TO_ALL:
        memmove(work->dst + first, work->src + first, part);
        break;
    default:
        break;
    }
}

void fr_message_start(fr_engine *engine, fr_lane_work *work)
{
    const fr_engine_route *route = work->route;

    (void)engine;
    copy_own(work);
    work->send_base = work->recv_base = work->dst;
    if (route->op == FR_OP_REDUCE_SCATTER)
        work->send_base = work->recv_base = work->src;
    if (route->op == FR_OP_ALL_TO_ALL || route->op == FR_OP_SHIFT ||
        route->op == FR_OP_SEND)
        work->send_base = work->src;
    /* Its sender may compute for long: until then looks can be rare. */
    work->is_awaited = route->op == FR_OP_RECV;
    open_phase(work);
}

fr_status fr_message_progress(fr_engine *engine, fr_lane_work *work,
                              bool *is_done, bool *has_moved, fr_err *err)
{
    bool is_adding = false, is_phase_done = true;

    for (uint32_t i = 0; i < work->n_streams; i++) {
        fr_stream *stream = &work->streams[i];
        if (stream->i_done == stream->n_pieces)
            continue;
        is_phase_done = false;
        bool is_sum = !stream->is_send && stream->move->is_reduce;
        if (is_sum && is_adding)
            continue;
        is_adding = is_adding || is_sum;
        FR_TRY(progress_stream(engine, work, stream, has_moved, err));
    }
    if (!is_phase_done)
        return FR_OK;
    *has_moved = true;
    if (++work->phase >= work->route->n_phases) {
        finish(work);
        *is_done = true;
    } else {
        open_phase(work);
    }
    return FR_OK;
}

int64_t fr_message_waits_for(const fr_lane_work *work)
{
    for (uint32_t i = 0; i < work->n_streams; i++) {
        const fr_stream *stream = &work->streams[i];
        if (stream->i_done < stream->n_pieces)
            return work->route->ranks[stream->is_send ? stream->move->dst
                                                      : stream->move->src];
    }
    return -1;
}
