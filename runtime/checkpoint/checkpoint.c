/* checkpoint.c: what of a run is kept, and one file of it per rank. */
#include "runtime/checkpoint/checkpoint.h"

#include "core/base/fileio.h"
#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/document/json.h"
#include "plan/decide/grid.h"
#include "runtime/checkpoint/checkpoint_dir.h"
#include "runtime/data/data.h"
#include "spec/model/model_json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char magic[8] = {'F', 'R', 'C', 'K', 'P', 'T', '2', '\n'};

typedef struct head {
    char magic[8];
    uint64_t fingerprint; /* of plan, model, job, data and layout */
    uint64_t n_steps_done, n_bytes;
} head;

struct fr_checkpoints {
    char dir[FR_CHECKPOINT_PATH - 64]; /* names are appended to it */
    const fr_program *program;
    fr_transport *transport;
    uint64_t identity; /* of model and data */
};

static void append_job(fr_buffer *text, const fr_job *job)
{
    fr_buffer_printf(text, " %lld %lld %llu %d %.17g %.17g %.17g %.17g %.17g",
                     (long long)job->global_batch, (long long)job->seq,
                     (unsigned long long)job->seed, (int)job->optimizer,
                     job->lr, job->beta1, job->beta2, job->optimizer_eps,
                     job->weight_decay);
    fr_buffer_printf(
        text, " %.17g %.17g %d %lld %.17g %d %lld", job->trust_coefficient,
        job->clip_norm, (int)job->lr_schedule, (long long)job->warmup_steps,
        job->lr_min_frac, (int)job->lr_rule, (long long)job->lr_base_batch);
}

/*
 * The plan by its stable description; the slab by its blocks and tensors.
 * The number of steps may change: training longer is what resuming is for.
 */
static fr_status fingerprint(const fr_checkpoints *c, uint64_t *out,
                             fr_err *err)
{
    const fr_program *program = c->program;
    int64_t rank = c->transport->rank;
    const fr_rank_program *rank_program = fr_program_of_rank(program, rank);
    fr_coord coord = fr_plan_coord(&program->plan, rank);
    char plan[512];
    fr_buffer text;

    fr_buffer_init(&text);
    fr_buffer_puts(&text, fr_plan_describe(&program->plan, plan, sizeof plan));
    fr_buffer_printf(&text, " %d %d %d %d", coord.tp, coord.cp, coord.dp,
                     coord.pp);
    append_job(&text, &program->job);
    fr_buffer_printf(&text, " %llx", (unsigned long long)c->identity);
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

static bool is_kept(const fr_block *block)
{
    return block->is_persistent && block->kind != FR_MEMORY_GRADIENTS;
}

static fr_status fail_io(const char *path, fr_err *err)
{
    return fr_fail(err, FR_IO, "%s: %s", path, strerror(errno));
}

/* The next piece of a block that is kept. */
typedef struct piece {
    const fr_rank_program *rank_program;
    uint32_t i_block;
    uint64_t at; /* within the block */
    uint64_t offset_bytes, n_bytes;
} piece;

static bool next_piece(piece *p)
{
    p->at += p->n_bytes;
    for (; p->i_block < p->rank_program->n_blocks; p->i_block++, p->at = 0) {
        const fr_block *block = &p->rank_program->blocks[p->i_block];
        uint64_t n_left = block->n_bytes - p->at;
        if (!is_kept(block) || n_left == 0)
            continue;
        p->offset_bytes = block->offset_bytes + p->at;
        p->n_bytes =
            n_left < FR_STATE_PIECE_BYTES ? n_left : FR_STATE_PIECE_BYTES;
        return true;
    }
    return false;
}

static fr_status write_all(const char *path, FILE *file,
                           const fr_rank_program *rank_program,
                           const fr_state *state, const head *first,
                           uint64_t *hash, fr_err *err)
{
    piece p = {.rank_program = rank_program};

    *hash = fr_hash_bytes(first, sizeof *first, 0);
    if (fwrite(first, sizeof *first, 1, file) != 1)
        return fail_io(path, err);
    while (next_piece(&p)) {
        const void *bytes = NULL;
        FR_TRY(state->view(state->context, p.offset_bytes, p.n_bytes, &bytes,
                           err));
        *hash = fr_hash_bytes(bytes, p.n_bytes, *hash);
        if (fwrite(bytes, 1, p.n_bytes, file) != p.n_bytes)
            return fail_io(path, err);
    }
    return fflush(file) == 0 && fsync(fileno(file)) == 0 ? FR_OK
                                                         : fail_io(path, err);
}

static fr_status save_rank(const fr_checkpoints *c, const char *path,
                           const fr_state *state, head *first, uint64_t *hash,
                           fr_err *err)
{
    const fr_rank_program *rank_program =
        fr_program_of_rank(c->program, c->transport->rank);
    char temporary[FR_CHECKPOINT_PATH + 64];

    memcpy(first->magic, magic, sizeof magic);
    for (uint32_t i = 0; i < rank_program->n_blocks; i++)
        first->n_bytes += is_kept(&rank_program->blocks[i])
                              ? rank_program->blocks[i].n_bytes
                              : 0;
    FR_TRY(fingerprint(c, &first->fingerprint, err));
    (void)snprintf(temporary, sizeof temporary, "%s.tmp", path);
    FILE *file = fopen(temporary, "wb");
    if (file == NULL)
        return fail_io(temporary, err);
    fr_status status =
        write_all(temporary, file, rank_program, state, first, hash, err);
    if (fclose(file) != 0 && status == FR_OK)
        status = fail_io(temporary, err);
    if (status == FR_OK && rename(temporary, path) != 0)
        status = fail_io(temporary, err);
    if (status != FR_OK)
        (void)remove(temporary);
    return status;
}

/* ---- opening ------------------------------------------------------------ */

/* All that training depends on and that no description of the plan has. */
static fr_status identify(const fr_program *program, uint64_t *out, fr_err *err)
{
    fr_buffer text;
    fr_json_writer json;
    uint64_t data = 0;

    FR_TRY(fr_data_identity(program->job.data, &data, err));
    fr_buffer_init(&text);
    fr_json_writer_init(&json, &text);
    fr_model_to_json(&program->model, &json);
    fr_status status = fr_buffer_check(&text, err);
    if (status == FR_OK)
        *out = fr_hash_bytes(text.data, text.n, data);
    fr_buffer_release(&text);
    return status;
}

/* What rank 0 sees to before any step. */
static fr_status prepare(fr_checkpoints *c, bool is_resumed, fr_err *err)
{
    char path[FR_CHECKPOINT_PATH];
    int64_t there;

    FR_TRY(fr_dir_create(c->dir, err));
    (void)snprintf(path, sizeof path, "%s/writable", c->dir);
    FR_TRY(fr_file_write(path, "", 0, err));
    (void)remove(path);
    there = fr_checkpoint_older(c->dir, INT64_MAX);
    if (!is_resumed && there > 0)
        return fr_fail(err, FR_INPUT,
                       "%s: there is a checkpoint of step %lld in it; give "
                       "--resume to go on from it, or another directory",
                       c->dir, (long long)there);
    return identify(c->program, &c->identity, err);
}

fr_status fr_checkpoints_open(const char *dir, const fr_program *program,
                              fr_transport *transport, bool is_resumed,
                              fr_checkpoints **out, fr_err *err)
{
    fr_checkpoints *c;
    fr_status status = FR_OK;

    FR_TRY_CALLOC(c, 1, err);
    c->program = program;
    c->transport = transport;
    if (!fr_text_copy(c->dir, sizeof c->dir, dir))
        status = fr_fail(err, FR_INPUT, "%s: the path is too long", dir);
    if (status == FR_OK && transport->rank == 0)
        status = prepare(c, is_resumed, err);
    status = fr_transport_agree(transport, status, false, err);
    if (status == FR_OK)
        status = fr_transport_share(transport, &c->identity, sizeof c->identity,
                                    err);
    if (status != FR_OK) {
        fr_checkpoints_close(c);
        return status;
    }
    *out = c;
    return FR_OK;
}

void fr_checkpoints_close(fr_checkpoints *checkpoints)
{
    free(checkpoints);
}

/* ---- loading ------------------------------------------------------------ */

/* How it went with one checkpoint; the worst of all ranks counts. */
typedef enum verdict { WHOLE, DAMAGED, FOREIGN, FAILED } verdict;

/* state NULL: they are looked at alone. */
static fr_status read_blocks(const char *path, FILE *file,
                             const fr_rank_program *rank_program,
                             const fr_state *state, uint64_t *hash, fr_err *err)
{
    unsigned char *bytes = malloc(FR_STATE_PIECE_BYTES);
    piece p = {.rank_program = rank_program};
    fr_status status = bytes != NULL ? FR_OK : fr_fail_no_memory(err);

    while (status == FR_OK && next_piece(&p)) {
        if (fread(bytes, 1, p.n_bytes, file) != p.n_bytes) {
            status = fr_fail(err, FR_IO, "%s: cut off", path);
            break;
        }
        *hash = fr_hash_bytes(bytes, p.n_bytes, *hash);
        if (state != NULL)
            status = state->store(state->context, p.offset_bytes, p.n_bytes,
                                  bytes, err);
    }
    free(bytes);
    return status;
}

static fr_status load_rank(const fr_checkpoints *c, const char *path,
                           const fr_state *state, uint64_t expected,
                           fr_err *err)
{
    const fr_rank_program *rank_program =
        fr_program_of_rank(c->program, c->transport->rank);
    head first;
    uint64_t own = 0;

    FR_TRY(fingerprint(c, &own, err));
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return fail_io(path, err);
    fr_status status = FR_OK;
    if (fread(&first, sizeof first, 1, file) != 1 ||
        memcmp(first.magic, magic, sizeof magic) != 0)
        status = fr_fail(err, FR_IO, "%s: no checkpoint of this version", path);
    else if (first.fingerprint != own)
        status = fr_fail(err, FR_INPUT,
                         "%s: made by another plan, model, job or data; resume "
                         "with those, or start anew in another directory",
                         path);
    uint64_t hash = fr_hash_bytes(&first, sizeof first, 0);
    if (status == FR_OK)
        status = read_blocks(path, file, rank_program, state, &hash, err);
    if (status == FR_OK && hash != expected)
        status = fr_fail(err, FR_IO,
                         "%s: damaged: its hash is not the manifest's", path);
    (void)fclose(file);
    return status;
}

/* Tries one checkpoint on all ranks: the same verdict everywhere, with the
 * reason of the first rank that had it. */
static fr_status try_one(const fr_checkpoints *c, const fr_state *state,
                         int64_t n_done, verdict *out, fr_err *why, fr_err *err)
{
    fr_transport *transport = c->transport;
    struct report {
        int32_t verdict;
        char text[508];
    } mine = {WHOLE, ""}, *all = NULL;
    char path[FR_CHECKPOINT_PATH];
    fr_err own = {0};
    uint64_t *hashes;
    size_t n_bytes = (size_t)transport->world * sizeof *hashes;
    fr_status status = FR_OK;

    FR_TRY_CALLOC(hashes, (size_t)transport->world, err);
    all = calloc((size_t)transport->world, sizeof *all);
    if (all == NULL) {
        free(hashes);
        return fr_fail_no_memory(err);
    }
    if (transport->rank == 0)
        status = fr_checkpoint_read_manifest(c->dir, n_done, transport->world,
                                             hashes, &own);
    /* Only rank 0 need see the directory's own files. */
    fr_status shared = fr_transport_share(transport, hashes, n_bytes, err);
    if (shared == FR_OK && status == FR_OK) {
        (void)snprintf(path, sizeof path, "%s/step-%lld/rank-%lld", c->dir,
                       (long long)n_done, (long long)transport->rank);
        status = load_rank(c, path, state, hashes[transport->rank], &own);
    }
    mine.verdict = status == FR_OK      ? WHOLE
                   : status == FR_IO    ? DAMAGED
                   : status == FR_INPUT ? FOREIGN
                                        : FAILED;
    fr_text_copy_cut(mine.text, sizeof mine.text, own.text);
    if (shared == FR_OK)
        shared =
            fr_transport_all_gather(transport, &mine, sizeof mine, all, err);
    *out = WHOLE;
    for (int64_t i = 0; shared == FR_OK && i < transport->world; i++)
        if (all[i].verdict > (int32_t)*out) {
            *out = (verdict)all[i].verdict;
            fr_err_write(why, FR_FAILURE, "%s", all[i].text);
        }
    free(all);
    free(hashes);
    return shared;
}

fr_status fr_checkpoints_load(fr_checkpoints *c, const fr_state *state,
                              int64_t *n_steps_done, fr_buffer *notes,
                              fr_err *err)
{
    fr_transport *transport = c->transport;
    int64_t at = 0;
    fr_err why = {0};
    bool has_damaged = false;

    if (transport->rank == 0)
        at = fr_checkpoint_newest(c->dir, notes);
    for (;;) {
        verdict found;
        FR_TRY(fr_transport_share(transport, &at, sizeof at, err));
        if (at == 0)
            break;
        FR_TRY(try_one(c, state, at, &found, &why, err));
        if (found == WHOLE) {
            *n_steps_done = at;
            return FR_OK;
        }
        if (found != DAMAGED)
            return fr_fail(err, found == FOREIGN ? FR_INPUT : FR_FAILURE, "%s",
                           why.text);
        has_damaged = true;
        if (transport->rank == 0) {
            fr_buffer_printf(notes, "step-%lld is passed over: %s\n",
                             (long long)at, why.text);
            at = fr_checkpoint_older(c->dir, at);
        }
    }
    if (has_damaged)
        return fr_fail(err, FR_INPUT,
                       "%s: no checkpoint in it is whole; the last: %s", c->dir,
                       why.text);
    if (transport->rank == 0)
        fr_buffer_printf(notes, "%s holds no checkpoint: starting at step 0\n",
                         c->dir);
    *n_steps_done = 0;
    return FR_OK;
}

/* ---- saving ------------------------------------------------------------- */

/*
 * The newest stays, and the newest before it that is whole: a damaged one is
 * nothing to fall back to.  They are looked at where there is one to remove.
 * Where none is whole all stay.
 */
static fr_status prune(const fr_checkpoints *c, int64_t newest, fr_err *err)
{
    const bool is_first = c->transport->rank == 0;
    fr_err why = {0};
    verdict found = DAMAGED;
    int64_t kept = is_first ? fr_checkpoint_older(c->dir, newest) : 0;

    if (kept > 0 && fr_checkpoint_older(c->dir, kept) == 0)
        kept = 0;
    for (;;) {
        FR_TRY(fr_transport_share(c->transport, &kept, sizeof kept, err));
        if (kept == 0)
            return FR_OK;
        FR_TRY(try_one(c, NULL, kept, &found, &why, err));
        if (found == WHOLE)
            break;
        if (is_first)
            kept = fr_checkpoint_older(c->dir, kept);
    }
    if (is_first)
        fr_checkpoint_prune(c->dir, newest, kept);
    return FR_OK;
}

fr_status fr_checkpoints_save(fr_checkpoints *c, const fr_state *state,
                              int64_t n_steps_done, fr_err *err)
{
    head first = {.n_steps_done = (uint64_t)n_steps_done};
    char path[FR_CHECKPOINT_PATH];
    int64_t world = c->transport->world;
    uint64_t hash = 0, *hashes;

    (void)snprintf(path, sizeof path, "%s/step-%lld", c->dir,
                   (long long)n_steps_done);
    FR_TRY(fr_dir_create(path, err));
    (void)snprintf(path, sizeof path, "%s/step-%lld/rank-%lld", c->dir,
                   (long long)n_steps_done, (long long)c->transport->rank);
    FR_TRY(save_rank(c, path, state, &first, &hash, err));
    FR_TRY_CALLOC(hashes, (size_t)world, err);
    fr_status status =
        fr_transport_all_gather(c->transport, &hash, sizeof hash, hashes, err);
    if (status == FR_OK && c->transport->rank == 0)
        status =
            fr_checkpoint_publish(c->dir, n_steps_done, hashes, world, err);
    free(hashes);
    return status == FR_OK ? prune(c, n_steps_done, err) : status;
}
