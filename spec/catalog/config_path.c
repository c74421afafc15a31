/* config_path.c: finds the configs directory and names in it. */
#include "spec/catalog/config_path.h"

#include "core/base/text.h"
#include "core/system/fileio.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool join(char out[FR_CONFIG_PATH], const char *dir, const char *rest)
{
    int n = snprintf(out, FR_CONFIG_PATH, "%s/%s", dir, rest);
    return n > 0 && n < FR_CONFIG_PATH;
}

/* Upwards from the program's own directory. */
static bool find_beside_program(const char *kind, char out[FR_CONFIG_PATH])
{
    char dir[FR_CONFIG_PATH], rest[96];
    ssize_t n = readlink("/proc/self/exe", dir, sizeof dir - 1);
    if (n <= 0)
        return false;
    dir[n] = '\0';
    for (int i = 0; i < 5; i++) {
        char *slash = strrchr(dir, '/');
        if (slash == NULL)
            return false;
        *slash = '\0';
        snprintf(rest, sizeof rest, "configs/%s", kind);
        if (join(out, dir, rest) && fr_dir_exists(out))
            return true;
        snprintf(rest, sizeof rest, "share/forerun/configs/%s", kind);
        if (join(out, dir, rest) && fr_dir_exists(out))
            return true;
    }
    return false;
}

fr_status fr_config_dir(const char *configs, const char *kind,
                        char out[FR_CONFIG_PATH], fr_err *err)
{
    if (configs != NULL) {
        if (join(out, configs, kind) && fr_dir_exists(out))
            return FR_OK;
        return fr_fail(
            err, FR_INPUT,
            "%s: there is no directory '%s' in this folder of configurations",
            configs, kind);
    }
    if (find_beside_program(kind, out))
        return FR_OK;
    if (join(out, "configs", kind) && fr_dir_exists(out))
        return FR_OK;
    return fr_fail(
        err, FR_INPUT,
        "no directory configs/%s beside the program; name the folder of "
        "configurations (FORERUN_CONFIGS on the command line)",
        kind);
}

/* The name in `dir` that is nearest to `name`; "" when none is near. */
static void find_nearest(const char *dir, const char *name,
                         const char *extension, char out[256])
{
    enum { MANY = 256 };
    struct dirent **entries;
    const char *stems[MANY];
    size_t n_stems = 0;
    /* In the order of their names: that of a directory means nothing. */
    int n = scandir(dir, &entries, NULL, alphasort);
    out[0] = '\0';
    for (int i = 0; i < n; i++) {
        char *stem = entries[i]->d_name;
        if (n_stems == MANY || !fr_text_ends(stem, extension))
            continue;
        stem[strlen(stem) - strlen(extension)] = '\0';
        stems[n_stems++] = stem;
    }
    const char *near = fr_text_nearest(name, stems, n_stems);
    if (near != NULL)
        fr_text_copy_cut(out, 256, near);
    for (int i = 0; i < n; i++)
        free(entries[i]);
    if (n >= 0)
        free(entries);
}

static fr_status fail_missing(const char *configs, const char *name,
                              const char *kind, const char *extension,
                              fr_err *err)
{
    char dir[FR_CONFIG_PATH], nearest[256];
    FR_TRY(fr_config_dir(configs, kind, dir, err));
    find_nearest(dir, name, extension, nearest);
    if (nearest[0])
        return fr_fail(
            err, FR_INPUT,
            "%s: no such file, and no name in %s/%s: did you mean '%s'?", name,
            configs != NULL ? configs : "configs", kind, nearest);
    return fr_fail(err, FR_INPUT,
                   "%s: no such file, and no name in configs/%s (%s)", name,
                   kind, dir);
}

fr_status fr_config_resolve(const char *configs, const char *name_or_path,
                            const char *kind, const char *extension,
                            char out[FR_CONFIG_PATH], fr_err *err)
{
    char path[FR_CONFIG_PATH], dir[FR_CONFIG_PATH], file[512];
    if (!name_or_path[0])
        return fr_fail(err, FR_INPUT,
                       "empty name; give a path or a name in "
                       "configs/%s",
                       kind);
    if (strlen(name_or_path) >= FR_CONFIG_PATH)
        return fr_fail(err, FR_INPUT, "a path longer than %d bytes",
                       FR_CONFIG_PATH - 1);
    bool is_path = strchr(name_or_path, '/') != NULL ||
                   fr_text_ends(name_or_path, extension) ||
                   fr_file_exists(name_or_path);
    if (is_path) {
        fr_text_copy(out, FR_CONFIG_PATH, name_or_path);
        return FR_OK;
    }
    FR_TRY(fr_config_dir(configs, kind, dir, err));
    int n = snprintf(file, sizeof file, "%s%s", name_or_path, extension);
    if (n < 0 || (size_t)n >= sizeof file || !join(path, dir, file) ||
        !fr_file_exists(path))
        return fail_missing(configs, name_or_path, kind, extension, err);
    memcpy(out, path, sizeof path);
    return FR_OK;
}
