/* checkpoint_dir.c: see checkpoint_dir.h. */
#include "runtime/checkpoint/checkpoint_dir.h"

#include "core/base/fileio.h"
#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "core/document/json.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "step-12": 12; 0: it is no such name. */
static int64_t step_of(const char *name)
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
        int64_t step = step_of(entry->d_name);
        if (step < below && step > newest)
            newest = step;
    }
    (void)closedir(list);
    return newest;
}

int64_t fr_checkpoint_newest(const char *dir, fr_buffer *notes)
{
    char path[FR_CHECKPOINT_PATH], *name = NULL;
    fr_err why = {0};
    int64_t named = 0, newest = fr_checkpoint_older(dir, INT64_MAX);

    (void)snprintf(path, sizeof path, "%s/latest", dir);
    if (fr_file_exists(path) &&
        fr_file_read(path, 64, &name, NULL, &why) == FR_OK)
        named = step_of(fr_text_trim(name));
    free(name);
    if (named == 0 && newest > 0)
        fr_buffer_printf(notes,
                         "%s is missing or names no checkpoint: the newest "
                         "that is whole is taken\n",
                         path);
    return named > 0 ? named : newest;
}

fr_status fr_checkpoint_read_manifest(const char *dir, int64_t n_steps_done,
                                      int64_t world, uint64_t *hashes,
                                      fr_err *err)
{
    char path[FR_CHECKPOINT_PATH];
    fr_json *json = NULL;
    const fr_json_value *list = NULL;
    const char *text = NULL;
    int64_t n_said = 0;
    fr_err why = {0};

    (void)snprintf(path, sizeof path, "%s/step-%lld/manifest.json", dir,
                   (long long)n_steps_done);
    if (fr_json_load(path, &json, &why) != FR_OK)
        return fr_fail(err, FR_IO, "%s", why.text);
    const fr_json_value *root = fr_json_root(json);
    fr_status status = fr_json_get_i64(root, "n_steps_done", &n_said, &why);
    if (status == FR_OK && n_said != n_steps_done)
        status = fr_json_fail(root, &why, "n_steps_done is %lld, not %lld",
                              (long long)n_said, (long long)n_steps_done);
    if (status == FR_OK)
        status = fr_json_get_array(root, "rank_hashes", &list, &why);
    if (status == FR_OK && fr_json_n(list) != (size_t)world)
        status = fr_json_fail(list, &why,
                              "the checkpoint has %zu ranks, the plan %lld",
                              fr_json_n(list), (long long)world);
    for (size_t i = 0; status == FR_OK && i < (size_t)world; i++) {
        status = fr_json_as_string(fr_json_at(list, i), &text, &why);
        if (status == FR_OK && !fr_hash_parse(text, &hashes[i]))
            status = fr_json_fail(list, &why, "'%s' is not a hash", text);
    }
    fr_json_destroy(json);
    return status == FR_OK ? FR_OK : fr_fail(err, FR_IO, "%s", why.text);
}

static fr_status write_manifest(const char *dir, int64_t n_steps_done,
                                const uint64_t *hashes, int64_t world,
                                fr_err *err)
{
    char path[FR_CHECKPOINT_PATH], text[17];
    fr_buffer buffer;
    fr_json_writer w;

    fr_buffer_init(&buffer);
    fr_json_writer_init(&w, &buffer);
    fr_json_begin_object(&w);
    fr_json_put_string(&w, "schema", "forerun.checkpoint/1");
    fr_json_put_i64(&w, "n_steps_done", n_steps_done);
    fr_json_key(&w, "rank_hashes");
    fr_json_begin_array(&w);
    for (int64_t i = 0; i < world; i++) {
        fr_hash_format(hashes[i], text);
        fr_json_string(&w, text);
    }
    fr_json_end_array(&w);
    fr_json_end_object(&w);
    (void)snprintf(path, sizeof path, "%s/step-%lld/manifest.json", dir,
                   (long long)n_steps_done);
    return fr_file_write_buffer(path, &buffer, err);
}

static void remove_step(const char *dir, int64_t n_steps_done)
{
    char step_dir[FR_CHECKPOINT_PATH], path[FR_CHECKPOINT_PATH + 300];

    (void)snprintf(step_dir, sizeof step_dir, "%s/step-%lld", dir,
                   (long long)n_steps_done);
    DIR *list = opendir(step_dir);
    if (list == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;) {
        if (!fr_text_starts(entry->d_name, "rank-") &&
            strcmp(entry->d_name, "manifest.json") != 0)
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", step_dir, entry->d_name);
        (void)remove(path);
    }
    (void)closedir(list);
    (void)rmdir(step_dir);
}

/* One that cannot be removed only takes space, so failures are ignored. */
void fr_checkpoint_prune(const char *dir, int64_t newest, int64_t kept)
{
    for (int64_t step = newest; (step = fr_checkpoint_older(dir, step)) > 0;)
        if (step != kept)
            remove_step(dir, step);
}

fr_status fr_checkpoint_publish(const char *dir, int64_t n_steps_done,
                                const uint64_t *hashes, int64_t world,
                                fr_err *err)
{
    char path[FR_CHECKPOINT_PATH], text[64];

    FR_TRY(write_manifest(dir, n_steps_done, hashes, world, err));
    int n = snprintf(text, sizeof text, "step-%lld\n", (long long)n_steps_done);
    (void)snprintf(path, sizeof path, "%s/latest", dir);
    return fr_file_write(path, text, (size_t)n, err);
}
