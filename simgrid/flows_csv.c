/*
 * flows_csv.c: flows from a CSV file over a platform.
 *
 * Rates are scaled by a power of two so that the fastest link has 52 bits:
 * then twice the bytes over links of twice the bandwidth are the same
 * integers, and a thousandth of the slowest of usual links still has nine
 * digits.
 */
#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "core/system/fileio.h"
#include "sim/engine/event_queue.h"
#include "simgrid/flows.h"
#include "simgrid/item_index.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COLUMN_ID,
    COLUMN_SRC,
    COLUMN_DST,
    COLUMN_BYTES,
    COLUMN_START,
    COLUMN_DELAY,
    COLUMN_DEPS,
    N_COLUMNS,
    MAX_FIELDS = 16,
    RATE_BITS = 52
};

static const char *const column_names[N_COLUMNS] = {
    "id", "src", "dst", "bytes", "start_s", "delay_s", "deps"};

#define PS_PER_S 1e12
#define MAX_S 9.2e6 /* the clock ends at 106 days */

typedef struct row {
    const char *id, *deps;
    double bytes;
    int64_t src, dst;
    int line;
} row;

typedef struct flows_file {
    fr_platform *platform;
    const char *name;
    char *text; /* cut into fields in place */
    fr_vec(row) rows;
    fr_vec(fr_flow_item) items;
    fr_vec(fr_flow_route) routes;
    fr_vec(fr_maxmin_use) uses;
    fr_vec(uint32_t) deps; /* of the items one after the other */
    uint32_t *first_dep;
    uint32_t *children;
    fr_item_index ids;       /* rows by id */
    fr_item_index pairs;     /* the first row of each (src, dst) */
    fr_vec(double) caps_Bps; /* of the routes */
    int64_t *capacity;
    double fastest_Bps; /* link that any flow takes */
    int scale_bits;     /* quanta = bytes/s times 2 to this */
    fr_platform_path path;
    fr_err *err;
} flows_file;

static fr_status fail_at(const flows_file *f, int line, const char *format, ...)
    FR_PRINTF(3, 4);

static fr_status fail_at(const flows_file *f, int line, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return fr_fail(f->err, FR_INPUT, "%s:%d: %s", f->name, line, text);
}

/* ---- rows ---------------------------------------------------------------- */

/* The next line that is not blank, NULL at the end; counts lines. */
static char *next_line(char **text, int *line)
{
    while (**text) {
        char *begin = *text, *end = strchr(begin, '\n');
        *text = end ? end + 1 : begin + strlen(begin);
        if (end)
            *end = '\0';
        (*line)++;
        char *trimmed = fr_text_trim(begin);
        if (*trimmed)
            return trimmed;
    }
    return NULL;
}

static fr_status read_header(flows_file *f, char *text, int line,
                             int column_of[N_COLUMNS], size_t *n_fields)
{
    char *fields[MAX_FIELDS];
    size_t n = fr_text_split(text, ',', fields, MAX_FIELDS);

    if (n > MAX_FIELDS)
        return fail_at(f, line, "more than %d columns", MAX_FIELDS);
    for (int c = 0; c < N_COLUMNS; c++)
        column_of[c] = -1;
    for (size_t i = 0; i < n; i++) {
        const char *name = fr_text_trim(fields[i]);
        int c = fr_text_find(name, column_names, N_COLUMNS);
        if (c < 0)
            return fail_at(f, line,
                           "unknown column '%s'; columns are id,src,dst,"
                           "bytes,start_s,delay_s,deps",
                           name);
        if (column_of[c] >= 0)
            return fail_at(f, line, "column '%s' stands twice", name);
        column_of[c] = (int)i;
    }
    for (int c = 0; c <= COLUMN_BYTES; c++)
        if (column_of[c] < 0)
            return fail_at(f, line, "there is no column '%s'", column_names[c]);
    *n_fields = n;
    return FR_OK;
}

static fr_status read_number(const flows_file *f, int line, int column,
                             const char *text, double *out)
{
    fr_err inner;

    if (fr_parse_double(text, out, &inner) != FR_OK)
        return fail_at(f, line, "%s: %s", column_names[column], inner.text);
    if (*out < 0.0)
        return fail_at(f, line, "%s '%s' is negative", column_names[column],
                       text);
    return FR_OK;
}

static fr_status read_time(const flows_file *f, int line, int column,
                           const char *text, int64_t *out_ps)
{
    double value_s = 0.0;

    if (*text)
        FR_TRY(read_number(f, line, column, text, &value_s));
    if (value_s > MAX_S)
        return fail_at(f, line, "%s '%s' is more than 106 days",
                       column_names[column], text);
    *out_ps = llround(value_s * PS_PER_S);
    return FR_OK;
}

static fr_status read_host(const flows_file *f, int line, int column,
                           const char *id, int64_t *out)
{
    *out = fr_platform_host_find(f->platform, id);
    if (*out >= 0)
        return FR_OK;
    const char *near = fr_platform_host_nearest(f->platform, id);
    return fail_at(f, line, "%s: the platform has no host '%s'%s%s%s",
                   column_names[column], id, near ? ": did you mean '" : "",
                   near ? near : "", near ? "'?" : "");
}

static fr_status read_row(flows_file *f, char *text, int line,
                          const int column_of[N_COLUMNS], size_t n_columns)
{
    char *fields[MAX_FIELDS] = {NULL};
    const char *field[N_COLUMNS];
    size_t n = fr_text_split(text, ',', fields, MAX_FIELDS);
    row r = {.line = line};
    fr_flow_item item = {0};

    if (n != n_columns)
        return fail_at(f, line, "%zu fields, the header has %zu", n, n_columns);
    for (int c = 0; c < N_COLUMNS; c++)
        field[c] = column_of[c] < 0 ? "" : fr_text_trim(fields[column_of[c]]);
    r.id = field[COLUMN_ID];
    r.deps = field[COLUMN_DEPS];
    if (!*r.id)
        return fail_at(f, line, "the flow has no id");
    FR_TRY(read_host(f, line, COLUMN_SRC, field[COLUMN_SRC], &r.src));
    FR_TRY(read_host(f, line, COLUMN_DST, field[COLUMN_DST], &r.dst));
    FR_TRY(read_number(f, line, COLUMN_BYTES, field[COLUMN_BYTES], &r.bytes));
    FR_TRY(
        read_time(f, line, COLUMN_START, field[COLUMN_START], &item.start_ps));
    FR_TRY(
        read_time(f, line, COLUMN_DELAY, field[COLUMN_DELAY], &item.delay_ps));
    if (f->rows.n >= FR_EVENT_MAX_PAYLOAD)
        return fail_at(f, line, "more than %u flows", FR_EVENT_MAX_PAYLOAD);
    if (fr_vec_push(&f->rows, r) != FR_OK ||
        fr_vec_push(&f->items, item) != FR_OK)
        return fr_fail_no_memory(f->err);
    return FR_OK;
}

static fr_status read_rows(flows_file *f)
{
    char *rest = f->text;
    int line = 0, column_of[N_COLUMNS] = {0};
    size_t n_columns = 0;
    char *text = next_line(&rest, &line);

    if (!text)
        return fail_at(f, 1,
                       "the file is empty; it begins with "
                       "id,src,dst,bytes,start_s,delay_s,deps");
    if (strchr(rest, '"') || strchr(text, '"'))
        return fail_at(f, line, "quotes are not supported");
    FR_TRY(read_header(f, text, line, column_of, &n_columns));
    while ((text = next_line(&rest, &line)))
        FR_TRY(read_row(f, text, line, column_of, n_columns));
    return FR_OK;
}

/* ---- ids and what waits for what ----------------------------------------- */

static bool has_id(const void *owner, uint32_t i, const void *id)
{
    const flows_file *f = owner;
    return strcmp(f->rows.items[i].id, id) == 0;
}

static bool has_pair(const void *owner, uint32_t i, const void *key)
{
    const row *a = &((const flows_file *)owner)->rows.items[i], *b = key;
    return a->src == b->src && a->dst == b->dst;
}

static uint32_t find_id(const flows_file *f, const char *id)
{
    return fr_item_index_find(&f->ids, fr_hash_text(id, 0), has_id, f, id);
}

static fr_status index_rows(flows_file *f)
{
    for (uint32_t i = 0; i < f->rows.n; i++) {
        const row *r = &f->rows.items[i];
        uint32_t other = find_id(f, r->id);
        if (other != FR_NO_INDEX)
            return fail_at(f, r->line, "id '%s' stands in line %d already",
                           r->id, f->rows.items[other].line);
        FR_TRY(fr_item_index_add(&f->ids, fr_hash_text(r->id, 0), i, f->err));
    }
    return FR_OK;
}

static fr_status read_deps(flows_file *f, uint32_t i)
{
    const row *r = &f->rows.items[i];
    char id[256];

    for (const char *s = r->deps; *s;) {
        size_t n = strcspn(s, ";");
        if (n >= sizeof id)
            return fail_at(f, r->line, "deps: an id is too long");
        memcpy(id, s, n);
        id[n] = '\0';
        s += n + (s[n] == ';');
        const char *name = fr_text_trim(id);
        if (!*name)
            return fail_at(f, r->line, "deps: an empty id");
        uint32_t dep = find_id(f, name);
        if (dep == FR_NO_INDEX)
            return fail_at(f, r->line, "deps: there is no flow '%s'", name);
        if (fr_vec_push(&f->deps, dep) != FR_OK)
            return fr_fail_no_memory(f->err);
    }
    return FR_OK;
}

static fr_status connect_rows(flows_file *f)
{
    size_t n = f->rows.n;
    uint32_t first = 0;

    f->first_dep = calloc(n + 1, sizeof *f->first_dep);
    if (!f->first_dep)
        return fr_fail_no_memory(f->err);
    for (uint32_t i = 0; i < n; i++) {
        FR_TRY(read_deps(f, i));
        f->first_dep[i + 1] = (uint32_t)f->deps.n;
        f->items.items[i].n_deps = f->first_dep[i + 1] - f->first_dep[i];
    }
    f->children = malloc((f->deps.n + 1) * sizeof *f->children);
    if (!f->children)
        return fr_fail_no_memory(f->err);
    for (size_t d = 0; d < f->deps.n; d++)
        f->items.items[f->deps.items[d]].n_children++;
    for (size_t i = 0; i < n; i++) {
        f->items.items[i].first_child = first;
        first += f->items.items[i].n_children;
        f->items.items[i].n_children = 0;
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t d = f->first_dep[i]; d < f->first_dep[i + 1]; d++) {
            fr_flow_item *dep = &f->items.items[f->deps.items[d]];
            f->children[dep->first_child + dep->n_children++] = i;
        }
    return FR_OK;
}

/* Ends of -1 lie on or behind a circle: deps lead into it. */
static fr_status fail_circle(const flows_file *f, const int64_t *end_ps)
{
    uint32_t i = 0, start;
    char text[512];
    size_t n = 0;

    while (end_ps[i] >= 0)
        i++;
    for (size_t steps = 0; steps < 2 * f->rows.n; steps++) {
        uint32_t d = f->first_dep[i];
        while (end_ps[f->deps.items[d]] >= 0)
            d++;
        i = f->deps.items[d];
        if (steps == f->rows.n)
            break;
    }
    start = i;
    do {
        int k = snprintf(text + n, sizeof text - n, "'%s' waits for ",
                         f->rows.items[i].id);
        n = k > 0 && n + (size_t)k < sizeof text ? n + (size_t)k : n;
        uint32_t d = f->first_dep[i];
        while (end_ps[f->deps.items[d]] >= 0)
            d++;
        i = f->deps.items[d];
    } while (i != start && n < 300);
    text[n] = '\0';
    return fail_at(f, f->rows.items[start].line, "a circle: %s%s'%s'", text,
                   i == start ? "" : "... ", f->rows.items[start].id);
}

/* ---- numbers ------------------------------------------------------------- */

static int64_t quanta(const flows_file *f, double rate_Bps)
{
    double scaled = ldexp(rate_Bps, f->scale_bits);
    if (scaled >= (double)FR_MAXMIN_MAX_RATE)
        return FR_MAXMIN_MAX_RATE;
    return scaled < 1.0 ? 1 : llround(scaled);
}

static fr_status scale_links(flows_file *f)
{
    size_t n = fr_platform_n_links(f->platform);
    int exponent;

    (void)frexp(fmax(f->fastest_Bps, 1.0), &exponent);
    f->scale_bits = RATE_BITS - exponent;
    f->capacity = malloc((n + 1) * sizeof *f->capacity);
    if (!f->capacity)
        return fr_fail_no_memory(f->err);
    for (uint32_t l = 0; l < n; l++)
        f->capacity[l] =
            quanta(f, fr_platform_link_at(f->platform, l)->bandwidth_Bps);
    for (size_t r = 0; r < f->routes.n; r++)
        if (isfinite(f->caps_Bps.items[r]))
            f->routes.items[r].cap = quanta(f, f->caps_Bps.items[r]);
    return FR_OK;
}

/* bytes * 2^scale_bits * 1e12, to the nearest. */
static fr_work work_of(const flows_file *f, double bytes)
{
    int exponent;
    double fraction = frexp(bytes, &exponent);
    fr_work work = (fr_work)(uint64_t)llround(ldexp(fraction, 53)) *
                   UINT64_C(1000000000000);

    exponent += f->scale_bits - 53;
    if (exponent >= 0)
        return work << exponent;
    if (exponent < -126)
        return 0;
    return (work + ((fr_work)1 << (-exponent - 1))) >> -exponent;
}

static fr_status add_use(flows_file *f, fr_flow_route *route, uint32_t link)
{
    for (uint32_t u = 0; u < route->n_uses; u++) {
        fr_maxmin_use *use = &f->uses.items[route->first_use + u];
        if (use->link == link) {
            use->coefficient += FR_MAXMIN_ONE; /* crossed twice */
            return FR_OK;
        }
    }
    route->n_uses++;
    if (fr_vec_push(&f->uses, ((fr_maxmin_use){link, FR_MAXMIN_ONE})) != FR_OK)
        return fr_fail_no_memory(f->err);
    return FR_OK;
}

static fr_status add_route(flows_file *f, const row *r, uint32_t *out)
{
    fr_flow_route route = {.first_use = (uint32_t)f->uses.n,
                           .cap = FR_MAXMIN_NO_CAP};
    double cap_Bps = INFINITY;
    fr_err inner = {0};
    fr_status status =
        fr_platform_route(f->platform, r->src, r->dst, &f->path, &inner);

    if (status == FR_INPUT)
        return fail_at(f, r->line, "%s", inner.text);
    if (status != FR_OK)
        return fr_fail(f->err, status, "%s", inner.text);
    if (f->path.links.n > 255)
        return fail_at(f, r->line, "a route of more than 255 links");
    if (f->path.latency_s > MAX_S)
        return fail_at(f, r->line, "a latency of more than 106 days");
    route.latency_ps = llround(f->path.latency_s * PS_PER_S);
    for (size_t i = 0; i < f->path.links.n; i++) {
        const fr_platform_link *link =
            fr_platform_link_at(f->platform, f->path.links.items[i]);
        f->fastest_Bps = fmax(f->fastest_Bps, link->bandwidth_Bps);
        if (link->is_fatpipe)
            cap_Bps = fmin(cap_Bps, link->bandwidth_Bps);
        else
            FR_TRY(add_use(f, &route, f->path.links.items[i]));
    }
    if (fr_vec_push(&f->routes, route) != FR_OK ||
        fr_vec_push(&f->caps_Bps, cap_Bps) != FR_OK)
        return fr_fail_no_memory(f->err);
    *out = (uint32_t)(f->routes.n - 1);
    return FR_OK;
}

static fr_status route_rows(flows_file *f)
{
    for (uint32_t i = 0; i < f->rows.n; i++) {
        const row *r = &f->rows.items[i];
        fr_flow_item *item = &f->items.items[i];
        uint64_t hash = fr_hash_mix((uint64_t)r->src << 32 | (uint64_t)r->dst);
        uint32_t same = fr_item_index_find(&f->pairs, hash, has_pair, f, r);
        if (same != FR_NO_INDEX) {
            item->route = f->items.items[same].route;
            continue;
        }
        FR_TRY(add_route(f, r, &item->route));
        FR_TRY(fr_item_index_add(&f->pairs, hash, i, f->err));
    }
    return FR_OK;
}

static fr_status set_work(flows_file *f)
{
    FR_TRY(scale_links(f));
    for (uint32_t i = 0; i < f->rows.n; i++) {
        const row *r = &f->rows.items[i];
        fr_flow_item *item = &f->items.items[i];
        const fr_flow_route *route = &f->routes.items[item->route];
        int64_t slowest = route->cap;
        for (uint32_t u = 0; u < route->n_uses; u++) {
            uint32_t link = f->uses.items[route->first_use + u].link;
            slowest = f->capacity[link] < slowest ? f->capacity[link] : slowest;
        }
        if (ldexp(r->bytes, f->scale_bits) / (double)slowest > MAX_S)
            return fail_at(f, r->line,
                           "bytes: the flow lasts longer than 106 "
                           "days");
        item->work = work_of(f, r->bytes);
    }
    return FR_OK;
}

/* ---- results ------------------------------------------------------------- */

void fr_flows_result_release(fr_flows_result *result)
{
    for (size_t i = 0; i < result->n; i++)
        free(result->rows[i].id);
    free(result->rows);
    memset(result, 0, sizeof *result);
}

static fr_status make_result(const flows_file *f, const int64_t *end_ps,
                             uint64_t n_events, fr_flows_result *out)
{
    fr_flows_result result = {.n_events = n_events};

    result.rows = calloc(f->rows.n + 1, sizeof *result.rows);
    if (!result.rows)
        return fr_fail_no_memory(f->err);
    for (size_t i = 0; i < f->rows.n; i++) {
        fr_flows_row *r = &result.rows[i];
        r->id = strdup(f->rows.items[i].id);
        result.n++;
        if (!r->id) {
            fr_flows_result_release(&result);
            return fr_fail_no_memory(f->err);
        }
        r->finish_s = (double)end_ps[i] / PS_PER_S;
        result.makespan_s = fmax(result.makespan_s, r->finish_s);
    }
    *out = result;
    return FR_OK;
}

static fr_status run_file(flows_file *f, fr_flows_result *out)
{
    FR_TRY(read_rows(f));
    FR_TRY(index_rows(f));
    FR_TRY(connect_rows(f));
    FR_TRY(route_rows(f));
    FR_TRY(set_work(f));
    fr_flow_set set = {.n_links = fr_platform_n_links(f->platform),
                       .n_items = f->rows.n,
                       .capacity = f->capacity,
                       .uses = f->uses.items,
                       .routes = f->routes.items,
                       .items = f->items.items,
                       .children = f->children};
    int64_t *end_ps = malloc((f->rows.n + 1) * sizeof *end_ps);
    uint64_t n_events = 0;
    fr_err inner = {0};
    if (!end_ps)
        return fr_fail_no_memory(f->err);
    fr_status status = fr_flow_set_run(&set, end_ps, &n_events, &inner);
    bool is_stuck = false;
    for (size_t i = 0; i < f->rows.n && status == FR_FAILURE; i++)
        is_stuck = is_stuck || end_ps[i] < 0;
    if (status == FR_OK)
        status = make_result(f, end_ps, n_events, out);
    else if (is_stuck && strstr(inner.text, "circle"))
        status = fail_circle(f, end_ps);
    else
        status = fr_fail(f->err, status, "%s: %s", f->name, inner.text);
    free(end_ps);
    return status;
}

fr_status fr_flows_run_text(fr_platform *platform, const char *csv_name,
                            const char *csv, size_t n_csv, fr_flows_result *out,
                            fr_err *err)
{
    flows_file f = {.platform = platform, .name = csv_name, .err = err};
    fr_status status;

    if (memchr(csv, '\0', n_csv))
        return fr_fail(err, FR_INPUT, "%s:1: not a text file", csv_name);
    f.text = strndup(csv, n_csv);
    status = f.text ? run_file(&f, out) : fr_fail_no_memory(err);
    free(f.text);
    fr_vec_release(&f.rows);
    fr_vec_release(&f.items);
    fr_vec_release(&f.routes);
    fr_vec_release(&f.uses);
    fr_vec_release(&f.deps);
    fr_vec_release(&f.caps_Bps);
    free(f.first_dep);
    free(f.children);
    fr_item_index_release(&f.ids);
    fr_item_index_release(&f.pairs);
    free(f.capacity);
    fr_vec_release(&f.path.links);
    return status;
}

fr_status fr_flows_run(const char *platform_path, const char *csv_path,
                       fr_flows_result *out, fr_err *err)
{
    fr_platform *platform = NULL;
    char *csv = NULL;
    size_t n_csv = 0;

    FR_TRY(fr_platform_load(platform_path, &platform, err));
    fr_status status =
        fr_file_read(csv_path, FR_FILE_BYTES_MAX, &csv, &n_csv, err);
    if (status == FR_OK)
        status = fr_flows_run_text(platform, csv_path, csv, n_csv, out, err);
    free(csv);
    fr_platform_destroy(platform);
    return status;
}
