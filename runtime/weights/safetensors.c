/* safetensors.c: see safetensors.h. */
#include "runtime/weights/safetensors.h"

#include "core/base/minmax.h"
#include "core/base/text.h"
#include "core/system/fileio.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LENGTH_BYTES = 8 };

static const struct {
    const char *name;
    uint64_t n_bytes;
} dtypes[] = {
    {"F32", 4}, {"BF16", 2}, {"F16", 2},  {"F64", 8},     {"I64", 8},
    {"I32", 4}, {"I16", 2},  {"I8", 1},   {"U64", 8},     {"U32", 4},
    {"U16", 2}, {"U8", 1},   {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1},
};

static uint64_t element_bytes(const char *dtype)
{
    for (size_t i = 0; i < FR_LENGTH(dtypes); i++)
        if (strcmp(dtypes[i].name, dtype) == 0)
            return dtypes[i].n_bytes;
    return 0;
}

/* ---- the header ---------------------------------------------------------- */

static fr_status fail(const fr_safetensors *file, const char *name, fr_err *err,
                      const char *what)
{
    return fr_fail(err, FR_INPUT, "%s: tensor '%s': %s", file->path, name,
                   what);
}

static fr_status parse_shape(const fr_safetensors *file,
                             const fr_json_value *shape, fr_safetensor *tensor,
                             uint64_t *n_elements, fr_err *err)
{
    *n_elements = 1;
    tensor->n_dims = (int)fr_min_i64((int64_t)fr_json_n(shape), 64);
    for (size_t i = 0; i < fr_json_n(shape); i++) {
        uint64_t dim;
        FR_TRY(fr_json_as_u64(fr_json_at(shape, i), &dim, err));
        if (dim > INT64_MAX ||
            __builtin_mul_overflow(*n_elements, dim, n_elements))
            return fail(file, tensor->name, err, "its shape is too large");
        if (i < FR_SAFETENSOR_DIMS)
            tensor->dim[i] = (int64_t)dim;
    }
    return FR_OK;
}

static fr_status parse_tensor(const fr_safetensors *file,
                              const fr_json_value *value, uint64_t n_data,
                              fr_safetensor *tensor, fr_err *err)
{
    const fr_json_value *shape, *offsets;
    uint64_t n_elements, n_bytes, end;
    FR_TRY(fr_json_get_string(value, "dtype", &tensor->dtype, err));
    FR_TRY(fr_json_get_array(value, "shape", &shape, err));
    FR_TRY(fr_json_get_array(value, "data_offsets", &offsets, err));
    FR_TRY(parse_shape(file, shape, tensor, &n_elements, err));
    if (element_bytes(tensor->dtype) == 0)
        return fail(file, tensor->name, err, "its dtype is not known");
    if (fr_json_n(offsets) != 2)
        return fail(file, tensor->name, err, "data_offsets are not two");
    FR_TRY(fr_json_as_u64(fr_json_at(offsets, 0), &tensor->first_byte, err));
    FR_TRY(fr_json_as_u64(fr_json_at(offsets, 1), &end, err));
    if (tensor->first_byte > end)
        return fail(file, tensor->name, err, "it ends before it begins");
    if (end > n_data)
        return fr_fail(err, FR_INPUT,
                       "%s: tensor '%s' ends at byte %llu of %llu that the "
                       "file has: it was cut",
                       file->path, tensor->name, (unsigned long long)end,
                       (unsigned long long)n_data);
    tensor->n_bytes = end - tensor->first_byte;
    if (__builtin_mul_overflow(n_elements, element_bytes(tensor->dtype),
                               &n_bytes) ||
        n_bytes != tensor->n_bytes)
        return fail(file, tensor->name, err,
                    "its shape does not fit the bytes that it has");
    return FR_OK;
}

static int compare_places(const void *va, const void *vb)
{
    const fr_safetensor *a = va, *b = vb;
    if (a->first_byte != b->first_byte)
        return a->first_byte < b->first_byte ? -1 : 1;
    return a->n_bytes < b->n_bytes ? -1 : a->n_bytes > b->n_bytes;
}

static int compare_names(const void *va, const void *vb)
{
    return strcmp(((const fr_safetensor *)va)->name,
                  ((const fr_safetensor *)vb)->name);
}

/* One after the other, from the first byte to the last. */
static fr_status check_places(const fr_safetensors *file, uint64_t n_data,
                              fr_err *err)
{
    uint64_t at = 0;
    for (size_t i = 0; i < file->n; i++) {
        const fr_safetensor *tensor = &file->tensors[i];
        if (tensor->first_byte != at)
            return fail(file, tensor->name, err,
                        tensor->first_byte < at ? "it overlaps another one"
                                                : "there is a hole before it");
        at += tensor->n_bytes;
    }
    return at == n_data
               ? FR_OK
               : fr_fail(err, FR_INPUT, "%s: %llu bytes after the last tensor",
                         file->path, (unsigned long long)(n_data - at));
}

static bool is_printable(const char *name)
{
    for (const char *c = name; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return false;
    return true;
}

static fr_status parse(fr_safetensors *file, const char *header,
                       size_t n_header, uint64_t n_data, fr_err *err)
{
    FR_TRY(fr_json_parse(file->path, header, n_header, &file->header, err));
    const fr_json_value *root = fr_json_root(file->header);
    if (fr_json_kind_of(root) != FR_JSON_OBJECT)
        return fr_fail(err, FR_INPUT, "%s: the header is not an object",
                       file->path);
    const size_t n = fr_json_n(root);
    FR_TRY_CALLOC(file->tensors, n + 1, err);
    for (size_t i = 0; i < n; i++) {
        fr_safetensor *tensor = &file->tensors[file->n];
        tensor->name = fr_json_key_at(root, i);
        if (strcmp(tensor->name, "__metadata__") == 0)
            continue;
        if (!is_printable(tensor->name))
            return fr_fail(err, FR_INPUT,
                           "%s: the name of tensor %zu is no plain text",
                           file->path, i);
        FR_TRY(parse_tensor(file, fr_json_at(root, i), n_data, tensor, err));
        file->n++;
    }
    qsort(file->tensors, file->n, sizeof *file->tensors, compare_places);
    FR_TRY(check_places(file, n_data, err));
    for (size_t i = 0; i < file->n; i++)
        file->tensors[i].first_byte += LENGTH_BYTES + n_header;
    qsort(file->tensors, file->n, sizeof *file->tensors, compare_names);
    return FR_OK;
}

static fr_status begin(const char *path, fr_safetensors *file, fr_err *err)
{
    *file = (fr_safetensors){.fd = -1, .path = strdup(path)};
    return file->path != NULL ? FR_OK : fr_fail_no_memory(err);
}

fr_status fr_safetensors_parse(const char *path, const char *header,
                               size_t n_header, uint64_t n_data,
                               fr_safetensors *out, fr_err *err)
{
    fr_safetensors file;
    FR_TRY(begin(path, &file, err));
    fr_status status = parse(&file, header, n_header, n_data, err);
    if (status == FR_OK)
        *out = file;
    else
        fr_safetensors_close(&file);
    return status;
}

/* ---- files --------------------------------------------------------------- */

static fr_status read_at(const fr_safetensors *file, uint64_t at, size_t n,
                         void *out, fr_err *err)
{
    for (size_t done = 0; done < n;) {
        ssize_t got =
            pread(file->fd, (char *)out + done, n - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return fr_fail(err, FR_IO, "%s: %s", file->path,
                           got == 0 ? "it became shorter while it was read"
                                    : strerror(errno));
        done += (size_t)got;
    }
    return FR_OK;
}

static fr_status read_header(fr_safetensors *file, fr_err *err)
{
    unsigned char length[LENGTH_BYTES];
    struct stat stat;
    uint64_t n_header = 0;
    if (fstat(file->fd, &stat) != 0 || !S_ISREG(stat.st_mode))
        return fr_fail(err, FR_INPUT, "%s: not a file", file->path);
    const uint64_t n_file = (uint64_t)stat.st_size;
    if (n_file < LENGTH_BYTES)
        return fr_fail(err, FR_INPUT,
                       "%s: %llu bytes, which is less than a header",
                       file->path, (unsigned long long)n_file);
    FR_TRY(read_at(file, 0, LENGTH_BYTES, length, err));
    for (int i = LENGTH_BYTES - 1; i >= 0; i--)
        n_header = n_header << 8 | length[i];
    if (n_header > n_file - LENGTH_BYTES || n_header > FR_FILE_BYTES_MAX)
        return fr_fail(err, FR_INPUT,
                       "%s: a header of %llu bytes in a file of %llu: it is "
                       "no safetensors file, or it was cut",
                       file->path, (unsigned long long)n_header,
                       (unsigned long long)n_file);
    char *header = malloc(n_header + 1);
    if (header == NULL)
        return fr_fail_no_memory(err);
    fr_status status = read_at(file, LENGTH_BYTES, n_header, header, err);
    if (status == FR_OK)
        status = parse(file, header, n_header, n_file - LENGTH_BYTES - n_header,
                       err);
    free(header);
    return status;
}

fr_status fr_safetensors_open(const char *path, fr_safetensors *out,
                              fr_err *err)
{
    fr_safetensors file;
    FR_TRY(begin(path, &file, err));
    file.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    fr_status status =
        file.fd >= 0 ? read_header(&file, err)
                     : fr_fail(err, FR_IO, "%s: %s", path, strerror(errno));
    if (status == FR_OK)
        *out = file;
    else
        fr_safetensors_close(&file);
    return status;
}

void fr_safetensors_close(fr_safetensors *file)
{
    if (file->fd >= 0)
        (void)close(file->fd);
    fr_json_destroy(file->header);
    free(file->tensors);
    free(file->path);
    *file = (fr_safetensors){.fd = -1};
}

const fr_safetensor *fr_safetensors_find(const fr_safetensors *file,
                                         const char *name)
{
    const fr_safetensor key = {.name = name};
    return file->n == 0 ? NULL
                        : bsearch(&key, file->tensors, file->n, sizeof key,
                                  compare_names);
}

/* ---- elements ------------------------------------------------------------ */

static float float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* IEEE 754 binary16: subnormals are multiples of 2^-24. */
static float float_of_half(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000U) << 16;
    const uint32_t exponent = h >> 10 & 31U, fraction = h & 1023U;
    if (exponent == 0)
        return (sign != 0 ? -0x1p-24F : 0x1p-24F) * (float)fraction;
    if (exponent == 31)
        return float_of_bits(sign | 0x7f800000U | fraction << 13);
    return float_of_bits(sign | (exponent + 112U) << 23 | fraction << 13);
}

static bool is_short(const fr_safetensor *tensor)
{
    return strcmp(tensor->dtype, "F32") != 0;
}

fr_status fr_safetensors_check_dtype(const fr_safetensors *file,
                                     const fr_safetensor *tensor, fr_err *err)
{
    static const char *const known[] = {"F32", "F16", "BF16"};
    if (fr_text_find(tensor->dtype, known, FR_LENGTH(known)) >= 0)
        return FR_OK;
    return fr_fail(err, FR_INPUT,
                   "%s: tensor '%s' is %s; weights are read in F32, F16 and "
                   "BF16",
                   file->path, tensor->name, tensor->dtype);
}

fr_status fr_safetensors_read(const fr_safetensors *file,
                              const fr_safetensor *tensor, uint64_t first,
                              uint64_t n, float *out, fr_err *err)
{
    const bool is_bf16 = strcmp(tensor->dtype, "BF16") == 0;
    const uint64_t wide = is_short(tensor) ? 2 : 4;
    /* Short elements come to lie in the second half, and are widened from the
     * first one on. */
    unsigned char *bytes = (unsigned char *)out + n * (4 - wide);
    FR_TRY(
        read_at(file, tensor->first_byte + first * wide, n * wide, bytes, err));
    for (uint64_t i = 0; wide == 2 && i < n; i++) {
        uint16_t x;
        memcpy(&x, bytes + 2 * i, sizeof x);
        out[i] = is_bf16 ? float_of_bits((uint32_t)x << 16) : float_of_half(x);
    }
    return FR_OK;
}
