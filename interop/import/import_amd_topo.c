/*
 * import_amd_topo.c: what `rocm-smi --showtopo` and `amd-smi topology` print:
 * the kind of link between each two GPUs.  Of their tables the one of link
 * types is read ("Link Type between two GPUs", "LINK TYPE TABLE"), and the NUMA
 * node of each GPU.  The rate of XGMI comes from the catalogue.
 */
#include "core/base/text.h"
#include "interop/import/import_parts.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_GPUS = 64, MAX_WORDS = MAX_GPUS + 2 };

typedef struct topology {
    const fr_import_text *in;
    int32_t n_gpus, n_rows;
    int32_t n_xgmi, n_pcie; /* cells beside the diagonal */
    bool is_open;           /* in the table of link types */
    uint64_t numa_nodes;    /* bit n: some GPU is on node n */
} topology;

static bool has_title(const char *line)
{
    return strcasestr(line, "link type") != NULL;
}

/* "GPU0 XGMI 0 XGMI", "0000:22:00.0 XGMI SELF XGMI" */
static fr_status read_row(topology *t, char **words, int n, int line,
                          fr_err *err)
{
    if (n != t->n_gpus + 1)
        return fr_import_fail(t->in, line, err,
                              "%d cells in a matrix of %d columns", n - 1,
                              t->n_gpus);
    for (int i = 1; i < n; i++) {
        const bool is_self = i - 1 == t->n_rows;
        const bool is_xgmi = strcasecmp(words[i], "XGMI") == 0;
        const bool is_pcie = strcasecmp(words[i], "PCIE") == 0;
        if (is_self ? is_xgmi || is_pcie : !is_xgmi && !is_pcie)
            return fr_import_fail(t->in, line, err,
                                  "'%.40s' in column %d of row %d: expected "
                                  "%s",
                                  words[i], i - 1, t->n_rows,
                                  is_self ? "0 or SELF" : "XGMI or PCIE");
        t->n_xgmi += is_xgmi;
        t->n_pcie += is_pcie;
    }
    t->is_open = ++t->n_rows < t->n_gpus;
    return FR_OK;
}

static fr_status read_table(topology *t, char *text, int line, fr_err *err)
{
    char *words[MAX_WORDS];
    const int n = fr_import_words(text, words, MAX_WORDS);
    if (n == 0)
        return FR_OK;
    if (t->n_gpus > 0)
        return read_row(t, words, n, line, err);
    if (n > MAX_GPUS)
        return fr_import_fail(t->in, line, err, "more than %d GPUs", MAX_GPUS);
    t->n_gpus = n;
    return FR_OK;
}

/* "GPU[0] : (Topology) Numa Node: 0" */
static void read_numa(topology *t, const char *line)
{
    const char *at = strcasestr(line, "numa node: ");
    if (at == NULL || isdigit((unsigned char)at[11]) == 0)
        return;
    const unsigned long node = strtoul(at + 11, NULL, 10);
    if (node < 64)
        t->numa_nodes |= UINT64_C(1) << node;
}

static fr_status read_lines(topology *t, char *text, fr_err *err)
{
    for (int line = 1; *text != '\0'; line++) {
        char *end = strchr(text, '\n');
        if (end != NULL)
            *end = '\0';
        if (t->is_open)
            FR_TRY(read_table(t, text, line, err));
        else if (has_title(text) && t->n_gpus == 0)
            t->is_open = true;
        else
            read_numa(t, text);
        text = end != NULL ? end + 1 : text + strlen(text);
    }
    if (t->n_gpus == 0 || t->n_rows < t->n_gpus)
        return fr_import_fail(t->in, 1, err,
                              "no whole table of link types: give the output "
                              "of 'rocm-smi --showtopo' or 'amd-smi topology'");
    return FR_OK;
}

static fr_status make_node(const topology *t, fr_import *out, fr_err *err)
{
    fr_import_node node = {.n_gpus = t->n_gpus, .line = 1};
    FR_TRY(fr_import_choose_gpu(t->in, &node, err));
    for (int i = 0; i < 64; i++)
        node.n_sockets += (t->numa_nodes >> i & 1) != 0;
    if (t->n_pcie > 0) {
        node.has_fabric = true;
        node.intra_kind = FR_INTRA_PCIE;
    }
    if (t->n_pcie > 0 && t->n_xgmi > 0)
        fr_import_note(t->in, "XGMI joins some GPUs only, a node has one "
                              "fabric: PCIe is taken");
    fr_import_note(t->in, "the tables have no NIC");
    return fr_import_finish(t->in, &node, &out->cluster, err);
}

static fr_status read_amd_topo(const fr_import_text *in, fr_import *out,
                               fr_err *err)
{
    topology t = {.in = in};
    char *copy = malloc(in->n + 1);
    if (copy == NULL)
        return fr_fail_no_memory(err);
    memcpy(copy, in->text, in->n + 1);
    fr_status status = read_lines(&t, copy, err);
    if (status == FR_OK)
        status = make_node(&t, out, err);
    free(copy);
    return status;
}

const fr_importer fr_import_amd_topo = {
    .name = "amd-topo",
    .marks = {"ROCm System Management", "LINK TYPE TABLE", "ACCESS TABLE"},
    .read = read_amd_topo};
