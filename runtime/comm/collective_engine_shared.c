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
static void publish(fr_engine *engine, fr_carrier *carrier)
{
    const fr_recipe *recipe = carrier->recipe;
    fr_shm_sync *sync = &own_control(engine)->sync[recipe->axis][carrier->lane];

    carrier->count = ++carrier->sync_count[recipe->axis];
    carrier->i_member = 0;
    atomic_store_explicit(&sync->count, carrier->count, memory_order_release);
    for (int64_t i = 0; i < recipe->n_group; i++)
        if (i != recipe->position)
            fr_shm_ring(&engine->transport->control[recipe->ranks[i]]
                             ->bell[bell_of_lane(recipe->lane)]);
}

static bool is_everybody_there(const fr_engine *engine, fr_carrier *carrier)
{
    const fr_recipe *recipe = carrier->recipe;

    for (; carrier->i_member < recipe->n_group; carrier->i_member++) {
        const fr_shm_sync *sync =
            &engine->transport->control[recipe->ranks[carrier->i_member]]
                 ->sync[recipe->axis][carrier->lane];
        if (atomic_load_explicit(&sync->count, memory_order_acquire) <
            carrier->count)
            return false;
    }
    return true;
}

/* Offsets may be read from READY until this member publishes again. */
static void read_offsets(const fr_engine *engine, fr_carrier *carrier)
{
    const fr_recipe *recipe = carrier->recipe;

    for (int64_t i = 0; i < recipe->n_group; i++) {
        const fr_shm_sync *sync = &engine->transport->control[recipe->ranks[i]]
                                       ->sync[recipe->axis][carrier->lane];
        carrier->peer_src[i] = sync->src_offset;
        carrier->peer_dst[i] = sync->dst_offset;
    }
}

static const unsigned char *read_address(const fr_engine *engine,
                                         const fr_carrier *carrier,
                                         const fr_transfer *move,
                                         int64_t member)
{
    const fr_recipe *recipe = carrier->recipe;
    const unsigned char *slab = engine->transport->slab[recipe->ranks[member]];
    uint64_t first = move->src_first * recipe->element_bytes;

    if (recipe->op == FR_OP_ALL_REDUCE && !move->is_reduce &&
        recipe->n_group > 1)
        return slab + carrier->peer_dst[member] + first;
    if (recipe->op == FR_OP_ALL_GATHER)
        first -= (uint64_t)member * fr_recipe_part_bytes(recipe);
    return slab + carrier->peer_src[member] + first;
}

static unsigned char *write_address(const fr_carrier *carrier,
                                    const fr_transfer *move)
{
    const fr_recipe *recipe = carrier->recipe;
    uint64_t first = move->dst_first * recipe->element_bytes;

    if (recipe->op == FR_OP_REDUCE_SCATTER)
        first -= (uint64_t)recipe->position * fr_recipe_part_bytes(recipe);
    return carrier->dst + first;
}

/* Moves that add into the same elements are one pass over all members. */
static uint32_t fused_moves(const fr_recipe *recipe, uint32_t i_move)
{
    const fr_transfer *first = &recipe->moves[i_move];
    uint32_t n = 1;

    if (!first->is_reduce)
        return 1;
    while (i_move + n < recipe->n_moves) {
        const fr_transfer *next = first + n;
        if (!next->is_reduce || next->phase != first->phase ||
            next->dst_first != first->dst_first || next->n != first->n)
            break;
        n++;
    }
    return n;
}

static void pull_reduce(const fr_engine *engine, fr_carrier *carrier,
                        uint32_t n_fused, uint64_t n_bytes)
{
    const fr_recipe *recipe = carrier->recipe;
    const fr_transfer *moves = &recipe->moves[carrier->i_move];
    uint64_t at = carrier->moved_bytes;
    uint32_t n_before = 0;
    int64_t n_sources = 0;

    while (n_before < n_fused && moves[n_before].src < recipe->position)
        n_before++;
    for (uint32_t i = 0; i <= n_fused; i++) {
        int64_t member =
            i == n_before ? recipe->position : moves[i - (i > n_before)].src;
        fr_transfer view = moves[0];
        if (i == n_before)
            view.src_first = view.dst_first; /* the own summand */
        else
            view.src_first = moves[i - (i > n_before)].src_first;
        carrier->sources[n_sources++] =
            read_address(engine, carrier, &view, member) + at;
    }
    fr_reduce(write_address(carrier, moves) + at, carrier->sources, n_sources,
              n_bytes / recipe->element_bytes, (fr_dtype)recipe->dtype,
              recipe->is_max);
}

/* A slice of the phase's pulls; true when the phase has no more. */
static bool pull_slice(const fr_engine *engine, fr_carrier *carrier)
{
    const fr_recipe *recipe = carrier->recipe;

    if (carrier->i_move >= recipe->n_moves ||
        recipe->moves[carrier->i_move].phase != carrier->phase)
        return true;
    const fr_transfer *move = &recipe->moves[carrier->i_move];
    uint32_t n_fused = fused_moves(recipe, carrier->i_move);
    uint64_t n_left = move->n * recipe->element_bytes - carrier->moved_bytes;
    uint64_t n =
        n_left < FR_ENGINE_SLICE_BYTES ? n_left : FR_ENGINE_SLICE_BYTES;

    if (n > 0 && move->is_reduce) {
        pull_reduce(engine, carrier, n_fused, n);
    } else if (n > 0) {
        unsigned char *to = write_address(carrier, move) + carrier->moved_bytes;
        const unsigned char *from =
            read_address(engine, carrier, move, move->src) +
            carrier->moved_bytes;
        if (to != from)
            memcpy(to, from, n);
    }
    carrier->moved_bytes += n;
    if (n == n_left) {
        carrier->i_move += n_fused;
        carrier->moved_bytes = 0;
    }
    return carrier->i_move >= recipe->n_moves ||
           recipe->moves[carrier->i_move].phase != carrier->phase;
}

static void start_send(fr_engine *engine, fr_carrier *carrier)
{
    const fr_recipe *recipe = carrier->recipe;
    fr_transport *transport = engine->transport;
    fr_shm_post *post = &own_control(engine)->post[carrier->lane];
    fr_shm_control *peer = transport->control[recipe->peer];

    atomic_store_explicit(&post->tag, recipe->tag, memory_order_release);
    atomic_store_explicit(&post->dst, recipe->peer, memory_order_release);
    post->offset_bytes =
        (uint64_t)(carrier->src - transport->slab[transport->rank]);
    post->n_bytes = recipe->n * recipe->element_bytes;
    carrier->count =
        atomic_load_explicit(&post->posted, memory_order_relaxed) + 1;
    atomic_store_explicit(&post->posted, carrier->count, memory_order_release);
    fr_shm_ring(&peer->bell[FR_BELL_MAIN]);
    fr_shm_ring(&peer->bell[FR_BELL_COMM]);
}

/*
 * The owner writes a new send once the one before was taken, and counts it at
 * last.  Whoever sees something of the new one therefore sees the old one
 * taken: so the counts are looked at after whom it is for.
 */
static fr_shm_post *find_post(const fr_engine *engine,
                              const fr_carrier *carrier)
{
    const fr_recipe *recipe = carrier->recipe;
    fr_shm_control *peer = engine->transport->control[recipe->peer];

    for (int lane = 0; lane < FR_LANE_N; lane++) {
        fr_shm_post *post = &peer->post[lane];
        if (atomic_load_explicit(&post->dst, memory_order_acquire) !=
                engine->transport->rank ||
            atomic_load_explicit(&post->tag, memory_order_acquire) !=
                recipe->tag)
            continue;
        uint64_t taken =
            atomic_load_explicit(&post->taken, memory_order_acquire);
        if (atomic_load_explicit(&post->posted, memory_order_acquire) != taken)
            return post;
    }
    return NULL;
}

static void progress_recv(fr_engine *engine, fr_carrier *carrier, bool *is_done,
                          bool *has_moved)
{
    const fr_recipe *recipe = carrier->recipe;
    fr_shm_control *peer = engine->transport->control[recipe->peer];

    if (!carrier->found)
        carrier->found = find_post(engine, carrier);
    if (!carrier->found)
        return;
    fr_shm_post *post = carrier->found;
    uint64_t n_left = post->n_bytes - carrier->moved_bytes;
    uint64_t n =
        n_left < FR_ENGINE_SLICE_BYTES ? n_left : FR_ENGINE_SLICE_BYTES;
    memcpy(carrier->dst + carrier->moved_bytes,
           engine->transport->slab[recipe->peer] + post->offset_bytes +
               carrier->moved_bytes,
           n);
    carrier->moved_bytes += n;
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

static void progress_send(fr_engine *engine, fr_carrier *carrier, bool *is_done,
                          bool *has_moved)
{
    const fr_shm_post *post = &own_control(engine)->post[carrier->lane];

    if (atomic_load_explicit(&post->taken, memory_order_acquire) <
        carrier->count)
        return;
    *is_done = *has_moved = true;
}

void fr_shared_start(fr_engine *engine, fr_carrier *carrier)
{
    const fr_recipe *recipe = carrier->recipe;
    const fr_transport *transport = engine->transport;
    const unsigned char *slab = transport->slab[transport->rank];

    carrier->stage = STAGE_READY;
    carrier->found = NULL;
    if (recipe->op == FR_OP_SEND) {
        start_send(engine, carrier);
        return;
    }
    if (recipe->op == FR_OP_RECV)
        return;
    fr_shm_sync *sync = &own_control(engine)->sync[recipe->axis][carrier->lane];
    sync->src_offset = (uint64_t)(carrier->src - slab);
    sync->dst_offset = (uint64_t)(carrier->dst - slab);
    publish(engine, carrier);
}

void fr_shared_progress(fr_engine *engine, fr_carrier *carrier, bool *is_done,
                        bool *has_moved)
{
    const fr_recipe *recipe = carrier->recipe;

    if (recipe->op == FR_OP_SEND) {
        progress_send(engine, carrier, is_done, has_moved);
        return;
    }
    if (recipe->op == FR_OP_RECV) {
        progress_recv(engine, carrier, is_done, has_moved);
        return;
    }
    if (carrier->stage == STAGE_PULL) {
        *has_moved = true;
        if (pull_slice(engine, carrier)) {
            carrier->stage = STAGE_DONE_SYNC;
            publish(engine, carrier);
        }
        return;
    }
    if (!is_everybody_there(engine, carrier))
        return;
    *has_moved = true;
    if (carrier->stage == STAGE_READY)
        read_offsets(engine, carrier);
    else
        carrier->phase++;
    if (carrier->phase >= recipe->n_phases)
        *is_done = true;
    else
        carrier->stage = STAGE_PULL;
}

int64_t fr_shared_waits_for(const fr_engine *engine, const fr_carrier *carrier)
{
    const fr_recipe *recipe = carrier->recipe;

    (void)engine;
    if (recipe->op == FR_OP_SEND || recipe->op == FR_OP_RECV)
        return recipe->peer;
    if (carrier->i_member < recipe->n_group)
        return recipe->ranks[carrier->i_member];
    return -1;
}
