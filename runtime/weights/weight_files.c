/* weight_files.c: see weight_files.h. */
#include "runtime/weights/weight_files.h"

#include "core/base/text.h"
#include "core/system/fileio.h"

#include <stdio.h>
#include <string.h>

/* ---- shards -------------------------------------------------------------- */

/* Opens the shard that the index names for a tensor, once. */
static fr_status open_shard(fr_weight_files *files, const char *path,
                            const fr_safetensors **out, fr_err *err)
{
    fr_safetensors shard;
    for (size_t i = 0; i < files->all.n; i++)
        if (strcmp(files->all.items[i].path, path) == 0) {
            *out = &files->all.items[i];
            return FR_OK;
        }
    if (fr_vec_reserve(&files->all, 1) != FR_OK)
        return fr_fail_no_memory(err);
    FR_TRY(fr_safetensors_open(path, &shard, err));
    files->all.items[files->all.n++] = shard;
    *out = &files->all.items[files->all.n - 1];
    return FR_OK;
}

static fr_status check_entry(fr_weight_files *files, const char *dir,
                             const char *name, const fr_json_value *value,
                             fr_err *err)
{
    const fr_safetensors *shard;
    const char *file;
    char path[FR_WEIGHT_PATH];
    FR_TRY(fr_json_as_string(value, &file, err));
    /* An index from elsewhere names nothing outside of its directory. */
    if (strchr(file, '/') != NULL || file[0] == '.' || file[0] == '\0' ||
        (size_t)snprintf(path, sizeof path, "%s/%s", dir, file) >= sizeof path)
        return fr_json_fail(value, err, "'%s' is not the name of a file", file);
    FR_TRY(open_shard(files, path, &shard, err));
    if (fr_safetensors_find(shard, name) != NULL)
        return FR_OK;
    return fr_json_fail(value, err, "%s has no tensor '%s'", file, name);
}

/* In one file each. */
static fr_status check_once(const fr_weight_files *files, fr_err *err)
{
    for (size_t i = 0; i < files->all.n; i++)
        for (size_t t = 0; t < files->all.items[i].n; t++) {
            const char *name = files->all.items[i].tensors[t].name;
            const fr_safetensors *first = NULL;
            (void)fr_weight_files_find(files, name, &first);
            if (first != &files->all.items[i])
                return fr_fail(err, FR_INPUT,
                               "%s: tensor '%s' is in %s as well",
                               files->all.items[i].path, name, first->path);
        }
    return FR_OK;
}

static fr_status open_index(const char *path, fr_weight_files *files,
                            fr_err *err)
{
    const fr_json_value *map;
    fr_json *json;
    char dir[FR_WEIGHT_PATH];
    FR_TRY(fr_path_dir(path, dir, sizeof dir, err));
    FR_TRY(fr_json_load(path, &json, err));
    fr_status status =
        fr_json_get_object(fr_json_root(json), "weight_map", &map, err);
    for (size_t i = 0; status == FR_OK && i < fr_json_n(map); i++)
        status = check_entry(files, dir, fr_json_key_at(map, i),
                             fr_json_at(map, i), err);
    if (status == FR_OK)
        status = check_once(files, err);
    fr_json_destroy(json);
    return status;
}

/* ---- all ----------------------------------------------------------------- */

static fr_status find_file(const char *path, char *out, size_t n, fr_err *err)
{
    static const char *const names[] = {FR_WEIGHT_FILE, FR_WEIGHT_INDEX};
    if (!fr_dir_exists(path)) {
        if (!fr_file_exists(path))
            return fr_fail(err, FR_IO, "%s: no such file or directory", path);
        return fr_text_copy(out, n, path)
                   ? FR_OK
                   : fr_fail(err, FR_INPUT, "%s: the path is too long", path);
    }
    for (size_t i = 0; i < FR_LENGTH(names); i++)
        if ((size_t)snprintf(out, n, "%s/%s", path, names[i]) < n &&
            fr_file_exists(out))
            return FR_OK;
    return fr_fail(err, FR_IO, "%s: neither %s nor %s is in it", path, names[0],
                   names[1]);
}

fr_status fr_weight_files_open(const char *path, fr_weight_files *out,
                               fr_err *err)
{
    fr_weight_files files = {0};
    const fr_safetensors *only;
    char file[FR_WEIGHT_PATH];
    FR_TRY(find_file(path, file, sizeof file, err));
    fr_status status = fr_text_ends(file, ".json")
                           ? open_index(file, &files, err)
                           : open_shard(&files, file, &only, err);
    if (status == FR_OK)
        *out = files;
    else
        fr_weight_files_close(&files);
    return status;
}

void fr_weight_files_close(fr_weight_files *files)
{
    for (size_t i = 0; i < files->all.n; i++)
        fr_safetensors_close(&files->all.items[i]);
    fr_vec_release(&files->all);
}

const fr_safetensor *fr_weight_files_find(const fr_weight_files *files,
                                          const char *name,
                                          const fr_safetensors **out)
{
    for (size_t i = 0; i < files->all.n; i++) {
        const fr_safetensor *tensor =
            fr_safetensors_find(&files->all.items[i], name);
        *out = &files->all.items[i];
        if (tensor != NULL)
            return tensor;
    }
    return NULL;
}
