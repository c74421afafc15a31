/*
 * replica_load.c: what the ranks that go on find of copies in memory, put
 * together as a checkpoint of files.
 *
 * Ranks that see the same stores, those of a host, share the work: each
 * verifies some of the files.  What a host lacks another one sends.
 */
#include "core/system/fileio.h"
#include "runtime/rank/measure.h"
#include "runtime/replica/replica.h"
#include "runtime/replica/replica_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The report of one rank about one file. */
typedef struct finding {
    int32_t store; /* on its host, whose file is good; -1: none is */
    uint64_t index_bytes;
} finding;

typedef struct view {
    const fr_replicas *r;
    int64_t step, n_files; /* n_files: of ranks; losses come after them */
    char dir[FR_REPLICA_PATH];
    fr_manifest manifest;
    int64_t *host_of;  /* [world]: the first rank that sees the same stores */
    finding *findings; /* [world][n_files + 1] */
} view;

fr_status fr_replicas_newest(const fr_replicas *r, int64_t below, int64_t *out,
                             fr_err *err)
{
    const int64_t mine = fr_replica_newest(r->run, below);
    int64_t *all, newest = 0;

    FR_TRY_CALLOC(all, (size_t)r->transport->world, err);
    fr_status status =
        fr_transport_all_gather(r->transport, &mine, sizeof mine, all, err);
    for (int64_t i = 0; i < r->transport->world; i++)
        newest = all[i] > newest ? all[i] : newest;
    free(all);
    if (status == FR_OK)
        *out = newest;
    return status;
}

void fr_replicas_drop_view(const fr_replicas *r)
{
    char dir[FR_REPLICA_PATH];

    fr_replica_view_path(r->run, r->transport->rank, dir);
    fr_dir_remove(dir);
}

fr_status fr_replicas_keep_only(const fr_replicas *r, int64_t step, fr_err *err)
{
    fr_replica_keep_only(r->run, step);
    return fr_transport_agree(r->transport, FR_OK, false, err);
}

/* ---- who sees what ------------------------------------------------------ */

static fr_status find_hosts(view *v, fr_err *err)
{
    const fr_transport *transport = v->r->transport;
    struct stat info = {0};
    uint64_t mine[3] = {fr_measure_machine(NULL), 0, 0}, (*all)[3];

    if (stat(v->r->run, &info) == 0) {
        mine[1] = (uint64_t)info.st_dev;
        mine[2] = (uint64_t)info.st_ino;
    }
    FR_TRY_CALLOC(v->host_of, (size_t)transport->world, err);
    FR_TRY_CALLOC(all, (size_t)transport->world, err);
    fr_status status =
        fr_transport_all_gather(v->r->transport, mine, sizeof mine, all, err);
    for (int64_t i = 0; i < transport->world; i++) {
        int64_t first = 0;
        while (memcmp(all[first], all[i], sizeof mine) != 0)
            first++;
        v->host_of[i] = first;
    }
    free(all);
    return status;
}

static char *file_path(const view *v, const char *name,
                       char path[FR_CHECKPOINT_PATH])
{
    (void)snprintf(path, FR_CHECKPOINT_PATH, "%s/step-%lld/%s", v->dir,
                   (long long)v->step, name);
    return path;
}

static const char *name_of(const view *v, int64_t i_file, char name[32])
{
    if (i_file < v->n_files)
        (void)snprintf(name, 32, "rank-%lld", (long long)i_file);
    else
        (void)snprintf(name, 32, "losses");
    return name;
}

/* The first good copy of a file on this host. */
static finding find_good(const view *v, int64_t i_file)
{
    char name[32], path[FR_CHECKPOINT_PATH];
    fr_err ignored = {0};

    name_of(v, i_file, name);
    for (int64_t i = -1;
         (i = fr_replica_find(v->r->run, v->step, name, i + 1, path)) >= 0;) {
        finding found = {.store = (int32_t)i};
        fr_shard_index index = {0};
        if (i_file == v->n_files)
            return found; /* its reader verifies it */
        const fr_manifest_file *file = &v->manifest.files[i_file];
        if (fr_shard_verify(path, file->n_bytes, file->hash, &ignored) !=
                FR_OK ||
            fr_shard_read_index(path, &index, &ignored) != FR_OK)
            continue;
        found.index_bytes = fr_shard_index_bytes(&index);
        fr_shard_index_release(&index);
        return found;
    }
    return (finding){.store = -1};
}

/* Each file is looked at by one rank of each host; what it found counts for all
 * of them. */
static fr_status look(view *v, fr_err *err)
{
    const fr_transport *transport = v->r->transport;
    const int64_t world = transport->world, n = v->n_files + 1;
    int64_t n_on_host = 0, i_on_host = 0;
    finding *mine;

    for (int64_t i = 0; i < world; i++)
        if (v->host_of[i] == v->host_of[transport->rank]) {
            i_on_host += i < transport->rank;
            n_on_host++;
        }
    FR_TRY_CALLOC(v->findings, (size_t)(world * n), err);
    FR_TRY_CALLOC(mine, (size_t)n, err);
    for (int64_t i = 0; i < n; i++)
        mine[i] = i % n_on_host == i_on_host ? find_good(v, i)
                                             : (finding){.store = -1};
    fr_status status = fr_transport_all_gather(
        v->r->transport, mine, (size_t)n * sizeof *mine, v->findings, err);
    free(mine);
    return status;
}

/* Returns the finding of a rank's host about a file; NULL: the host does not
 * have it. */
static const finding *found_at(const view *v, int64_t rank, int64_t i_file)
{
    for (int64_t i = 0; i < v->r->transport->world; i++) {
        const finding *f = &v->findings[i * (v->n_files + 1) + i_file];
        if (v->host_of[i] == v->host_of[rank] && f->store >= 0)
            return f;
    }
    return NULL;
}

/* The rank that sends a file to those who lack it; -1: all copies are lost. */
static int64_t giver_of(const view *v, int64_t i_file)
{
    for (int64_t i = 0; i < v->r->transport->world; i++)
        if (v->findings[i * (v->n_files + 1) + i_file].store >= 0)
            return i;
    return -1;
}

/* ---- from rank to rank -------------------------------------------------- */

/* Sends `from`, or receives into `to`: the other one is NULL. */
static fr_status move(const view *v, int64_t peer, const unsigned char *from,
                      unsigned char *to, uint64_t n_bytes, fr_err *err)
{
    fr_transport *transport = v->r->transport;

    for (uint64_t at = 0; at < n_bytes; at += FR_TRANSPORT_MAX_BYTES) {
        const uint64_t n_left = n_bytes - at;
        const uint64_t n =
            n_left < FR_TRANSPORT_MAX_BYTES ? n_left : FR_TRANSPORT_MAX_BYTES;
        fr_message request = {0};
        FR_TRY(from != NULL
                   ? transport->ops->isend(transport, peer, FR_TAG_REPLICA,
                                           from + at, n, &request, err)
                   : transport->ops->irecv(transport, peer, FR_TAG_REPLICA,
                                           to + at, n, &request, err));
        FR_TRY(fr_transport_wait(transport, &request, peer, "copy of the state",
                                 err));
    }
    return FR_OK;
}

/*
 * The first n_bytes of a file go from `giver` to all that want it: is_wanted
 * has a byte of each rank.  What is received is a file of n_whole bytes.
 */
static fr_status deliver(const view *v, const char *name, int64_t giver,
                         const unsigned char *is_wanted, uint64_t n_bytes,
                         uint64_t n_whole, fr_err *err)
{
    const int64_t rank = v->r->transport->rank;
    char path[FR_CHECKPOINT_PATH];
    unsigned char *bytes = NULL;
    fr_status status = FR_OK;
    bool is_sending = false;

    for (int64_t i = 0; i < v->r->transport->world; i++)
        is_sending = is_sending || (is_wanted[i] && rank == giver);
    if (!is_sending && !is_wanted[rank])
        return FR_OK;
    FR_TRY(fr_replica_map(file_path(v, name, path), n_bytes, &bytes, err));
    for (int64_t i = 0; status == FR_OK && i < v->r->transport->world; i++) {
        if (is_wanted[i] && is_sending)
            status = move(v, i, bytes, NULL, n_bytes, err);
        else if (is_wanted[i] && i == rank)
            status = move(v, giver, NULL, bytes, n_bytes, err);
    }
    fr_replica_unmap(bytes, n_bytes);
    if (status == FR_OK && !is_sending && truncate(path, (off_t)n_whole) != 0)
        status = fr_fail(err, FR_IO, "%s: %s", path, strerror(errno));
    return status;
}

/* ---- the view
 * ----------------------------------------------------------------
 */

static fr_status make_dir(const view *v, fr_err *err)
{
    char path[FR_CHECKPOINT_PATH];

    (void)snprintf(path, sizeof path, "%s/step-%lld", v->dir,
                   (long long)v->step);
    return fr_dir_create(path, err);
}

/* The manifest, of which every rank with a part has one. */
static fr_status take_manifest(view *v, fr_err *err)
{
    fr_transport *transport = v->r->transport;
    const int64_t world = transport->world;
    char from[FR_CHECKPOINT_PATH], to[FR_CHECKPOINT_PATH];
    uint64_t mine = 0, *all;
    unsigned char *is_wanted;
    struct stat info;
    int64_t giver = 0;

    if (fr_replica_find(v->r->run, v->step, "manifest.json", 0, from) >= 0 &&
        stat(from, &info) == 0 &&
        link(from, file_path(v, "manifest.json", to)) == 0)
        mine = (uint64_t)info.st_size;
    FR_TRY_CALLOC(all, (size_t)world, err);
    FR_TRY_CALLOC(is_wanted, (size_t)world, err);
    fr_status status =
        fr_transport_all_gather(transport, &mine, sizeof mine, all, err);
    for (int64_t i = world - 1; i >= 0; i--) {
        is_wanted[i] = all[i] == 0;
        giver = all[i] > 0 ? i : giver;
    }
    if (status == FR_OK && all[giver] > 0)
        status = deliver(v, "manifest.json", giver, is_wanted, all[giver],
                         all[giver], err);
    free(all);
    free(is_wanted);
    if (status == FR_OK)
        status = fr_manifest_read(v->dir, v->step, &v->manifest, err);
    if (status == FR_OK)
        v->n_files = v->manifest.n_files;
    return status;
}

/* Links the files that this host has. */
static fr_status link_files(const view *v, fr_err *err)
{
    char name[32], from[FR_CHECKPOINT_PATH], to[FR_CHECKPOINT_PATH];

    for (int64_t i = 0; i <= v->n_files; i++) {
        const finding *f = found_at(v, v->r->transport->rank, i);
        if (f == NULL)
            continue;
        name_of(v, i, name);
        file_path(v, name, to);
        if (fr_replica_find(v->r->run, v->step, name, f->store, from) !=
                f->store ||
            link(from, to) != 0)
            return fr_fail(err, FR_IO, "%s: %s", to, strerror(errno));
    }
    return FR_OK;
}

static bool is_touched(const fr_tensor_slice *a, const fr_tensor_slice *b)
{
    return a->tensor == b->tensor && a->what == b->what &&
           a->row < b->row + b->n_rows && b->row < a->row + a->n_rows &&
           a->col < b->col + b->n_cols && b->col < a->col + a->n_cols;
}

/* Has the file, of which the index is there, anything that this rank holds? */
static bool is_needed(const view *v, int64_t i_file,
                      const fr_tensor_slices *held)
{
    char name[32], path[FR_CHECKPOINT_PATH];
    fr_shard_index index = {0};
    fr_err ignored = {0};
    bool is_it = i_file == v->r->transport->rank; /* the layout's own */

    file_path(v, name_of(v, i_file, name), path);
    if (fr_shard_read_index(path, &index, &ignored) != FR_OK)
        return true;
    for (size_t i = 0; !is_it && i < index.slices.n; i++)
        for (size_t k = 0; !is_it && k < held->n; k++)
            is_it = is_touched(&index.slices.items[i], &held->items[k]);
    fr_shard_index_release(&index);
    return is_it;
}

/* Indices of the files that a host lacks, then those that its ranks need. */
static fr_status fetch(const view *v, const fr_tensor_slices *held, fr_err *err)
{
    const int64_t world = v->r->transport->world, rank = v->r->transport->rank;
    unsigned char *is_wanted;
    char name[32];
    fr_status status = FR_OK;

    FR_TRY_CALLOC(is_wanted, (size_t)world, err);
    for (int64_t i = 0; status == FR_OK && i < v->n_files; i++) {
        const int64_t giver = giver_of(v, i);
        const fr_manifest_file *file = &v->manifest.files[i];
        bool is_any = false;
        for (int64_t k = 0; k < world; k++) {
            is_wanted[k] = found_at(v, k, i) == NULL;
            is_any = is_any || is_wanted[k];
        }
        if (!is_any)
            continue;
        name_of(v, i, name);
        status =
            deliver(v, name, giver, is_wanted,
                    found_at(v, giver, i)->index_bytes, file->n_bytes, err);
        const unsigned char mine =
            is_wanted[rank] && status == FR_OK && is_needed(v, i, held);
        if (status == FR_OK)
            status = fr_transport_all_gather(v->r->transport, &mine, 1,
                                             is_wanted, err);
        if (status == FR_OK)
            status = deliver(v, name, giver, is_wanted, file->n_bytes,
                             file->n_bytes, err);
    }
    free(is_wanted);
    return status;
}

/* Losses are for rank 0 alone. */
static fr_status fetch_losses(const view *v, fr_err *err)
{
    const uint64_t n_bytes = (uint64_t)v->step * sizeof(double);
    unsigned char *is_wanted;

    if (v->manifest.n_losses == 0 || found_at(v, 0, v->n_files) != NULL)
        return FR_OK;
    FR_TRY_CALLOC(is_wanted, (size_t)v->r->transport->world, err);
    is_wanted[0] = 1;
    fr_status status = deliver(v, "losses", giver_of(v, v->n_files), is_wanted,
                               n_bytes, n_bytes, err);
    free(is_wanted);
    return status;
}

static bool is_all_there(const view *v)
{
    const int64_t n = v->n_files + (v->manifest.n_losses > 0);

    for (int64_t i = 0; i < n; i++)
        if (giver_of(v, i) < 0)
            return false;
    return true;
}

static fr_status put_together(view *v, const fr_tensor_slices *held,
                              bool *is_whole, fr_err *err)
{
    fr_transport *transport = v->r->transport;

    FR_TRY(find_hosts(v, err));
    FR_TRY(fr_transport_agree(transport, make_dir(v, err), true, err));
    FR_TRY(fr_transport_agree(transport, take_manifest(v, err), true, err));
    FR_TRY(look(v, err));
    *is_whole = is_all_there(v);
    if (!*is_whole)
        return FR_OK;
    FR_TRY(fr_transport_agree(transport, link_files(v, err), true, err));
    FR_TRY(fetch(v, held, err));
    return fetch_losses(v, err);
}

fr_status fr_replicas_view(const fr_replicas *r, int64_t step,
                           const fr_tensor_slices *held,
                           char dir[FR_CHECKPOINT_PATH], bool *is_whole,
                           fr_err *err)
{
    view v = {.r = r, .step = step};

    fr_replica_view_path(r->run, r->transport->rank, v.dir);
    fr_status status = put_together(&v, held, is_whole, err);
    if (status == FR_OK)
        (void)snprintf(dir, FR_CHECKPOINT_PATH, "%s", v.dir);
    fr_manifest_release(&v.manifest);
    free(v.host_of);
    free(v.findings);
    return status;
}
