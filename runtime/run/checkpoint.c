/* checkpoint.c: one file per rank, a manifest, and a name of the newest. */
#include "runtime/run/checkpoint.h"

#include "core/base/fileio.h"
#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/document/json.h"
#include "plan/decide/grid.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 1024
#define KEPT 2 /* newest checkpoints that stay */

static const char magic[8] = {'F', 'R', 'C', 'K', 'P', 'T', '1', '\n'};

typedef struct head {
    char magic[8];
    uint64_t fingerprint; /* of plan, model, job and layout */
    uint64_t n_steps_done, n_bytes;
} head;

static void append_job(fr_buffer *text, const fr_job *job)
{
    fr_buffer_printf(text, " %lld %lld %llu %d %.17g %.17g %.17g %.17g %.17g",
                     (long long)job->global_batch, (long long)job->seq,
                     (unsigned long long)job->seed, (int)job->optimizer,
                     job->lr, job->beta1, job->beta2, job->optimizer_eps,
                     job->weight_decay);
    fr_buffer_printf(text, " %.17g %.17g %d %lld %.17g %d %lld %s",
                     job->trust_coefficient, job->clip_norm,
                     (int)job->lr_schedule, (long long)job->warmup_steps,
                     job->lr_min_frac, (int)job->lr_rule,
                     (long long)job->lr_base_batch, job->data);
}

/*
 * The plan by its stable description; the slab by its blocks and tensors.
 * The number of steps may change: training longer is what resuming is for.
 */
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
    append_job(&text, &program->job);
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

static fr_status save_rank(const char *path, const fr_program *program,
                           int64_t rank, const fr_state *state, head *first,
                           uint64_t *hash, fr_err *err)
{
    const fr_rank_program *rank_program = fr_program_of_rank(program, rank);
    char temporary[PATH_BYTES + 64];

    memcpy(first->magic, magic, sizeof magic);
    for (uint32_t i = 0; i < rank_program->n_blocks; i++)
        first->n_bytes += is_kept(&rank_program->blocks[i])
                              ? rank_program->blocks[i].n_bytes
                              : 0;
    FR_TRY(fingerprint(program, rank, &first->fingerprint, err));
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

static fr_status write_manifest(const char *step_dir, int64_t n_steps_done,
                                const uint64_t *hashes, int64_t world,
                                fr_err *err)
{
    char path[PATH_BYTES + 32], text[17];
    fr_buffer buffer;
    fr_json_writer w;

    fr_buffer_init(&buffer);
    fr_json_writer_init(&w, &buffer);
    fr_json_begin_object(&w);
    fr_json_put_string(&w, "schema", "forerun.checkpoint/1");
    fr_json_put_i64(&w, "n_steps_done", n_steps_done);
    fr_json_key(&w, "rank_hashes");
    fr_json_begin_array(&w);
    for (int64_t i = 0; i < world; i++) {
        fr_hash_format(hashes[i], text);
        fr_json_string(&w, text);
    }
    fr_json_end_array(&w);
    fr_json_end_object(&w);
    (void)snprintf(path, sizeof path, "%s/manifest.json", step_dir);
    return fr_file_write_buffer(path, &buffer, err);
}

static void remove_step(const char *dir, int64_t n_steps_done)
{
    char step_dir[PATH_BYTES], path[PATH_BYTES + 300];

    (void)snprintf(step_dir, sizeof step_dir, "%s/step-%lld", dir,
                   (long long)n_steps_done);
    DIR *list = opendir(step_dir);
    if (list == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;) {
        if (!fr_text_starts(entry->d_name, "rank-") &&
            strcmp(entry->d_name, "manifest.json") != 0)
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", step_dir, entry->d_name);
        (void)remove(path);
    }
    (void)closedir(list);
    (void)rmdir(step_dir);
}

/* A checkpoint that cannot be removed only takes space, so failures are
 * ignored. */
static void prune(const char *dir, int64_t newest_step)
{
    int64_t kept[KEPT] = {newest_step, -1};
    DIR *list = opendir(dir);

    if (list == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;) {
        if (!fr_text_starts(entry->d_name, "step-"))
            continue;
        int64_t step = strtoll(entry->d_name + 5, NULL, 10);
        if (step >= newest_step)
            continue;
        int64_t loser = step < kept[1] ? step : kept[1];
        kept[1] = step < kept[1] ? kept[1] : step;
        if (loser >= 0)
            remove_step(dir, loser);
    }
    (void)closedir(list);
}

static fr_status publish(const char *dir, const char *step_dir,
                         int64_t n_steps_done, const uint64_t *hashes,
                         int64_t world, fr_err *err)
{
    char path[PATH_BYTES], text[64];

    FR_TRY(write_manifest(step_dir, n_steps_done, hashes, world, err));
    int n = snprintf(text, sizeof text, "step-%lld\n", (long long)n_steps_done);
    (void)snprintf(path, sizeof path, "%s/latest", dir);
    FR_TRY(fr_file_write(path, text, (size_t)n, err));
    prune(dir, n_steps_done);
    return FR_OK;
}

fr_status fr_checkpoint_save(const char *dir, const fr_program *program,
                             fr_transport *transport, const fr_state *state,
                             int64_t n_steps_done, fr_err *err)
{
    head first = {.n_steps_done = (uint64_t)n_steps_done};
    char step_dir[PATH_BYTES], path[PATH_BYTES + 32];
    uint64_t hash = 0;

    int n = snprintf(step_dir, sizeof step_dir, "%s/step-%lld", dir,
                     (long long)n_steps_done);
    if (n < 0 || (size_t)n >= sizeof step_dir)
        return fr_fail(err, FR_INPUT, "%s: the path is too long", dir);
    FR_TRY(fr_dir_create(step_dir, err));
    (void)snprintf(path, sizeof path, "%s/rank-%lld", step_dir,
                   (long long)transport->rank);
    FR_TRY(
        save_rank(path, program, transport->rank, state, &first, &hash, err));
    uint64_t *hashes;
    FR_TRY_CALLOC(hashes, (size_t)transport->world, err);
    fr_status status =
        fr_transport_all_gather(transport, &hash, sizeof hash, hashes, err);
    if (status == FR_OK && transport->rank == 0)
        status =
            publish(dir, step_dir, n_steps_done, hashes, transport->world, err);
    free(hashes);
    return status;
}

static fr_status read_manifest(const char *dir, const char *name, int64_t world,
                               int64_t *n_steps_done, uint64_t *hashes,
                               fr_err *err)
{
    char path[PATH_BYTES];
    fr_json *json = NULL;
    const fr_json_value *list = NULL;
    const char *text = NULL;

    (void)snprintf(path, sizeof path, "%s/%s/manifest.json", dir, name);
    FR_TRY(fr_json_load(path, &json, err));
    const fr_json_value *root = fr_json_root(json);
    fr_status status = fr_json_get_i64(root, "n_steps_done", n_steps_done, err);
    if (status == FR_OK)
        status = fr_json_get_array(root, "rank_hashes", &list, err);
    if (status == FR_OK && fr_json_n(list) != (size_t)world)
        status = fr_json_fail(list, err,
                              "the checkpoint has %zu ranks, the plan %lld",
                              fr_json_n(list), (long long)world);
    for (size_t i = 0; status == FR_OK && i < (size_t)world; i++) {
        status = fr_json_as_string(fr_json_at(list, i), &text, err);
        if (status == FR_OK && !fr_hash_parse(text, &hashes[i]))
            status = fr_json_fail(list, err, "'%s' is not a hash", text);
    }
    fr_json_destroy(json);
    return status;
}

/* Rank 0 reads the manifest of the newest checkpoint. */
static fr_status find_newest(const char *dir, int64_t world,
                             int64_t *n_steps_done, uint64_t *hashes,
                             fr_err *err)
{
    char path[PATH_BYTES], *name = NULL;

    *n_steps_done = 0;
    int n = snprintf(path, sizeof path, "%s/latest", dir);
    if (n < 0 || (size_t)n >= sizeof path - 64)
        return fr_fail(err, FR_INPUT, "%s: the path is too long", dir);
    if (!fr_file_exists(path))
        return FR_OK;
    FR_TRY(fr_file_read(path, 64, &name, NULL, err));
    const char *trimmed = fr_text_trim(name);
    fr_status status =
        fr_text_starts(trimmed, "step-") && strchr(trimmed, '/') == NULL
            ? read_manifest(dir, trimmed, world, n_steps_done, hashes, err)
            : fr_fail(err, FR_INPUT, "%s: no name of a checkpoint in it", path);
    free(name);
    return status;
}

static fr_status read_blocks(const char *path, FILE *file,
                             const fr_rank_program *rank_program,
                             const fr_state *state, uint64_t *hash, fr_err *err)
{
    unsigned char *bytes = malloc(FR_STATE_PIECE_BYTES);
    piece p = {.rank_program = rank_program};
    fr_status status = bytes != NULL ? FR_OK : fr_fail_no_memory(err);

    while (status == FR_OK && next_piece(&p)) {
        if (fread(bytes, 1, p.n_bytes, file) != p.n_bytes) {
            status = fr_fail(err, FR_INPUT, "%s: cut off", path);
            break;
        }
        *hash = fr_hash_bytes(bytes, p.n_bytes, *hash);
        status =
            state->store(state->context, p.offset_bytes, p.n_bytes, bytes, err);
    }
    free(bytes);
    return status;
}

static fr_status load_rank(const char *path, const fr_program *program,
                           int64_t rank, const fr_state *state,
                           uint64_t expected, fr_err *err)
{
    const fr_rank_program *rank_program = fr_program_of_rank(program, rank);
    head first;
    uint64_t own = 0;

    FR_TRY(fingerprint(program, rank, &own, err));
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return fail_io(path, err);
    fr_status status = FR_OK;
    if (fread(&first, sizeof first, 1, file) != 1 ||
        memcmp(first.magic, magic, sizeof magic) != 0)
        status = fr_fail(err, FR_INPUT, "%s: not a checkpoint", path);
    else if (first.fingerprint != own)
        status = fr_fail(err, FR_INPUT,
                         "%s: made by another plan, model or job; resume "
                         "with that one, or start anew in another directory",
                         path);
    uint64_t hash = fr_hash_bytes(&first, sizeof first, 0);
    if (status == FR_OK)
        status = read_blocks(path, file, rank_program, state, &hash, err);
    if (status == FR_OK && hash != expected)
        status = fr_fail(err, FR_INPUT,
                         "%s: damaged: its hash is not the manifest's", path);
    (void)fclose(file);
    return status;
}

fr_status fr_checkpoint_load(const char *dir, const fr_program *program,
                             fr_transport *transport, const fr_state *state,
                             int64_t *n_steps_done, fr_err *err)
{
    /* How many steps are done, then a hash for each rank. */
    size_t n_bytes = ((size_t)transport->world + 1) * sizeof(uint64_t);
    uint64_t *newest = calloc(1, n_bytes);
    char path[PATH_BYTES];
    int64_t n_done = 0;

    if (newest == NULL)
        return fr_fail_no_memory(err);
    /* Only rank 0 need see the directory's own files. */
    fr_status status = FR_OK;
    if (transport->rank == 0)
        status = find_newest(dir, transport->world, &n_done, newest + 1, err);
    newest[0] = (uint64_t)n_done;
    status = fr_transport_agree(transport, status, false, err);
    if (status == FR_OK)
        status = fr_transport_share(transport, newest, n_bytes, err);
    n_done = (int64_t)newest[0];
    if (status == FR_OK && n_done > 0) {
        (void)snprintf(path, sizeof path, "%s/step-%lld/rank-%lld", dir,
                       (long long)n_done, (long long)transport->rank);
        status = load_rank(path, program, transport->rank, state,
                           newest[1 + transport->rank], err);
    }
    if (status == FR_OK)
        *n_steps_done = n_done;
    free(newest);
    return status;
}
