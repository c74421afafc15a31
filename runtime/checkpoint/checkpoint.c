/* checkpoint.c: opens, loads and saves, together with the other ranks. */
#include "runtime/checkpoint/checkpoint.h"

#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/system/fileio.h"
#include "plan/decide/grid.h"
#include "runtime/checkpoint/checkpoint_dir.h"
#include "runtime/checkpoint/checkpoint_lock.h"
#include "runtime/checkpoint/checkpoint_state.h"
#include "runtime/checkpoint/shard_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening ------------------------------------------------------------ */

/* The plan by its stable description; the slab by its blocks and tensors. */
static fr_status fingerprint(const fr_program *program, int64_t rank,
                             uint64_t *out, fr_err *err)
{
    const fr_rank_program *rank_program = fr_program_of_rank(program, rank);
    fr_coord coord = fr_plan_coord(&program->plan, rank);
    char plan[512];
    fr_buffer text;

    fr_buffer_init(&text);
    fr_buffer_puts(&text, fr_plan_describe(&program->plan, plan, sizeof plan));
    fr_buffer_printf(&text, " %d %d %d %d", coord.tp, coord.cp, coord.dp,
                     coord.pp);
    for (uint32_t i = 0; i < rank_program->n_tensors; i++)
        fr_buffer_printf(&text, " %s %llu %llu", rank_program->tensors[i].name,
                         (unsigned long long)rank_program->tensors[i].first,
                         (unsigned long long)rank_program->tensors[i].n);
    for (uint32_t i = 0; i < rank_program->n_blocks; i++)
        if (rank_program->blocks[i].is_persistent)
            fr_buffer_printf(
                &text, " %d %llu", rank_program->blocks[i].kind,
                (unsigned long long)rank_program->blocks[i].n_bytes);
    fr_status status = fr_buffer_check(&text, err);
    if (status == FR_OK)
        *out = fr_hash_bytes(text.data, text.n, 0);
    fr_buffer_release(&text);
    return status;
}

fr_status fr_shard_plan(const fr_program *program, int64_t rank, fr_shard *out,
                        fr_err *err)
{
    FR_TRY(fingerprint(program, rank, &out->layout, err));
    FR_TRY(fr_tensor_slices_written(program, rank, &out->slices, err));
    return fr_layout_ranges(program, rank, &out->own, err);
}

/* Rank 0 prepares the directory before any step. */
static fr_status prepare(fr_checkpoints *c, bool is_resumed, fr_err *err)
{
    char path[FR_CHECKPOINT_PATH];
    int64_t there;

    FR_TRY(fr_dir_create(c->dir, err));
    (void)snprintf(path, sizeof path, "%s/writable", c->dir);
    FR_TRY(fr_file_write(path, "", 0, err));
    (void)remove(path);
    /* The others wait for the answer no longer than the time limit. */
    const double limit_s = c->transport->timeout_s / 2;
    FR_TRY(fr_checkpoint_lock(
        c->dir,
        limit_s < FR_CHECKPOINT_LEAVE_S ? limit_s : FR_CHECKPOINT_LEAVE_S,
        &c->lock, err));
    there = fr_checkpoint_older(c->dir, INT64_MAX);
    if (!is_resumed && there > 0)
        return fr_fail(err, FR_INPUT,
                       "%s: there is a checkpoint of step %lld in it; give "
                       "--resume to go on from it, or another directory",
                       c->dir, (long long)there);
    return fr_data_identify(c->program->job.data, &c->data, err);
}

static fr_status open_replicas(fr_checkpoints *c,
                               const fr_checkpoint_options *options,
                               fr_err *err)
{
    const fr_replica_options replica = {.dir = options->replica_dir,
                                        .checkpoint_dir = c->dir,
                                        .is_resumed = options->is_resumed,
                                        .data = c->data};

    return fr_replicas_open(&replica, c->program, c->transport, &c->shard,
                            &c->replicas, err);
}

fr_status fr_checkpoints_open(const fr_checkpoint_options *options,
                              const fr_program *program,
                              fr_transport *transport, fr_checkpoints **out,
                              fr_err *err)
{
    fr_checkpoints *c;
    fr_status status = FR_OK;

    FR_TRY_CALLOC(c, 1, err);
    c->program = program;
    c->transport = transport;
    c->is_async = options->is_async;
    c->n_kept = options->n_kept > 0 ? options->n_kept : 2;
    c->own_first = INT64_MAX;
    c->lock = -1;
    if (!fr_text_copy(c->dir, sizeof c->dir, options->dir))
        status =
            fr_fail(err, FR_INPUT, "%s: the path is too long", options->dir);
    if (status == FR_OK)
        status = fr_shard_plan(program, transport->rank, &c->shard, err);
    if (status == FR_OK && c->is_async)
        status = fr_checkpoint_writer_start(c, err);
    if (status == FR_OK && transport->rank == 0)
        status = prepare(c, options->is_resumed, err);
    status = fr_transport_agree(transport, status, false, err);
    if (status == FR_OK)
        status = fr_transport_share(transport, &c->data, sizeof c->data, err);
    if (status == FR_OK && options->is_replicated)
        status = open_replicas(c, options, err);
    if (status != FR_OK) {
        fr_checkpoints_close(c);
        return status;
    }
    *out = c;
    return FR_OK;
}

fr_replicas *fr_checkpoints_replicas(fr_checkpoints *checkpoints)
{
    return checkpoints->replicas;
}

bool fr_checkpoints_is_from_memory(const fr_checkpoints *checkpoints)
{
    return checkpoints->is_from_memory;
}

void fr_checkpoints_close(fr_checkpoints *checkpoints)
{
    if (checkpoints == NULL)
        return;
    fr_checkpoint_writer_stop(checkpoints);
    fr_replicas_close(checkpoints->replicas);
    fr_checkpoint_unlock(checkpoints->lock);
    fr_shard_release(&checkpoints->shard);
    free(checkpoints);
}

/* ---- loading ------------------------------------------------------------ */

/* The result of loading one checkpoint; the worst of all ranks counts. */
typedef enum verdict { WHOLE, DAMAGED, FOREIGN, FAILED } verdict;

typedef struct report {
    int32_t verdict;
    bool lost_own; /* there was something of the layout's own to go on from */
    bool is_data_unsure; /* only the manifest of the data was compared */
    char text[500];
} report;

/* The place of a checkpoint: the directory of the run, or copies in memory,
 * which are verified when they are found. */
typedef struct place {
    const char *dir;
    int64_t n_done;
    bool is_memory;
} place;

/* Every file is verified by one of the ranks. */
static fr_status verify_share(const fr_checkpoints *c,
                              const fr_shard_reader *reader, fr_err *err)
{
    const int64_t n_files = fr_shard_reader_manifest(reader)->n_files;

    for (int64_t i = c->transport->rank; i < n_files; i += c->transport->world)
        FR_TRY(fr_shard_reader_verify(reader, i, err));
    return FR_OK;
}

static fr_status restore(const fr_checkpoints *c, fr_shard_reader *reader,
                         const fr_state *state, bool *lost_own, fr_err *err)
{
    const int64_t rank = c->transport->rank;
    fr_tensor_slices held = {0};
    bool is_there = false;
    fr_status status = fr_tensor_slices_held(c->program, rank, &held, err);

    if (status == FR_OK)
        status = fr_shard_reader_restore(reader, &held, state, err);
    if (status == FR_OK)
        status =
            fr_shard_reader_restore_own(reader, rank, c->shard.layout,
                                        &c->shard.own, state, &is_there, err);
    *lost_own = c->shard.own.n > 0 && !is_there;
    fr_vec_release(&held);
    return status;
}

static fr_status open_and_verify(const fr_checkpoints *c, const place *at,
                                 fr_shard_reader **out, fr_err *err)
{
    fr_err why = {0};

    FR_TRY(fr_shard_reader_open(at->dir, at->n_done, out, err));
    if (fr_manifest_check(fr_shard_reader_manifest(*out), c->program, &c->data,
                          &why) != FR_OK)
        return fr_fail(err, why.status, "%s/step-%lld: %s", at->dir,
                       (long long)at->n_done, why.text);
    return at->is_memory ? FR_OK : verify_share(c, *out, err);
}

static void fill_report(fr_status status, const fr_err *why, report *out)
{
    out->verdict = status == FR_OK      ? WHOLE
                   : status == FR_IO    ? DAMAGED
                   : status == FR_INPUT ? FOREIGN
                                        : FAILED;
    fr_text_copy_cut(out->text, sizeof out->text, why->text);
}

/* The worst report, with the reason of the first rank that had it. */
static fr_status gather_reports(const fr_checkpoints *c, const report *mine,
                                report *worst, fr_err *err)
{
    const int64_t world = c->transport->world;
    report *all;

    FR_TRY_CALLOC(all, (size_t)world, err);
    fr_status status =
        fr_transport_all_gather(c->transport, mine, sizeof *mine, all, err);
    *worst = all[0];
    for (int64_t i = 1; status == FR_OK && i < world; i++) {
        const bool lost_own = worst->lost_own || all[i].lost_own;
        if (all[i].verdict > worst->verdict)
            *worst = all[i];
        worst->lost_own = lost_own;
    }
    free(all);
    return status;
}

/* Tries one checkpoint on all ranks: the same report everywhere.  Nothing of it
 * is used before all of it is known to be whole. */
static fr_status try_one(const fr_checkpoints *c, const place *at,
                         const fr_state *state, report *worst, double **loss,
                         fr_err *err)
{
    fr_shard_reader *reader = NULL;
    report mine = {0};
    fr_err own = {0};
    fr_status status = open_and_verify(c, at, &reader, &own);

    if (status == FR_OK && c->transport->rank == 0)
        status = fr_losses_read(at->dir, fr_shard_reader_manifest(reader), loss,
                                &own);
    fill_report(status, &own, &mine);
    if (reader != NULL)
        mine.is_data_unsure = fr_data_identity_is_unsure(
            &fr_shard_reader_manifest(reader)->data, &c->data);
    status = gather_reports(c, &mine, worst, err);
    if (status == FR_OK && worst->verdict == WHOLE) {
        own.text[0] = '\0';
        fill_report(restore(c, reader, state, &mine.lost_own, &own), &own,
                    &mine);
        status = gather_reports(c, &mine, worst, err);
    }
    fr_shard_reader_close(reader);
    return status;
}

/* Everywhere the same; rank 0 says it. */
static void note_loaded(const fr_checkpoints *c, const report *found,
                        fr_buffer *notes)
{
    if (c->transport->rank == 0 && found->lost_own)
        fr_buffer_printf(notes, "the checkpoint is of another layout: what the "
                                "compressor left on each rank begins anew\n");
    if (c->transport->rank == 0 && found->is_data_unsure)
        fr_buffer_printf(
            notes,
            "%s is the manifest that the checkpoint was made with; "
            "whether its files are still the same is not known: "
            "an older forerun wrote it, or rank 0 does not see "
            "them all\n",
            c->program->job.data);
}

/* Everywhere the same. */
static fr_status try_replicas(const fr_checkpoints *c, int64_t n_done,
                              const fr_state *state, report *found,
                              double **loss, fr_err *err)
{
    char dir[FR_CHECKPOINT_PATH] = "";
    const place at = {dir, n_done, true};
    fr_tensor_slices held = {0};
    bool is_whole = false;
    fr_err why = {0};
    fr_status status = fr_transport_agree(
        c->transport,
        fr_tensor_slices_held(c->program, c->transport->rank, &held, err),
        false, err);

    *found = (report){.verdict = DAMAGED};
    fr_text_copy_cut(found->text, sizeof found->text,
                     "all copies of a part are lost");
    if (status == FR_OK) {
        const fr_status viewed =
            fr_replicas_view(c->replicas, n_done, &held, dir, &is_whole, &why);
        if (viewed == FR_IO || viewed == FR_INPUT)
            fill_report(FR_IO, &why, found);
        else if (viewed != FR_OK)
            status = fr_fail(err, viewed, "%s", why.text);
        else if (is_whole)
            status = try_one(c, &at, state, found, loss, err);
    }
    fr_replicas_drop_view(c->replicas);
    fr_vec_release(&held);
    return status;
}

/* Copies of a step below `below` that is not older than what is on the disk. */
static fr_status load_replicas(fr_checkpoints *c, const fr_state *state,
                               int64_t on_disk, int64_t *below, double **loss,
                               fr_buffer *notes, fr_err *err)
{
    report found = {0};
    int64_t step = 0;

    for (;;) {
        FR_TRY(fr_replicas_newest(c->replicas, *below, &step, err));
        if (step == 0 || step < on_disk)
            return FR_OK;
        FR_TRY(try_replicas(c, step, state, &found, loss, err));
        if (found.verdict == FAILED)
            return fr_fail(err, FR_FAILURE, "%s", found.text);
        c->is_from_memory = found.verdict == WHOLE;
        if (c->is_from_memory) {
            note_loaded(c, &found, notes);
            c->loaded = step;
            return FR_OK;
        }
        free(*loss);
        *loss = NULL;
        *below = step;
        if (c->transport->rank == 0)
            fr_buffer_printf(
                notes, "copies in memory of step %lld are passed over: %s\n",
                (long long)step, found.text);
    }
}

static fr_status load_newest(fr_checkpoints *c, const fr_state *state,
                             double **loss, fr_buffer *notes, fr_err *err)
{
    fr_transport *transport = c->transport;
    int64_t at = 0, below = INT64_MAX;
    bool has_damaged = false;
    report found = {0};

    *loss = NULL;
    if (transport->rank == 0)
        at = fr_checkpoint_newest(c->dir, notes);
    for (;;) {
        FR_TRY(fr_transport_share(transport, &at, sizeof at, err));
        if (c->replicas != NULL)
            FR_TRY(load_replicas(c, state, at, &below, loss, notes, err));
        if (at == 0 || c->is_from_memory)
            break;
        const place on_disk = {c->dir, at, false};
        FR_TRY(try_one(c, &on_disk, state, &found, loss, err));
        if (found.verdict == WHOLE) {
            note_loaded(c, &found, notes);
            c->loaded = at;
            return FR_OK;
        }
        free(*loss);
        *loss = NULL;
        if (found.verdict != DAMAGED)
            return fr_fail(err,
                           found.verdict == FOREIGN ? FR_INPUT : FR_FAILURE,
                           "%s", found.text);
        if (transport->rank == 0) {
            has_damaged |= fr_checkpoint_was_finished(c->dir, at);
            fr_buffer_printf(notes, "step-%lld is passed over: %s\n",
                             (long long)at, found.text);
            at = fr_checkpoint_older(c->dir, at);
        }
    }
    if (c->is_from_memory)
        return FR_OK;
    FR_TRY(
        fr_transport_share(transport, &has_damaged, sizeof has_damaged, err));
    if (has_damaged)
        return fr_fail(err, FR_INPUT,
                       "%s: no checkpoint in it is whole; the last: %s", c->dir,
                       found.text);
    if (transport->rank == 0)
        fr_buffer_printf(notes, "%s holds no checkpoint: starting at step 0\n",
                         c->dir);
    return FR_OK;
}

fr_status fr_checkpoints_load(fr_checkpoints *c, const fr_state *state,
                              int64_t *n_steps_done, double **loss,
                              fr_buffer *notes, fr_err *err)
{
    FR_TRY(load_newest(c, state, loss, notes, err));
    *n_steps_done = c->loaded;
    return c->replicas == NULL
               ? FR_OK
               : fr_replicas_keep_only(c->replicas,
                                       c->is_from_memory ? c->loaded : 0, err);
}
