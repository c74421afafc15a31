/*
 * checkpoint_write.c: a checkpoint on its way to the disk.
 *
 * Every rank writes its file; when all are there rank 0 publishes: losses,
 * manifest, `latest`, and the removal of old ones.  Asynchronously both are
 * done by a thread of the rank's, which never talks to others: that a file is
 * written the ranks tell each other between two steps.
 */
#include "core/base/hash.h"
#include "core/system/fileio.h"
#include "runtime/checkpoint/checkpoint_dir.h"
#include "runtime/checkpoint/checkpoint_state.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- losses ------------------------------------------------------------- */

static void losses_path(const char *dir, int64_t n_steps_done,
                        char path[FR_CHECKPOINT_PATH])
{
    (void)snprintf(path, FR_CHECKPOINT_PATH, "%s/step-%lld/losses", dir,
                   (long long)n_steps_done);
}

fr_status fr_losses_read(const char *dir, const fr_manifest *manifest,
                         double **out, fr_err *err)
{
    char path[FR_CHECKPOINT_PATH], *bytes = NULL;
    size_t n = 0;

    *out = NULL;
    if (manifest->n_losses == 0)
        return FR_OK;
    losses_path(dir, manifest->n_steps_done, path);
    fr_status status = fr_file_read(path, 0, &bytes, &n, err);
    if (status != FR_OK)
        return FR_IO;
    if (n != (size_t)manifest->n_losses * sizeof(double) ||
        fr_hash_bytes(bytes, n, 0) != manifest->losses_hash) {
        free(bytes);
        return fr_fail(err, FR_IO,
                       "%s: damaged: its hash is not the manifest's", path);
    }
    *out = (double *)(void *)bytes;
    return FR_OK;
}

uint64_t fr_losses_hash(const double *loss, int64_t n)
{
    return fr_hash_bytes(loss, (size_t)n * sizeof *loss, 0);
}

fr_status fr_losses_write(const char *dir, int64_t n_steps_done,
                          const double *loss, fr_err *err)
{
    char path[FR_CHECKPOINT_PATH];

    losses_path(dir, n_steps_done, path);
    return fr_file_write(path, loss, (size_t)n_steps_done * sizeof *loss, err);
}

fr_status fr_checkpoint_publish(const char *dir, const fr_program *program,
                                fr_manifest *manifest, const double *loss,
                                fr_err *err)
{
    if (loss != NULL) {
        manifest->n_losses = manifest->n_steps_done;
        manifest->losses_hash = fr_losses_hash(loss, manifest->n_losses);
        FR_TRY(fr_losses_write(dir, manifest->n_steps_done, loss, err));
    }
    FR_TRY(fr_manifest_write(dir, program, manifest, err));
    return fr_checkpoint_point_at(dir, manifest->n_steps_done, err);
}

/* ---- what one rank does alone ------------------------------------------- */

/* `state` NULL: from the image. */
static fr_status write_file(fr_checkpoints *c, const fr_state *state,
                            fr_err *err)
{
    fr_checkpoint_writer *w = &c->writer;
    char path[FR_CHECKPOINT_PATH];

    (void)snprintf(path, sizeof path, "%s/step-%lld", c->dir,
                   (long long)w->n_steps_done);
    FR_TRY(fr_dir_create(path, err));
    fr_shard_path(c->dir, w->n_steps_done, c->transport->rank, path);
    return state != NULL
               ? fr_shard_write(&c->shard, path, state, &w->hash, err)
               : fr_shard_write_image(w->image, fr_shard_bytes(&c->shard), path,
                                      &w->hash, err);
}

static fr_status publish(fr_checkpoints *c, fr_err *err)
{
    const fr_checkpoint_writer *w = &c->writer;
    fr_manifest manifest = {.n_steps_done = w->n_steps_done,
                            .data = c->data,
                            .n_files = c->transport->world,
                            .files = w->files};

    const fr_status status =
        fr_checkpoint_publish(c->dir, c->program, &manifest, w->loss, err);
    if (status != FR_OK) {
        if (!fr_checkpoint_was_finished(c->dir, w->n_steps_done))
            fr_checkpoint_remove(c->dir, w->n_steps_done);
        return status;
    }
    fr_checkpoint_prune(c->dir, w->n_steps_done, c->n_kept, c->loaded,
                        c->own_first);
    return FR_OK;
}

/* Removes a file whose checkpoint will never be complete, so that it takes no
 * room.  A checkpoint that was finished before this run wrote to it stays. */
static void drop_own_file(const fr_checkpoints *c)
{
    const int64_t step = c->writer.n_steps_done;
    char path[FR_CHECKPOINT_PATH];

    if (fr_checkpoint_was_finished(c->dir, step))
        return;
    (void)remove(fr_shard_path(c->dir, step, c->transport->rank, path));
    (void)snprintf(path, sizeof path, "%s/step-%lld", c->dir, (long long)step);
    (void)rmdir(path); /* the last rank's goes through */
}

/* ---- the thread --------------------------------------------------------- */

static void *write_aside(void *context)
{
    fr_checkpoints *c = context;

    c->writer.status = write_file(c, NULL, &c->writer.why);
    atomic_store(&c->writer.is_written, true);
    return NULL;
}

static void *publish_aside(void *context)
{
    fr_checkpoints *c = context;

    c->writer.status = publish(c, &c->writer.why);
    return NULL;
}

static fr_status start(fr_checkpoint_writer *w, void *(*work)(void *),
                       fr_checkpoints *c, fr_err *err)
{
    if (pthread_create(&w->thread, NULL, work, c) != 0)
        return fr_fail(err, FR_FAILURE, "no thread for the checkpoint");
    w->is_running = true;
    return FR_OK;
}

static fr_status join(fr_checkpoint_writer *w, fr_err *err)
{
    if (!w->is_running)
        return FR_OK;
    (void)pthread_join(w->thread, NULL);
    w->is_running = false;
    if (w->status != FR_OK)
        return fr_fail(err, w->status, "%s", w->why.text);
    return FR_OK;
}

void fr_checkpoint_writer_stop(fr_checkpoints *c)
{
    fr_err ignored = {0};

    if (join(&c->writer, &ignored) != FR_OK)
        c->writer.is_pending = false;
    if (c->writer.is_pending) /* no rank has heard of it */
        drop_own_file(c);
    free(c->writer.image);
    free(c->writer.loss);
    free(c->writer.files);
}

/* ---- together ----------------------------------------------------------- */

/* All ranks learn whether all files are there, and rank 0 what they are. */
static fr_status agree(fr_checkpoints *c, fr_status mine, fr_err *err)
{
    fr_checkpoint_writer *w = &c->writer;
    const fr_manifest_file file = {fr_shard_bytes(&c->shard), w->hash};

    w->is_pending = false;
    const fr_status status = fr_transport_agree(c->transport, mine, false, err);
    /* If the message of rank 0 is lost, rank 0 may still publish. */
    if (mine != FR_OK || status == FR_IO)
        drop_own_file(c);
    if (status != FR_OK)
        return status;
    return fr_transport_all_gather(c->transport, &file, sizeof file, w->files,
                                   err);
}

/* The newest copy of the losses is what rank 0 publishes. */
static fr_status keep_losses(fr_checkpoint_writer *w, int64_t n,
                             const double *loss, fr_err *err)
{
    free(w->loss);
    w->loss = NULL;
    if (loss == NULL || n == 0)
        return FR_OK;
    FR_TRY_CALLOC(w->loss, (size_t)n, err);
    memcpy(w->loss, loss, (size_t)n * sizeof *loss);
    return FR_OK;
}

static fr_status take_image(fr_checkpoints *c, const fr_state *state,
                            fr_err *err)
{
    fr_checkpoint_writer *w = &c->writer;

    FR_TRY(fr_shard_copy(&c->shard, state, w->image, err));
    atomic_store(&w->is_written, false);
    return start(w, write_aside, c, err);
}

/* Its pages are touched now, not while training waits for a copy. */
fr_status fr_checkpoint_writer_start(fr_checkpoints *c, fr_err *err)
{
    const uint64_t n_bytes = fr_shard_bytes(&c->shard);

    c->writer.image = malloc(n_bytes);
    if (c->writer.image == NULL)
        return fr_fail_no_memory(err);
    memset(c->writer.image, 1, n_bytes);
    return FR_OK;
}

bool fr_checkpoints_is_written(const fr_checkpoints *c)
{
    return c->writer.is_pending && atomic_load(&c->writer.is_written);
}

/* Agrees on the pending checkpoint; rank 0 begins to publish it. */
static fr_status settle(fr_checkpoints *c, fr_err *err)
{
    fr_checkpoint_writer *w = &c->writer;

    if (!w->is_pending)
        return FR_OK;
    FR_TRY(agree(c, join(w, err), err));
    return c->transport->rank == 0 ? start(w, publish_aside, c, err) : FR_OK;
}

fr_status fr_checkpoints_finish(fr_checkpoints *c, bool is_waited, fr_err *err)
{
    FR_TRY(settle(c, err));
    if (!is_waited)
        return FR_OK;
    return fr_transport_agree(c->transport, join(&c->writer, err), false, err);
}

fr_status fr_checkpoints_save(fr_checkpoints *c, const fr_state *state,
                              int64_t n_steps_done, const double *loss,
                              fr_err *err)
{
    fr_checkpoint_writer *w = &c->writer;

    FR_TRY(fr_checkpoints_finish(c, true, err));
    if (w->files == NULL)
        FR_TRY_CALLOC(w->files, (size_t)c->transport->world, err);
    w->n_steps_done = n_steps_done;
    if (n_steps_done < c->own_first)
        c->own_first = n_steps_done;
    FR_TRY(keep_losses(w, n_steps_done, loss, err));
    w->is_pending = true;
    if (c->is_async)
        return take_image(c, state, err);
    FR_TRY(agree(c, write_file(c, state, err), err));
    const fr_status status = c->transport->rank == 0 ? publish(c, err) : FR_OK;
    return fr_transport_agree(c->transport, status, false, err);
}
