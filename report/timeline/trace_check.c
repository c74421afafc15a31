/* trace_check.c: are the tracks of a trace file nested? */
#include "core/document/json.h"
#include "report/timeline/trace_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct event {
    int64_t pid, tid;
    int64_t begin_ps, end_ps;
    int line;
} event;

static int compare_events(const void *a, const void *b)
{
    const event *x = a, *y = b;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    if (x->begin_ps != y->begin_ps)
        return x->begin_ps < y->begin_ps ? -1 : 1;
    if (x->end_ps != y->end_ps)
        return x->end_ps > y->end_ps ? -1 : 1; /* the outer one first */
    return x->line < y->line ? -1 : x->line > y->line;
}

static fr_status read_event(const fr_json_value *value, event *out, fr_err *err)
{
    double ts_us, dur_us;
    event e = {.line = fr_json_line(value)};
    FR_TRY(fr_json_get_i64(value, "pid", &e.pid, err));
    FR_TRY(fr_json_get_i64(value, "tid", &e.tid, err));
    FR_TRY(fr_json_get_double(value, "ts", &ts_us, err));
    FR_TRY(fr_json_get_double(value, "dur", &dur_us, err));
    if (!(dur_us >= 0) || fabs(ts_us) > 1e12 || dur_us > 1e12)
        return fr_json_fail(value, err, "ts or dur out of range");
    e.begin_ps = llround(ts_us * 1e6);
    e.end_ps = e.begin_ps + llround(dur_us * 1e6);
    *out = e;
    return FR_OK;
}

/* ends_ps: the stack of enclosing ends, room for n. */
static fr_status check_nesting(const char *path, const event *events, size_t n,
                               int64_t *ends_ps, fr_err *err)
{
    size_t depth = 0;
    for (size_t i = 0; i < n; i++) {
        const event *e = &events[i];
        if (i > 0 && (e->pid != e[-1].pid || e->tid != e[-1].tid))
            depth = 0;
        while (depth > 0 && ends_ps[depth - 1] <= e->begin_ps &&
               !(e->begin_ps == e->end_ps && ends_ps[depth - 1] == e->begin_ps))
            depth--;
        if (depth > 0 && e->end_ps > ends_ps[depth - 1])
            return fr_fail(err, FR_CHECK,
                           "%s:%d: the event reaches out of the one around "
                           "it (pid %lld, tid %lld)",
                           path, e->line, (long long)e->pid, (long long)e->tid);
        ends_ps[depth++] = e->end_ps;
    }
    return FR_OK;
}

static fr_status collect(const fr_json_value *list, event *events, size_t *n,
                         fr_err *err)
{
    for (size_t i = 0; i < fr_json_n(list); i++) {
        const fr_json_value *value = fr_json_at(list, i);
        const char *phase;
        FR_TRY(fr_json_get_string(value, "ph", &phase, err));
        if (strcmp(phase, "X") == 0)
            FR_TRY(read_event(value, &events[(*n)++], err));
    }
    return FR_OK;
}

fr_status fr_trace_check(const char *path, size_t *n_events, fr_err *err)
{
    fr_json *json;
    const fr_json_value *list;
    FR_TRY(fr_json_load_trace(path, &json, err));
    event *events = NULL;
    int64_t *ends_ps = NULL;
    fr_status status;
    FR_TRY_GOTO(
        status,
        fr_json_get_array(fr_json_root(json), "traceEvents", &list, err),
        out_json);
    size_t n = 0, n_max = fr_json_n(list);
    events = malloc((n_max + 1) * sizeof *events);
    ends_ps = malloc((n_max + 1) * sizeof *ends_ps);
    if (events == NULL || ends_ps == NULL) {
        status = fr_fail_no_memory(err);
        goto out_json;
    }
    FR_TRY_GOTO(status, collect(list, events, &n, err), out_json);
    qsort(events, n, sizeof *events, compare_events);
    FR_TRY_GOTO(status, check_nesting(path, events, n, ends_ps, err), out_json);
    if (n_events != NULL)
        *n_events = n;
out_json:
    free(ends_ps);
    free(events);
    fr_json_destroy(json);
    return status;
}
