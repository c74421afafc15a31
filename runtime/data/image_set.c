/* image_set.c: see image_set.h. */
#include "runtime/data/image_set.h"

#include "core/base/text.h"
#include "core/numbers/rng.h"
#include "runtime/data/image_manifest.h"
#include "runtime/data/read_at.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { IDX_IMAGES = 0x803, IDX_LABELS = 0x801 }; /* bytes, of 3 and of 1 axes */

/* ---- files --------------------------------------------------------------- */

static void close_file(fr_image_file *file)
{
    if (file->labels.fd >= 0 && file->labels.fd != file->pixels.fd)
        (void)close(file->labels.fd);
    if (file->pixels.fd >= 0)
        (void)close(file->pixels.fd);
}

static fr_status open_part(fr_image_part *part, const char *path,
                           uint64_t *n_bytes, fr_err *err)
{
    struct stat info;

    if (!fr_text_copy(part->path, sizeof part->path, path))
        return fr_fail(err, FR_INPUT, "%.80s...: the path is too long", path);
    part->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (part->fd < 0 || fstat(part->fd, &info) != 0)
        return fr_fail(err, FR_IO, "%s: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return fr_fail(err, FR_INPUT, "%s: not a regular file", path);
    *n_bytes = (uint64_t)info.st_size;
    return FR_OK;
}

static fr_status find_records(const fr_image_set *set, int64_t label_bytes,
                              uint64_t n_bytes, fr_image_file *file,
                              fr_err *err)
{
    const uint64_t size = fr_image_set_bytes(set);
    uint64_t n_label = (uint64_t)label_bytes;

    if (label_bytes == 0)
        n_label = n_bytes % (size + 1) == 0 ? 1 : 2;
    if (n_bytes == 0 || n_bytes % (size + n_label) != 0)
        return fr_fail(err, FR_INPUT,
                       "%s: %llu bytes are not records of %s of label and "
                       "%lld x %lld x %lld of pixels, as the model takes them",
                       file->pixels.path, (unsigned long long)n_bytes,
                       label_bytes == 1   ? "1 byte"
                       : label_bytes == 2 ? "2 bytes"
                                          : "1 or 2 bytes",
                       (long long)set->n_channels, (long long)set->size,
                       (long long)set->size);
    if (label_bytes == 0 && n_label == 1 && n_bytes % (size + 2) == 0)
        return fr_fail(err, FR_INPUT,
                       "%s: records of 1 or of 2 bytes of label; say "
                       "label_bytes in a manifest",
                       file->pixels.path);
    file->n_images = n_bytes / (size + n_label);
    file->labels = file->pixels;
    file->labels.first_byte = n_label - 1;
    file->pixels.first_byte = n_label;
    file->pixels.stride_bytes = file->labels.stride_bytes = size + n_label;
    return FR_OK;
}

/* The n_words numbers that an IDX file begins with: what it is, and its axes.
 */
static fr_status read_idx(const fr_image_part *part, uint32_t what, int n_words,
                          uint32_t *word, fr_err *err)
{
    unsigned char bytes[16];

    FR_TRY(
        fr_read_at(part->fd, part->path, 0, bytes, 4 * (size_t)n_words, err));
    for (int i = 0; i < n_words; i++)
        word[i] = (uint32_t)bytes[4 * i] << 24 |
                  (uint32_t)bytes[4 * i + 1] << 16 |
                  (uint32_t)bytes[4 * i + 2] << 8 | bytes[4 * i + 3];
    if (word[0] != what)
        return fr_fail(
            err, FR_INPUT, "%s: an IDX file of %s begins with %#x, not %#x",
            part->path, n_words == 4 ? "images" : "labels", what, word[0]);
    return FR_OK;
}

static fr_status open_idx(const fr_image_set *set, const char *labels,
                          uint64_t n_bytes, fr_image_file *file, fr_err *err)
{
    uint32_t of_images[4], of_labels[2];
    uint64_t n_label_bytes;

    FR_TRY(open_part(&file->labels, labels, &n_label_bytes, err));
    FR_TRY(read_idx(&file->pixels, IDX_IMAGES, 4, of_images, err));
    FR_TRY(read_idx(&file->labels, IDX_LABELS, 2, of_labels, err));
    file->n_images = of_images[1];
    file->pixels.first_byte = 16;
    file->pixels.stride_bytes = fr_image_set_bytes(set);
    file->labels.first_byte = 8;
    file->labels.stride_bytes = 1;
    if (set->n_channels != 1 || of_images[2] != set->size ||
        of_images[3] != set->size)
        return fr_fail(err, FR_INPUT,
                       "%s: images of 1 x %u x %u, the model takes %lld x "
                       "%lld x %lld",
                       file->pixels.path, of_images[2], of_images[3],
                       (long long)set->n_channels, (long long)set->size,
                       (long long)set->size);
    if (of_labels[1] != of_images[1] || file->n_images == 0 ||
        n_bytes != 16 + file->n_images * file->pixels.stride_bytes ||
        n_label_bytes != 8 + file->n_images)
        return fr_fail(err, FR_INPUT,
                       "%s: %u images and %u labels in files of %llu and %llu "
                       "bytes; give both files whole",
                       file->pixels.path, of_images[1], of_labels[1],
                       (unsigned long long)n_bytes,
                       (unsigned long long)n_label_bytes);
    return FR_OK;
}

fr_status fr_image_set_add(fr_image_set *set, const char *path,
                           const char *labels, int64_t label_bytes, fr_err *err)
{
    fr_image_file file = {.pixels.fd = -1, .labels.fd = -1};
    uint64_t n_bytes = 0;
    fr_status status = open_part(&file.pixels, path, &n_bytes, err);

    if (status == FR_OK)
        status = labels != NULL
                     ? open_idx(set, labels, n_bytes, &file, err)
                     : find_records(set, label_bytes, n_bytes, &file, err);
    if (status == FR_OK && fr_vec_push(&set->files, file) != FR_OK)
        status = fr_fail_no_memory(err);
    if (status == FR_OK)
        set->n_images += file.n_images;
    else
        close_file(&file);
    return status;
}

/* ---- the set ------------------------------------------------------------- */

static fr_status check_labels(const fr_image_set *set, fr_err *err)
{
    int32_t label;

    for (uint64_t i = 0; set->n_labels <= UINT8_MAX && i < set->n_images; i++)
        FR_TRY(fr_image_set_label(set, i, &label, err));
    return FR_OK;
}

fr_status fr_image_set_open(fr_image_set *set, const char *path,
                            const fr_model *model, fr_err *err)
{
    fr_image_set opened = {.n_channels = model->n_channels,
                           .size = model->image_size,
                           .n_labels = model->n_labels};

    if (model->n_channels > FR_IMAGE_CHANNELS_MAX)
        return fr_fail(err, FR_INPUT, "%s: images of more than %d channels",
                       path, FR_IMAGE_CHANNELS_MAX);
    for (int64_t c = 0; c < model->n_channels; c++)
        fr_image_set_normalise(&opened, c, 0.5, 0.5);
    fr_status status = fr_text_ends(path, ".json")
                           ? fr_image_manifest_read(path, &opened, err)
                           : fr_image_set_add(&opened, path, NULL, 0, err);
    if (status == FR_OK)
        status = check_labels(&opened, err);
    if (status == FR_OK)
        *set = opened;
    else
        fr_image_set_close(&opened);
    return status;
}

void fr_image_set_close(fr_image_set *set)
{
    for (size_t i = 0; i < set->files.n; i++)
        close_file(&set->files.items[i]);
    fr_vec_release(&set->files);
}

void fr_image_set_normalise(fr_image_set *set, int64_t channel, double mean,
                            double std)
{
    set->scale[channel] = (float)(1 / (255 * std));
    set->shift[channel] = (float)(-mean / std);
}

/*
 * A Feistel network of four rounds over the next power of 4 permutes it; what
 * is not below n is permuted again until it is (cycle walking: Black and
 * Rogaway 2002, Ciphers with arbitrary finite domains, section 4).
 */
static uint64_t permute(uint64_t seed, uint64_t epoch, uint64_t n, uint64_t i)
{
    int half = 1;
    while (half < 31 && (uint64_t)1 << 2 * half < n)
        half++;
    const uint64_t mask = ((uint64_t)1 << half) - 1;
    do {
        uint64_t left = i >> half, right = i & mask;
        for (uint64_t round = 0; round < 4; round++) {
            const uint64_t other =
                left ^ (fr_hash_u64(seed, epoch, round, right) & mask);
            left = right;
            right = other;
        }
        i = left << half | right;
    } while (i >= n);
    return i;
}

uint64_t fr_image_set_at(const fr_image_set *set, uint64_t seed, uint64_t n)
{
    const uint64_t epoch = n / set->n_images, i = n % set->n_images;
    return set->is_in_order ? i : permute(seed, epoch, set->n_images, i);
}

/* The file of an image; *i becomes its place there. */
static const fr_image_file *file_of(const fr_image_set *set, uint64_t *i)
{
    const fr_image_file *file = set->files.items;
    while (*i >= file->n_images)
        *i -= (file++)->n_images;
    return file;
}

static fr_status read_part(const fr_image_part *part, uint64_t i, void *bytes,
                           uint64_t n, fr_err *err)
{
    return fr_read_at(part->fd, part->path,
                      part->first_byte + i * part->stride_bytes, bytes, n, err);
}

fr_status fr_image_set_read(const fr_image_set *set, uint64_t i,
                            unsigned char *bytes, float *out, fr_err *err)
{
    const fr_image_file *file = file_of(set, &i);
    const int64_t n_pixels = set->size * set->size, n = set->n_channels;

    FR_TRY(read_part(&file->pixels, i, bytes, fr_image_set_bytes(set), err));
    for (int64_t c = 0; c < n; c++)
        for (int64_t k = 0; k < n_pixels; k++)
            out[k * n + c] =
                (float)bytes[c * n_pixels + k] * set->scale[c] + set->shift[c];
    return FR_OK;
}

fr_status fr_image_set_label(const fr_image_set *set, uint64_t i, int32_t *out,
                             fr_err *err)
{
    const fr_image_file *file = file_of(set, &i);
    unsigned char label;

    FR_TRY(read_part(&file->labels, i, &label, 1, err));
    if (label >= set->n_labels)
        return fr_fail(err, FR_INPUT,
                       "%s: label %u of image %llu, the model has %lld; take a "
                       "model with more labels",
                       file->labels.path, label, (unsigned long long)i,
                       (long long)set->n_labels);
    *out = label;
    return FR_OK;
}
