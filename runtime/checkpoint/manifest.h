/*
 * manifest.h: what a checkpoint is of: step-N/manifest.json, written last.
 *
 * It has the plan, the model and the job whole, so that who finds a checkpoint
 * can go on from it, the order of the data, the names and shapes of all
 * tensors, and size and hash of each file.
 */
#ifndef FR_RUNTIME_CHECKPOINT_MANIFEST_H
#define FR_RUNTIME_CHECKPOINT_MANIFEST_H

#include "program/ir/program.h"
#include "runtime/checkpoint/state.h"
#include "runtime/data/data_identity.h"

typedef struct fr_manifest_file {
    uint64_t n_bytes, hash;
} fr_manifest_file;

typedef struct fr_manifest {
    int64_t n_steps_done;
    fr_plan plan;
    fr_job job;
    fr_model model; /* owned */
    fr_data_identity data;
    int64_t n_files;         /* of rank 0, 1 ... */
    fr_manifest_file *files; /* owned */
    int64_t n_losses;        /* of all steps so far, in the file "losses"; 0:
                                there is no such file */
    uint64_t losses_hash;
} fr_manifest;

void fr_manifest_release(fr_manifest *manifest);

/* FR_IO: it cannot be read or is damaged; FR_INPUT: of another version. */
FR_CHECKED fr_status fr_manifest_read(const char *dir, int64_t n_steps_done,
                                      fr_manifest *out, fr_err *err);

/* Plan, model and job are the program's. */
FR_CHECKED fr_status fr_manifest_write(const char *dir,
                                       const fr_program *program,
                                       const fr_manifest *manifest,
                                       fr_err *err);

/* Can the program go on from it?  FR_INPUT says what is another: model, job or
 * data.  The plan may be any of the same precision, and the number of steps. */
FR_CHECKED fr_status fr_manifest_check(const fr_manifest *manifest,
                                       const fr_program *program,
                                       const fr_data_identity *data,
                                       fr_err *err);

/* Losses of all steps so far, to be freed; *out NULL where there are none. */
FR_CHECKED fr_status fr_losses_read(const char *dir,
                                    const fr_manifest *manifest, double **out,
                                    fr_err *err);

/* Writes them; a manifest has their number and their hash. */
FR_CHECKED fr_status fr_losses_write(const char *dir, int64_t n_steps_done,
                                     const double *loss, fr_err *err);
uint64_t fr_losses_hash(const double *loss, int64_t n);

/* "DIR/step-N/rank-I"; returns `path`. */
char *fr_shard_path(const char *dir, int64_t n_steps_done, int64_t i_file,
                    char path[FR_CHECKPOINT_PATH]);

#endif
