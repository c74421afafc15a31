/*
 * gpu_rows.c: the table of measured kernels.
 */
#include "bench/gpu_fit.h"
#include "core/base/text.h"
#include "core/base/vec.h"
#include "core/system/fileio.h"
#include "spec/catalog/catalog.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SOURCE,
    SOURCE_REF,
    GPU,
    OP,
    DTYPE,
    DIMS,
    FLAGS,
    VALUE,
    UNIT,
    USE,
    NOTE,
    N_FIELDS
};

static const char header[] =
    "source,source_ref,gpu,op,dtype,dims,flags,value,unit,use,note";
static const size_t most_bytes = 4 << 20;
static const int64_t most_dim = INT64_C(1) << 50;

static const struct {
    const char *name;
    int n_dims;
} ops[FR_GPU_ROW_N] = {{"gemm", 3},     {"grouped", 4}, {"attn_fwd", 4},
                       {"attn_bwd", 4}, {"stream", 1},  {"rows", 1},
                       {"layers", 2}};

static const struct {
    const char *name;
    fr_dtype dtype;
} dtypes[] = {{"fp32", FR_DTYPE_F32}, {"tf32", FR_DTYPE_TF32},
              {"fp16", FR_DTYPE_F16}, {"bf16", FR_DTYPE_BF16},
              {"fp8", FR_DTYPE_FP8},  {"fp4", FR_DTYPE_FP4}};

typedef struct place {
    const char *path;
    int line;
} place;

static fr_status read_op(const place *at, char **fields, fr_gpu_row *row,
                         fr_err *err)
{
    char *words[8];
    size_t n;
    int op = 0;

    while (op < FR_GPU_ROW_N && strcmp(ops[op].name, fields[OP]) != 0)
        op++;
    if (op == FR_GPU_ROW_N)
        return fr_fail(err, FR_INPUT, "%s:%d: unknown op '%s'", at->path,
                       at->line, fields[OP]);
    row->op = (fr_gpu_row_op)op;
    n = fr_text_split(fields[DIMS], ' ', words, 8);
    if (n != (size_t)ops[op].n_dims)
        return fr_fail(err, FR_INPUT, "%s:%d: %s has %d dims, not %zu",
                       at->path, at->line, fields[OP], ops[op].n_dims, n);
    for (size_t i = 0; i < n; i++) {
        char *end;
        row->dim[i] = strtoll(words[i], &end, 10);
        if (*end != '\0' || row->dim[i] < 1 || row->dim[i] > most_dim)
            return fr_fail(err, FR_INPUT, "%s:%d: '%s' is not a dim", at->path,
                           at->line, words[i]);
    }
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (strcmp(dtypes[i].name, fields[DTYPE]) == 0) {
            row->dtype = dtypes[i].dtype;
            return FR_OK;
        }
    return fr_fail(err, FR_INPUT, "%s:%d: unknown dtype '%s'", at->path,
                   at->line, fields[DTYPE]);
}

/* Flop as publications count them: half of all pairs under a causal mask,
 * backward 2.5 times forward (FlashAttention's benchmarks). */
static double counted_flop(const fr_gpu_row *row)
{
    double d[4], forward;

    for (int i = 0; i < 4; i++)
        d[i] = (double)row->dim[i];
    if (row->op == FR_GPU_ROW_LAYERS)
        return d[0];
    if (row->op == FR_GPU_ROW_GEMM || row->op == FR_GPU_ROW_GROUPED)
        return 2.0 * d[0] * d[1] * d[2];
    forward = 4.0 * d[0] * d[1] * d[1] * d[2] * d[3];
    if (row->is_causal)
        forward /= 2.0;
    return row->op == FR_GPU_ROW_ATTN_BWD ? 2.5 * forward : forward;
}

static fr_status read_value(const place *at, char **fields, fr_gpu_row *row,
                            fr_err *err)
{
    bool is_bytes = row->op == FR_GPU_ROW_STREAM || row->op == FR_GPU_ROW_ROWS;
    char *end;
    double value = strtod(fields[VALUE], &end);

    if (*end != '\0' || !(value > 0.0 && isfinite(value)))
        return fr_fail(err, FR_INPUT, "%s:%d: '%s' is not a value", at->path,
                       at->line, fields[VALUE]);
    if (strcmp(fields[UNIT], "us") == 0)
        row->seconds = value * 1e-6;
    else if (strcmp(fields[UNIT], "TFLOPS") == 0 && !is_bytes)
        row->seconds = counted_flop(row) / (value * 1e12);
    else if (strcmp(fields[UNIT], "GBps") == 0 && is_bytes)
        row->seconds = (double)row->dim[0] / (value * 1e9);
    else
        return fr_fail(err, FR_INPUT,
                       "%s:%d: unit '%s' with %s; there are us, TFLOPS of "
                       "products, GBps of bytes",
                       at->path, at->line, fields[UNIT], fields[OP]);
    if (!(row->seconds > 1e-9 && row->seconds < 1e9))
        return fr_fail(err, FR_INPUT, "%s:%d: %s %s is no time of a kernel",
                       at->path, at->line, fields[VALUE], fields[UNIT]);
    row->is_fitted = strcmp(fields[USE], "fit") == 0;
    if (!row->is_fitted && strcmp(fields[USE], "check") != 0)
        return fr_fail(err, FR_INPUT, "%s:%d: use '%s'; fit or check", at->path,
                       at->line, fields[USE]);
    return FR_OK;
}

/* "power=500": watts that the device was limited to. */
static double power_of(const char *flags)
{
    const char *at = strstr(flags, "power=");
    return at != NULL ? strtod(at + strlen("power="), NULL) : 0.0;
}

static fr_status read_row(const place *at, char *line, fr_gpu_row *out,
                          fr_err *err)
{
    char *fields[N_FIELDS];
    fr_gpu_row row = {.line = at->line};
    const fr_catalog_device *device;
    size_t n = fr_text_split(line, ',', fields, N_FIELDS);

    if (n != N_FIELDS)
        return fr_fail(err, FR_INPUT, "%s:%d: %zu fields instead of %d",
                       at->path, at->line, n, N_FIELDS);
    FR_TRY(read_op(at, fields, &row, err));
    row.is_causal = strstr(fields[FLAGS], "causal") != NULL;
    row.is_apart = strstr(fields[FLAGS], "unfused") != NULL;
    if (strstr(fields[FLAGS], "fa2") != NULL)
        row.flash = FR_FLASH_2;
    else if (strstr(fields[FLAGS], "fa1") != NULL)
        row.flash = FR_FLASH_1;
    row.is_sustained = strstr(fields[FLAGS], "sustained") != NULL;
    row.has_block_scales = strstr(fields[FLAGS], "block") != NULL;
    row.is_burst = strstr(fields[FLAGS], "burst") != NULL;
    row.power_w = power_of(fields[FLAGS]);
    FR_TRY(read_value(at, fields, &row, err));
    row.source = fields[SOURCE];
    row.source_ref = fields[SOURCE_REF];
    row.gpu = fields[GPU];
    row.note = fields[NOTE];
    device = fr_catalog_device_find(row.gpu);
    row.device = device != NULL ? &device->type : NULL;
    *out = row;
    return FR_OK;
}

/* Rows of one table of a source say less than as many of several. */
static void weigh(fr_gpu_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        fr_gpu_row *row = &rows->items[i];
        double n = 0.0;
        row->weight = 0.0;
        if (!row->is_fitted || row->device == NULL)
            continue;
        for (size_t k = 0; k < rows->n; k++) {
            const fr_gpu_row *other = &rows->items[k];
            n += other->is_fitted && other->device == row->device &&
                 other->op == row->op && other->dtype == row->dtype &&
                 strcmp(other->source_ref, row->source_ref) == 0;
        }
        row->weight = 1.0 / sqrt(n);
    }
}

static fr_status read_lines(const char *path, fr_gpu_rows *rows, fr_err *err)
{
    fr_vec(fr_gpu_row) found = {0};
    place at = {path, 0};
    fr_status status = FR_OK;
    char *line = rows->text;

    while (line != NULL && *line != '\0' && status == FR_OK) {
        char *end = strchr(line, '\n');
        fr_gpu_row row;
        if (end != NULL)
            *end++ = '\0';
        at.line++;
        if (at.line == 1) {
            if (strcmp(line, header) != 0)
                status = fr_fail(err, FR_INPUT, "%s:1: the header must be %s",
                                 path, header);
        } else {
            status = read_row(&at, line, &row, err);
            if (status == FR_OK && fr_vec_push(&found, row) != FR_OK)
                status = fr_fail_no_memory(err);
        }
        line = end;
    }
    if (status != FR_OK) {
        fr_vec_release(&found);
        return status;
    }
    rows->items = found.items;
    rows->n = found.n;
    weigh(rows);
    return FR_OK;
}

/* Takes the text. */
static fr_status take_text(const char *name, char *text, fr_gpu_rows *out,
                           fr_err *err)
{
    fr_gpu_rows rows = {.text = text};
    fr_status status = read_lines(name, &rows, err);

    if (status != FR_OK) {
        fr_gpu_rows_release(&rows);
        return status;
    }
    *out = rows;
    return FR_OK;
}

fr_status fr_gpu_rows_parse(const char *name, const char *text, size_t n_text,
                            fr_gpu_rows *out, fr_err *err)
{
    char *copy = malloc(n_text + 1);

    if (copy == NULL)
        return fr_fail_no_memory(err);
    if (n_text > 0)
        memcpy(copy, text, n_text);
    copy[n_text] = '\0';
    if (strlen(copy) != n_text) {
        free(copy);
        return fr_fail(err, FR_INPUT, "%s: a NUL in it", name);
    }
    return take_text(name, copy, out, err);
}

fr_status fr_gpu_rows_load(const char *path, fr_gpu_rows *out, fr_err *err)
{
    char *text;

    FR_TRY(fr_file_read(path, most_bytes, &text, NULL, err));
    return take_text(path, text, out, err);
}

void fr_gpu_rows_release(fr_gpu_rows *rows)
{
    free(rows->text);
    free(rows->items);
    *rows = (fr_gpu_rows){0};
}
