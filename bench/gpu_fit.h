/*
 * gpu_fit.h: the constants of the GPU model from measurements of kernels.
 *
 * A row is one kernel that somebody timed on a device of the catalogue.  The
 * fit is least squares on the logarithm of the times, outliers damped
 * (Huber), with a weak prior where the rows say little; the rows of one table
 * of one source count as the square root of their number.
 */
#ifndef FR_BENCH_GPU_FIT_H
#define FR_BENCH_GPU_FIT_H

#include "cost_models/gpu/gpu_model.h"

typedef enum fr_gpu_row_op {
    FR_GPU_ROW_GEMM,     /* dims m n k */
    FR_GPU_ROW_GROUPED,  /* m n k groups; m of all */
    FR_GPU_ROW_ATTN_FWD, /* batch, queries = keys, heads, head_dim */
    FR_GPU_ROW_ATTN_BWD,
    FR_GPU_ROW_STREAM, /* bytes */
    FR_GPU_ROW_ROWS,
    FR_GPU_ROW_LAYERS, /* flop, bytes of what convolutions read and write */
    FR_GPU_ROW_N
} fr_gpu_row_op;

typedef struct fr_gpu_row {
    const char *source, *source_ref, *gpu, *note; /* in the file's text */
    const fr_device_type *device; /* NULL: not in the catalogue */
    fr_gpu_row_op op;
    fr_dtype dtype;
    int64_t dim[4];
    bool is_causal, is_apart;
    fr_flash_kind flash;
    bool is_sustained;     /* products: timed over 0.1 s of load and more */
    bool has_block_scales; /* products of fp8: MXFP8 */
    bool is_burst;         /* attention: timed over less */
    double power_w; /* limit it was measured under; 0: the device's own */
    bool is_fitted; /* else it is a check only */
    double seconds; /* measured */
    double weight;  /* among the fitted */
    int line;       /* of the file */
} fr_gpu_row;

typedef struct fr_gpu_rows {
    char *text; /* owned, as are the items */
    fr_gpu_row *items;
    size_t n;
} fr_gpu_rows;

/*
 * Reads a table with the header source,source_ref,gpu,op,dtype,dims,flags,
 * value,unit,use,note; values in TFLOPS, us or GBps; use "fit" or "check"; no
 * commas inside a field.  FR_INPUT "path:line: ..." on anything wrong.
 */
FR_CHECKED fr_status fr_gpu_rows_load(const char *path, fr_gpu_rows *out,
                                      fr_err *err);
/* The same from text; `name` stands in messages. */
FR_CHECKED fr_status fr_gpu_rows_parse(const char *name, const char *text,
                                       size_t n_text, fr_gpu_rows *out,
                                       fr_err *err);
void fr_gpu_rows_release(fr_gpu_rows *rows);

fr_gpu_family fr_gpu_row_family(const fr_gpu_row *row);

/* Returns the model's time of a row; 0: the device cannot do it. */
double fr_gpu_row_s(const fr_gpu_constants *constants, const fr_gpu_row *row);

/* The constants that fit the rows best, with their errors and counts. */
FR_CHECKED fr_status fr_gpu_fit(const fr_gpu_rows *rows, fr_gpu_constants *out,
                                fr_err *err);

#endif
