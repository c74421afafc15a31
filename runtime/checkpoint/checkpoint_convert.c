/* checkpoint_convert.c: see checkpoint_convert.h. */
#include "runtime/checkpoint/checkpoint_convert.h"

#include "core/system/fileio.h"
#include "runtime/checkpoint/checkpoint_dir.h"
#include "runtime/checkpoint/checkpoint_state.h"

#include <stdio.h>
#include <stdlib.h>

fr_status fr_checkpoint_verify(const fr_shard_reader *reader, fr_err *err)
{
    const int64_t n_files = fr_shard_reader_manifest(reader)->n_files;

    for (int64_t i = 0; i < n_files; i++)
        FR_TRY(fr_shard_reader_verify(reader, i, err));
    return FR_OK;
}

static fr_status write_shard(fr_shard_reader *reader, const fr_shard *shard,
                             int64_t rank, const char *path,
                             uint64_t slab_bytes, uint64_t *hash, fr_err *err)
{
    unsigned char *slab = calloc(slab_bytes + 1, 1);
    const fr_state state = fr_state_of_memory(slab);
    bool is_there = false;

    if (slab == NULL)
        return fr_fail_no_memory(err);
    fr_status status =
        fr_shard_reader_restore(reader, &shard->slices, &state, err);
    if (status == FR_OK)
        status = fr_shard_reader_restore_own(
            reader, rank, shard->layout, &shard->own, &state, &is_there, err);
    if (status == FR_OK)
        status = fr_shard_write(shard, path, &state, hash, err);
    free(slab);
    return status;
}

static fr_status convert_rank(fr_shard_reader *reader,
                              const fr_program *program, int64_t rank,
                              const char *dir, fr_manifest_file *out,
                              fr_err *err)
{
    const int64_t n_done = fr_shard_reader_manifest(reader)->n_steps_done;
    const fr_rank_program *rank_program = fr_program_of_rank(program, rank);
    char path[FR_CHECKPOINT_PATH];
    fr_shard shard = {0};
    fr_status status = fr_shard_plan(program, rank, &shard, err);

    fr_shard_path(dir, n_done, rank, path);
    if (status == FR_OK)
        status =
            write_shard(reader, &shard, rank, path,
                        rank_program->slab_bytes + rank_program->host_bytes,
                        &out->hash, err);
    out->n_bytes = fr_shard_bytes(&shard);
    fr_shard_release(&shard);
    return status;
}

static fr_status prepare(const fr_manifest *from, const fr_program *program,
                         const char *dir, fr_err *err)
{
    char path[FR_CHECKPOINT_PATH];

    FR_TRY(fr_manifest_check(from, program, &from->data, err));
    const int64_t there = fr_checkpoint_older(dir, INT64_MAX);
    if (there > 0)
        return fr_fail(err, FR_INPUT,
                       "%s: there is a checkpoint of step %lld in it; give "
                       "another directory",
                       dir, (long long)there);
    (void)snprintf(path, sizeof path, "%s/step-%lld", dir,
                   (long long)from->n_steps_done);
    return fr_dir_create(path, err);
}

fr_status fr_checkpoint_convert(fr_shard_reader *reader, const char *source_dir,
                                const fr_program *program, const char *dir,
                                fr_err *err)
{
    const fr_manifest *from = fr_shard_reader_manifest(reader);
    const int64_t world = fr_plan_world(&program->plan);
    fr_manifest manifest = {.n_steps_done = from->n_steps_done,
                            .data = from->data,
                            .n_files = world};
    double *loss = NULL;

    FR_TRY(prepare(from, program, dir, err));
    FR_TRY_CALLOC(manifest.files, (size_t)world, err);
    fr_status status = fr_losses_read(source_dir, from, &loss, err);
    for (int64_t rank = 0; status == FR_OK && rank < world; rank++)
        status = convert_rank(reader, program, rank, dir, &manifest.files[rank],
                              err);
    if (status == FR_OK)
        status = fr_checkpoint_publish(dir, program, &manifest, loss, err);
    free(loss);
    free(manifest.files);
    return status;
}
