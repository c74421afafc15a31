/* trace_ranks.c: which events of a trace are of which rank and class. */
#include "interop/trace/trace_ranks.h"

#include "core/base/text.h"
#include "core/base/vec.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Limits for all ranks of a file together: 96 MB. */
enum { SPANS_MAX = 1 << 22, RANKS_MAX = 1 << 14 };

typedef struct trace_file {
    const char *name;
    bool is_by_device; /* nsys: each GPU of a node is a rank */
    double latest_us;  /* begin of a kernel */
    uint64_t n_kernels;
    bool is_predicted;
    fr_vec(fr_rank_spans) ranks; /* forerun's; PyTorch's GPU is the first */
    fr_rank_spans operators;     /* of a CPU, until there is a kernel */
    fr_rank_spans marks;         /* steps */
    fr_rank_spans updates;       /* of the optimizer */
    char update[64];             /* what the first of them is called */
    size_t n_spans;
    bool has_kernels, is_forerun;
} trace_file;

/* ---- classes ------------------------------------------------------------ */

/* Words in names of kernels and operators; the first that is there. */
static const struct {
    const char *word;
    fr_loss class;
} kernel_words[] = {
    {"SendRecv", FR_LOSS_PIPELINE},
    {"nccl:send", FR_LOSS_PIPELINE},
    {"nccl:recv", FR_LOSS_PIPELINE},
    {"nccl", FR_LOSS_COLLECTIVES},
    {"gloo:send", FR_LOSS_PIPELINE},
    {"gloo:recv", FR_LOSS_PIPELINE},
    {"gloo:", FR_LOSS_COLLECTIVES},
    {"c10d::", FR_LOSS_COLLECTIVES},
    {"all_reduce", FR_LOSS_COLLECTIVES},
    {"multi_tensor_apply", FR_LOSS_OPTIMIZER},
    {"Adam", FR_LOSS_OPTIMIZER},
    {"adam", FR_LOSS_OPTIMIZER},
    {"Optimizer.step", FR_LOSS_OPTIMIZER},
    {"Optimizer.zero_grad", FR_LOSS_OPTIMIZER},
    {"DataLoader", FR_LOSS_DATA},
    {"Memcpy HtoD", FR_LOSS_DATA},
    {"Memcpy DtoH", FR_LOSS_DATA},
};

static fr_loss class_of_kernel(const char *name)
{
    for (size_t i = 0; i < FR_LENGTH(kernel_words); i++)
        if (strstr(name, kernel_words[i].word) != NULL)
            return kernel_words[i].class;
    return FR_LOSS_COMPUTE;
}

/* forerun's categories are the parts of a step; -1: no part of one. */
static int class_of_part(const char *category)
{
    static const struct {
        const char *prefix;
        fr_loss class;
    } parts[] = {
        {"compute", FR_LOSS_COMPUTE},     {"optimizer", FR_LOSS_OPTIMIZER},
        {"exposed_pp", FR_LOSS_PIPELINE}, {"exposed_", FR_LOSS_COLLECTIVES},
        {"data", FR_LOSS_DATA},
    };
    for (size_t i = 0; i < FR_LENGTH(parts); i++)
        if (fr_text_starts(category, parts[i].prefix))
            return (int)parts[i].class;
    return -1;
}

/* ---- spans -------------------------------------------------------------- */

static fr_status add_span(trace_file *trace, fr_rank_spans *spans,
                          const fr_trace_event *event, int class, fr_err *err)
{
    double end_us = event->begin_us + event->dur_us;
    fr_rank_span *last = spans->n > 0 ? &spans->at[spans->n - 1] : NULL;
    /* Kernels of a stream follow each other; operators stand in others. */
    if (last != NULL && last->class == class &&
        event->begin_us >= last->begin_us && event->begin_us <= last->end_us) {
        last->end_us = fmax(last->end_us, end_us);
        return FR_OK;
    }
    if (trace->n_spans++ == SPANS_MAX)
        return fr_fail(err, FR_INPUT,
                       "%s: more than %d kernels; profile fewer steps",
                       trace->name, SPANS_MAX);
    if (spans->n == spans->cap) {
        size_t cap = spans->cap > 0 ? 2 * spans->cap : 256;
        fr_rank_span *at = realloc(spans->at, cap * sizeof *at);
        if (at == NULL)
            return fr_fail_no_memory(err);
        spans->at = at;
        spans->cap = cap;
    }
    spans->at[spans->n++] =
        (fr_rank_span){event->begin_us, end_us, (int32_t) class};
    return FR_OK;
}

static fr_rank_spans *find_rank(trace_file *trace, const char *process)
{
    for (size_t i = trace->ranks.n; i-- > 0;)
        if (strcmp(trace->ranks.items[i].process, process) == 0)
            return &trace->ranks.items[i];
    return NULL;
}

static fr_status add_rank(trace_file *trace, const char *process, int64_t rank,
                          fr_err *err)
{
    fr_rank_spans spans = {.rank = rank};
    if (find_rank(trace, process) != NULL)
        return FR_OK;
    if (trace->ranks.n == RANKS_MAX)
        return fr_fail(err, FR_INPUT, "%s: more than %d ranks", trace->name,
                       RANKS_MAX);
    fr_text_copy_cut(spans.process, sizeof spans.process, process);
    return fr_vec_push(&trace->ranks, spans) == FR_OK ? FR_OK
                                                      : fr_fail_no_memory(err);
}

/* "rank 3 measured": a process of forerun. */
static fr_status take_process(trace_file *trace, const fr_trace_event *event,
                              fr_err *err)
{
    char *end;
    if (strcmp(event->name, "process_name") != 0 ||
        strncmp(event->label, "rank ", 5) != 0)
        return FR_OK;
    long rank = strtol(event->label + 5, &end, 10);
    bool is_predicted = strcmp(end, " predicted") == 0;
    bool is_measured = strcmp(end, " measured") == 0;
    if ((!is_predicted && !is_measured) || rank < 0 || rank > INT32_MAX / 2)
        return FR_OK;
    trace->is_forerun = true;
    /* The other side, where the file has both. */
    if (is_predicted != trace->is_predicted)
        return add_rank(trace, event->process, -1 - rank, err);
    return add_rank(trace, event->process, rank, err);
}

/* The rank whose kernel it is. */
static fr_status take_kernel(trace_file *trace, const fr_trace_event *event,
                             fr_err *err)
{
    const char *process = trace->is_by_device ? event->process : "";
    const int class = event->collective[0] != '\0'
                          ? (int)FR_LOSS_COLLECTIVES
                          : (int)class_of_kernel(event->name);
    trace->n_kernels++;
    trace->latest_us = fmax(trace->latest_us, event->begin_us);
    if (find_rank(trace, process) == NULL)
        FR_TRY(add_rank(trace, process, -1, err));
    return add_span(trace, find_rank(trace, process), event, class, err);
}

/* Updates of the optimizer that was seen first, where there are several; those
 * of the GPU repeat the ones of the host. */
static bool is_update(trace_file *trace, const fr_trace_event *event)
{
    if (!fr_text_starts(event->name, "Optimizer.step#") ||
        strcmp(event->category, "gpu_user_annotation") == 0)
        return false;
    if (trace->update[0] == '\0')
        fr_text_copy_cut(trace->update, sizeof trace->update, event->name);
    return fr_text_starts(event->name, trace->update);
}

static fr_status take_torch(trace_file *trace, const fr_trace_event *event,
                            fr_err *err)
{
    bool is_kernel = strcmp(event->category, "kernel") == 0 ||
                     strcmp(event->category, "gpu_memcpy") == 0;
    bool is_operator =
        strcmp(event->category, "cpu_op") == 0 || event->category[0] == '\0';
    if (strncmp(event->name, "ProfilerStep#", 13) == 0) {
        /* Annotations of the GPU repeat those of the host. */
        if (strcmp(event->category, "gpu_user_annotation") == 0)
            return FR_OK;
        trace->marks.n_steps++;
        return add_span(trace, &trace->marks, event, FR_LOSS_IDLE, err);
    }
    if (is_update(trace, event)) {
        trace->updates.n_steps++;
        FR_TRY(add_span(trace, &trace->updates, event, FR_LOSS_IDLE, err));
    }
    if (is_kernel && !trace->has_kernels) {
        trace->has_kernels = true;
        trace->n_spans -= trace->operators.n;
        free(trace->operators.at);
        trace->operators = (fr_rank_spans){0};
    }
    if (is_kernel)
        return take_kernel(trace, event, err);
    if (is_operator && !trace->has_kernels)
        return add_span(trace, &trace->operators, event,
                        (int)class_of_kernel(event->name), err);
    return FR_OK;
}

static fr_status take(void *self, const fr_trace_event *event, fr_err *err)
{
    trace_file *trace = self;
    if (event->phase == 'M')
        return take_process(trace, event, err);
    if (!trace->is_forerun)
        return take_torch(trace, event, err);
    int class = class_of_part(event->category);
    fr_rank_spans *rank = find_rank(trace, event->process);
    return class >= 0 && rank != NULL ? add_span(trace, rank, event, class, err)
                                      : FR_OK;
}

/* ---- a file ------------------------------------------------------------- */

/* From the first to the last mark; else from the end of the optimizer's first
 * update to the end of its last; else from the first to the last span. */
static fr_step_marks find_window(const trace_file *trace, fr_rank_spans *rank)
{
    const fr_rank_spans *marks = &trace->marks, *updates = &trace->updates;
    const bool is_updates = marks->n == 0 && updates->n_steps > 1;
    const fr_rank_spans *of = marks->n > 0 ? marks
                              : is_updates ? updates
                                           : rank;
    double first_end_us = INFINITY;
    rank->begin_us = INFINITY;
    rank->end_us = -INFINITY;
    for (size_t i = 0; i < of->n; i++) {
        rank->begin_us = fmin(rank->begin_us, of->at[i].begin_us);
        rank->end_us = fmax(rank->end_us, of->at[i].end_us);
        first_end_us = fmin(first_end_us, of->at[i].end_us);
    }
    rank->n_steps = marks->n_steps;
    if (!is_updates)
        return marks->n > 0 ? FR_STEPS_MARKED : FR_STEPS_UNKNOWN;
    rank->begin_us = first_end_us;
    rank->n_steps = updates->n_steps - 1;
    return FR_STEPS_OPTIMIZER;
}

static fr_status add_result(const trace_file *trace, fr_rank_spans *rank,
                            fr_losses *losses, fr_err *err)
{
    fr_loss_rank result;
    fr_loss_rank *ranks =
        realloc(losses->ranks, (losses->n + 1) * sizeof *ranks);
    if (ranks == NULL)
        return fr_fail_no_memory(err);
    losses->ranks = ranks;
    const fr_step_marks by = find_window(trace, rank);
    FR_TRY(fr_loss_sweep(rank, &result, err));
    losses->ranks[losses->n++] = result;
    if (losses->n == 1) {
        losses->n_steps = rank->n_steps > 0 ? rank->n_steps : 1;
        losses->steps_by = by;
    }
    return FR_OK;
}

/* Operators stand within each other: what is no plain compute is more than
 * what stands around it. */
static fr_status add_operators(trace_file *trace, int64_t rank,
                               fr_losses *losses, fr_err *err)
{
    trace->operators.rank = rank;
    for (size_t i = 0; i < trace->operators.n; i++)
        if (trace->operators.at[i].class == FR_LOSS_COMPUTE)
            trace->operators.at[i].class = FR_LOSS_IDLE;
    FR_TRY(add_result(trace, &trace->operators, losses, err));
    losses->is_cpu = true;
    return FR_OK;
}

static fr_status add_trace(trace_file *trace, const fr_trace_about *about,
                           fr_losses *losses, fr_err *err)
{
    size_t n_before = losses->n;
    bool is_other = true; /* only the side that was not asked for */
    for (size_t i = 0; i < trace->ranks.n; i++)
        is_other &= trace->ranks.items[i].rank < 0;
    int64_t rank = about->rank >= 0 && about->rank < 1e9 ? (int64_t)about->rank
                                                         : (int64_t)losses->n;
    for (size_t i = 0; i < trace->ranks.n; i++) {
        fr_rank_spans *spans = &trace->ranks.items[i];
        if (spans->rank < 0 && !is_other)
            continue;
        if (!trace->is_forerun)
            spans->rank = rank + (int64_t)i;
        else if (spans->rank < 0)
            spans->rank = -1 - spans->rank;
        if (spans->n > 0)
            FR_TRY(add_result(trace, spans, losses, err));
    }
    if (losses->n == n_before && trace->operators.n > 0)
        FR_TRY(add_operators(trace, rank, losses, err));
    if (losses->n == n_before)
        return fr_fail(err, FR_INPUT,
                       "%s: neither kernels nor operators: no trace of a run",
                       trace->name);
    return FR_OK;
}

static fr_status read_chrome(const char *path, fr_trace_event_fn take_event,
                             void *self, fr_trace_about *about, fr_err *err)
{
    fr_infile *file;
    FR_TRY(fr_infile_open(path, &file, err));
    fr_status status = fr_trace_read(file, take_event, self, about, err);
    fr_infile_close(file);
    return status;
}

static fr_status load_file(const char *path, bool is_predicted,
                           fr_losses *losses, fr_err *err)
{
    static const fr_trace_reader_fn readers[FR_TRACE_N] = {
        [FR_TRACE_NONE] = read_chrome,
        [FR_TRACE_CHROME] = read_chrome,
        [FR_TRACE_NSYS] = fr_nsys_read,
        [FR_TRACE_CHAKRA] = fr_chakra_read};
    const fr_trace_kind kind = fr_trace_kind_of(path);
    trace_file trace = {.name = path,
                        .is_predicted = is_predicted,
                        .is_by_device = kind == FR_TRACE_NSYS};
    fr_trace_about about;
    fr_status status = readers[kind](path, take, &trace, &about, err);
    if (status == FR_IO)
        status = fr_fail(err, FR_INPUT, "%s: cannot be read", path);
    if (status == FR_OK && kind == FR_TRACE_CHAKRA && trace.n_kernels > 1 &&
        trace.latest_us == 0)
        status = fr_fail(err, FR_INPUT,
                         "%s: no start times: a graph for simulators, not a "
                         "run",
                         path);
    if (status == FR_OK)
        status = add_trace(&trace, &about, losses, err);
    for (size_t i = 0; i < trace.ranks.n; i++)
        free(trace.ranks.items[i].at);
    fr_vec_release(&trace.ranks);
    free(trace.operators.at);
    free(trace.marks.at);
    free(trace.updates.at);
    return status;
}

/* ---- files and folders -------------------------------------------------- */

static int is_trace_name(const struct dirent *entry)
{
    return fr_text_ends(entry->d_name, ".json") ||
           fr_text_ends(entry->d_name, ".json.gz") ||
           fr_text_ends(entry->d_name, ".trace") ||
           fr_text_ends(entry->d_name, ".sqlite") ||
           fr_text_ends(entry->d_name, ".et");
}

static bool is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static fr_status load_folder(const char *path, bool is_predicted,
                             fr_losses *losses, fr_err *err)
{
    struct dirent **entries;
    fr_status status = FR_OK;
    int n = scandir(path, &entries, is_trace_name, versionsort);
    if (n <= 0)
        return fr_fail(err, FR_INPUT,
                       "%s: a folder without traces (*.json.gz, *.sqlite, "
                       "*.et)",
                       path);
    for (int i = 0; i < n; i++) {
        char name[4096];
        snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
        if (status == FR_OK)
            status = load_file(name, is_predicted, losses, err);
        free(entries[i]);
    }
    free(entries);
    return status;
}

bool fr_trace_is_file(const char *path)
{
    return is_folder(path) || fr_trace_kind_of(path) != FR_TRACE_NONE;
}

fr_status fr_losses_load(const char *const *paths, size_t n, bool is_predicted,
                         fr_losses *out, fr_err *err)
{
    fr_losses losses = {.n = 0};
    fr_status status = FR_OK;
    for (size_t i = 0; i < n && status == FR_OK; i++)
        status = is_folder(paths[i])
                     ? load_folder(paths[i], is_predicted, &losses, err)
                     : load_file(paths[i], is_predicted, &losses, err);
    if (status != FR_OK) {
        fr_losses_release(&losses);
        return status;
    }
    fr_losses_finish(&losses);
    *out = losses;
    return FR_OK;
}
