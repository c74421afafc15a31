/*
 * weight_map.h: which elements of which tensor of a family's files are those
 * of a rank's flat list of parameters.
 */
#ifndef FR_RUNTIME_WEIGHTS_WEIGHT_MAP_H
#define FR_RUNTIME_WEIGHTS_WEIGHT_MAP_H

#include "core/base/vec.h"
#include "program/ir/program.h"
#include "runtime/weights/weight_names.h"

enum { FR_WEIGHT_NAME = 112, FR_WEIGHT_CHUNK = 1 << 16 /* elements */ };

/* A tensor of the files, by its rows and columns as ours has them. */
typedef struct fr_weight_entry {
    char name[FR_WEIGHT_NAME];
    int64_t lines, cols; /* of a vector: its elements, 1 */
    bool is_vector;
    uint8_t layout; /* fr_weight_layout */
    float offset;   /* to be added to what the file has */
} fr_weight_entry;

/* The entries of all tensors with one id. */
typedef struct fr_weight_group {
    uint32_t id;
    uint32_t first; /* entry */
    int n_names;    /* entries of a matrix */
    int64_t n_matrices, lines, cols;
    int64_t part_lines[3];
} fr_weight_group;

typedef struct fr_weight_map {
    const fr_program *program;
    const fr_weight_family *family;
    fr_vec(fr_weight_entry) entries;
    fr_vec(fr_weight_group) groups; /* by id */
} fr_weight_map;

/* FR_INPUT: the model, or a tensor of it, has no name in any family. */
FR_CHECKED fr_status fr_weight_map_init(const fr_program *program,
                                        fr_weight_map *out, fr_err *err);
void fr_weight_map_release(fr_weight_map *map);

/* The shape of an entry in a file; returns the number of dimensions. */
int fr_weight_entry_shape(const fr_weight_entry *entry, const fr_model *model,
                          int64_t shape[4]);

/* Lines [line, line + n_lines) x columns [col, col + n_cols) of an entry are
 * elements [at, at + n_lines n_cols) of the flat list; at most
 * FR_WEIGHT_CHUNK. */
typedef struct fr_weight_chunk {
    const fr_weight_entry *entry; /* NULL: padding, which is zero */
    const fr_tensor *tensor;
    int64_t line, n_lines, col, n_cols;
    int64_t at;
} fr_weight_chunk;

typedef fr_status (*fr_weight_chunk_fn)(void *context,
                                        const fr_weight_chunk *chunk,
                                        fr_err *err);

/* Calls for all chunks of elements [first, first + n) of a rank's list. */
FR_CHECKED fr_status fr_weight_map_walk(const fr_weight_map *map, int64_t rank,
                                        int64_t first, int64_t n,
                                        fr_weight_chunk_fn visit, void *context,
                                        fr_err *err);

#endif
