/* checkpoint_dir.c: see checkpoint_dir.h. */
#include "runtime/checkpoint/checkpoint_dir.h"

#include "core/base/text.h"
#include "core/base/units.h"
#include "core/system/fileio.h"
#include "runtime/checkpoint/manifest.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int64_t fr_checkpoint_step(const char *name)
{
    int64_t step = 0;

    if (!fr_text_starts(name, "step-") ||
        fr_parse_i64(name + strlen("step-"), &step, NULL) != FR_OK)
        return 0;
    return step > 0 ? step : 0;
}

int64_t fr_checkpoint_older(const char *dir, int64_t below)
{
    int64_t newest = 0;
    DIR *list = opendir(dir);

    if (list == NULL)
        return 0;
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;) {
        int64_t step = fr_checkpoint_step(entry->d_name);
        if (step < below && step > newest)
            newest = step;
    }
    (void)closedir(list);
    return newest;
}

/* Returns the step that `latest` names; 0: the file does not exist, or names
 * none. */
static int64_t latest(const char *dir)
{
    char path[FR_CHECKPOINT_PATH], *name = NULL;
    fr_err ignored = {0};
    int64_t named = 0;

    (void)snprintf(path, sizeof path, "%s/latest", dir);
    if (fr_file_exists(path) &&
        fr_file_read(path, 64, &name, NULL, &ignored) == FR_OK)
        named = fr_checkpoint_step(fr_text_trim(name));
    free(name);
    return named;
}

int64_t fr_checkpoint_newest(const char *dir, fr_buffer *notes)
{
    const int64_t named = latest(dir),
                  newest = fr_checkpoint_older(dir, INT64_MAX);

    if (named == 0 && newest > 0)
        fr_buffer_printf(notes,
                         "%s/latest is missing or names no checkpoint: the "
                         "newest that is whole is taken\n",
                         dir);
    return named > 0 ? named : newest;
}

bool fr_checkpoint_was_finished(const char *dir, int64_t n_steps_done)
{
    char path[FR_CHECKPOINT_PATH];

    (void)snprintf(path, sizeof path, "%s/step-%lld/manifest.json", dir,
                   (long long)n_steps_done);
    return fr_file_exists(path) || latest(dir) == n_steps_done;
}

void fr_checkpoint_remove(const char *dir, int64_t n_steps_done)
{
    char step_dir[FR_CHECKPOINT_PATH], path[FR_CHECKPOINT_PATH + 300];

    (void)snprintf(step_dir, sizeof step_dir, "%s/step-%lld", dir,
                   (long long)n_steps_done);
    DIR *list = opendir(step_dir);
    if (list == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;) {
        if (!fr_text_starts(entry->d_name, "rank-") &&
            !fr_text_starts(entry->d_name, "manifest.json") &&
            !fr_text_starts(entry->d_name, "losses"))
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", step_dir, entry->d_name);
        (void)remove(path);
    }
    (void)closedir(list);
    (void)rmdir(step_dir);
}

static bool is_as_long(const char *path, uint64_t n_bytes)
{
    struct stat info;

    return stat(path, &info) == 0 && (uint64_t)info.st_size == n_bytes;
}

/* By what can be seen without reading it all. */
static bool is_complete(const char *dir, int64_t n_steps_done)
{
    char path[FR_CHECKPOINT_PATH];
    fr_manifest manifest = {0};
    fr_err ignored = {0};

    if (fr_manifest_read(dir, n_steps_done, &manifest, &ignored) != FR_OK)
        return false;
    bool is_it = true;
    for (int64_t i = 0; is_it && i < manifest.n_files; i++)
        is_it = is_as_long(fr_shard_path(dir, n_steps_done, i, path),
                           manifest.files[i].n_bytes);
    fr_manifest_release(&manifest);
    return is_it;
}

/* One that cannot be removed only takes space, so failures are ignored.  Where
 * none but the newest is complete all stay. */
void fr_checkpoint_prune(const char *dir, int64_t newest, int64_t n_kept,
                         int64_t suspect_after, int64_t suspect_before)
{
    int64_t last = newest, n_left = n_kept - 1;

    for (int64_t step = newest;
         n_left > 0 && (step = fr_checkpoint_older(dir, step)) > 0;) {
        const bool is_suspect = step > suspect_after && step < suspect_before;
        if (is_suspect || !is_complete(dir, step))
            continue;
        last = step;
        n_left--;
    }
    if (last == newest && n_kept > 1)
        return;
    for (int64_t step = newest; (step = fr_checkpoint_older(dir, step)) > 0;) {
        const bool is_suspect = step > suspect_after && step < suspect_before;
        if (step < last || is_suspect || !is_complete(dir, step))
            fr_checkpoint_remove(dir, step);
    }
}

fr_status fr_checkpoint_point_at(const char *dir, int64_t n_steps_done,
                                 fr_err *err)
{
    char path[FR_CHECKPOINT_PATH], text[64];
    int n = snprintf(text, sizeof text, "step-%lld\n", (long long)n_steps_done);

    (void)snprintf(path, sizeof path, "%s/latest", dir);
    return fr_file_write(path, text, (size_t)n, err);
}
