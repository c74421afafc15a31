/*
 * collective_engine_shared.c: collectives and transfers among ranks that see
 * each other's slabs: members pull, nothing is staged.
 *
 * A collective is: everybody ready (operand offsets published) | pulls of
 * phase 0 | everybody done | pulls of phase 1 | ... | everybody done.  The
 * last synchronisation keeps a member from writing its buffer while others
 * still read it.  A reduction adds all members in the order of their
 * positions, so any member would get the same bits.
 */
#include "runtime/comm/collective_engine_state.h"

#include <string.h>

enum { STAGE_READY, STAGE_PULL, STAGE_DONE_SYNC };

static fr_shm_control *own_control(const fr_engine *engine)
{
    return engine->transport->control[engine->transport->rank];
}

static int bell_of_lane(uint8_t lane)
{
    return lane == FR_LANE_COMPUTE ? FR_BELL_MAIN : FR_BELL_COMM;
}

/* Tells the group that this member reached its next synchronisation. */
static void publish(fr_engine *engine, fr_lane_work *work)
{
    const fr_engine_route *route = work->route;
    fr_shm_sync *sync = &own_control(engine)->sync[route->axis][work->lane];

    work->count = ++work->sync_count[route->axis];
    work->i_member = 0;
    atomic_store_explicit(&sync->count, work->count, memory_order_release);
    for (int64_t i = 0; i < route->n_group; i++)
        if (i != route->position)
            fr_shm_ring(&engine->transport->control[route->ranks[i]]
                             ->bell[bell_of_lane(route->lane)]);
}

static bool is_everybody_there(const fr_engine *engine, fr_lane_work *work)
{
    const fr_engine_route *route = work->route;

    for (; work->i_member < route->n_group; work->i_member++) {
        const fr_shm_sync *sync =
            &engine->transport->control[route->ranks[work->i_member]]
                 ->sync[route->axis][work->lane];
        if (atomic_load_explicit(&sync->count, memory_order_acquire) <
            work->count)
            return false;
    }
    return true;
}

/* Offsets may be read from READY until this member publishes again. */
static void read_offsets(const fr_engine *engine, fr_lane_work *work)
{
    const fr_engine_route *route = work->route;

    for (int64_t i = 0; i < route->n_group; i++) {
        const fr_shm_sync *sync = &engine->transport->control[route->ranks[i]]
                                       ->sync[route->axis][work->lane];
        work->peer_src[i] = sync->src_offset;
        work->peer_dst[i] = sync->dst_offset;
    }
}

static const unsigned char *read_address(const fr_engine *engine,
                                         const fr_lane_work *work,
                                         const fr_transfer *move,
                                         int64_t member)
{
    const fr_engine_route *route = work->route;
    const unsigned char *slab = engine->transport->slab[route->ranks[member]];
    uint64_t first = move->src_first * route->element_bytes;

    if (route->op == FR_OP_ALL_REDUCE && !move->is_reduce && route->n_group > 1)
        return slab + work->peer_dst[member] + first;
    if (route->op == FR_OP_ALL_GATHER)
        first -= (uint64_t)member * fr_route_part_bytes(route);
    return slab + work->peer_src[member] + first;
}

static unsigned char *write_address(const fr_lane_work *work,
                                    const fr_transfer *move)
{
    const fr_engine_route *route = work->route;
    uint64_t first = move->dst_first * route->element_bytes;

    if (route->op == FR_OP_REDUCE_SCATTER)
        first -= (uint64_t)route->position * fr_route_part_bytes(route);
    return work->dst + first;
}

/* Moves that add into the same elements are one pass over all members. */
static uint32_t fused_moves(const fr_engine_route *route, uint32_t i_move)
{
    const fr_transfer *first = &route->moves[i_move];
    uint32_t n = 1;

    if (!first->is_reduce)
        return 1;
    while (i_move + n < route->n_moves) {
        const fr_transfer *next = first + n;
        if (!next->is_reduce || next->phase != first->phase ||
            next->dst_first != first->dst_first || next->n != first->n)
            break;
        n++;
    }
    return n;
}

static void pull_reduce(const fr_engine *engine, fr_lane_work *work,
                        uint32_t n_fused, uint64_t n_bytes)
{
    const fr_engine_route *route = work->route;
    const fr_transfer *moves = &route->moves[work->i_move];
    uint64_t at = work->moved_bytes;
    uint32_t n_before = 0;
    int64_t n_sources = 0;

    while (n_before < n_fused && moves[n_before].src < route->position)
        n_before++;
    for (uint32_t i = 0; i <= n_fused; i++) {
        int64_t member =
            i == n_before ? route->position : moves[i - (i > n_before)].src;
        fr_transfer view = moves[0];
        if (i == n_before)
            view.src_first = view.dst_first; /* the own summand */
        else
            view.src_first = moves[i - (i > n_before)].src_first;
        work->sources[n_sources++] =
            read_address(engine, work, &view, member) + at;
    }
    fr_reduce(write_address(work, moves) + at, work->sources, n_sources,
              n_bytes / route->element_bytes, (fr_dtype)route->dtype,
              route->is_max);
}

/* A slice of the phase's pulls; true when the phase has no more. */
static bool pull_slice(const fr_engine *engine, fr_lane_work *work)
{
    const fr_engine_route *route = work->route;

    if (work->i_move >= route->n_moves ||
        route->moves[work->i_move].phase != work->phase)
        return true;
    const fr_transfer *move = &route->moves[work->i_move];
    uint32_t n_fused = fused_moves(route, work->i_move);
    uint64_t n_left = move->n * route->element_bytes - work->moved_bytes;
    uint64_t n =
        n_left < FR_ENGINE_SLICE_BYTES ? n_left : FR_ENGINE_SLICE_BYTES;

    if (n > 0 && move->is_reduce) {
        pull_reduce(engine, work, n_fused, n);
    } else if (n > 0) {
        unsigned char *to = write_address(work, move) + work->moved_bytes;
        const unsigned char *from =
            read_address(engine, work, move, move->src) + work->moved_bytes;
        if (to != from)
            memcpy(to, from, n);
    }
    work->moved_bytes += n;
    work->received_bytes += n * n_fused;
    if (n == n_left) {
        work->i_move += n_fused;
        work->moved_bytes = 0;
    }
    return work->i_move >= route->n_moves ||
           route->moves[work->i_move].phase != work->phase;
}

static void start_send(fr_engine *engine, fr_lane_work *work)
{
    const fr_engine_route *route = work->route;
    fr_transport *transport = engine->transport;
    fr_shm_post *post = &own_control(engine)->post[work->lane];
    fr_shm_control *peer = transport->control[route->peer];

    atomic_store_explicit(&post->tag, route->tag, memory_order_release);
    atomic_store_explicit(&post->dst, route->peer, memory_order_release);
    post->offset_bytes =
        (uint64_t)(work->src - transport->slab[transport->rank]);
    post->n_bytes = route->n * route->element_bytes;
    work->count = atomic_load_explicit(&post->posted, memory_order_relaxed) + 1;
    atomic_store_explicit(&post->posted, work->count, memory_order_release);
    fr_shm_ring(&peer->bell[FR_BELL_MAIN]);
    fr_shm_ring(&peer->bell[FR_BELL_COMM]);
}

/*
 * The owner writes a new send once the one before was taken, and counts it at
 * last.  Of a count that was read before whom it is for, and that is still not
 * taken after, what was read between them is therefore true.  In another order
 * a send to somebody else could begin in between and pass for the awaited one.
 */
static fr_shm_post *find_post(const fr_engine *engine, const fr_lane_work *work)
{
    const fr_engine_route *route = work->route;
    fr_shm_control *peer = engine->transport->control[route->peer];

    for (int lane = 0; lane < FR_LANE_N; lane++) {
        fr_shm_post *post = &peer->post[lane];
        uint64_t posted =
            atomic_load_explicit(&post->posted, memory_order_acquire);
        if (atomic_load_explicit(&post->dst, memory_order_acquire) !=
                engine->transport->rank ||
            atomic_load_explicit(&post->tag, memory_order_acquire) !=
                route->tag)
            continue;
        if (atomic_load_explicit(&post->taken, memory_order_acquire) < posted)
            return post;
    }
    return NULL;
}

static void progress_recv(fr_engine *engine, fr_lane_work *work, bool *is_done,
                          bool *has_moved)
{
    const fr_engine_route *route = work->route;
    fr_shm_control *peer = engine->transport->control[route->peer];

    if (work->found == NULL)
        work->found = find_post(engine, work);
    if (work->found == NULL)
        return;
    fr_shm_post *post = work->found;
    uint64_t n_left = post->n_bytes - work->moved_bytes;
    uint64_t n =
        n_left < FR_ENGINE_SLICE_BYTES ? n_left : FR_ENGINE_SLICE_BYTES;
    memcpy(work->dst + work->moved_bytes,
           engine->transport->slab[route->peer] + post->offset_bytes +
               work->moved_bytes,
           n);
    work->moved_bytes += n;
    work->received_bytes += n;
    *has_moved = true;
    if (n < n_left)
        return;
    atomic_store_explicit(
        &post->taken, atomic_load_explicit(&post->posted, memory_order_relaxed),
        memory_order_release);
    fr_shm_ring(&peer->bell[FR_BELL_MAIN]);
    fr_shm_ring(&peer->bell[FR_BELL_COMM]);
    *is_done = true;
}

static void progress_send(fr_engine *engine, fr_lane_work *work, bool *is_done,
                          bool *has_moved)
{
    const fr_shm_post *post = &own_control(engine)->post[work->lane];

    if (atomic_load_explicit(&post->taken, memory_order_acquire) < work->count)
        return;
    *is_done = *has_moved = true;
}

void fr_shared_start(fr_engine *engine, fr_lane_work *work)
{
    const fr_engine_route *route = work->route;
    const fr_transport *transport = engine->transport;
    const unsigned char *slab = transport->slab[transport->rank];

    work->stage = STAGE_READY;
    work->found = NULL;
    if (route->op == FR_OP_SEND) {
        start_send(engine, work);
        return;
    }
    if (route->op == FR_OP_RECV)
        return;
    fr_shm_sync *sync = &own_control(engine)->sync[route->axis][work->lane];
    sync->src_offset = (uint64_t)(work->src - slab);
    sync->dst_offset = (uint64_t)(work->dst - slab);
    publish(engine, work);
}

void fr_shared_progress(fr_engine *engine, fr_lane_work *work, bool *is_done,
                        bool *has_moved)
{
    const fr_engine_route *route = work->route;

    if (route->op == FR_OP_SEND) {
        progress_send(engine, work, is_done, has_moved);
        return;
    }
    if (route->op == FR_OP_RECV) {
        progress_recv(engine, work, is_done, has_moved);
        return;
    }
    if (work->stage == STAGE_PULL) {
        *has_moved = true;
        if (pull_slice(engine, work)) {
            work->stage = STAGE_DONE_SYNC;
            publish(engine, work);
        }
        return;
    }
    if (!is_everybody_there(engine, work))
        return;
    *has_moved = true;
    if (work->stage == STAGE_READY)
        read_offsets(engine, work);
    else
        work->phase++;
    if (work->phase >= route->n_phases)
        *is_done = true;
    else
        work->stage = STAGE_PULL;
}

int64_t fr_shared_waits_for(const fr_engine *engine, const fr_lane_work *work)
{
    const fr_engine_route *route = work->route;

    (void)engine;
    if (route->op == FR_OP_SEND || route->op == FR_OP_RECV)
        return route->peer;
    if (work->i_member < route->n_group)
        return route->ranks[work->i_member];
    return -1;
}
