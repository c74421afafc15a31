/*
 * safetensors.h: files of named tensors, as Hugging Face writes them: eight
 * bytes of the header's length (little-endian), the header, which is JSON, and
 * the elements (https://github.com/huggingface/safetensors, "Format").
 *
 * Only the header is ever read whole.  Elements are read by ranges, so that a
 * rank takes what is its own of a file larger than its memory.
 */
#ifndef FR_RUNTIME_WEIGHTS_SAFETENSORS_H
#define FR_RUNTIME_WEIGHTS_SAFETENSORS_H

#include "core/document/json.h"

enum { FR_SAFETENSOR_DIMS = 4 };

typedef struct fr_safetensor {
    const char *name;  /* the file's */
    const char *dtype; /* as it stands there: "BF16" */
    int n_dims;        /* of which at most FR_SAFETENSOR_DIMS are kept */
    int64_t dim[FR_SAFETENSOR_DIMS];
    uint64_t first_byte, n_bytes; /* in the file */
} fr_safetensor;

typedef struct fr_safetensors {
    char *path;
    int fd;                 /* -1: nothing but the header is there */
    fr_json *header;        /* names belong to it */
    fr_safetensor *tensors; /* by name */
    size_t n;
} fr_safetensors;

/*
 * FR_IO when unreadable.  FR_INPUT with path, tensor and what is wrong: a
 * header that is cut, no JSON or longer than 64 MiB; elements that are not
 * all in the file, overlap, leave holes or do not fit the shape.
 */
FR_CHECKED fr_status fr_safetensors_open(const char *path, fr_safetensors *out,
                                         fr_err *err);
/* The same of a header alone, before n_data bytes of elements. */
FR_CHECKED fr_status fr_safetensors_parse(const char *path, const char *header,
                                          size_t n_header, uint64_t n_data,
                                          fr_safetensors *out, fr_err *err);
void fr_safetensors_close(fr_safetensors *file);

/* NULL when absent. */
const fr_safetensor *fr_safetensors_find(const fr_safetensors *file,
                                         const char *name);

/* FR_INPUT: a dtype other than F32, F16 and BF16, whose elements are read. */
FR_CHECKED fr_status fr_safetensors_check_dtype(const fr_safetensors *file,
                                                const fr_safetensor *tensor,
                                                fr_err *err);

/* Elements [first, first + n) of a tensor of these dtypes.  FR_IO: the file
 * became shorter meanwhile. */
FR_CHECKED fr_status fr_safetensors_read(const fr_safetensors *file,
                                         const fr_safetensor *tensor,
                                         uint64_t first, uint64_t n, float *out,
                                         fr_err *err);

#endif
