/* transport.c: what every transport does alike, made of its messages. */
#include "runtime/comm/transport.h"

#include "core/base/text.h"
#include "core/system/clock.h"
#include "runtime/rank/measure.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE_MIN_BYTES ((uint64_t)64 << 20)
#define POLL_NS 50000 /* messages ring no bell */

void fr_transport_destroy(fr_transport *transport)
{
    if (transport != NULL)
        transport->ops->destroy(transport);
}

fr_status fr_transport_init(fr_transport *transport, int64_t rank,
                            int64_t world, fr_err *err)
{
    size_t n = (size_t)world;

    transport->rank = rank;
    transport->world = world;
    transport->node_of_rank = calloc(n, sizeof *transport->node_of_rank);
    transport->slab = calloc(n, sizeof *transport->slab);
    transport->control = calloc(n, sizeof(fr_shm_control *));
    if (transport->node_of_rank != NULL && transport->slab != NULL &&
        transport->control != NULL)
        return FR_OK;
    fr_transport_release(transport);
    return fr_fail_no_memory(err);
}

void fr_transport_release(fr_transport *transport)
{
    free(transport->node_of_rank);
    free(transport->slab);
    free((void *)transport->control);
    transport->node_of_rank = NULL;
    transport->slab = NULL;
    transport->control = NULL;
}

unsigned char *fr_transport_map_private(uint64_t window_bytes)
{
    unsigned char *window =
        mmap(NULL, window_bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (window == MAP_FAILED)
        return NULL;
    /* Huge pages would turn a small slab into a large one. */
    if (window_bytes >= HUGE_PAGE_MIN_BYTES)
        (void)madvise(window, window_bytes, MADV_HUGEPAGE);
    return window;
}

fr_status fr_transport_open_private(fr_transport *transport, uint64_t n_bytes,
                                    fr_err *err)
{
    uint64_t control_bytes = fr_shm_control_bytes();
    uint64_t window_bytes = control_bytes + n_bytes;
    unsigned char *window = fr_transport_map_private(window_bytes);

    if (window == NULL)
        return fr_fail(err, FR_NO_MEMORY, "no memory for a slab of %llu bytes",
                       (unsigned long long)n_bytes);
    transport->private_bytes = window_bytes;
    transport->slab_bytes = n_bytes;
    transport->control[transport->rank] = (fr_shm_control *)(void *)window;
    transport->slab[transport->rank] = window + control_bytes;
    return FR_OK;
}

void fr_transport_close_slabs(fr_transport *transport)
{
    if (transport->private_bytes > 0)
        (void)munmap(transport->control[transport->rank],
                     transport->private_bytes);
    transport->private_bytes = 0;
    for (int64_t rank = 0; rank < transport->world; rank++) {
        transport->slab[rank] = NULL;
        transport->control[rank] = NULL;
    }
}

fr_status fr_transport_find_nodes(fr_transport *transport, uint64_t node,
                                  fr_err *err)
{
    int64_t world = transport->world;
    uint64_t mine[2] = {fr_measure_machine(NULL), node};
    uint64_t(*all)[2] = calloc((size_t)world, sizeof mine);
    int32_t n_nodes = 0;

    if (all == NULL)
        return fr_fail_no_memory(err);
    fr_status status =
        fr_transport_all_gather(transport, mine, sizeof mine, all, err);
    for (int64_t i = 0; status == FR_OK && i < world; i++) {
        int64_t first = 0;
        while (all[first][1] != all[i][1])
            first++;
        transport->node_of_rank[i] =
            first == i ? n_nodes++ : transport->node_of_rank[first];
        transport->n_local += all[i][0] == mine[0];
        transport->i_local += all[i][0] == mine[0] && i < transport->rank;
    }
    free(all);
    return status;
}

int64_t fr_transport_failed_rank(const fr_transport *transport)
{
    for (int64_t rank = 0; rank < transport->world; rank++) {
        const fr_shm_control *control = transport->control[rank];
        if (control != NULL && rank != transport->rank &&
            atomic_load_explicit(&control->has_failed, memory_order_acquire))
            return rank;
    }
    return -1;
}

fr_status fr_transport_wait(fr_transport *transport, fr_message *request,
                            int64_t peer, const char *what, fr_err *err)
{
    fr_waiter waiter;
    bool is_done = false;

    fr_waiter_init(&waiter, &transport->idle_bell);
    waiter.sleep_ns = POLL_NS;
    for (;;) {
        FR_TRY(transport->ops->test(transport, request, &is_done, err));
        if (is_done)
            break;
        fr_waiter_pause(&waiter);
        if (fr_waiter_waited_s(&waiter) <= transport->timeout_s)
            continue;
        int64_t failed = fr_transport_failed_rank(transport);
        if (failed >= 0)
            return fr_fail(err, FR_FAILURE, "%s",
                           transport->control[failed]->failure);
        return fr_fail(err, FR_FAILURE,
                       "rank %lld: %s: waited %.3g s for rank %lld",
                       (long long)transport->rank, what, transport->timeout_s,
                       (long long)peer);
    }
    fr_waiter_reset(&waiter);
    return FR_OK;
}

/*
 * Bruck et al., "Efficient algorithms for all-to-all communications", IEEE
 * TPDS 8(11), 1997: log2(world) rounds; blocks lie rotated by the own rank.
 */
static fr_status bruck(fr_transport *transport, unsigned char *blocks,
                       size_t n_bytes, fr_err *err)
{
    int64_t world = transport->world, rank = transport->rank;

    for (int64_t have = 1; have < world; have *= 2) {
        int64_t n = have < world - have ? have : world - have;
        int64_t to = (rank - have + world) % world;
        int64_t from = (rank + have) % world;
        uint64_t n_moved = (uint64_t)n * n_bytes;
        fr_message send = {0}, recv = {0};
        FR_TRY(transport->ops->irecv(transport, from, FR_TAG_SETUP,
                                     blocks + (size_t)have * n_bytes, n_moved,
                                     &recv, err));
        FR_TRY(transport->ops->isend(transport, to, FR_TAG_SETUP, blocks,
                                     n_moved, &send, err));
        FR_TRY(fr_transport_wait(transport, &recv, from, "exchange", err));
        FR_TRY(fr_transport_wait(transport, &send, to, "exchange", err));
    }
    return FR_OK;
}

fr_status fr_transport_all_gather(fr_transport *transport, const void *bytes,
                                  size_t n_bytes, void *out, fr_err *err)
{
    size_t world = (size_t)transport->world;
    size_t rank = (size_t)transport->rank;
    unsigned char small[4096], *blocks = small;

    if (world * n_bytes > sizeof small) {
        blocks = malloc(world * n_bytes);
        if (blocks == NULL)
            return fr_fail_no_memory(err);
    }
    memcpy(blocks, bytes, n_bytes);
    fr_status status = bruck(transport, blocks, n_bytes, err);
    for (size_t i = 0; i < world && status == FR_OK; i++)
        memcpy((unsigned char *)out + (rank + i) % world * n_bytes,
               blocks + i * n_bytes, n_bytes);
    if (blocks != small)
        free(blocks);
    return status;
}

fr_status fr_transport_share(fr_transport *transport, void *bytes,
                             size_t n_bytes, fr_err *err)
{
    unsigned char *all = malloc((size_t)transport->world * n_bytes + 1);

    if (all == NULL)
        return fr_fail_no_memory(err);
    fr_status status =
        fr_transport_all_gather(transport, bytes, n_bytes, all, err);
    if (status == FR_OK)
        memcpy(bytes, all, n_bytes);
    free(all);
    return status;
}

fr_status fr_transport_agree(fr_transport *transport, fr_status mine,
                             bool is_named, fr_err *err)
{
    struct report {
        int32_t status;
        char text[508];
    } own = {(int32_t)mine, ""}, *all = NULL;

    if (mine != FR_OK && err != NULL)
        fr_text_copy_cut(own.text, sizeof own.text, err->text);
    FR_TRY_CALLOC(all, (size_t)transport->world, err);
    fr_err ignored = {0};
    fr_status status = fr_transport_all_gather(transport, &own, sizeof own, all,
                                               mine == FR_OK ? err : &ignored);
    for (int64_t i = 0;
         mine == FR_OK && status == FR_OK && i < transport->world; i++) {
        if (all[i].status == FR_OK)
            continue;
        status = fr_fail(err, (fr_status)all[i].status, "%s", all[i].text);
        if (is_named)
            fr_err_prefix(err, "rank %lld", (long long)i);
    }
    free(all);
    return mine != FR_OK ? mine : status;
}

static uint64_t piece_bytes(uint64_t n_bytes, uint64_t at)
{
    uint64_t n_left = n_bytes - at;

    return n_left < FR_TRANSPORT_MAX_BYTES ? n_left : FR_TRANSPORT_MAX_BYTES;
}

/* Sends `from`, or receives into `to`: the other one is NULL. */
static fr_status move_pieces(fr_transport *transport, int64_t peer,
                             const unsigned char *from, unsigned char *to,
                             uint64_t n_bytes, fr_err *err)
{
    const fr_transport_ops *ops = transport->ops;

    for (uint64_t at = 0; at < n_bytes; at += piece_bytes(n_bytes, at)) {
        uint64_t n = piece_bytes(n_bytes, at);
        fr_message request = {0};
        FR_TRY(from != NULL ? ops->isend(transport, peer, FR_TAG_SETUP,
                                         from + at, n, &request, err)
                            : ops->irecv(transport, peer, FR_TAG_SETUP, to + at,
                                         n, &request, err));
        FR_TRY(fr_transport_wait(transport, &request, peer, "gather", err));
    }
    return FR_OK;
}

fr_status fr_transport_gather(fr_transport *transport, const void *bytes,
                              uint64_t n_bytes, unsigned char **out,
                              uint64_t *first_bytes, fr_err *err)
{
    int64_t world = transport->world;
    uint64_t *sizes = malloc(((size_t)world + 1) * sizeof *sizes);
    unsigned char *all = NULL;

    if (sizes == NULL)
        return fr_fail_no_memory(err);
    fr_status status = fr_transport_all_gather(transport, &n_bytes,
                                               sizeof n_bytes, sizes, err);
    if (status == FR_OK && transport->rank != 0) {
        status = move_pieces(transport, 0, bytes, NULL, n_bytes, err);
        free(sizes);
        return status;
    }
    uint64_t first = 0;
    for (int64_t i = 0; status == FR_OK && i < world; i++) {
        uint64_t n = sizes[i];
        sizes[i] = first;
        first += n;
    }
    sizes[world] = first;
    if (status == FR_OK && (all = malloc(first ? first : 1)) == NULL)
        status = fr_fail_no_memory(err);
    if (status == FR_OK && n_bytes > 0)
        memcpy(all, bytes, n_bytes);
    for (int64_t i = 1; status == FR_OK && i < world; i++)
        status = move_pieces(transport, i, NULL, all + sizes[i],
                             sizes[i + 1] - sizes[i], err);
    if (status == FR_OK) {
        memcpy(first_bytes, sizes, ((size_t)world + 1) * sizeof *sizes);
        *out = all;
    } else {
        free(all);
    }
    free(sizes);
    return status;
}
