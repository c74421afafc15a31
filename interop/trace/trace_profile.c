/*
 * trace_profile.c: measured kernels of a trace as points of a profile, where
 * what ran is what a point means: products of forward whose operands' shapes
 * the trace has (record_shapes=True), and NCCL's kernels with their sizes.
 * Backward's products are left out: their shapes do not tell the gradient of
 * the input from that of the weight.
 */
#include "core/base/text.h"
#include "cost_models/compute/compute_key.h"
#include "interop/trace/trace_kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LISTS = 4, MAX_DIMS = 4, MAX_GROUP = 4096 };

typedef struct dims {
    int n_lists;
    int n[MAX_LISTS];
    int64_t at[MAX_LISTS][MAX_DIMS];
} dims;

/* "[[32,64],[64,128],[]]"; what is more than there is room for ends it. */
static dims parse_dims(const char *text)
{
    dims result = {0};
    if (*text != '[')
        return result;
    for (text++; *text == '[' || *text == ','; text++) {
        if (*text == ',')
            continue;
        int list = result.n_lists;
        if (list == MAX_LISTS)
            break;
        for (text++; *text >= '0' && *text <= '9';) {
            char *end;
            long long value = strtoll(text, &end, 10);
            if (result.n[list] == MAX_DIMS || value < 1 || value > 1ll << 32)
                return result;
            result.at[list][result.n[list]++] = value;
            text = *end == ',' ? end + 1 : end;
        }
        if (*text != ']')
            break;
        result.n_lists++;
    }
    return result;
}

/* Kineto's names: of operands "c10::BFloat16", of collectives "BFloat16". */
static const struct {
    const char *name, *dtype;
    double n_bytes;
} dtypes[] = {
    {"BFloat16", "bf16", 2}, {"Half", "f16", 2},  {"Float8", NULL, 1},
    {"Float", "f32", 4},     {"float", "f32", 4}, {"Double", NULL, 8},
    {"double", NULL, 8},     {"Byte", NULL, 1},   {"Char", NULL, 1},
    {"Int", NULL, 4},        {"Long", NULL, 8},
};

static int find_dtype(const char *text)
{
    for (size_t i = 0; i < FR_LENGTH(dtypes); i++)
        if (strstr(text, dtypes[i].name) != NULL)
            return (int)i;
    return -1;
}

static fr_sample sample_of(const fr_kernel_row *row, double quantile)
{
    double median_s = fr_kernel_row_quantile_s(row, quantile);
    double spread_s = fr_kernel_row_quantile_s(row, 0.75) -
                      fr_kernel_row_quantile_s(row, 0.25);
    double n = (double)row->n;
    fr_sample sample = {.median_s = median_s,
                        .n_samples =
                            n < INT32_MAX ? (int32_t)row->n : INT32_MAX};
    /* The error of the median of a normal sample is 1.2533 sigma / sqrt(n), and
     * a quarter range is 1.349 sigma (Conover, Practical Nonparametric
     * Statistics). */
    sample.rel_err =
        median_s > 0 ? 1.2533 * spread_s / 1.349 / sqrt(n) / median_s : 0;
    return sample;
}

/* ---- products ----------------------------------------------------------- */

static bool is_product_kernel(const char *name)
{
    static const char *const words[] = {"gemm", "cutlass", "nvjet", "xmma",
                                        "Cijk", "sgemm",   "cublas"};
    if (strcasestr(name, "splitk") != NULL && strstr(name, "gemm") == NULL)
        return false;
    for (size_t i = 0; i < FR_LENGTH(words); i++)
        if (strcasestr(name, words[i]) != NULL)
            return true;
    return false;
}

/* m, n, k of aten::mm and aten::addmm; false: another operator. */
static bool find_product(const fr_kernel_row *row, int64_t out[3])
{
    dims d = parse_dims(row->shapes);
    int first = strcmp(row->op, "aten::mm") == 0      ? 0
                : strcmp(row->op, "aten::addmm") == 0 ? 1
                                                      : -1;
    if (first < 0 || row->is_backward || d.n_lists < first + 2 ||
        d.n[first] != 2 || d.n[first + 1] != 2 ||
        d.at[first][1] != d.at[first + 1][0] || !is_product_kernel(row->name))
        return false;
    out[0] = d.at[first][0];
    out[1] = d.at[first + 1][1];
    out[2] = d.at[first][1];
    return true;
}

static fr_status add_product(const fr_kernel_row *row, const int64_t mnk[3],
                             const char *dtype, fr_profile *profile,
                             fr_err *err)
{
    fr_instr instr;
    fr_compute_point key = {.where = "mm-m"};
    snprintf(key.op, sizeof key.op, "%s", fr_op_name(FR_OP_LINEAR_FWD));
    snprintf(key.dtype, sizeof key.dtype, "%s", dtype);
    memcpy(key.dim, mnk, 3 * sizeof *mnk);
    if (!fr_compute_key_instr(&key, &instr))
        return FR_OK;
    fr_compute_key(&instr, &profile->fingerprint, 1, &key);
    key.n_busy = 1;
    key.sample = sample_of(row, 0.5);
    return fr_profile_add_compute(profile, &key, err);
}

static bool has_point(const fr_profile *profile, const int64_t mnk[3],
                      const char *dtype)
{
    for (size_t i = 0; i < profile->n_compute; i++)
        if (memcmp(profile->compute[i].dim, mnk, 3 * sizeof *mnk) == 0 &&
            strcmp(profile->compute[i].dtype, dtype) == 0)
            return true;
    return false;
}

/* ---- collectives -------------------------------------------------------- */

static const char *collective_of(const char *name)
{
    static const struct {
        const char *word, *op;
    } words[] = {
        {"reduce_scatter", "reduce_scatter"},
        {"reducescatter", "reduce_scatter"},
        {"allgather", "all_gather"},
        {"all_gather", "all_gather"},
        {"allreduce", "all_reduce"},
        {"all_reduce", "all_reduce"},
        {"alltoall", "all_to_all"},
        {"all_to_all", "all_to_all"},
        {"broadcast", "broadcast"},
    };
    for (size_t i = 0; i < FR_LENGTH(words); i++)
        if (strcasestr(name, words[i].word) != NULL)
            return words[i].op;
    return NULL;
}

/* Nodes that the ranks of a group stand on, n_each of a node; 0: unknown. */
static int n_nodes_of(const char *ranks, double n_group, int n_each,
                      double world)
{
    int n = 0, nodes[64];
    if (n_each > 0 && world > 0 && world <= n_each)
        return 1;
    int n_ranks = 0;
    for (const char *at = ranks; *at != '\0' && n_each > 0; at++) {
        if (*at < '0' || *at > '9')
            continue;
        char *end;
        int node = (int)(strtol(at, &end, 10) / n_each), i = 0;
        while (i < n && nodes[i] != node)
            i++;
        if (i == n && n == 64)
            return 0;
        nodes[i] = node;
        n += i == n;
        n_ranks++;
        at = end - 1;
    }
    return n_ranks == n_group ? n : 0;
}

static fr_status add_collective(const fr_kernel_row *row,
                                const fr_trace_about *about,
                                fr_profile *profile, bool *is_added,
                                fr_err *err)
{
    const char *op = collective_of(row->collective);
    int dtype = find_dtype(row->types);
    bool is_gather = op != NULL && strcmp(op, "all_gather") == 0;
    double n_elements = is_gather ? row->n_out : row->n_in;
    int n_nodes = n_nodes_of(row->ranks, row->n_group, about->n_devices,
                             about->world_size);
    *is_added = false;
    if (op == NULL || dtype < 0 || n_nodes == 0 || !(row->n_group >= 2) ||
        row->n_group > MAX_GROUP || !(n_elements >= 1) || n_elements > 1e12)
        return FR_OK;
    fr_comm_point point = {.n_group = (int32_t)row->n_group, .is_async = true};
    point.n_bytes = (uint64_t)(n_elements * dtypes[dtype].n_bytes);
    snprintf(point.op, sizeof point.op, "%s", op);
    snprintf(point.scope, sizeof point.scope, n_nodes > 1 ? "%s:%d" : "%s",
             n_nodes > 1 ? FR_PROFILE_SCOPE_NET : FR_PROFILE_SCOPE_SHM,
             n_nodes);
    /* A kernel runs from when its rank comes until the last one has: the
     * fastest are those that waited least. */
    point.sample = sample_of(row, 0.1);
    if (!(point.sample.median_s > 0))
        return FR_OK;
    *is_added = true;
    if (n_nodes > profile->fingerprint.n_nodes)
        profile->fingerprint.n_nodes = n_nodes;
    return fr_profile_add_comm(profile, &point, err);
}

/* ---- the profile -------------------------------------------------------- */

static void put_fingerprint(const fr_trace_about *about,
                            fr_fingerprint *fingerprint)
{
    fr_gpu_print *gpu = &fingerprint->gpu;
    fingerprint->n_cores = 1; /* unknown; a profile has some */
    fingerprint->n_nodes = 1;
    fr_text_copy_cut(gpu->name, sizeof gpu->name, about->gpu);
    fr_text_copy_cut(gpu->capability, sizeof gpu->capability,
                     about->capability);
    if (about->memory_bytes >= 1 && about->memory_bytes < 1e18)
        gpu->memory_bytes = (uint64_t)about->memory_bytes;
    if (about->n_processors >= 1 && about->n_processors < 1e6)
        gpu->n_processors = (int32_t)about->n_processors;
}

static fr_status add_row(const fr_kernel_row *row, const fr_trace_about *about,
                         fr_profile *out, size_t *n_left, fr_err *err)
{
    int64_t mnk[3];
    bool is_added = false;
    if (row->collective[0] != '\0') {
        FR_TRY(add_collective(row, about, out, &is_added, err));
    } else if (row->is_kernel && find_product(row, mnk)) {
        int dtype = find_dtype(row->types);
        const char *name = dtype >= 0 ? dtypes[dtype].dtype : NULL;
        is_added = name != NULL && !has_point(out, mnk, name) &&
                   fr_kernel_row_quantile_s(row, 0.5) > 0;
        if (is_added)
            FR_TRY(add_product(row, mnk, name, out, err));
    }
    *n_left += !is_added;
    return FR_OK;
}

fr_status fr_kernel_table_profile(const fr_kernel_table *table,
                                  const char *name, fr_profile *out,
                                  fr_buffer *notes, fr_err *err)
{
    const fr_trace_about *about = fr_kernel_table_about(table);
    fr_profile profile;
    size_t n, n_left = 0;
    const fr_kernel_row *rows = fr_kernel_table_rows(table, &n);
    if (!rows[0].is_kernel)
        return fr_fail(err, FR_INPUT,
                       "%s: no kernels of a GPU; operators of a CPU are not "
                       "the kernels of forerun run: calibrate this machine "
                       "(forerun calibrate)",
                       name);
    if (about->gpu[0] == '\0' || !(about->memory_bytes >= 1))
        return fr_fail(err, FR_INPUT,
                       "%s: no deviceProperties: the GPU is not known", name);
    fr_profile_init(&profile);
    put_fingerprint(about, &profile.fingerprint);
    fr_status status = FR_OK;
    for (size_t i = 0; i < n && status == FR_OK; i++)
        status = add_row(&rows[i], about, &profile, &n_left, err);
    if (status == FR_OK && profile.n_compute + profile.n_comm == 0)
        status = fr_fail(err, FR_INPUT,
                         "%s: no product with shapes and no collective with "
                         "sizes; profile with record_shapes=True",
                         name);
    if (status != FR_OK) {
        fr_profile_release(&profile);
        return status;
    }
    fr_buffer_printf(notes,
                     "%zu products of forward and %zu collectives of %s; %zu "
                     "other kernels have no place in a profile\n",
                     profile.n_compute, profile.n_comm, about->gpu, n_left);
    if (profile.n_comm > 0)
        fr_buffer_puts(notes, "a collective's time is that of the fastest "
                              "tenth: the others wait for late ranks\n");
    *out = profile;
    return FR_OK;
}
