/* slow_news.c: see slow_news.h; schema "forerun.slow/1". */
#include "cli/train/slow_news.h"

#include "core/document/json.h"
#include "core/numbers/stats.h"
#include "core/system/fileio.h"

#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 1100 };

static const char *path_of(const fr_request *request, char path[PATH_BYTES])
{
    (void)snprintf(path, PATH_BYTES, "%.1000s/slow.json",
                   fr_request_text(request, FR_OPT_CHECKPOINT));
    return path;
}

/* ---- rank 0 ------------------------------------------------------------- */

static fr_status write_news(const fr_slow_reporter *reporter,
                            const fr_step_record *record, fr_err *err)
{
    char path[PATH_BYTES];
    double sorted[FR_NEWS_STEPS];
    fr_buffer buffer;
    fr_json_writer w;

    memcpy(sorted, reporter->step_s, sizeof sorted);
    fr_buffer_init(&buffer);
    fr_json_writer_init(&w, &buffer);
    fr_json_begin_object(&w);
    fr_json_put_string(&w, "schema", "forerun.slow/1");
    fr_json_put_i64(&w, "step", record->step);
    fr_json_put_double(&w, "step_s", fr_stats_median(sorted, FR_NEWS_STEPS));
    fr_json_open_array(&w, "stragglers");
    for (int i = 0; i < record->n_stragglers; i++) {
        const fr_straggler *at = &record->stragglers[i];
        fr_json_begin_object(&w);
        fr_json_put_i64(&w, "kind", (int64_t)at->kind);
        fr_json_put_i64(&w, "index", at->index);
        fr_json_put_double(&w, "factor", at->factor);
        fr_json_end_object(&w);
    }
    fr_json_end_array(&w);
    fr_json_end_object(&w);
    return fr_file_write_buffer(path_of(reporter->request, path), &buffer, err);
}

void fr_slow_reporter_step(fr_slow_reporter *reporter,
                           const fr_step_record *record)
{
    fr_err ignored = {0};

    if (!fr_request_on(reporter->request, FR_OPT_REBALANCE))
        return;
    reporter->step_s[reporter->n++ % FR_NEWS_STEPS] = record->step_s;
    if (reporter->n % FR_NEWS_STEPS == 0 &&
        write_news(reporter, record, &ignored) != FR_OK)
        return;
}

/* ---- the supervisor ----------------------------------------------------- */

static fr_status read_straggler(const fr_json_value *object, fr_straggler *out,
                                fr_err *err)
{
    int64_t kind = 0;

    FR_TRY(fr_json_get_i64(object, "kind", &kind, err));
    FR_TRY(fr_json_get_i64(object, "index", &out->index, err));
    FR_TRY(fr_json_get_double(object, "factor", &out->factor, err));
    if (kind < 0 || kind >= FR_SLOW_N || !(out->factor > 0))
        return fr_fail(err, FR_INPUT, "no straggler");
    out->kind = (fr_slow_kind)kind;
    return FR_OK;
}

static fr_status read_news(const fr_json_value *root, fr_slow_news *out,
                           fr_err *err)
{
    const fr_json_value *list = NULL;

    FR_TRY(fr_json_get_i64(root, "step", &out->step, err));
    FR_TRY(fr_json_get_double(root, "step_s", &out->step_s, err));
    FR_TRY(fr_json_get_array(root, "stragglers", &list, err));
    for (size_t i = 0; i < fr_json_n(list) && i < FR_STEP_STRAGGLERS; i++)
        FR_TRY(read_straggler(fr_json_at(list, i),
                              &out->stragglers[out->n_stragglers++], err));
    return FR_OK;
}

bool fr_slow_news_read(const fr_request *request, fr_slow_news *out)
{
    char path[PATH_BYTES];
    fr_json *json = NULL;
    fr_err ignored = {0};

    *out = (fr_slow_news){0};
    if (!fr_file_exists(path_of(request, path)) ||
        fr_json_load(path, &json, &ignored) != FR_OK)
        return false;
    const bool is_read = read_news(fr_json_root(json), out, &ignored) == FR_OK;
    fr_json_destroy(json);
    return is_read;
}

void fr_slow_news_forget(const fr_request *request)
{
    char path[PATH_BYTES];

    (void)remove(path_of(request, path));
}
