/* image_manifest.h: how a manifest of images (image_set.h) fills a set.  Of
 * runtime/data alone. */
#ifndef FR_RUNTIME_DATA_IMAGE_MANIFEST_H
#define FR_RUNTIME_DATA_IMAGE_MANIFEST_H

#include "runtime/data/image_set.h"

/* On failure the set has the files so far. */
FR_CHECKED fr_status fr_image_manifest_read(const char *path, fr_image_set *set,
                                            fr_err *err);

/* One file more; labels: the other file of IDX, NULL: records with label_bytes,
 * 0: as many as fit. */
FR_CHECKED fr_status fr_image_set_add(fr_image_set *set, const char *path,
                                      const char *labels, int64_t label_bytes,
                                      fr_err *err);
void fr_image_set_normalise(fr_image_set *set, int64_t channel, double mean,
                            double std);

#endif
