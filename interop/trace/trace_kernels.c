/* trace_kernels.c: a table of kernels, and which operator launched each. */
#include "interop/trace/trace_kernels.h"

#include "core/base/arena.h"
#include "core/base/hash.h"
#include "core/base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Different kernels and shapes; operators whose kernels may still come. */
enum { ROWS_MAX = 1 << 16, OPS_MAX = 1 << 21, SLOTS = 2 * ROWS_MAX };
/* Threads of a CPU, and operators that stand in each other. */
enum { THREADS_MAX = 64, NESTED_MAX = 64 };

/* An operator, for the kernels with its id. */
typedef struct launch {
    double id; /* -1: empty */
    int32_t row;
} launch;

/* An operator that is under way; what it calls is not its own time. */
typedef struct nested {
    int32_t row;
    double end_us, own_us;
} nested;

typedef struct host_thread {
    char process[48], thread[48];
    int n;
    nested at[NESTED_MAX];
} host_thread;

struct fr_kernel_table {
    fr_arena arena;
    fr_kernel_row *rows;
    size_t n, cap;
    int32_t *slots; /* by hash; -1: empty */
    launch *launches;
    size_t n_launches, cap_launches; /* a power of two */
    uint64_t n_unknown;              /* operators beyond OPS_MAX */
    bool has_kernels;
    host_thread *threads;
    int n_threads;
    fr_trace_about about;
    const char *name; /* of the file */
};

static bool is_kernel(const fr_trace_event *event)
{
    return strcmp(event->category, "kernel") == 0 ||
           strncmp(event->category, "gpu_mem", 7) == 0;
}

/* Operators: Kineto's, and those of PyTorch's profiler without Kineto, which
 * names no category. */
static bool is_operator(const fr_trace_event *event)
{
    return (strcmp(event->category, "cpu_op") == 0 ||
            event->category[0] == '\0') &&
           event->phase == 'X' &&
           strncmp(event->name, "ProfilerStep#", 13) != 0;
}

/* ---- rows --------------------------------------------------------------- */

static bool is_row(const fr_kernel_row *row, const fr_kernel_row *key)
{
    return row->is_kernel == key->is_kernel &&
           row->is_backward == key->is_backward && row->n_in == key->n_in &&
           row->n_out == key->n_out && row->n_group == key->n_group &&
           strcmp(row->name, key->name) == 0 && strcmp(row->op, key->op) == 0 &&
           strcmp(row->shapes, key->shapes) == 0 &&
           strcmp(row->types, key->types) == 0 &&
           strcmp(row->collective, key->collective) == 0 &&
           strcmp(row->ranks, key->ranks) == 0;
}

static uint64_t hash_row(const fr_kernel_row *key)
{
    const char *const texts[] = {key->name,  key->op,         key->shapes,
                                 key->types, key->collective, key->ranks};
    const double numbers[] = {key->n_in, key->n_out, key->n_group,
                              2.0 * key->is_backward + key->is_kernel};
    uint64_t hash = fr_hash_bytes(numbers, sizeof numbers, 0);
    for (size_t i = 0; i < FR_LENGTH(texts); i++)
        hash = fr_hash_text(texts[i], hash);
    return hash;
}

static fr_status keep(fr_kernel_table *table, const char **text, fr_err *err)
{
    char *copy = fr_arena_strdup(&table->arena, *text);
    if (copy == NULL)
        return fr_fail_no_memory(err);
    *text = copy;
    return FR_OK;
}

static fr_status add_row(fr_kernel_table *table, fr_kernel_row key, fr_err *err)
{
    if (table->n == ROWS_MAX)
        return fr_fail(err, FR_INPUT,
                       "%s: more than %d different kernels and shapes; profile "
                       "fewer steps",
                       table->name, ROWS_MAX);
    if (table->n == table->cap) {
        size_t cap = table->cap > 0 ? 2 * table->cap : 256;
        fr_kernel_row *rows = realloc(table->rows, cap * sizeof *rows);
        if (rows == NULL)
            return fr_fail_no_memory(err);
        table->rows = rows;
        table->cap = cap;
    }
    const char **const texts[] = {&key.name,  &key.op,         &key.shapes,
                                  &key.types, &key.collective, &key.ranks};
    for (size_t i = 0; i < FR_LENGTH(texts); i++)
        FR_TRY(keep(table, texts[i], err));
    key.stride = 1;
    key.least_s = INFINITY;
    table->rows[table->n++] = key;
    return FR_OK;
}

static fr_status find_row(fr_kernel_table *table, const fr_kernel_row *key,
                          int32_t *out, fr_err *err)
{
    size_t slot = hash_row(key) % SLOTS;
    while (table->slots[slot] >= 0 &&
           !is_row(&table->rows[table->slots[slot]], key))
        slot = (slot + 1) % SLOTS;
    if (table->slots[slot] < 0) {
        FR_TRY(add_row(table, *key, err));
        table->slots[slot] = (int32_t)table->n - 1;
    }
    *out = table->slots[slot];
    return FR_OK;
}

static void add_time(fr_kernel_row *row, double time_s)
{
    row->total_s += time_s;
    row->least_s = fmin(row->least_s, time_s);
    row->most_s = fmax(row->most_s, time_s);
    if (row->n++ % row->stride != 0)
        return;
    if (row->n_samples == FR_KERNEL_SAMPLES) {
        row->n_samples /= 2;
        row->stride *= 2;
        for (int32_t i = 0; i < row->n_samples; i++)
            row->sample_s[i] = row->sample_s[2 * i];
    }
    row->sample_s[row->n_samples++] = time_s;
}

/* ---- operators within operators ------------------------------------------ */

static host_thread *find_thread(fr_kernel_table *table,
                                const fr_trace_event *event)
{
    for (int i = 0; i < table->n_threads; i++)
        if (strcmp(table->threads[i].thread, event->thread) == 0 &&
            strcmp(table->threads[i].process, event->process) == 0)
            return &table->threads[i];
    if (table->n_threads == THREADS_MAX)
        return NULL;
    host_thread *thread = &table->threads[table->n_threads++];
    memcpy(thread->process, event->process, sizeof thread->process);
    memcpy(thread->thread, event->thread, sizeof thread->thread);
    return thread;
}

/* Operators that ended before a moment have their whole time. */
static void end_nested(fr_kernel_table *table, host_thread *thread,
                       double before_us)
{
    while (thread->n > 0 && thread->at[thread->n - 1].end_us <= before_us) {
        const nested *last = &thread->at[--thread->n];
        add_time(&table->rows[last->row], fmax(last->own_us, 0) * 1e-6);
    }
}

/* Operators of a thread come in the order of their begin, as profilers write
 * them; one that stands in no other and has none in it counts whole. */
static void add_operator(fr_kernel_table *table, const fr_trace_event *event,
                         int32_t row)
{
    host_thread *thread = find_thread(table, event);
    if (thread != NULL)
        end_nested(table, thread, event->begin_us);
    if (thread == NULL || thread->n == NESTED_MAX) {
        add_time(&table->rows[row], event->dur_us * 1e-6);
        return;
    }
    if (thread->n > 0)
        thread->at[thread->n - 1].own_us -= event->dur_us;
    thread->at[thread->n++] =
        (nested){row, event->begin_us + event->dur_us, event->dur_us};
}

/* ---- who launched what -------------------------------------------------- */

static size_t slot_of(const fr_kernel_table *table, double id)
{
    uint64_t bits;
    memcpy(&bits, &id, sizeof bits);
    return (size_t)fr_hash_mix(bits) & (table->cap_launches - 1);
}

static launch *find_launch(const fr_kernel_table *table, double id)
{
    size_t slot = slot_of(table, id);
    while (table->launches[slot].id >= 0 && table->launches[slot].id != id)
        slot = (slot + 1) & (table->cap_launches - 1);
    return &table->launches[slot];
}

static fr_status grow_launches(fr_kernel_table *table, fr_err *err)
{
    size_t n_old = table->cap_launches;
    launch *old = table->launches;
    size_t cap = n_old > 0 ? 2 * n_old : 1024;
    launch *launches = malloc(cap * sizeof *launches);
    if (launches == NULL)
        return fr_fail_no_memory(err);
    for (size_t i = 0; i < cap; i++)
        launches[i] = (launch){-1, 0};
    table->launches = launches;
    table->cap_launches = cap;
    for (size_t i = 0; i < n_old; i++)
        if (old[i].id >= 0)
            *find_launch(table, old[i].id) = old[i];
    free(old);
    return FR_OK;
}

static fr_status note_launch(fr_kernel_table *table, double id, int32_t row,
                             fr_err *err)
{
    if (table->n_launches == OPS_MAX) {
        table->n_unknown++;
        return FR_OK;
    }
    if (2 * (table->n_launches + 1) > table->cap_launches)
        FR_TRY(grow_launches(table, err));
    launch *at = find_launch(table, id);
    table->n_launches += at->id < 0;
    *at = (launch){id, row};
    return FR_OK;
}

/* ---- events ------------------------------------------------------------- */

static fr_status take(void *self, const fr_trace_event *event, fr_err *err)
{
    fr_kernel_table *table = self;
    bool is_gpu = is_kernel(event);
    int32_t row;
    if (event->phase != 'X' || (!is_gpu && !is_operator(event)))
        return FR_OK;
    fr_kernel_row key = {.name = event->name,
                         .op = "",
                         .shapes = event->shapes,
                         .types = event->types,
                         .is_kernel = is_gpu,
                         .is_backward = event->forward_thread > 0,
                         .collective = event->collective,
                         .ranks = event->ranks,
                         .n_in = event->n_in,
                         .n_out = event->n_out,
                         .n_group = event->n_group};
    if (event->collective[0] != '\0')
        key.types = event->dtype;
    if (is_gpu && event->external_id >= 0 && table->cap_launches > 0) {
        const launch *from = find_launch(table, event->external_id);
        if (from->id >= 0) {
            const fr_kernel_row *op = &table->rows[from->row];
            key.op = op->name;
            key.shapes = op->shapes;
            key.types = key.types[0] != '\0' ? key.types : op->types;
            key.is_backward = op->is_backward;
        }
    }
    table->has_kernels |= is_gpu;
    FR_TRY(find_row(table, &key, &row, err));
    if (is_gpu)
        add_time(&table->rows[row], event->dur_us * 1e-6);
    else if (!table->has_kernels)
        add_operator(table, event, row);
    if (!is_gpu && event->external_id >= 0)
        return note_launch(table, event->external_id, row, err);
    return FR_OK;
}

static int compare_samples(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int compare_rows(const void *a, const void *b)
{
    const fr_kernel_row *x = a, *y = b;
    if (x->total_s != y->total_s)
        return x->total_s > y->total_s ? -1 : 1;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : strcmp(x->shapes, y->shapes);
}

/* Operators are not asked for where there are kernels. */
static void finish(fr_kernel_table *table)
{
    size_t n = 0;
    for (int i = 0; i < table->n_threads; i++)
        end_nested(table, &table->threads[i], INFINITY);
    for (size_t i = 0; i < table->n; i++)
        if (table->rows[i].is_kernel == table->has_kernels)
            table->rows[n++] = table->rows[i];
    table->n = n;
    for (size_t i = 0; i < n; i++)
        qsort(table->rows[i].sample_s, (size_t)table->rows[i].n_samples,
              sizeof table->rows[i].sample_s[0], compare_samples);
    if (n > 0)
        qsort(table->rows, n, sizeof *table->rows, compare_rows);
}

static fr_status create(const char *name, fr_kernel_table **out, fr_err *err)
{
    fr_kernel_table *table;
    FR_TRY_CALLOC(table, 1, err);
    fr_arena_init(&table->arena);
    table->name = name;
    table->slots = malloc(SLOTS * sizeof *table->slots);
    table->threads = calloc(THREADS_MAX, sizeof *table->threads);
    if (table->slots == NULL || table->threads == NULL) {
        fr_kernel_table_destroy(table);
        return fr_fail_no_memory(err);
    }
    for (int i = 0; i < SLOTS; i++)
        table->slots[i] = -1;
    *out = table;
    return FR_OK;
}

/* Completes a table that was read with `status`. */
static fr_status complete(fr_status status, fr_kernel_table *table,
                          fr_kernel_table **out, fr_err *err)
{
    if (status == FR_OK)
        finish(table);
    if (status == FR_OK && table->n == 0)
        status = fr_fail(err, FR_INPUT,
                         "%s: neither kernels nor operators: no profiler's "
                         "trace",
                         table->name);
    if (status != FR_OK) {
        fr_kernel_table_destroy(table);
        return status;
    }
    table->name = NULL;
    *out = table;
    return FR_OK;
}

fr_status fr_kernel_table_read(fr_infile *file, fr_kernel_table **out,
                               fr_err *err)
{
    fr_kernel_table *table;
    FR_TRY(create(fr_infile_name(file), &table, err));
    fr_status status = fr_trace_read(file, take, table, &table->about, err);
    return complete(status, table, out, err);
}

fr_status fr_kernel_table_load(const char *path, fr_trace_reader_fn read,
                               fr_kernel_table **out, fr_err *err)
{
    fr_kernel_table *table;
    FR_TRY(create(path, &table, err));
    fr_status status = read(path, take, table, &table->about, err);
    return complete(status, table, out, err);
}

void fr_kernel_table_destroy(fr_kernel_table *table)
{
    if (table == NULL)
        return;
    fr_arena_release(&table->arena);
    free(table->rows);
    free(table->slots);
    free(table->launches);
    free(table->threads);
    free(table);
}

const fr_kernel_row *fr_kernel_table_rows(const fr_kernel_table *table,
                                          size_t *n)
{
    *n = table->n;
    return table->rows;
}

const fr_trace_about *fr_kernel_table_about(const fr_kernel_table *table)
{
    return &table->about;
}

double fr_kernel_row_quantile_s(const fr_kernel_row *row, double p)
{
    int32_t last = row->n_samples - 1;
    double at = p * last;
    int32_t low = (int32_t)at;
    int32_t high = low < last ? low + 1 : last;
    if (last < 0)
        return NAN;
    return row->sample_s[low] +
           (at - low) * (row->sample_s[high] - row->sample_s[low]);
}
