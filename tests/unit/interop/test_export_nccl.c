/*
 * test_export_nccl.c: the file for NCCL's example tuner plugin, read back by
 * the rules of the plugin (plugins/tuner/example/plugin.c of NVIDIA/nccl, in
 * our own words), and the ranges of sizes in it.
 */
#include "cost_models/link/nccl_ranges.h"
#include "interop/export/export_nccl_csv.h"
#include "tests/check.h"

#include <stdlib.h>

enum { N_FIELDS = 10, LINE_BYTES = 256 };

typedef struct config {
    char op[32], algorithm[32], protocol[32];
    uint64_t min_bytes, max_bytes;
    int n_channels, n_nodes, n_ranks, n_ops, is_registered;
} config;

static bool is_one_of(const char *word, const char *words)
{
    const char *at = strstr(words, word);
    size_t n = strlen(word);
    return at && (at == words || at[-1] == ' ') &&
           (at[n] == ' ' || at[n] == '\0');
}

/* One line; false: a comment or empty. */
static bool read_line(const char *line, size_t n_line, config *out)
{
    char copy[LINE_BYTES], *fields[N_FIELDS + 1], *save = NULL;
    int n = 0;

    CHECK(n_line + 2 <= LINE_BYTES); /* '\n' and '\0' in its buffer */
    if (n_line == 0 || line[0] == '#')
        return false;
    (void)snprintf(copy, sizeof copy, "%.*s", (int)n_line, line);
    CHECK(strpbrk(copy, " \t\r\"") == NULL);
    for (char *at = strtok_r(copy, ",", &save); at && n <= N_FIELDS;
         at = strtok_r(NULL, ",", &save))
        fields[n++] = at;
    if (!CHECK_INT(n, N_FIELDS))
        return false;
    (void)snprintf(out->op, sizeof out->op, "%s", fields[0]);
    (void)snprintf(out->algorithm, sizeof out->algorithm, "%s", fields[3]);
    (void)snprintf(out->protocol, sizeof out->protocol, "%s", fields[4]);
    /* Unknown words are taken for allreduce, ring, simple without a word. */
    CHECK(is_one_of(out->op,
                    "broadcast reduce allgather reducescatter allreduce"));
    CHECK(is_one_of(out->algorithm, "tree ring collnet_direct collnet_chain "
                                    "nvls nvls_tree pat"));
    CHECK(is_one_of(out->protocol, "ll ll128 simple"));
    out->min_bytes = strtoull(fields[1], NULL, 10);
    out->max_bytes = strtoull(fields[2], NULL, 10);
    out->n_channels = atoi(fields[5]);
    out->n_nodes = atoi(fields[6]);
    out->n_ranks = atoi(fields[7]);
    out->n_ops = atoi(fields[8]);
    out->is_registered = atoi(fields[9]);
    return true;
}

static size_t read_file(const char *text, config *out, size_t n_max)
{
    size_t n = 0;

    while (*text) {
        size_t n_line = strcspn(text, "\n");
        CHECK(text[n_line] == '\n');
        if (n < n_max && read_line(text, n_line, &out[n]))
            n++;
        text += n_line + 1;
    }
    return n;
}

static void test_file(void)
{
    static const fr_nccl_rule rows[] = {
        {FR_OP_ALL_REDUCE, 0, 65535, "tree", FR_PROTOCOL_LL, 0, 2, 16},
        {FR_OP_ALL_REDUCE, 65536, UINT64_MAX, "nvls_tree", FR_PROTOCOL_SIMPLE,
         6, 2, 16},
        {FR_OP_REDUCE_SCATTER, 7, 5000000000, "ring", FR_PROTOCOL_LL128, 64, 1,
         8},
        {FR_OP_ALL_GATHER, 0, UINT64_MAX, "pat", FR_PROTOCOL_SIMPLE, 1, 8, 8},
        {FR_OP_BROADCAST, 0, 1, "ring", FR_PROTOCOL_LL, 3, 1, 2}};
    enum { N = sizeof rows / sizeof rows[0] };
    static const char *const ops[N] = {
        "allreduce", "allreduce", "reducescatter", "allgather", "broadcast"};
    char plan[400], cluster[400];
    config got[N + 1];
    fr_err err = {0};
    fr_buffer text;

    memset(plan, 'p', sizeof plan);
    memset(cluster, 'c', sizeof cluster);
    plan[sizeof plan - 1] = cluster[sizeof cluster - 1] = '\0';
    fr_buffer_init(&text);
    CHECK_OK(fr_nccl_csv_format(rows, N, plan, cluster, &text, &err), &err);
    if (CHECK_INT(read_file(fr_buffer_text(&text), got, N + 1), N))
        for (size_t i = 0; i < N; i++) {
            CHECK_STR(got[i].op, ops[i]);
            CHECK(got[i].min_bytes == rows[i].min_bytes);
            CHECK(got[i].max_bytes == rows[i].max_bytes);
            CHECK_STR(got[i].algorithm, rows[i].algorithm);
            CHECK_STR(got[i].protocol,
                      fr_name_of(&fr_protocol_names, rows[i].protocol));
            CHECK_INT(got[i].n_channels,
                      rows[i].n_channels > 0 ? rows[i].n_channels : -1);
            CHECK_INT(got[i].n_nodes, rows[i].n_nodes);
            CHECK_INT(got[i].n_ranks, rows[i].n_ranks);
            CHECK_INT(got[i].n_ops, -1);
            CHECK_INT(got[i].is_registered, -1);
        }
    fr_buffer_release(&text);
    CHECK(fr_nccl_csv_op(FR_OP_ALL_TO_ALL) == NULL);
}

/* Is the model's choice at a size that of its range? */
static void check_size(const fr_gpu_comm_model *comm, const fr_instr *of,
                       const fr_comm_scope *scope, const fr_nccl_range *range,
                       uint64_t n_bytes)
{
    fr_err err = {0};
    fr_instr instr = *of;
    fr_nccl_time time = {0};

    instr.dim[0] = (int64_t)n_bytes;
    CHECK_OK(fr_gpu_comm_choice(comm, &instr, scope, &time, &err), &err);
    CHECK_STR(time.algorithm, range->algorithm);
    CHECK_STR(time.protocol, range->protocol);
}

static int check_ranges(const fr_gpu_comm_model *comm, fr_op op,
                        const fr_comm_scope *scope)
{
    fr_instr instr = {.op = (uint8_t)op, .dtype = FR_DTYPE_U8, .dim = {1}};
    fr_nccl_range ranges[FR_NCCL_MAX_RANGES];
    fr_err err = {0};
    int n = 0;

    CHECK_OK(fr_nccl_ranges_of(comm, &instr, scope, ranges, &n, &err), &err);
    CHECK(ranges[0].min_bytes == 0);
    CHECK(ranges[n - 1].max_bytes == UINT64_MAX);
    for (int i = 0; i < n; i++) {
        bool is_last = i == n - 1;
        check_size(comm, &instr, scope, &ranges[i], ranges[i].min_bytes);
        check_size(comm, &instr, scope, &ranges[i],
                   is_last ? (uint64_t)3 << 40 : ranges[i].max_bytes);
        CHECK(is_last || ranges[i + 1].min_bytes == ranges[i].max_bytes + 1);
    }
    return n;
}

static void test_ranges(void)
{
    static const struct {
        const char *cluster;
        fr_comm_scope scope;
    } places[] = {{"dgx-h100:4", {8, 1, 8, 0}},
                  {"dgx-h100:4", {32, 4, 8, 0}},
                  {"dgx-h100:4", {4, 4, 1, 0}},
                  {"h100-pcie-8:2", {16, 2, 8, 0}}};
    static const fr_op ops[] = {FR_OP_ALL_REDUCE, FR_OP_REDUCE_SCATTER,
                                FR_OP_ALL_GATHER};
    int most = 0;

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        fr_err err = {0};
        fr_cluster cluster = {0};
        fr_gpu_comm_model *comm = NULL;
        CHECK_OK(fr_cluster_load(NULL, places[i].cluster, &cluster, &err),
                 &err);
        CHECK_OK(fr_gpu_comm_create(&cluster, NULL, &comm, &err), &err);
        for (int op = 0; op < 3; op++) {
            int n = check_ranges(comm, ops[op], &places[i].scope);
            most = n > most ? n : most;
        }
        fr_gpu_comm_destroy(comm);
        fr_cluster_release(&cluster);
    }
    CHECK(most >= 3);
}

CHECK_MAIN({"file", test_file}, {"ranges", test_ranges})
