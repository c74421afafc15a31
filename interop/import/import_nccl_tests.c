/*
 * import_nccl_tests.c: what nccl-tests prints (github.com/NVIDIA/nccl-tests),
 * as communication points of a profile: text of all versions, and JSON of
 * version 3 in import_nccl_json.c.
 *
 * A row is `size` bytes (of the whole array for reduce-scatter and all-gather,
 * as our payloads count) in `time` microseconds, out of place and in place;
 * the point takes the mean of both and half their difference as its error.
 */
#include "interop/import/import_nccl_tests.h"

#include "core/base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORDS = 48, MAX_HOSTS = 4096 };

static const struct {
    const char *test, *op;
} tests[] = {
    {"all_reduce", "all_reduce"}, {"reduce_scatter", "reduce_scatter"},
    {"all_gather", "all_gather"}, {"alltoall", "all_to_all"},
    {"all_to_all", "all_to_all"}, {"broadcast", "broadcast"},
    {"sendrecv", "send"},
};

const char *fr_nccl_op_of(const char *text)
{
    for (size_t i = 0; i < FR_LENGTH(tests); i++)
        if (strstr(text, tests[i].test) != NULL)
            return tests[i].op;
    return NULL;
}

fr_status fr_nccl_take_test(const fr_import_text *in, fr_nccl_run *run,
                            int line, fr_err *err)
{
    const char *test = in->options->test;
    const char *op = test != NULL ? fr_nccl_op_of(test) : NULL;
    if (test != NULL && op == NULL)
        return fr_fail(err, FR_USAGE,
                       "--test: '%.40s' is not known; all_reduce, all_gather, "
                       "reduce_scatter, alltoall, broadcast and sendrecv are",
                       test);
    if (op != NULL && run->op != NULL && strcmp(op, run->op) != 0)
        return fr_import_fail(in, line, err,
                              "the file is of %s, and --test says %s", run->op,
                              test);
    if (op != NULL)
        run->op = op;
    if (run->op != NULL)
        return FR_OK;
    run->op = fr_nccl_op_of(in->name);
    if (run->op == NULL)
        return fr_import_fail(in, line > 0 ? line : 1, err,
                              "which test it was is not said; give --test "
                              "all_reduce");
    fr_import_note(in, "%s, as the file is called", run->op);
    return FR_OK;
}

fr_status fr_nccl_finish(const fr_import_text *in, const fr_nccl_run *run,
                         int line, fr_import *out, fr_err *err)
{
    fr_profile *profile = &out->profile;
    if (profile->n_comm == 0)
        return fr_import_fail(in, line, err, "no row with a size above 0");
    if (run->n_ranks < 2)
        return fr_import_fail(in, line, err,
                              "%d ranks: a collective needs two or more; for "
                              "several hosts build nccl-tests with MPI=1",
                              run->n_ranks);
    bool is_net = run->n_hosts > 1 || in->options->n_nodes > 1;
    for (size_t i = 0; i < profile->n_comm; i++) {
        fr_comm_point *point = &profile->comm[i];
        fr_text_copy_cut(point->op, sizeof point->op, run->op);
        bool is_send = strcmp(run->op, "send") == 0;
        fr_text_copy_cut(point->scope, sizeof point->scope,
                         is_net ? FR_PROFILE_SCOPE_NET : FR_PROFILE_SCOPE_SHM);
        /* As many ranks on other nodes are another measurement: "net:4"
         * (comm_fit.h). */
        if (is_net && !is_send)
            snprintf(point->scope, sizeof point->scope, "%s:%lld",
                     FR_PROFILE_SCOPE_NET,
                     (long long)(run->n_hosts > 1 ? run->n_hosts
                                                  : in->options->n_nodes));
        point->n_group = is_send ? 2 : run->n_ranks;
        point->sample.n_samples = run->n_iterations > 0 ? run->n_iterations : 1;
    }
    fr_fingerprint *print = &profile->fingerprint;
    char cpu[sizeof run->device + 16];
    snprintf(cpu, sizeof cpu, "%s (nccl-tests)",
             run->device[0] ? run->device : "unknown GPU");
    fr_text_copy_cut(print->cpu, sizeof print->cpu, cpu);
    print->n_cores = 1; /* unknown; a profile has some */
    print->n_nodes = run->n_hosts > 0 ? run->n_hosts : is_net ? 2 : 1;
    fr_import_note(in, "%zu sizes of %s, %d ranks on %d hosts: scope %s",
                   profile->n_comm, run->op, run->n_ranks, print->n_nodes,
                   is_net ? "net" : "shm");
    if (run->n_hosts == 0)
        fr_import_note(in,
                       "no list of ranks: %s is taken; give --nodes N "
                       "for several hosts",
                       is_net ? "several hosts" : "one host");
    out->is_profile = true;
    return FR_OK;
}

fr_status fr_nccl_add(const fr_import_text *in, const fr_nccl_timing *row,
                      fr_import *out, fr_err *err)
{
    fr_comm_point point;
    memset(&point, 0, sizeof point);
    double least_s = 1e-9, most_s = 1e6;
    if (row->n_wrong > 0)
        return fr_import_fail(in, row->line, err,
                              "%lld wrong values at %llu bytes: these results "
                              "are of a broken machine; run again",
                              (long long)row->n_wrong,
                              (unsigned long long)row->n_bytes);
    if (row->n_bytes == 0)
        return FR_OK;
    for (int i = 0; i < 2; i++)
        if (!(row->time_s[i] >= least_s && row->time_s[i] <= most_s))
            return fr_import_fail(in, row->line, err,
                                  "a time of %g us: give more than 0.001",
                                  row->time_s[i] * 1e6);
    point.n_bytes = row->n_bytes;
    point.is_async = true; /* kernels on a stream of their own */
    point.sample.median_s = (row->time_s[0] + row->time_s[1]) / 2.0;
    point.sample.rel_err = fabs(row->time_s[0] - row->time_s[1]) /
                           (row->time_s[0] + row->time_s[1]);
    return fr_profile_add_comm(&out->profile, &point, err);
}

/* ---- text --------------------------------------------------------------- */

typedef struct columns {
    int n, size, time[2], wrong[2], algbw, busbw;
    bool counts_errors; /* old versions: the largest difference, not a count */
} columns;

typedef struct text_file {
    const fr_import_text *in;
    fr_import *out;
    fr_nccl_run run;
    columns columns;
    char hosts[MAX_HOSTS][64];
    double factor; /* busbw / algbw of the largest row */
} text_file;

/* "#  size  count  type  redop  root  time  algbw  busbw #wrong  time ..." */
static fr_status read_heading(text_file *file, char **words, int n, int line,
                              fr_err *err)
{
    columns found = {.size = -1, .algbw = -1, .busbw = -1};
    int n_times = 0, n_wrong = 0;
    for (int i = 1; i < n; i++) {
        if (strcmp(words[i], "size") == 0)
            found.size = i - 1;
        if (strcmp(words[i], "algbw") == 0 && found.algbw < 0)
            found.algbw = i - 1;
        if (strcmp(words[i], "busbw") == 0 && found.busbw < 0)
            found.busbw = i - 1;
        if (strcmp(words[i], "time") == 0 && n_times < 2)
            found.time[n_times++] = i - 1;
        bool is_error = strcmp(words[i], "error") == 0;
        found.counts_errors |= is_error;
        if ((is_error || strcmp(words[i], "#wrong") == 0 ||
             strcmp(words[i], "wrong") == 0) &&
            n_wrong < 2)
            found.wrong[n_wrong++] = i - 1;
    }
    found.n = n - 1;
    if (n_times != 2 || n_wrong != 2 || found.size != 0)
        return fr_import_fail(file->in, line, err,
                              "a heading with %d times and %d counts of wrong "
                              "values, 2 of each are known",
                              n_times, n_wrong);
    file->columns = found;
    return FR_OK;
}

/* "#  Rank  0 Group  0 Pid  1887 on  worker-1 device  0 [0x8d] NVIDIA ..." */
static fr_status read_rank(text_file *file, char **words, int n, int line,
                           fr_err *err)
{
    const char *host = NULL;
    fr_nccl_run *run = &file->run;
    for (int i = 3; i + 1 < n; i++) {
        if (strcmp(words[i], "on") == 0)
            host = words[i + 1];
        if (words[i][0] == '[' && run->device[0] == '\0')
            for (int k = i + 1; k < n; k++) {
                size_t used = strlen(run->device);
                snprintf(run->device + used, sizeof run->device - used, "%s%s",
                         used > 0 ? " " : "", words[k]);
            }
    }
    if (host == NULL || (int)strtol(words[2], NULL, 10) != run->n_ranks)
        return fr_import_fail(file->in, line, err,
                              "rank %s where rank %d was expected: several "
                              "runs in one file, or nccl-tests without MPI=1",
                              words[2], run->n_ranks);
    run->n_ranks++;
    for (int i = 0; i < run->n_hosts; i++)
        if (strncmp(file->hosts[i], host, 63) == 0)
            return FR_OK;
    if (run->n_hosts == MAX_HOSTS)
        return fr_import_fail(file->in, line, err, "more than %d hosts",
                              MAX_HOSTS);
    fr_text_copy_cut(file->hosts[run->n_hosts++], 64, host);
    return FR_OK;
}

static fr_status read_comment(text_file *file, char *line, int n_line,
                              fr_err *err)
{
    char *words[MAX_WORDS];
    const char *op =
        strstr(line, "ollective test") ? fr_nccl_op_of(line) : NULL;
    if (op != NULL)
        file->run.op = op;
    const char *iterations = strstr(line, " iters: ");
    if (iterations != NULL && strstr(iterations + 1, " iters: ") == NULL)
        file->run.n_iterations = (int)strtol(iterations + 8, NULL, 10);
    else if (iterations != NULL) /* "warmup iters: 5 iters: 20 agg iters: 1" */
        file->run.n_iterations =
            (int)strtol(strstr(iterations + 1, " iters: ") + 8, NULL, 10);
    if (strstr(line, "Out of bounds") != NULL && strstr(line, ": 0 OK") == NULL)
        return fr_import_fail(file->in, n_line, err,
                              "out of bounds values: these results are of a "
                              "broken machine; run again");
    int n = fr_import_words(line, words, MAX_WORDS);
    if (n > 4 && strcmp(words[1], "Rank") == 0)
        return read_rank(file, words, n, n_line, err);
    if (n > 6 && strcmp(words[1], "size") == 0)
        return read_heading(file, words, n, n_line, err);
    return FR_OK;
}

static fr_status read_number(const text_file *file, const char *text, int line,
                             double *out, fr_err *err)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value) || value < 0.0)
        return fr_import_fail(file->in, line, err, "'%.40s' is not a number",
                              text);
    *out = value;
    return FR_OK;
}

static fr_status read_row(text_file *file, char *line, int n_line, fr_err *err)
{
    char *words[MAX_WORDS];
    const columns *at = &file->columns;
    fr_nccl_timing row = {.line = n_line};
    double size, wrong, algbw, busbw;
    int n = fr_import_words(line, words, MAX_WORDS);
    if (n == 0 || at->n == 0 || words[0][0] < '0' || words[0][0] > '9')
        return FR_OK; /* chatter of mpirun and NCCL_DEBUG */
    if (n < at->n || n > at->n + 2)
        return fr_import_fail(file->in, n_line, err,
                              "%d values under a heading of %d columns", n,
                              at->n);
    FR_TRY(read_number(file, words[at->size], n_line, &size, err));
    for (int i = 0; i < 2; i++) {
        const char *text = words[at->wrong[i]];
        FR_TRY(
            read_number(file, words[at->time[i]], n_line, &row.time_s[i], err));
        row.time_s[i] /= 1e6;
        if (strcmp(text, "N/A") == 0 || at->counts_errors)
            continue;
        FR_TRY(read_number(file, text, n_line, &wrong, err));
        row.n_wrong += wrong < 1e18 ? (int64_t)wrong : INT64_MAX / 4;
    }
    if (size > 1e18)
        return fr_import_fail(file->in, n_line, err, "size %g", size);
    row.n_bytes = (uint64_t)size;
    if (at->algbw >= 0 && at->busbw >= 0) {
        FR_TRY(read_number(file, words[at->algbw], n_line, &algbw, err));
        FR_TRY(read_number(file, words[at->busbw], n_line, &busbw, err));
        if (algbw > 1.0)
            file->factor = busbw / algbw;
    }
    return fr_nccl_add(file->in, &row, file->out, err);
}

/* Without the list of ranks: busbw / algbw is 2(n-1)/n for all-reduce, (n-1)/n
 * for the others (nccl-tests, doc/PERFORMANCE.md). */
static void guess_ranks(text_file *file)
{
    double share = file->factor;
    if (file->run.op != NULL && strcmp(file->run.op, "all_reduce") == 0)
        share /= 2.0;
    if (file->run.n_ranks > 0 || !(share > 0.4 && share < 0.9999))
        return;
    file->run.n_ranks = (int)lround(1.0 / (1.0 - share));
    fr_import_note(file->in, "no list of ranks: busbw/algbw %.4g says %d",
                   file->factor, file->run.n_ranks);
}

/* Passes over what a launcher puts before each line: "[1,0]<stdout>:" of Open
 * MPI's --tag-output, "[0] " of MPICH's -prepend-rank, "[default0]:" of
 * torchrun, "0: " of srun --label, "node-1: " of pdsh. */
static char *skip_label(char *line)
{
    static const char host[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRST"
                               "UVWXYZ0123456789._-";
    char *at = line + strspn(line, " \t");
    if (*at == '[') {
        char *end = strchr(at, ']');
        if (end == NULL || end - at > 40)
            return at;
        end++;
        if (strncmp(end, "<stdout>", 8) == 0 ||
            strncmp(end, "<stderr>", 8) == 0)
            end += 8;
        end += *end == ':';
        return end + strspn(end, " \t");
    }
    const size_t n = strspn(at, host);
    if (n == 0 || at[n] != ':' || (at[n + 1] != ' ' && at[n + 1] != '\0'))
        return at;
    return at + n + 1 + strspn(at + n + 1, " \t");
}

static fr_status read_text(text_file *file, char *text, fr_err *err)
{
    int n_line = 0;
    while (*text) {
        char *end = strchr(text, '\n');
        if (end != NULL)
            *end = '\0';
        n_line++;
        char *line = skip_label(text);
        if (line[0] == '#')
            FR_TRY(read_comment(file, line, n_line, err));
        else
            FR_TRY(read_row(file, line, n_line, err));
        text = end != NULL ? end + 1 : text + strlen(text);
    }
    FR_TRY(fr_nccl_take_test(file->in, &file->run, n_line, err));
    guess_ranks(file);
    return fr_nccl_finish(file->in, &file->run, n_line, file->out, err);
}

static fr_status read_nccl_tests(const fr_import_text *in, fr_import *out,
                                 fr_err *err)
{
    size_t blank = strspn(in->text, " \t\r\n");
    if (in->text[blank] == '{')
        return fr_nccl_read_json(in, out, err);
    text_file *file = calloc(1, sizeof *file);
    char *copy = malloc(in->n + 1);
    fr_status status =
        file != NULL && copy != NULL ? FR_OK : fr_fail_no_memory(err);
    if (status == FR_OK) {
        memcpy(copy, in->text, in->n);
        copy[in->n] = '\0';
        file->in = in;
        file->out = out;
        status = read_text(file, copy, err);
    }
    free(copy);
    free(file);
    return status;
}

const fr_importer fr_import_nccl_tests = {
    .name = "nccl-tests",
    .subject = FR_IMPORT_OF_LINKS,
    .marks = {"nThread ", "busbw", "\"nccl_version\""},
    .read = read_nccl_tests};
