/* weights_load.c: what a run begins with, from safetensors. */
#include "plan/op/tensor_role.h"
#include "runtime/weights/weight_files.h"
#include "runtime/weights/weight_map.h"
#include "runtime/weights/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct place {
    const fr_safetensors *file;
    const fr_safetensor *tensor;
} place;

struct fr_weights {
    fr_weight_files files;
    fr_weight_map map;
    place *places; /* of map.entries */
};

/* ---- what is there ------------------------------------------------------- */

/* Files of the bare model lack the prefix. */
static const fr_safetensor *find(const fr_weights *weights, const char *name,
                                 const fr_safetensors **file)
{
    const char *prefix = weights->map.family->prefix;
    const fr_safetensor *tensor =
        fr_weight_files_find(&weights->files, name, file);
    if (tensor == NULL && strncmp(name, prefix, strlen(prefix)) == 0)
        tensor =
            fr_weight_files_find(&weights->files, name + strlen(prefix), file);
    return tensor;
}

static void format_shape(const int64_t *shape, int n, char *out, size_t n_out)
{
    size_t at = (size_t)snprintf(out, n_out, "[");
    for (int i = 0; i < n && i < FR_SAFETENSOR_DIMS && at < n_out; i++)
        at += (size_t)snprintf(out + at, n_out - at, "%s%lld",
                               i > 0 ? ", " : "", (long long)shape[i]);
    if (at < n_out)
        (void)snprintf(out + at, n_out - at, "]");
}

static fr_status check_tensor(const fr_weight_entry *entry,
                              const fr_model *model, const place *at,
                              fr_err *err)
{
    const fr_safetensor *tensor = at->tensor;
    int64_t shape[4];
    const int n = fr_weight_entry_shape(entry, model, shape);
    char want[128], have[128];
    bool is_same = tensor->n_dims == n;
    for (int d = 0; is_same && d < n; d++)
        is_same = tensor->dim[d] == shape[d];
    if (!is_same) {
        format_shape(shape, n, want, sizeof want);
        format_shape(tensor->dim, tensor->n_dims, have, sizeof have);
        return fr_fail(err, FR_INPUT,
                       "%s: tensor '%s' has the shape %s, the model's is %s",
                       at->file->path, tensor->name, have, want);
    }
    return fr_safetensors_check_dtype(at->file, tensor, err);
}

static fr_status find_all(fr_weights *weights, fr_err *err)
{
    for (size_t i = 0; i < weights->map.entries.n; i++) {
        const fr_weight_entry *entry = &weights->map.entries.items[i];
        place *at = &weights->places[i];
        at->tensor = find(weights, entry->name, &at->file);
        if (at->tensor == NULL)
            return fr_fail(err, FR_INPUT, "%s: no tensor '%s'",
                           weights->files.all.items[0].path, entry->name);
        FR_TRY(check_tensor(entry, &weights->map.program->model, at, err));
    }
    return FR_OK;
}

static int compare_tensors(const void *va, const void *vb)
{
    const fr_safetensor *a = ((const place *)va)->tensor;
    const fr_safetensor *b = ((const place *)vb)->tensor;
    return a < b ? -1 : a > b;
}

/* The head of a tied model, which is its embedding, may be there too. */
static bool is_passed_over(const fr_weights *weights, const char *name)
{
    int n;
    const fr_weight_name *head =
        fr_weight_names_find(weights->map.family, FR_TENSOR_HEAD, &n);
    return fr_weight_is_buffer(weights->map.family, name) ||
           (weights->map.program->model.is_tied && head != NULL &&
            strcmp(head->name, name) == 0);
}

static fr_status check_no_others(const fr_weights *weights, fr_err *err)
{
    const size_t n = weights->map.entries.n;
    place *used = malloc((n + 1) * sizeof *used);
    fr_status status = FR_OK;
    if (used == NULL)
        return fr_fail_no_memory(err);
    memcpy(used, weights->places, n * sizeof *used);
    qsort(used, n, sizeof *used, compare_tensors);
    for (size_t f = 0; f < weights->files.all.n; f++) {
        const fr_safetensors *file = &weights->files.all.items[f];
        for (size_t i = 0; status == FR_OK && i < file->n; i++) {
            const place key = {.tensor = &file->tensors[i]};
            if (bsearch(&key, used, n, sizeof key, compare_tensors) == NULL &&
                !is_passed_over(weights, key.tensor->name))
                status =
                    fr_fail(err, FR_INPUT,
                            "%s: tensor '%s' is none of model %s", file->path,
                            key.tensor->name, weights->map.program->model.name);
        }
    }
    free(used);
    return status;
}

static fr_status open_all(const char *path, const fr_program *program,
                          fr_weights *weights, fr_err *err)
{
    FR_TRY(fr_weight_map_init(program, &weights->map, err));
    FR_TRY(fr_weight_files_open(path, &weights->files, err));
    if (weights->files.all.n == 0)
        return fr_fail(err, FR_INPUT, "%s: no tensors", path);
    FR_TRY_CALLOC(weights->places, weights->map.entries.n + 1, err);
    FR_TRY(find_all(weights, err));
    return check_no_others(weights, err);
}

fr_status fr_weights_open(const char *path, const fr_program *program,
                          fr_weights **out, fr_err *err)
{
    fr_weights *weights;
    FR_TRY_CALLOC(weights, 1, err);
    fr_status status = open_all(path, program, weights, err);
    if (status == FR_OK)
        *out = weights;
    else
        fr_weights_close(weights);
    return status;
}

void fr_weights_close(fr_weights *weights)
{
    if (weights == NULL)
        return;
    fr_weight_files_close(&weights->files);
    fr_weight_map_release(&weights->map);
    free(weights->places);
    free(weights);
}

/* ---- a rank's own -------------------------------------------------------- */

typedef struct filling {
    const fr_weights *weights;
    float *out; /* element `first` of the flat list */
    int64_t first;
    float *turned; /* [FR_WEIGHT_CHUNK] */
} filling;

static fr_status read_columns(const filling *to, const place *from,
                              const fr_weight_chunk *chunk, float *out,
                              fr_err *err)
{
    for (int64_t c = 0; c < chunk->n_cols; c++) {
        const int64_t at = (chunk->col + c) * chunk->entry->lines + chunk->line;
        FR_TRY(fr_safetensors_read(from->file, from->tensor, (uint64_t)at,
                                   (uint64_t)chunk->n_lines, to->turned, err));
        for (int64_t line = 0; line < chunk->n_lines; line++)
            out[line * chunk->n_cols + c] = to->turned[line];
    }
    return FR_OK;
}

static fr_status read_lines(const place *from, const fr_weight_chunk *chunk,
                            float *out, fr_err *err)
{
    const int64_t cols = chunk->entry->cols;
    /* Whole lines follow each other. */
    const int64_t n_at_once = chunk->n_cols == cols ? chunk->n_lines : 1;
    for (int64_t line = 0; line < chunk->n_lines; line += n_at_once)
        FR_TRY(fr_safetensors_read(
            from->file, from->tensor,
            (uint64_t)((chunk->line + line) * cols + chunk->col),
            (uint64_t)(n_at_once * chunk->n_cols), out + line * chunk->n_cols,
            err));
    return FR_OK;
}

static fr_status fill_chunk(void *context, const fr_weight_chunk *chunk,
                            fr_err *err)
{
    const filling *to = context;
    const int64_t n = chunk->n_lines * chunk->n_cols;
    float *out = to->out + (chunk->at - to->first);
    if (chunk->entry == NULL) {
        memset(out, 0, (size_t)n * sizeof *out);
        return FR_OK;
    }
    const place *from =
        &to->weights->places[chunk->entry - to->weights->map.entries.items];
    FR_TRY(chunk->entry->layout == FR_WEIGHT_CONV1D
               ? read_columns(to, from, chunk, out, err)
               : read_lines(from, chunk, out, err));
    for (int64_t i = 0; chunk->entry->offset != 0 && i < n; i++)
        out[i] += chunk->entry->offset;
    return FR_OK;
}

fr_status fr_weights_fill(const fr_weights *weights, int64_t rank,
                          int64_t first, int64_t n, float *out, fr_err *err)
{
    filling to = {.weights = weights, .out = out, .first = first};
    FR_TRY_CALLOC(to.turned, FR_WEIGHT_CHUNK, err);
    fr_status status =
        fr_weight_map_walk(&weights->map, rank, first, n, fill_chunk, &to, err);
    free(to.turned);
    return status;
}
