/* replica.c: see replica.h. */
#include "runtime/replica/replica.h"

#include "core/system/fileio.h"
#include "runtime/checkpoint/checkpoint_dir.h"
#include "runtime/replica/replica_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- places ------------------------------------------------------------- */

/* Room is taken now: a page that is not there later would be a signal. */
fr_status fr_replica_map(const char *path, uint64_t n_bytes,
                         unsigned char **out, fr_err *err)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    int code = fd < 0 ? errno : posix_fallocate(fd, 0, (off_t)n_bytes);
    void *at = MAP_FAILED;

    if (code == 0) {
        at = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        code = at == MAP_FAILED ? errno : 0;
    }
    if (fd >= 0)
        (void)close(fd);
    if (code != 0)
        return fr_fail(err, FR_IO,
                       "no room for a copy of the state, %llu bytes: %s: %s; "
                       "name another file system in memory (--replica-dir)",
                       (unsigned long long)n_bytes, path, strerror(code));
    *out = at;
    return FR_OK;
}

void fr_replica_unmap(unsigned char *bytes, uint64_t n_bytes)
{
    if (bytes != NULL)
        (void)munmap(bytes, n_bytes);
}

static void slot_path(const fr_replicas *r, const fr_replica_slot *slot,
                      const char *name, char path[FR_CHECKPOINT_PATH])
{
    (void)snprintf(path, FR_CHECKPOINT_PATH, "%s/%s%s", r->store, slot->name,
                   name);
}

static fr_status map_file(const fr_replicas *r, const fr_replica_slot *slot,
                          int64_t rank, uint64_t n_bytes, unsigned char **out,
                          fr_err *err)
{
    char name[32], path[FR_CHECKPOINT_PATH];

    (void)snprintf(name, sizeof name, "/rank-%lld", (long long)rank);
    slot_path(r, slot, name, path);
    return fr_replica_map(path, n_bytes, out, err);
}

static fr_status open_slot(fr_replicas *r, int i, fr_err *err)
{
    fr_replica_slot *slot = &r->slots[i];
    char path[FR_CHECKPOINT_PATH];

    if (slot->own != NULL)
        return FR_OK;
    (void)snprintf(slot->name, sizeof slot->name, "slot-%d", i);
    slot_path(r, slot, "", path);
    FR_TRY(fr_dir_create(path, err));
    if (r->held_bytes > 0 && slot->held == NULL)
        FR_TRY(map_file(r, slot, r->source, r->held_bytes, &slot->held, err));
    return map_file(r, slot, r->transport->rank, r->own_bytes, &slot->own, err);
}

/* Removes the manifest of a slot, so that its contents belong to no step. */
static fr_status empty_slot(fr_replicas *r, int i, fr_err *err)
{
    char path[FR_CHECKPOINT_PATH];

    FR_TRY(open_slot(r, i, err));
    slot_path(r, &r->slots[i], "/manifest.json", path);
    (void)remove(path);
    return FR_OK;
}

/* ---- opening ------------------------------------------------------------ */

/*
 * Ranks in the order of their nodes, shifted by as many as the largest node
 * has: two ranks of one node keep each other's copies only where it has more
 * than half of all.
 */
static fr_status choose_peers(fr_replicas *r, fr_err *err)
{
    const fr_transport *transport = r->transport;
    const int64_t world = transport->world;
    int64_t *order, n = 0, n_most = 1, at = 0;

    FR_TRY_CALLOC(order, (size_t)world, err);
    for (int32_t node = 0; n < world; node++) {
        const int64_t first = n;
        for (int64_t rank = 0; rank < world; rank++)
            if (transport->node_of_rank[rank] == node)
                order[n++] = rank;
        n_most = n - first > n_most && n - first < world ? n - first : n_most;
    }
    while (order[at] != transport->rank)
        at++;
    r->holder = order[(at + n_most) % world];
    r->source = order[(at - n_most + world) % world];
    free(order);
    return FR_OK;
}

static fr_status learn_sizes(fr_replicas *r, fr_err *err)
{
    uint64_t *all;

    FR_TRY_CALLOC(all, (size_t)r->transport->world, err);
    fr_status status = fr_transport_all_gather(r->transport, &r->own_bytes,
                                               sizeof *all, all, err);
    r->held_bytes = r->source != r->transport->rank ? all[r->source] : 0;
    free(all);
    return status;
}

/* Creates the store of this rank alone. */
static fr_status make_store(fr_replicas *r, const fr_replica_options *options,
                            fr_err *err)
{
    FR_TRY(fr_dir_create(r->store, err));
    /* While a run goes on from copies there is no room for more than one. */
    for (int i = 0; i < 2 && !options->is_resumed; i++)
        FR_TRY(open_slot(r, i, err));
    return FR_OK;
}

/* Removes slots that a killed rank was writing. */
static void drop_slots(const fr_replicas *r)
{
    char path[FR_CHECKPOINT_PATH];

    for (int i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/slot-%d", r->store, i);
        fr_dir_remove(path);
    }
}

static fr_status open_all(fr_replicas *r, const fr_replica_options *options,
                          fr_err *err)
{
    const int64_t rank = r->transport->rank;
    fr_status status =
        fr_replica_run_path(options->dir, options->checkpoint_dir, r->run, err);

    if (status == FR_OK) {
        fr_replica_store_path(r->run, rank, r->store);
        fr_replicas_drop_view(r);
        drop_slots(r);
        if (!options->is_resumed)
            fr_dir_remove(r->run);
    }
    FR_TRY(fr_transport_agree(r->transport, status, true, err));
    FR_TRY(choose_peers(r, err));
    FR_TRY(learn_sizes(r, err));
    return fr_transport_agree(r->transport, make_store(r, options, err), true,
                              err);
}

fr_status fr_replicas_open(const fr_replica_options *options,
                           const fr_program *program, fr_transport *transport,
                           const fr_shard *shard, fr_replicas **out,
                           fr_err *err)
{
    fr_replicas *r;

    FR_TRY_CALLOC(r, 1, err);
    r->program = program;
    r->transport = transport;
    r->shard = shard;
    r->data = options->data;
    r->own_bytes = fr_shard_bytes(shard);
    fr_status status = open_all(r, options, err);
    if (status == FR_OK)
        *out = r;
    else
        fr_replicas_close(r);
    return status;
}

static void join(fr_replica_transfer *t)
{
    if (t->is_running)
        (void)pthread_join(t->thread, NULL);
    t->is_running = false;
}

void fr_replicas_close(fr_replicas *r)
{
    if (r == NULL)
        return;
    join(&r->transfer);
    for (int i = 0; i < 2; i++) {
        fr_replica_unmap(r->slots[i].own, r->own_bytes);
        fr_replica_unmap(r->slots[i].held, r->held_bytes);
    }
    fr_vec_release(&r->transfer.messages);
    free(r->transfer.loss);
    free(r);
}

uint64_t fr_replicas_bytes(const fr_replicas *r)
{
    return r->own_bytes + r->held_bytes;
}

fr_status fr_replicas_remove(fr_replicas *r, fr_err *err)
{
    FR_TRY(fr_replicas_finish(r, err));
    fr_dir_remove(r->run);
    return FR_OK;
}

/* ---- saving ------------------------------------------------------------- */

/* Sends `from`, or receives into `to`: the other one is NULL. */
static fr_status post(fr_replicas *r, int64_t peer, const void *from, void *to,
                      uint64_t n_bytes, fr_err *err)
{
    const fr_transport_ops *ops = r->transport->ops;

    for (uint64_t at = 0; at < n_bytes; at += FR_TRANSPORT_MAX_BYTES) {
        const uint64_t n_left = n_bytes - at;
        const uint64_t n =
            n_left < FR_TRANSPORT_MAX_BYTES ? n_left : FR_TRANSPORT_MAX_BYTES;
        fr_replica_message message = {.peer = peer};
        FR_TRY(from != NULL ? ops->isend(r->transport, peer, FR_TAG_REPLICA,
                                         (const unsigned char *)from + at, n,
                                         &message.request, err)
                            : ops->irecv(r->transport, peer, FR_TAG_REPLICA,
                                         (unsigned char *)to + at, n,
                                         &message.request, err));
        FR_TRY_PUSH(&r->transfer.messages, message, err);
    }
    return FR_OK;
}

/* Posts the losses, which only rank 0 knows, to its holder, too. */
static fr_status post_losses(fr_replicas *r, fr_err *err)
{
    fr_replica_transfer *t = &r->transfer;
    const uint64_t n_bytes = (uint64_t)t->n_steps_done * sizeof *t->loss;

    if (r->transport->rank == 0)
        FR_TRY(post(r, r->holder, t->loss, NULL, n_bytes, err));
    if (r->source == 0)
        FR_TRY(post(r, 0, NULL, t->loss, n_bytes, err));
    return FR_OK;
}

static fr_status post_all(fr_replicas *r, fr_err *err)
{
    const fr_replica_slot *slot = &r->slots[r->i_slot];

    r->transfer.messages.n = 0;
    if (r->held_bytes == 0)
        return FR_OK;
    FR_TRY(post(r, r->source, NULL, slot->held, r->held_bytes, err));
    FR_TRY(post(r, r->holder, slot->own, NULL, r->own_bytes, err));
    return post_losses(r, err);
}

static void *hash_aside(void *context)
{
    fr_replicas *r = context;

    r->transfer.hash =
        fr_shard_image_hash(r->slots[r->i_slot].own, r->own_bytes);
    atomic_store(&r->transfer.is_hashed, true);
    return NULL;
}

static fr_status take_losses(fr_replica_transfer *t, const double *loss,
                             fr_err *err)
{
    const size_t n = (size_t)t->n_steps_done;

    free(t->loss);
    FR_TRY_CALLOC(t->loss, n + 1, err);
    t->is_loss_known = loss != NULL;
    if (loss != NULL)
        memcpy(t->loss, loss, n * sizeof *loss);
    return FR_OK;
}

/* Copies the state of this rank alone. */
static fr_status copy(fr_replicas *r, const fr_state *state, const double *loss,
                      fr_err *err)
{
    FR_TRY(empty_slot(r, r->i_slot, err));
    FR_TRY(take_losses(&r->transfer, loss, err));
    return fr_shard_copy(r->shard, state, r->slots[r->i_slot].own, err);
}

fr_status fr_replicas_save(fr_replicas *r, const fr_state *state,
                           int64_t n_steps_done, const double *loss,
                           fr_err *err)
{
    fr_replica_transfer *t = &r->transfer;

    FR_TRY(fr_replicas_finish(r, err));
    t->n_steps_done = n_steps_done;
    FR_TRY(
        fr_transport_agree(r->transport, copy(r, state, loss, err), true, err));
    atomic_store(&t->is_hashed, false);
    if (pthread_create(&t->thread, NULL, hash_aside, r) != 0)
        return fr_fail(err, FR_FAILURE, "no thread for the copy of the state");
    t->is_running = true;
    FR_TRY(post_all(r, err));
    t->is_pending = true;
    return FR_OK;
}

/* ---- finishing
 * ---------------------------------------------------------------
 */

fr_status fr_replicas_is_sent(fr_replicas *r, bool *out, fr_err *err)
{
    fr_replica_transfer *t = &r->transfer;
    bool is_all = t->is_pending;

    for (size_t i = 0; t->is_pending && i < t->messages.n; i++) {
        fr_replica_message *m = &t->messages.items[i];
        if (!m->is_done)
            FR_TRY(r->transport->ops->test(r->transport, &m->request,
                                           &m->is_done, err));
        is_all = is_all && m->is_done;
    }
    *out = is_all && atomic_load(&t->is_hashed);
    return FR_OK;
}

static fr_status wait_all(fr_replicas *r, fr_err *err)
{
    for (size_t i = 0; i < r->transfer.messages.n; i++) {
        fr_replica_message *m = &r->transfer.messages.items[i];
        if (!m->is_done)
            FR_TRY(fr_transport_wait(r->transport, &m->request, m->peer,
                                     "copy of the state", err));
        m->is_done = true;
    }
    join(&r->transfer);
    return FR_OK;
}

/* The report of each rank about its own image; rank 0 also reports the
 * losses. */
typedef struct news {
    fr_manifest_file file;
    int64_t n_losses;
    uint64_t losses_hash;
} news;

static fr_status gather_manifest(fr_replicas *r, fr_manifest *manifest,
                                 fr_err *err)
{
    const fr_replica_transfer *t = &r->transfer;
    const int64_t world = r->transport->world;
    news mine = {.file = {r->own_bytes, t->hash}}, *all;

    if (t->is_loss_known) {
        mine.n_losses = t->n_steps_done;
        mine.losses_hash = fr_losses_hash(t->loss, t->n_steps_done);
    }
    FR_TRY_CALLOC(all, (size_t)world, err);
    fr_status status =
        fr_transport_all_gather(r->transport, &mine, sizeof mine, all, err);
    for (int64_t i = 0; i < world; i++)
        manifest->files[i] = all[i].file;
    manifest->n_losses = all[0].n_losses;
    manifest->losses_hash = all[0].losses_hash;
    free(all);
    return status;
}

/* The slot becomes the step's; its manifest comes last. */
static fr_status publish(fr_replicas *r, const fr_manifest *manifest,
                         fr_err *err)
{
    fr_replica_slot *slot = &r->slots[r->i_slot];
    const bool has_losses = r->transport->rank == 0 || r->source == 0;
    char from[FR_CHECKPOINT_PATH], to[FR_CHECKPOINT_PATH];

    slot_path(r, slot, "", from);
    (void)snprintf(slot->name, sizeof slot->name, "step-%lld",
                   (long long)manifest->n_steps_done);
    slot_path(r, slot, "", to);
    if (strcmp(from, to) != 0)
        fr_checkpoint_remove(r->store, manifest->n_steps_done);
    if (rename(from, to) != 0)
        return fr_fail(err, FR_IO, "%s: %s", to, strerror(errno));
    if (manifest->n_losses > 0 && has_losses)
        FR_TRY(fr_losses_write(r->store, manifest->n_steps_done,
                               r->transfer.loss, err));
    return fr_manifest_write(r->store, r->program, manifest, err);
}

/* Removes steps that ranks of earlier runs have left. */
static void remove_stale(const fr_replicas *r)
{
    for (int64_t at = INT64_MAX;
         (at = fr_checkpoint_older(r->store, at)) > 0;) {
        char name[32];
        (void)snprintf(name, sizeof name, "step-%lld", (long long)at);
        if (strcmp(name, r->slots[0].name) != 0 &&
            strcmp(name, r->slots[1].name) != 0)
            fr_checkpoint_remove(r->store, at);
    }
    fr_replica_forget(r->run, r->transport->world);
}

fr_status fr_replicas_finish(fr_replicas *r, fr_err *err)
{
    fr_manifest manifest = {.n_steps_done = r->transfer.n_steps_done,
                            .data = r->data,
                            .n_files = r->transport->world};

    if (!r->transfer.is_pending)
        return FR_OK;
    r->transfer.is_pending = false;
    FR_TRY(wait_all(r, err));
    FR_TRY_CALLOC(manifest.files, (size_t)r->transport->world, err);
    fr_status status = gather_manifest(r, &manifest, err);
    if (status == FR_OK)
        status = fr_transport_agree(r->transport, publish(r, &manifest, err),
                                    true, err);
    free(manifest.files);
    if (status != FR_OK)
        return status;
    r->i_slot = 1 - r->i_slot;
    remove_stale(r);
    return FR_OK;
}
