/* gradient_file.c: see gradient_file.h. */
#include "tests/contract/runtime/gradient_file.h"

#include "core/system/fileio.h"

#include <stdlib.h>
#include <string.h>

static const char magic[8] = {'F', 'R', 'G', 'R', 'A', 'D', '1', '\n'};

static int compare_names(const void *a, const void *b)
{
    const gradient_tensor *x = a, *y = b;

    return strcmp(x->name, y->name);
}

static fr_status parse(const char *path, const char *bytes, size_t n,
                       gradient_file *out, fr_err *err)
{
    size_t at = sizeof magic;

    if (n < at || memcmp(bytes, magic, sizeof magic) != 0)
        return fr_fail(err, FR_INPUT, "%s: not a file of gradients", path);
    while (at < n) {
        gradient_tensor next = {0};
        if (n - at < sizeof next.name + 16)
            return fr_fail(err, FR_INPUT, "%s: cut off", path);
        memcpy(next.name, bytes + at, sizeof next.name - 1);
        memcpy(&next.rows, bytes + at + sizeof next.name, 8);
        memcpy(&next.cols, bytes + at + sizeof next.name + 8, 8);
        at += sizeof next.name + 16;
        uint64_t size = (uint64_t)(next.rows * next.cols) * sizeof(float);
        if (next.rows < 0 || next.cols < 0 || n - at < size)
            return fr_fail(err, FR_INPUT, "%s: cut off", path);
        gradient_tensor *grown =
            realloc(out->at, (out->n + 1) * sizeof *out->at);
        if (grown != NULL)
            out->at = grown;
        next.at = malloc(size + 1);
        if (grown == NULL || next.at == NULL) {
            free(next.at);
            return fr_fail_no_memory(err);
        }
        memcpy(next.at, bytes + at, size);
        at += size;
        out->at[out->n++] = next;
    }
    if (out->n > 1)
        qsort(out->at, out->n, sizeof *out->at, compare_names);
    return FR_OK;
}

fr_status gradient_file_load(const char *path, gradient_file *out, fr_err *err)
{
    char *bytes = NULL;
    size_t n = 0;
    gradient_file loaded = {0};

    FR_TRY(fr_file_read(path, 0, &bytes, &n, err));
    fr_status status = parse(path, bytes, n, &loaded, err);
    free(bytes);
    if (status != FR_OK) {
        gradient_file_release(&loaded);
        return status;
    }
    *out = loaded;
    return FR_OK;
}

void gradient_file_release(gradient_file *gradients)
{
    for (size_t i = 0; i < gradients->n; i++)
        free(gradients->at[i].at);
    free(gradients->at);
    *gradients = (gradient_file){0};
}
