/* image_manifest.c: see image_manifest.h. */
#include "runtime/data/image_manifest.h"

#include "core/base/text.h"
#include "core/document/json.h"
#include "runtime/data/manifest_path.h"

#include <string.h>

static fr_status read_entry(const char *folder, const fr_json_value *entry,
                            int64_t label_bytes, fr_image_set *set, fr_err *err)
{
    static const char *const keys[] = {"path", "labels"};
    char path[512], labels[512];
    const char *name = NULL, *of_labels = NULL;

    FR_TRY(fr_json_check_keys(entry, keys, FR_LENGTH(keys), err));
    FR_TRY(fr_json_get_string(entry, "path", &name, err));
    FR_TRY(fr_json_get_string_or(entry, "labels", "", &of_labels, err));
    FR_TRY(fr_manifest_path(folder, entry, name, path, err));
    FR_TRY(fr_manifest_path(folder, entry, of_labels, labels, err));
    return fr_image_set_add(set, path, of_labels[0] != '\0' ? labels : NULL,
                            label_bytes, err);
}

/* A number of each channel; without it what is there stays. */
static fr_status read_channels(const fr_json_value *root, const char *key,
                               double low, int64_t n, double *out, fr_err *err)
{
    const fr_json_value *list = fr_json_find(root, key);

    if (list == NULL)
        return FR_OK;
    FR_TRY(fr_json_get_array(root, key, &list, err));
    if ((int64_t)fr_json_n(list) != n)
        return fr_json_fail(list, err,
                            "%s: %zu numbers, images have %lld "
                            "channels",
                            key, fr_json_n(list), (long long)n);
    for (int64_t c = 0; c < n; c++) {
        const fr_json_value *at = fr_json_at(list, (size_t)c);
        FR_TRY(fr_json_as_double(at, &out[c], err));
        if (!(out[c] >= low && out[c] <= 1e6))
            return fr_json_fail(at, err, "%s is %g; give %g to 1e6", key,
                                out[c], low);
    }
    return FR_OK;
}

static fr_status read_norms(const fr_json_value *root, fr_image_set *set,
                            fr_err *err)
{
    double mean[FR_IMAGE_CHANNELS_MAX], std[FR_IMAGE_CHANNELS_MAX];
    for (int64_t c = 0; c < set->n_channels; c++)
        mean[c] = std[c] = 0.5;
    FR_TRY(read_channels(root, "mean", -1e6, set->n_channels, mean, err));
    FR_TRY(read_channels(root, "std", 1e-6, set->n_channels, std, err));
    for (int64_t c = 0; c < set->n_channels; c++)
        fr_image_set_normalise(set, c, mean[c], std[c]);
    return FR_OK;
}

static fr_status read_manifest(const char *path, const fr_json_value *root,
                               fr_image_set *set, fr_err *err)
{
    static const char *const keys[] = {"schema", "shuffle", "label_bytes",
                                       "mean",   "std",     "files"};
    static const char *const shuffles[] = {"all", "none"};
    const char *schema = NULL, *shuffle = NULL;
    const fr_json_value *files = NULL;
    int64_t label_bytes = 0;
    char folder[512];

    FR_TRY(fr_json_check_keys(root, keys, FR_LENGTH(keys), err));
    FR_TRY(fr_json_get_string(root, "schema", &schema, err));
    FR_TRY(fr_json_get_string_or(root, "shuffle", "all", &shuffle, err));
    FR_TRY(fr_json_get_i64_or(root, "label_bytes", 0, &label_bytes, err));
    FR_TRY(fr_json_get_array(root, "files", &files, err));
    if (strcmp(schema, "forerun.images/1") != 0)
        return fr_json_fail(
            root, err, "schema '%.40s'; this reads forerun.images/1", schema);
    const int i = fr_text_find(shuffle, shuffles, FR_LENGTH(shuffles));
    if (i < 0)
        return fr_json_fail(root, err, "shuffle '%.40s': all or none", shuffle);
    if (label_bytes < 0 || label_bytes > 2)
        return fr_json_fail(root, err, "label_bytes is %lld; give 1 or 2",
                            (long long)label_bytes);
    set->is_in_order = i == 1;
    FR_TRY(read_norms(root, set, err));
    if (fr_json_n(files) == 0)
        return fr_json_fail(files, err, "no files");
    FR_TRY(fr_path_dir(path, folder, sizeof folder, err));
    for (size_t k = 0; k < fr_json_n(files); k++)
        FR_TRY(read_entry(folder, fr_json_at(files, k), label_bytes, set, err));
    return FR_OK;
}

fr_status fr_image_manifest_read(const char *path, fr_image_set *set,
                                 fr_err *err)
{
    fr_json *json = NULL;

    FR_TRY(fr_json_load(path, &json, err));
    fr_status status = read_manifest(path, fr_json_root(json), set, err);
    fr_json_destroy(json);
    return status;
}
