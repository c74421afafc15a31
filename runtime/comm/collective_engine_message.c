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
static int stream_tag(const fr_carrier *carrier, const fr_transfer *move)
{
    const fr_recipe *recipe = carrier->recipe;
    int i_pair = 0;

    if (recipe->op == FR_OP_SEND || recipe->op == FR_OP_RECV)
        return FR_TAG_FIRST + 2 * (int)recipe->tag;
    for (uint32_t i = 0; i < carrier->n_streams; i++)
        i_pair += carrier->streams[i].move->src == move->src &&
                  carrier->streams[i].move->dst == move->dst;
    return FR_TAG_FIRST + 1 +
           2 * ((i_pair * FR_AXIS_N + recipe->axis) * FR_LANE_N +
                (int)carrier->lane);
}

static uint64_t piece_elements(const fr_recipe *recipe)
{
    return FR_ENGINE_PIECE_BYTES / recipe->element_bytes;
}

static uint64_t piece_n(const fr_recipe *recipe, const fr_stream *stream,
                        uint64_t i_piece)
{
    uint64_t first = i_piece * piece_elements(recipe);
    uint64_t n_left = stream->move->n - first;

    return n_left < piece_elements(recipe) ? n_left : piece_elements(recipe);
}

/* Sets the streams of the current phase up. */
static void open_phase(fr_carrier *carrier)
{
    const fr_recipe *recipe = carrier->recipe;
    uint64_t piece = piece_elements(recipe);

    carrier->n_streams = 0;
    for (; carrier->i_move < recipe->n_moves &&
           recipe->moves[carrier->i_move].phase == carrier->phase;
         carrier->i_move++) {
        const fr_transfer *move = &recipe->moves[carrier->i_move];
        carrier->streams[carrier->n_streams] =
            (fr_stream){.move = move,
                        .is_send = move->src == (uint32_t)recipe->position,
                        .tag = stream_tag(carrier, move),
                        .n_pieces = (move->n + piece - 1) / piece};
        carrier->n_streams++;
    }
}

static fr_status post_piece(fr_engine *engine, fr_carrier *carrier,
                            fr_stream *stream, fr_err *err)
{
    const fr_recipe *recipe = carrier->recipe;
    const fr_transfer *move = stream->move;
    const fr_transport_ops *ops = engine->transport->ops;
    uint64_t i_slot = stream->i_posted % FR_ENGINE_WINDOW;
    fr_request *request = &stream->request[i_slot];
    uint64_t at = stream->i_posted * FR_ENGINE_PIECE_BYTES;
    uint64_t n_bytes =
        piece_n(recipe, stream, stream->i_posted) * recipe->element_bytes;

    if (stream->is_send) {
        FR_TRY(ops->isend(
            engine->transport, recipe->ranks[move->dst], stream->tag,
            carrier->send_base + move->src_first * recipe->element_bytes + at,
            n_bytes, request, err));
    } else {
        unsigned char *to =
            carrier->recv_base + move->dst_first * recipe->element_bytes + at;
        if (move->is_reduce)
            to = carrier->staging + i_slot * FR_ENGINE_PIECE_BYTES;
        FR_TRY(ops->irecv(engine->transport, recipe->ranks[move->src],
                          stream->tag, to, n_bytes, request, err));
    }
    stream->i_posted++;
    return FR_OK;
}

static void add_piece(fr_carrier *carrier, const fr_stream *stream)
{
    const fr_recipe *recipe = carrier->recipe;
    uint64_t i_slot = stream->i_done % FR_ENGINE_WINDOW;
    unsigned char *to = carrier->recv_base +
                        stream->move->dst_first * recipe->element_bytes +
                        stream->i_done * FR_ENGINE_PIECE_BYTES;
    const void *summands[2] = {to, carrier->staging +
                                       i_slot * FR_ENGINE_PIECE_BYTES};

    fr_reduce(to, summands, 2, piece_n(recipe, stream, stream->i_done),
              (fr_dtype)recipe->dtype, recipe->is_max);
}

/* Looks whether the message that is awaited is on its way. */
static fr_status has_come(fr_engine *engine, fr_carrier *carrier,
                          const fr_stream *stream, fr_err *err)
{
    bool is_there = false;

    FR_TRY(engine->transport->ops->probe(
        engine->transport, carrier->recipe->ranks[stream->move->src],
        stream->tag, &is_there, err));
    carrier->is_awaited = !is_there;
    return FR_OK;
}

static fr_status progress_stream(fr_engine *engine, fr_carrier *carrier,
                                 fr_stream *stream, bool *has_moved,
                                 fr_err *err)
{
    if (carrier->is_awaited) {
        FR_TRY(has_come(engine, carrier, stream, err));
        if (carrier->is_awaited)
            return FR_OK;
    }
    while (stream->i_posted < stream->n_pieces &&
           stream->i_posted - stream->i_done < FR_ENGINE_WINDOW) {
        FR_TRY(post_piece(engine, carrier, stream, err));
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
        add_piece(carrier, stream);
    stream->i_done++;
    *has_moved = true;
    return FR_OK;
}

/* After the last phase: the result goes where it belongs. */
static void finish(const fr_carrier *carrier)
{
    const fr_recipe *recipe = carrier->recipe;

    if (recipe->op != FR_OP_REDUCE_SCATTER)
        return;
    uint64_t part = fr_recipe_part_bytes(recipe);
    const unsigned char *own = carrier->src + (uint64_t)recipe->position * part;
    if (own != carrier->dst)
        memmove(carrier->dst, own, part);
}

static void copy_own(fr_carrier *carrier)
{
    const fr_recipe *recipe = carrier->recipe;
    uint64_t n_bytes = recipe->n * recipe->element_bytes;
    uint64_t part =
        recipe->n_group > 0 ? fr_recipe_part_bytes(recipe) : n_bytes;
    uint64_t first = (uint64_t)recipe->position * part;

    switch (recipe->op) {
    case FR_OP_ALL_REDUCE:
        if (carrier->dst != carrier->src)
            memmove(carrier->dst, carrier->src, n_bytes);
        break;
    case FR_OP_BROADCAST:
        if (recipe->position == recipe->peer && carrier->dst != carrier->src)
            memmove(carrier->dst, carrier->src, n_bytes);
        break;
    case FR_OP_ALL_GATHER:
        if (carrier->dst + first != carrier->src)
            memmove(carrier->dst + first, carrier->src, part);
        break;
    case FR_OP_ALL_TO_ALL:
        memmove(carrier->dst + first, carrier->src + first, part);
        break;
    default:
        break;
    }
}

void fr_message_start(fr_engine *engine, fr_carrier *carrier)
{
    const fr_recipe *recipe = carrier->recipe;

    (void)engine;
    copy_own(carrier);
    carrier->send_base = carrier->recv_base = carrier->dst;
    if (recipe->op == FR_OP_REDUCE_SCATTER)
        carrier->send_base = carrier->recv_base = carrier->src;
    if (recipe->op == FR_OP_ALL_TO_ALL || recipe->op == FR_OP_SEND)
        carrier->send_base = carrier->src;
    /* Its sender may compute for long: until then looks can be rare. */
    carrier->is_awaited = recipe->op == FR_OP_RECV;
    open_phase(carrier);
}

fr_status fr_message_progress(fr_engine *engine, fr_carrier *carrier,
                              bool *is_done, bool *has_moved, fr_err *err)
{
    bool is_adding = false, is_phase_done = true;

    for (uint32_t i = 0; i < carrier->n_streams; i++) {
        fr_stream *stream = &carrier->streams[i];
        if (stream->i_done == stream->n_pieces)
            continue;
        is_phase_done = false;
        bool is_sum = !stream->is_send && stream->move->is_reduce;
        if (is_sum && is_adding)
            continue;
        is_adding = is_adding || is_sum;
        FR_TRY(progress_stream(engine, carrier, stream, has_moved, err));
    }
    if (!is_phase_done)
        return FR_OK;
    *has_moved = true;
    if (++carrier->phase >= carrier->recipe->n_phases) {
        finish(carrier);
        *is_done = true;
    } else {
        open_phase(carrier);
    }
    return FR_OK;
}

int64_t fr_message_waits_for(const fr_carrier *carrier)
{
    for (uint32_t i = 0; i < carrier->n_streams; i++) {
        const fr_stream *stream = &carrier->streams[i];
        if (stream->i_done < stream->n_pieces)
            return carrier->recipe->ranks[stream->is_send ? stream->move->dst
                                                          : stream->move->src];
    }
    return -1;
}
