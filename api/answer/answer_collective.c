/* answer_collective.c: what a collective takes on a cluster, by size and
 * algorithm, in the terms of nccl-tests. */
#include "api/answer/answers.h"
#include "api/inputs.h"
#include "api/resolve/no_effect.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "core/base/vec.h"
#include "cost_models/link/gpu_comm.h"
#include "sim/predict/collective_time.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SIZES = 64, BAR_WIDTH = 20 };

static const fr_op ops[] = {FR_OP_ALL_REDUCE, FR_OP_REDUCE_SCATTER,
                            FR_OP_ALL_GATHER, FR_OP_ALL_TO_ALL,
                            FR_OP_BROADCAST,  FR_OP_SEND};

typedef struct row {
    fr_collective_kind asked; /* AUTO: what the library takes */
    fr_collective_time time;
} row;

typedef struct study {
    const fr_request *request;
    fr_inputs inputs;
    fr_placement placement;
    int32_t *node_of_rank;
    fr_op op;
    uint64_t sizes[MAX_SIZES];
    size_t n_sizes;
    /* The algorithms asked for at each size; the first is the library's choice
     * unless --algorithm leaves it out. */
    fr_collective_kind kinds[FR_COLLECTIVE_N];
    size_t n_kinds;
    fr_vec(row) rows; /* [n_sizes][n_kinds] */
} study;

/* ---- what is asked ------------------------------------------------------ */

/* "allreduce" and "all-reduce" for "all_reduce". */
static bool is_spelt(const char *word, const char *name)
{
    for (;; word++, name++) {
        word += strspn(word, "-_");
        name += strspn(name, "-_");
        if (tolower((unsigned char)*word) != *name)
            return false;
        if (*name == '\0')
            return true;
    }
}

static fr_status read_op(study *s, fr_err *err)
{
    char word[32];

    fr_text_copy_cut(word, sizeof word, s->request->positional[0]);
    /* As nccl-tests and PyTorch call it. */
    if (is_spelt(word, "sendrecv"))
        fr_text_copy_cut(word, sizeof word, fr_op_name(FR_OP_SEND));
    for (size_t i = 0; i < FR_LENGTH(ops); i++)
        if (is_spelt(word, fr_op_name(ops[i]))) {
            s->op = ops[i];
            return FR_OK;
        }
    return fr_fail(err, FR_USAGE,
                   "collective '%.40s': choose all_reduce, reduce_scatter, "
                   "all_gather, all_to_all, broadcast or send",
                   s->request->positional[0]);
}

static fr_status add_size(study *s, uint64_t n_bytes, fr_err *err)
{
    if (s->n_sizes == MAX_SIZES || n_bytes == 0)
        return fr_fail(err, FR_USAGE, "'%.40s': give 1 to %d sizes above 0",
                       s->request->positional[1], MAX_SIZES);
    s->sizes[s->n_sizes++] = n_bytes;
    return FR_OK;
}

/* "1MB", "1kB..1GB" (times 4) or "1kB..1GB*2". */
static fr_status read_range(study *s, char *text, fr_err *err)
{
    char *end = strstr(text, ".."), *step = strchr(text, '*');
    uint64_t first, last, factor = 4;

    if (step != NULL) {
        *step = '\0';
        FR_TRY(fr_parse_u64(step + 1, &factor, err));
    }
    if (end != NULL)
        *end = '\0';
    FR_TRY(fr_parse_bytes(text, &first, err));
    last = first;
    if (end != NULL)
        FR_TRY(fr_parse_bytes(end + 2, &last, err));
    if (factor < 2 || (step != NULL && end == NULL) || last < first)
        return fr_fail(err, FR_USAGE,
                       "a range of sizes is such as 1kB..1GB or 1kB..1GB*2");
    for (uint64_t at = first;; at *= factor) {
        FR_TRY(add_size(s, at, err));
        if (at == last)
            return FR_OK;
        if (at > last / factor) /* the end belongs to the range */
            return add_size(s, last, err);
    }
}

static fr_status read_sizes(study *s, fr_err *err)
{
    char text[256], *at = text;

    if (!fr_text_copy(text, sizeof text, s->request->positional[1]))
        return fr_fail(err, FR_USAGE, "the list of sizes is too long");
    while (at != NULL) {
        char *comma = strchr(at, ',');
        if (comma != NULL)
            *comma++ = '\0';
        fr_status status = read_range(s, at, err);
        if (status != FR_OK) {
            fr_err why = *err;
            return fr_fail(err, FR_USAGE, "BYTES: %s", why.text);
        }
        at = comma;
    }
    return FR_OK;
}

/* Does the cluster carry it out, and for this operation and group? */
static bool can_do(const study *s, fr_collective_kind kind)
{
    const fr_collective *entry = fr_collectives[kind];
    const fr_gpu_comm_model *comm = fr_cost_gpu_comm(s->inputs.costs);
    fr_err ignored;

    if (entry->is_internal ||
        !fr_collective_time_can(s->inputs.costs, kind, s->op,
                                s->placement.n_ranks))
        return false;
    if (comm == NULL)
        return entry->not_executable == NULL;
    return entry->has_nccl && fr_gpu_comm_check(comm, kind, &ignored) == FR_OK;
}

static fr_status fail_kind(const char *word, fr_err *err)
{
    const char *names[FR_COLLECTIVE_N];
    char all[256] = "auto", hint[FR_HINT_MAX];
    size_t n = 0;

    for (int i = 0; i < FR_COLLECTIVE_N; i++) {
        size_t used = strlen(all);
        if (fr_collectives[i] == NULL || fr_collectives[i]->is_internal)
            continue;
        names[n++] = fr_collectives[i]->name;
        (void)snprintf(all + used, sizeof all - used, ", %s", names[n - 1]);
    }
    return fr_fail(err, FR_USAGE, "--algorithm '%.40s'%s (one of %s)", word,
                   fr_text_hint(fr_text_nearest(word, names, n), hint), all);
}

static fr_status read_kinds(study *s, fr_err *err)
{
    const char *text = fr_request_text(s->request, FR_OPT_ALGORITHM);
    const fr_gpu_comm_model *comm = fr_cost_gpu_comm(s->inputs.costs);

    if (text == NULL) {
        s->kinds[s->n_kinds++] = FR_COLLECTIVE_AUTO;
        for (int i = 0; i < FR_COLLECTIVE_N; i++)
            if (fr_collectives[i] != NULL && can_do(s, (fr_collective_kind)i))
                s->kinds[s->n_kinds++] = (fr_collective_kind)i;
        return FR_OK;
    }
    while (*text != '\0') {
        char word[32];
        size_t n = strcspn(text, ",");
        (void)snprintf(word, sizeof word, "%.*s", (int)n, text);
        int kind = fr_name_find(&fr_collective_names, word);
        if (kind < 0 || s->n_kinds == FR_COLLECTIVE_N)
            return fail_kind(word, err);
        if (comm != NULL)
            FR_TRY(fr_gpu_comm_check(comm, (fr_collective_kind)kind, err));
        s->kinds[s->n_kinds++] = (fr_collective_kind)kind;
        text += n + (text[n] == ',');
    }
    return FR_OK;
}

static fr_status place(study *s, fr_err *err)
{
    const fr_cluster *cluster = &s->inputs.cluster;
    int64_t n = fr_request_has(s->request, FR_OPT_RANKS)
                    ? s->request->option[FR_OPT_RANKS].count
                    : fr_cluster_slots(cluster);

    if (n < 2)
        return fr_fail(err, FR_USAGE,
                       "a collective needs 2 ranks or more; '%s' has a place "
                       "for %lld",
                       cluster->name, (long long)n);
    s->node_of_rank = malloc((size_t)n * sizeof *s->node_of_rank);
    if (s->node_of_rank == NULL)
        return fr_fail_no_memory(err);
    FR_TRY(fr_cluster_place(cluster, n, 1, s->inputs.ranks_per_node,
                            s->node_of_rank, err));
    s->placement =
        (fr_placement){.n_ranks = n, .node_of_rank = s->node_of_rank};
    return FR_OK;
}

static fr_status ask_all(study *s, fr_err *err)
{
    for (size_t i = 0; i < s->n_sizes; i++)
        for (size_t k = 0; k < s->n_kinds; k++) {
            row one = {.asked = s->kinds[k]};
            fr_collective_ask ask = {
                .op = s->op,
                .n_bytes = s->sizes[i],
                .algorithm = s->kinds[k],
                .protocol =
                    (fr_protocol)s->request->option[FR_OPT_NCCL_PROTOCOL]
                        .count};
            FR_TRY(fr_collective_time_of(s->inputs.costs, &s->inputs.cluster,
                                         &s->placement, &ask, &one.time, err));
            if (fr_vec_push(&s->rows, one) != FR_OK)
                return fr_fail_no_memory(err);
        }
    return FR_OK;
}

/* ---- the answer --------------------------------------------------------- */

static const row *row_at(const study *s, size_t i_size, size_t i_kind)
{
    return &s->rows.items[i_size * s->n_kinds + i_kind];
}

/* As it was asked for: in powers of two, or in thousands. */
static void put_size(const study *s, size_t i_size, fr_table *table)
{
    static const char *const units[2][4] = {{"B", "kB", "MB", "GB"},
                                            {"B", "KiB", "MiB", "GiB"}};
    bool is_binary = true;
    int unit = 0;

    for (size_t i = 0; i < s->n_sizes; i++)
        is_binary &= s->sizes[i] % 1024 == 0;
    double value = (double)s->sizes[i_size], base = is_binary ? 1024.0 : 1e3;
    for (; value >= base && unit < 3; unit++)
        value /= base;
    fr_table_number(table, FR_CELL_BYTES, (double)s->sizes[i_size], "%.4g %s",
                    value, units[is_binary][unit]);
}

static void put_rate(fr_table *table, double rate_Bps)
{
    fr_table_number(table, FR_CELL_NUMBER, rate_Bps, "%.*f",
                    rate_Bps < 1e9 ? 3 : 1, rate_Bps * 1e-9);
}

/* The first kind of each size: what the library takes, or what was asked. */
static void put_choices(const study *s, fr_document *out)
{
    static const char *const headings[] = {
        ">bytes", "algorithm",     "protocol", ">time",
        ">algbw", ">busbw [GB/s]", "",         NULL};
    double most = 0.0;

    for (size_t i = 0; i < s->rows.n; i++)
        if (s->rows.items[i].time.busbw_Bps > most)
            most = s->rows.items[i].time.busbw_Bps;
    fr_table *table = fr_document_table(out, headings);
    for (size_t i = 0; i < s->n_sizes; i++) {
        const fr_collective_time *time = &row_at(s, i, 0)->time;
        put_size(s, i, table);
        fr_table_text(table, time->algorithm);
        fr_table_text(table, time->protocol);
        fr_table_s(table, time->seconds);
        put_rate(table, time->algbw_Bps);
        put_rate(table, time->busbw_Bps);
        fr_table_bar(
            table, floor(time->busbw_Bps / most * BAR_WIDTH + 0.5) / BAR_WIDTH,
            BAR_WIDTH);
    }
}

/* The library's own choice, where it was asked for, else the least time. */
static bool is_marked(const study *s, size_t i_size, size_t k, double least_s)
{
    const row *chosen = row_at(s, i_size, 0), *at = row_at(s, i_size, k);

    if (chosen->asked == FR_COLLECTIVE_AUTO)
        return strcmp(at->time.algorithm, chosen->time.algorithm) == 0;
    return at->time.seconds <= least_s;
}

/* All of them beside each other, '*' before one. */
static void put_kinds(const study *s, fr_document *out)
{
    char titles[FR_COLLECTIVE_N][32];
    const char *headings[FR_COLLECTIVE_N + 2] = {">bytes"};
    size_t first = s->kinds[0] == FR_COLLECTIVE_AUTO;

    for (size_t k = first; k < s->n_kinds; k++) {
        (void)snprintf(titles[k], sizeof titles[k], ">%s",
                       fr_name_of(&fr_collective_names, s->kinds[k]));
        headings[1 + k - first] = titles[k];
    }
    fr_document_printf(out, "\nby algorithm (*: %s)\n",
                       s->kinds[0] == FR_COLLECTIVE_AUTO ? "what is chosen"
                                                         : "the fastest");
    fr_table *table = fr_document_table(out, headings);
    for (size_t i = 0; i < s->n_sizes; i++) {
        double least_s = row_at(s, i, first)->time.seconds;
        put_size(s, i, table);
        for (size_t k = first; k < s->n_kinds; k++)
            if (row_at(s, i, k)->time.seconds < least_s)
                least_s = row_at(s, i, k)->time.seconds;
        for (size_t k = first; k < s->n_kinds; k++) {
            char text[32];
            double seconds = row_at(s, i, k)->time.seconds;
            fr_table_number(table, FR_CELL_S, seconds, "%s%s",
                            is_marked(s, i, k, least_s) ? "*" : "",
                            fr_format_s(text, sizeof text, seconds));
        }
    }
}

/* All of them, for programs. */
static void put_rows(const study *s, fr_document *out)
{
    static const fr_column columns[] = {
        {NULL, "bytes"},    {NULL, "asked"},  {NULL, "algorithm"},
        {NULL, "protocol"}, {NULL, "time_s"}, {NULL, "algbw_Bps"},
        {NULL, "busbw_Bps"}};
    fr_table *table =
        fr_document_records(out, "rows", columns, FR_LENGTH(columns));

    table->is_main = true;
    for (size_t i = 0; i < s->rows.n; i++) {
        const row *one = &s->rows.items[i];
        fr_table_bytes(table, (double)one->time.n_bytes);
        fr_table_text(table, fr_name_of(&fr_collective_names, one->asked));
        fr_table_text(table, one->time.algorithm);
        fr_table_optional(table, one->time.protocol);
        fr_table_s(table, one->time.seconds);
        put_rate(table, one->time.algbw_Bps);
        put_rate(table, one->time.busbw_Bps);
    }
}

static void build(const study *s, fr_document *out)
{
    const fr_collective_time *time = &row_at(s, 0, 0)->time;

    fr_document_heading(
        out, "%s of %lld ranks on %lld node%s of %s%s", fr_op_name(s->op),
        (long long)time->n_group, (long long)time->n_nodes,
        time->n_nodes == 1 ? "" : "s", s->request->positional[2],
        s->kinds[0] != FR_COLLECTIVE_AUTO           ? ""
        : fr_cost_gpu_comm(s->inputs.costs) != NULL ? ", as NCCL chooses"
                                                    : ", as forerun chooses");
    fr_json_put_string(&out->data, "op", fr_op_name(s->op));
    fr_json_put_i64(&out->data, "ranks", time->n_group);
    fr_json_put_i64(&out->data, "nodes", time->n_nodes);
    put_choices(s, out);
    if (s->n_kinds > (s->kinds[0] == FR_COLLECTIVE_AUTO ? 2 : 1))
        put_kinds(s, out);
    put_rows(s, out);
}

static fr_status answer_all(study *s, fr_document *out, fr_err *err)
{
    FR_TRY(read_op(s, err));
    FR_TRY(read_sizes(s, err));
    FR_TRY(
        fr_inputs_load(s->request, s->request->positional[2], &s->inputs, err));
    FR_TRY(place(s, err));
    if (fr_request_has(s->request, FR_OPT_NCCL_PROTOCOL) &&
        fr_cost_gpu_comm(s->inputs.costs) == NULL)
        fr_note_ignored(s->request, "--nccl-protocol",
                        "there is no NCCL between CPUs");
    FR_TRY(read_kinds(s, err));
    FR_TRY(ask_all(s, err));
    fr_document_init(out, "forerun.collective/1");
    build(s, out);
    return FR_OK;
}

fr_status fr_api_collective(const fr_request *request, fr_document *out,
                            fr_err *err)
{
    study s = {.request = request};
    fr_status status = answer_all(&s, out, err);

    fr_vec_release(&s.rows);
    free(s.node_of_rank);
    fr_inputs_release(&s.inputs);
    return status;
}
