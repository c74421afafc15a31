/*
 * nsys_sqlite.c: what `nsys export --type sqlite` writes
 * (docs.nvidia.com/nsight-systems, "SQLite Schema Reference"): times in
 * nanoseconds, names as keys of StringIds.  The database is not trusted: it is
 * opened read-only, and tables that it makes up as views are not asked.
 */
#include "interop/trace/trace.h"

#ifdef FR_HAVE_SQLITE

#include "core/base/text.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

typedef struct export
{
    sqlite3 *db;
    const char *path;
}
export;

static fr_status fail(const export *e, fr_err *err)
{
    int code = sqlite3_errcode(e->db);
    if (code == SQLITE_NOMEM)
        return fr_fail_no_memory(err);
    return fr_fail(err, FR_INPUT, "%s: %s: no export of nsys to SQLite",
                   e->path, sqlite3_errmsg(e->db));
}

static fr_status ask(const export *e, const char *question, sqlite3_stmt **out,
                     fr_err *err)
{
    return sqlite3_prepare_v2(e->db, question, -1, out, NULL) == SQLITE_OK
               ? FR_OK
               : fail(e, err);
}

/* A table of that name, no view. */
static fr_status has_table(const export *e, const char *name, bool *out,
                           fr_err *err)
{
    sqlite3_stmt *row;
    FR_TRY(ask(e,
               "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1 "
               "AND sql NOT LIKE 'CREATE VIRTUAL%'",
               &row, err));
    sqlite3_bind_text(row, 1, name, -1, SQLITE_STATIC);
    int code = sqlite3_step(row);
    fr_status status = FR_OK;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        status = fail(e, err);
    *out = code == SQLITE_ROW;
    sqlite3_finalize(row);
    return status;
}

static void copy_text(sqlite3_stmt *row, int column, char *out, size_t n)
{
    const unsigned char *text = sqlite3_column_text(row, column);
    if (text != NULL)
        fr_text_copy_cut(out, n, (const char *)text);
}

/* start, end, name, device, stream. */
static fr_status read_spans(const export *e, const char *question,
                            const char *category, fr_trace_event_fn take,
                            void *self, fr_err *err)
{
    sqlite3_stmt *row;
    fr_status status = FR_OK;
    int code = SQLITE_DONE;
    FR_TRY(ask(e, question, &row, err));
    while (status == FR_OK && (code = sqlite3_step(row)) == SQLITE_ROW) {
        fr_trace_event event = fr_trace_event_none();
        event.phase = 'X';
        fr_text_copy_cut(event.category, sizeof event.category, category);
        event.begin_us = sqlite3_column_double(row, 0) * 1e-3;
        event.dur_us = (double)(sqlite3_column_int64(row, 1) -
                                sqlite3_column_int64(row, 0)) *
                       1e-3;
        copy_text(row, 2, event.name, sizeof event.name);
        copy_text(row, 3, event.process, sizeof event.process);
        event.stream = sqlite3_column_double(row, 4);
        if (!(event.dur_us >= 0 && event.dur_us < 1e12))
            status = fr_fail(err, FR_INPUT,
                             "%s: a span whose end makes no sense", e->path);
        else
            status = take(self, &event, err);
    }
    if (status == FR_OK && code != SQLITE_DONE)
        status = fail(e, err);
    sqlite3_finalize(row);
    return status;
}

/* "iteration 12", "step_3", "ProfilerStep#7": how long is what stands before
 * the number?  0: it marks no step. */
static size_t step_prefix(const char *name)
{
    static const char *const words[] = {
        "profilerstep", "train_step", "training step", "step",
        "iteration",    "iter",       "batch"};
    for (size_t i = 0; i < FR_LENGTH(words); i++) {
        size_t n = strlen(words[i]);
        if (strncasecmp(name, words[i], n) != 0)
            continue;
        n += strspn(name + n, " #_:=-");
        size_t n_digits = strspn(name + n, "0123456789");
        return n_digits > 0 && name[n + n_digits] == '\0' ? n : 0;
    }
    return 0;
}

/* NVTX ranges that are numbered steps, as Kineto marks them: those of one
 * thread and of one name, that no step counts twice. */
static fr_status read_steps(const export *e, fr_trace_event_fn take, void *self,
                            fr_err *err)
{
    sqlite3_stmt *row;
    fr_status status = FR_OK;
    int code = SQLITE_DONE;
    char first[64] = "";
    sqlite3_int64 thread = 0;
    FR_TRY(ask(e,
               "SELECT n.start, n.end, COALESCE(n.text, s.value), n.globalTid "
               "FROM NVTX_EVENTS n LEFT JOIN StringIds s ON s.id = n.textId "
               "WHERE n.end IS NOT NULL ORDER BY n.globalTid, n.start",
               &row, err));
    while (status == FR_OK && (code = sqlite3_step(row)) == SQLITE_ROW) {
        char name[64] = "";
        fr_trace_event event = fr_trace_event_none();
        copy_text(row, 2, name, sizeof name);
        const size_t n = step_prefix(name);
        if (n > 0 && first[0] == '\0') {
            memcpy(first, name, n);
            thread = sqlite3_column_int64(row, 3);
        }
        if (n == 0 || strncmp(name, first, n) != 0 || first[n] != '\0' ||
            sqlite3_column_int64(row, 3) != thread)
            continue;
        event.phase = 'X';
        snprintf(event.name, sizeof event.name, "ProfilerStep#%s", name + n);
        fr_text_copy_cut(event.category, sizeof event.category,
                         "user_annotation");
        event.begin_us = sqlite3_column_double(row, 0) * 1e-3;
        event.dur_us = (double)(sqlite3_column_int64(row, 1) -
                                sqlite3_column_int64(row, 0)) *
                       1e-3;
        if (event.dur_us >= 0 && event.dur_us < 1e12)
            status = take(self, &event, err);
    }
    if (status == FR_OK && code != SQLITE_DONE)
        status = fail(e, err);
    sqlite3_finalize(row);
    return status;
}

static fr_status read_devices(const export *e, fr_trace_about *about,
                              fr_err *err)
{
    sqlite3_stmt *row;
    bool is_there;
    FR_TRY(has_table(e, "TARGET_INFO_GPU", &is_there, err));
    if (!is_there)
        return FR_OK;
    FR_TRY(ask(e,
               "SELECT name, totalMemory, smCount, computeMajor, computeMinor "
               "FROM TARGET_INFO_GPU ORDER BY id",
               &row, err));
    int code;
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        if (about->n_devices++ > 0)
            continue;
        copy_text(row, 0, about->gpu, sizeof about->gpu);
        about->memory_bytes = sqlite3_column_double(row, 1);
        about->n_processors = sqlite3_column_double(row, 2);
        snprintf(about->capability, sizeof about->capability, "%d.%d",
                 sqlite3_column_int(row, 3) % 1000,
                 sqlite3_column_int(row, 4) % 1000);
    }
    fr_status status = code == SQLITE_DONE ? FR_OK : fail(e, err);
    sqlite3_finalize(row);
    return status;
}

static fr_status read_export(const export *e, fr_trace_event_fn take,
                             void *self, fr_trace_about *about, fr_err *err)
{
    bool has_kernels, has_copies, has_strings, has_ranges;
    FR_TRY(has_table(e, "CUPTI_ACTIVITY_KIND_KERNEL", &has_kernels, err));
    FR_TRY(has_table(e, "CUPTI_ACTIVITY_KIND_MEMCPY", &has_copies, err));
    FR_TRY(has_table(e, "StringIds", &has_strings, err));
    if (!has_strings || !has_kernels)
        return fr_fail(err, FR_INPUT,
                       "%s: no table of kernels: profile with nsys profile -t "
                       "cuda, export with nsys export --type sqlite",
                       e->path);
    FR_TRY(read_devices(e, about, err));
    FR_TRY(read_spans(e,
                      "SELECT k.start, k.end, s.value, k.deviceId, k.streamId "
                      "FROM CUPTI_ACTIVITY_KIND_KERNEL k LEFT JOIN StringIds s "
                      "ON s.id = k.demangledName",
                      "kernel", take, self, err));
    FR_TRY(has_table(e, "NVTX_EVENTS", &has_ranges, err));
    if (has_ranges)
        FR_TRY(read_steps(e, take, self, err));
    if (!has_copies)
        return FR_OK;
    /* ENUM_CUDA_MEMCPY_OPER: 1 host to device, 2 device to host, 8 device to
     * device. */
    return read_spans(e,
                      "SELECT start, end, CASE copyKind WHEN 1 THEN 'Memcpy "
                      "HtoD' WHEN 2 THEN 'Memcpy DtoH' ELSE 'Memcpy DtoD' END, "
                      "deviceId, streamId FROM CUPTI_ACTIVITY_KIND_MEMCPY",
                      "gpu_memcpy", take, self, err);
}

fr_status fr_nsys_read(const char *path, fr_trace_event_fn take, void *self,
                       fr_trace_about *about, fr_err *err)
{
    export e = {.path = path};
    *about = (fr_trace_about){.rank = -1, .world_size = -1};
    int code = sqlite3_open_v2(path, &e.db, SQLITE_OPEN_READONLY, NULL);
    fr_status status;
    if (e.db == NULL)
        return fr_fail_no_memory(err);
    sqlite3_db_config(e.db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(e.db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_limit(e.db, SQLITE_LIMIT_LENGTH, 1 << 20);
    if (code != SQLITE_OK)
        status = fr_fail(err, FR_INPUT, "%s: %s", path, sqlite3_errmsg(e.db));
    else
        status = read_export(&e, take, self, about, err);
    sqlite3_close(e.db);
    return status;
}

#else

fr_status fr_nsys_read(const char *path, fr_trace_event_fn take, void *self,
                       fr_trace_about *about, fr_err *err)
{
    (void)take;
    (void)self;
    (void)about;
    return fr_fail(err, FR_FAILURE,
                   "%s: this build has no SQLite; apt-get install "
                   "libsqlite3-dev and make again",
                   path);
}

#endif
