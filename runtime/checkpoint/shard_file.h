/*
 * shard_file.h: a rank's file of a checkpoint: an index of slices of global
 * tensors (tensor_slices.h), their elements, and what belongs to the layout
 * alone.
 *
 *     "FRCKPT3\n", layout, slices, bytes of the layout's own, bytes of the file
 *     (uint64 each), the slices with their places in the file, their elements
 *     row after row, the layout's own
 *
 * All is little-endian, as it lies in memory.  The manifest has its hash, which
 * is that of its blocks of FR_STATE_PIECE_BYTES.
 */
#ifndef FR_RUNTIME_CHECKPOINT_SHARD_FILE_H
#define FR_RUNTIME_CHECKPOINT_SHARD_FILE_H

#include "runtime/checkpoint/state.h"
#include "runtime/checkpoint/tensor_slices.h"

/* The parts that a rank writes, and their places in its slab. */
typedef struct fr_shard {
    uint64_t layout; /* a hash: who has another cannot use `own` */
    fr_tensor_slices slices;
    fr_byte_ranges own;
} fr_shard;

void fr_shard_release(fr_shard *shard);

/* Returns the bytes of the whole file. */
uint64_t fr_shard_bytes(const fr_shard *shard);

/*
 * Writes the file beside its place, syncs and renames it; *hash is that of all
 * its bytes.  FR_IO with the path.
 */
FR_CHECKED fr_status fr_shard_write(const fr_shard *shard, const char *path,
                                    const fr_state *state, uint64_t *hash,
                                    fr_err *err);

/* The same in two steps: an image of the file in memory, which has room for all
 * of it, and the file from that. */
FR_CHECKED fr_status fr_shard_copy(const fr_shard *shard, const fr_state *state,
                                   unsigned char *image, fr_err *err);
FR_CHECKED fr_status fr_shard_write_image(const unsigned char *image,
                                          uint64_t n_bytes, const char *path,
                                          uint64_t *hash, fr_err *err);

/* Returns the hash that fr_shard_write_image() gives for its file. */
uint64_t fr_shard_image_hash(const unsigned char *image, uint64_t n_bytes);

/* The head and the index of a file; FR_IO: it is none, or is cut off. */
typedef struct fr_shard_index {
    uint64_t layout, n_bytes;
    uint64_t own_at_bytes, own_bytes;
    fr_tensor_slices slices; /* at_bytes: in the file */
} fr_shard_index;

FR_CHECKED fr_status fr_shard_read_index(const char *path, fr_shard_index *out,
                                         fr_err *err);
void fr_shard_index_release(fr_shard_index *index);
/* Returns the bytes of the file before the elements. */
uint64_t fr_shard_index_bytes(const fr_shard_index *index);

/* FR_IO: the file is not as long, or has another hash. */
FR_CHECKED fr_status fr_shard_verify(const char *path, uint64_t n_bytes,
                                     uint64_t hash, fr_err *err);

#endif
