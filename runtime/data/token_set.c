/* token_set.c: many files of tokens, see token_file.h. */
#include "core/base/text.h"
#include "core/document/json.h"
#include "runtime/data/manifest_path.h"
#include "runtime/data/token_file.h"

#include <string.h>

static fr_status read_entry(const char *folder, const fr_json_value *entry,
                            fr_token_set *set, fr_err *err)
{
    static const char *const keys[] = {"path", "tokens"};
    fr_token_file file = {.fd = -1};
    const char *path = NULL;
    char whole[512];

    FR_TRY(fr_json_check_keys(entry, keys, FR_LENGTH(keys), err));
    FR_TRY(fr_json_get_string(entry, "path", &path, err));
    FR_TRY(fr_json_get_u64_or(entry, "tokens", 0, &file.n_tokens, err));
    FR_TRY(fr_manifest_path(folder, entry, path, whole, err));
    (void)fr_text_copy(file.path, sizeof file.path, whole);
    if (file.n_tokens == 0)
        FR_TRY(fr_token_file_open(&file, whole, err));
    if (fr_vec_push(&set->files, file) != FR_OK) {
        fr_token_file_close(&file);
        return fr_fail_no_memory(err);
    }
    return FR_OK;
}

static fr_status read_manifest(const char *path, const fr_json_value *root,
                               fr_token_set *set, fr_err *err)
{
    static const char *const keys[] = {"schema", "shuffle", "files"};
    static const char *const shuffles[] = {"all", "ranges"};
    const char *schema = NULL, *shuffle = NULL;
    const fr_json_value *files = NULL;
    char folder[512];

    FR_TRY(fr_json_check_keys(root, keys, FR_LENGTH(keys), err));
    FR_TRY(fr_json_get_string(root, "schema", &schema, err));
    FR_TRY(fr_json_get_string_or(root, "shuffle", "all", &shuffle, err));
    FR_TRY(fr_json_get_array(root, "files", &files, err));
    if (strcmp(schema, "forerun.tokens/1") != 0)
        return fr_json_fail(
            root, err, "schema '%.40s'; this reads forerun.tokens/1", schema);
    const int i = fr_text_find(shuffle, shuffles, FR_LENGTH(shuffles));
    if (i < 0)
        return fr_json_fail(root, err, "shuffle '%.40s': all or ranges",
                            shuffle);
    set->has_ranges = i == 1;
    if (fr_json_n(files) == 0)
        return fr_json_fail(files, err, "no files");
    FR_TRY(fr_path_dir(path, folder, sizeof folder, err));
    for (size_t k = 0; k < fr_json_n(files); k++)
        FR_TRY(read_entry(folder, fr_json_at(files, k), set, err));
    return FR_OK;
}

static fr_status load_manifest(const char *path, fr_token_set *set, fr_err *err)
{
    fr_json *json = NULL;

    FR_TRY(fr_json_load(path, &json, err));
    fr_status status = read_manifest(path, fr_json_root(json), set, err);
    fr_json_destroy(json);
    return status;
}

static fr_status load_file(const char *path, int64_t vocab, fr_token_set *set,
                           fr_err *err)
{
    fr_token_file file;

    FR_TRY(fr_token_file_open(&file, path, err));
    if (fr_vec_push(&set->files, file) != FR_OK) {
        fr_token_file_close(&file);
        return fr_fail_no_memory(err);
    }
    if (file.n_tokens < (uint64_t)set->seq + 1)
        return FR_OK; /* which is said of the set */
    return fr_token_file_check(&file, vocab, err);
}

/* A file that is shorter than a window has none. */
static fr_status count_windows(const char *path, fr_token_set *set, fr_err *err)
{
    uint64_t n_tokens = 0;

    FR_TRY_CALLOC(set->windows_before, set->files.n + 1, err);
    for (size_t i = 0; i < set->files.n; i++) {
        const uint64_t n = set->files.items[i].n_tokens;
        const uint64_t seq = (uint64_t)set->seq;
        if (n > UINT64_MAX / 2 - n_tokens)
            return fr_fail(err, FR_INPUT, "%s: too many tokens", path);
        n_tokens += n;
        set->windows_before[i + 1] =
            set->windows_before[i] + (n > seq ? n - seq : 0);
    }
    if (fr_token_set_windows(set) > 0)
        return FR_OK;
    return fr_fail(err, FR_INPUT,
                   "%s: %llu tokens, a sample needs seq + 1 = %lld; take "
                   "a longer file or a shorter sequence",
                   path, (unsigned long long)n_tokens, (long long)set->seq + 1);
}

fr_status fr_token_set_open(fr_token_set *set, const char *path, int64_t seq,
                            int64_t vocab, fr_err *err)
{
    fr_token_set opened = {.seq = seq};
    fr_status status = fr_text_ends(path, ".json")
                           ? load_manifest(path, &opened, err)
                           : load_file(path, vocab, &opened, err);

    if (status == FR_OK)
        status = count_windows(path, &opened, err);
    if (status == FR_OK)
        *set = opened;
    else
        fr_token_set_close(&opened);
    return status;
}

void fr_token_set_close(fr_token_set *set)
{
    for (size_t i = 0; i < set->files.n; i++)
        fr_token_file_close(&set->files.items[i]);
    fr_vec_release(&set->files);
    free(set->windows_before);
    set->windows_before = NULL;
}

/* Opens a file that the manifest has told the length of. */
static fr_status open_told(fr_token_file *file, fr_err *err)
{
    fr_token_file opened;

    FR_TRY(fr_token_file_open(&opened, file->path, err));
    if (opened.n_tokens != file->n_tokens) {
        fr_token_file_close(&opened);
        return fr_fail(err, FR_INPUT, "%s: %llu tokens, its manifest says %llu",
                       file->path, (unsigned long long)opened.n_tokens,
                       (unsigned long long)file->n_tokens);
    }
    *file = opened;
    return FR_OK;
}

fr_status fr_token_set_find(fr_token_set *set, uint64_t i_window,
                            const fr_token_file **file, uint64_t *first,
                            fr_err *err)
{
    size_t low = 0, high = set->files.n; /* in files [low, high) */

    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (set->windows_before[middle] <= i_window)
            low = middle;
        else
            high = middle;
    }
    /* Files without a window have the same count before and after them. */
    if (set->files.items[low].fd < 0)
        FR_TRY(open_told(&set->files.items[low], err));
    *file = &set->files.items[low];
    *first = i_window - set->windows_before[low];
    return FR_OK;
}
