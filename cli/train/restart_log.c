/* restart_log.c: see restart_log.h; schema "forerun.restarts/1". */
#include "cli/train/restart_log.h"

#include "core/base/text.h"
#include "core/system/clock.h"
#include "core/system/fileio.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static double now_s(void)
{
    struct timespec now = {0};

    (void)timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void name_path(fr_restart_log *log, const fr_request *request)
{
    (void)snprintf(log->path, sizeof log->path, "%.1000s/restarts.json",
                   fr_request_text(request, FR_OPT_CHECKPOINT));
}

static void put_restarts(const fr_restart_log *log, fr_json_writer *w)
{
    fr_json_open_array(w, "restarts");
    for (size_t i = 0; i < log->list.n; i++) {
        const fr_restart *r = &log->list.items[i];
        fr_json_begin_object(w);
        fr_json_put_i64(w, "step", r->step);
        fr_json_put_string(w, "why", r->why);
        fr_json_put_i64(w, "ranks_before", r->ranks_before);
        fr_json_put_i64(w, "ranks_after", r->ranks_after);
        fr_json_put_double(w, "seconds", r->seconds);
        fr_json_end_object(w);
    }
    fr_json_end_array(w);
}

static fr_status save(const fr_restart_log *log, fr_err *err)
{
    fr_buffer buffer;
    fr_json_writer w;

    fr_buffer_init(&buffer);
    fr_json_writer_init(&w, &buffer);
    fr_json_begin_object(&w);
    fr_json_put_string(&w, "schema", "forerun.restarts/1");
    fr_json_put_double(&w, "begun_s", log->begun_s);
    put_restarts(log, &w);
    fr_json_end_object(&w);
    return fr_file_write_buffer(log->path, &buffer, err);
}

static fr_status read_restart(const fr_json_value *object, fr_restart *out,
                              fr_err *err)
{
    const char *why = NULL;

    FR_TRY(fr_json_get_i64(object, "step", &out->step, err));
    FR_TRY(fr_json_get_string(object, "why", &why, err));
    fr_text_copy_cut(out->why, sizeof out->why, why);
    FR_TRY(fr_json_get_i64(object, "ranks_before", &out->ranks_before, err));
    FR_TRY(fr_json_get_i64(object, "ranks_after", &out->ranks_after, err));
    return fr_json_get_double(object, "seconds", &out->seconds, err);
}

static fr_status read_log(const fr_json_value *root, fr_restart_log *out,
                          fr_err *err)
{
    const fr_json_value *list = NULL;

    FR_TRY(fr_json_get_double(root, "begun_s", &out->begun_s, err));
    FR_TRY(fr_json_get_array(root, "restarts", &list, err));
    for (size_t i = 0; i < fr_json_n(list); i++) {
        fr_restart restart = {0};
        FR_TRY(read_restart(fr_json_at(list, i), &restart, err));
        FR_TRY_PUSH(&out->list, restart, err);
    }
    return FR_OK;
}

static fr_status load_log(fr_restart_log *out, const fr_request *request,
                          fr_err *err)
{
    fr_restart_log log = {0};
    fr_json *json = NULL;

    name_path(&log, request);
    FR_TRY(fr_json_load(log.path, &json, err));
    fr_status status = read_log(fr_json_root(json), &log, err);
    fr_json_destroy(json);
    if (status == FR_OK)
        *out = log;
    else
        fr_restart_log_release(&log);
    return status;
}

fr_status fr_restart_log_begin(fr_restart_log *log, const fr_request *request,
                               fr_err *err)
{
    fr_err ignored = {0};

    FR_TRY(fr_dir_create(fr_request_text(request, FR_OPT_CHECKPOINT), err));
    if (fr_request_on(request, FR_OPT_RESUME) &&
        load_log(log, request, &ignored) == FR_OK)
        return FR_OK;
    *log = (fr_restart_log){.begun_s = now_s()};
    name_path(log, request);
    return save(log, err);
}

void fr_restart_log_release(fr_restart_log *log)
{
    fr_vec_release(&log->list);
}

void fr_restart_log_add(fr_restart_log *log, const fr_restart *restart,
                        double failed_s)
{
    fr_err ignored = {0};

    log->failed_s = failed_s;
    if (fr_vec_push(&log->list, *restart) != FR_OK ||
        save(log, &ignored) != FR_OK)
        return;
}

void fr_restart_log_resumed(fr_restart_log *log)
{
    fr_err ignored = {0};

    if (log->failed_s <= 0 || log->list.n == 0)
        return;
    log->list.items[log->list.n - 1].seconds = fr_clock_s() - log->failed_s;
    log->failed_s = 0;
    if (save(log, &ignored) != FR_OK)
        return;
}

/* ---- the answer --------------------------------------------------------- */

static bool load(const fr_request *request, fr_restart_log *log)
{
    fr_err ignored = {0};

    return fr_request_has(request, FR_OPT_ELASTIC) &&
           load_log(log, request, &ignored) == FR_OK;
}

static double goodput_of(const fr_restart_log *log, double useful_s)
{
    const double all_s = now_s() - log->begun_s;

    return all_s > useful_s ? useful_s / all_s : 1;
}

void fr_restart_log_put(const fr_request *request, double useful_s,
                        fr_document *out)
{
    fr_restart_log log;

    if (!load(request, &log))
        return;
    put_restarts(&log, &out->data);
    fr_json_put_double(&out->data, "goodput", goodput_of(&log, useful_s));
    fr_document_printf(out, "%zu restart%s, goodput %.0f %%\n", log.list.n,
                       log.list.n == 1 ? "" : "s",
                       100 * goodput_of(&log, useful_s));
    for (size_t i = 0; i < log.list.n; i++) {
        const fr_restart *r = &log.list.items[i];
        fr_document_printf(out, "  step %lld, %lld to %lld ranks, %.1f s: %s\n",
                           (long long)r->step, (long long)r->ranks_before,
                           (long long)r->ranks_after, r->seconds, r->why);
    }
    fr_restart_log_release(&log);
}
