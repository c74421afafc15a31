/* replica_store.c: see replica_store.h. */
#include "runtime/replica/replica_store.h"

#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "core/system/fileio.h"
#include "runtime/checkpoint/checkpoint_dir.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STORE "store-"

fr_status fr_replica_run_path(const char *dir, const char *checkpoint_dir,
                              char out[FR_REPLICA_PATH], fr_err *err)
{
    const char *node = getenv("FORERUN_NODE_ID");
    char whole[PATH_MAX], hash[17];

    if (realpath(checkpoint_dir, whole) == NULL)
        return fr_fail(err, FR_IO, "%s: %s", checkpoint_dir, strerror(errno));
    fr_hash_format(fr_hash_text(whole, 0), hash);
    const int n = snprintf(out, FR_REPLICA_PATH, "%s/forerun-replicas-%s%s%s",
                           dir != NULL ? dir : FR_REPLICA_DIR, hash,
                           node != NULL ? "-" : "", node != NULL ? node : "");
    if (n >= FR_REPLICA_PATH - 64) /* names are appended to it */
        return fr_fail(err, FR_IO, "%.100s...: the path is too long", dir);
    return FR_OK;
}

void fr_replica_store_path(const char *run, int64_t rank,
                           char out[FR_REPLICA_PATH])
{
    (void)snprintf(out, FR_REPLICA_PATH, "%.700s/" STORE "%lld", run,
                   (long long)rank);
}

void fr_replica_view_path(const char *run, int64_t rank,
                          char out[FR_REPLICA_PATH])
{
    (void)snprintf(out, FR_REPLICA_PATH, "%.700s/view-%lld", run,
                   (long long)rank);
}

/* ---- the stores of this host -------------------------------------------- */

/* The least number of a store that is not below `from`; -1: there is none. */
static int64_t next_store(const char *run, int64_t from)
{
    int64_t least = -1, number = 0;
    DIR *list = opendir(run);

    if (list == NULL)
        return -1;
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;) {
        if (!fr_text_starts(entry->d_name, STORE) ||
            fr_parse_i64(entry->d_name + strlen(STORE), &number, NULL) != FR_OK)
            continue;
        if (number >= from && (least < 0 || number < least))
            least = number;
    }
    (void)closedir(list);
    return least;
}

/* A step without a manifest is incomplete, or is being overwritten. */
static bool has_step(const char *store, int64_t step)
{
    char path[FR_CHECKPOINT_PATH];

    (void)snprintf(path, sizeof path, "%s/step-%lld/manifest.json", store,
                   (long long)step);
    return fr_file_exists(path);
}

int64_t fr_replica_newest(const char *run, int64_t below)
{
    char store[FR_REPLICA_PATH];
    int64_t newest = 0;

    for (int64_t i = -1; (i = next_store(run, i + 1)) >= 0;) {
        fr_replica_store_path(run, i, store);
        int64_t step = fr_checkpoint_older(store, below);
        while (step > newest && !has_step(store, step))
            step = fr_checkpoint_older(store, step);
        newest = step > newest ? step : newest;
    }
    return newest;
}

int64_t fr_replica_find(const char *run, int64_t step, const char *name,
                        int64_t from, char path[FR_CHECKPOINT_PATH])
{
    char store[FR_REPLICA_PATH];

    for (int64_t i = from - 1; (i = next_store(run, i + 1)) >= 0;) {
        fr_replica_store_path(run, i, store);
        (void)snprintf(path, FR_CHECKPOINT_PATH, "%s/step-%lld/%.100s", store,
                       (long long)step, name);
        if (has_step(store, step) && fr_file_exists(path))
            return i;
    }
    return -1;
}

void fr_replica_drop_slots(const char *run)
{
    char store[FR_REPLICA_PATH], path[FR_CHECKPOINT_PATH];

    for (int64_t i = -1; (i = next_store(run, i + 1)) >= 0;) {
        fr_replica_store_path(run, i, store);
        for (int slot = 0; slot < 2; slot++) {
            (void)snprintf(path, sizeof path, "%s/slot-%d", store, slot);
            fr_dir_remove(path);
        }
    }
}

void fr_replica_forget(const char *run, int64_t from)
{
    char store[FR_REPLICA_PATH];

    for (int64_t i = from - 1; (i = next_store(run, i + 1)) >= 0;) {
        fr_replica_store_path(run, i, store);
        fr_dir_remove(store);
    }
}

void fr_replica_keep_only(const char *run, int64_t step)
{
    char store[FR_REPLICA_PATH];

    for (int64_t i = -1; (i = next_store(run, i + 1)) >= 0;) {
        fr_replica_store_path(run, i, store);
        for (int64_t at = INT64_MAX; (at = fr_checkpoint_older(store, at)) > 0;)
            if (at != step)
                fr_checkpoint_remove(store, at);
    }
}
