/*
 * image_set.h: files of images and their labels that need no decoding.
 *
 * A file is records of the label's bytes and the pixels of one image, channel
 * by channel, row by row: the binary versions of CIFAR-10 (1 byte of label) and
 * CIFAR-100 (2, of which the last one counts), of any size and number of
 * channels; or a pair of IDX files as MNIST has (images and labels apart).
 * Read with pread, as files of tokens are (token_file.h).
 */
#ifndef FR_RUNTIME_DATA_IMAGE_SET_H
#define FR_RUNTIME_DATA_IMAGE_SET_H

#include "core/base/vec.h"
#include "spec/model/model.h"

/* The place of a part of every image: first_byte + i * stride_bytes. */
typedef struct fr_image_part {
    char path[512];
    int fd; /* -1: not open */
    uint64_t first_byte, stride_bytes;
} fr_image_part;

typedef struct fr_image_file {
    fr_image_part pixels, labels;
    uint64_t n_images;
} fr_image_file;

enum { FR_IMAGE_CHANNELS_MAX = 64 };

/*
 * Images of one file, or of many by a manifest, whose name ends in ".json":
 *
 *     {"schema": "forerun.images/1", "shuffle": "all", "label_bytes": 1,
 *      "mean": [0.49, 0.48, 0.45], "std": [0.25, 0.24, 0.26],
 *      "files": [{"path": "data_batch_1.bin"}, ...]}
 *
 * Paths are relative to its folder; a file with "labels" is of IDX.  A value is
 * (pixel / 255 - mean) / std of its channel; the default of both is 0.5.
 */
typedef struct fr_image_set {
    fr_vec(fr_image_file) files;
    uint64_t n_images;
    int64_t n_channels, size, n_labels;
    bool is_in_order; /* shuffle "none" */
    float scale[FR_IMAGE_CHANNELS_MAX], shift[FR_IMAGE_CHANNELS_MAX];
} fr_image_set;

/* Images as a list of layers takes them.  FR_IO; FR_INPUT with the mend: no
 * whole records, or a label that the model does not have. */
FR_CHECKED fr_status fr_image_set_open(fr_image_set *set, const char *path,
                                       const fr_model *model, fr_err *err);
void fr_image_set_close(fr_image_set *set);

/* Returns the index of the n-th image: every epoch shows each image once, in a
 * different order drawn from the seed. */
uint64_t fr_image_set_at(const fr_image_set *set, uint64_t seed, uint64_t n);

/* Bytes of an image. */
static inline uint64_t fr_image_set_bytes(const fr_image_set *set)
{
    return (uint64_t)(set->n_channels * set->size * set->size);
}
/* Image i to out[row][column][channel], by way of its bytes. */
FR_CHECKED fr_status fr_image_set_read(const fr_image_set *set, uint64_t i,
                                       unsigned char *bytes, float *out,
                                       fr_err *err);
FR_CHECKED fr_status fr_image_set_label(const fr_image_set *set, uint64_t i,
                                        int32_t *out, fr_err *err);

#endif
