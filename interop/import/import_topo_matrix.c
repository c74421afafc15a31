/*
 * import_topo_matrix.c: what `nvidia-smi topo -m` prints: a matrix of how GPUs
 * and NICs are joined, and CPU and NUMA affinities.  Names of NICs stand in
 * the heading, or as NIC0, NIC1 with a legend below.  Copies of a terminal may
 * have lost the blanks between columns.
 */
#include "core/base/text.h"
#include "interop/import/import_parts.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 128, MAX_GPUS = 64, MAX_TOKENS = 160 };

typedef struct matrix {
    const fr_import_text *in;
    char *text; /* a copy that is cut into words */
    char names[MAX_COLUMNS][64];
    int32_t n_columns, n_gpus;
    char cells[MAX_COLUMNS][MAX_COLUMNS][8];
    int lines[MAX_COLUMNS];
    char *numa[MAX_GPUS];

    char *rest; /* what follows the matrix */
} matrix;

/* Terminals underline the heading: ESC [ ... m is cut out. */
static char *copy_plain(const char *text, size_t n)
{
    char *copy = malloc(n + 1);
    size_t at = 0;
    for (size_t i = 0; copy && i < n; i++) {
        if (text[i] == '\033' && i + 1 < n && text[i + 1] == '[') {
            while (i < n &&
                   !(text[i] >= 'A' && text[i] <= 'z' && text[i] != '['))
                i++;
            continue;
        }
        /* The same in logs that lost the escape. */
        if (strncmp(text + i, "[4m", 3) == 0 ||
            strncmp(text + i, "[0m", 3) == 0) {
            i += 2;
            continue;
        }
        copy[at++] = text[i] == '\r' ? ' ' : text[i];
    }
    if (copy != NULL)
        copy[at] = '\0';
    return copy;
}

/* Cuts the first line off *rest. */
static char *next_line(char **rest)
{
    char *line = *rest;
    char *end = strchr(line, '\n');
    if (end != NULL)
        *end = '\0';
    *rest = end != NULL ? end + 1 : line + strlen(line);
    return line;
}

static bool is_gpu(const char *name)
{
    return strncmp(name, "GPU", 3) == 0 && name[3] >= '0' && name[3] <= '9';
}

/* Bytes of the first name of a heading's word, whose other names may be glued
 * to it: "GPU0GPU1mlx5_0CPU".  0: "CPU Affinity", "NUMA Affinity", "GPU NUMA
 * ID", which end the names. */
static size_t name_length(const char *word)
{
    static const char *const ends[] = {"CPU", "NUMA", "GPU", "NIC", "mlx"};
    size_t n = 0;
    if (*word == '\0' || strcmp(word, "GPU") == 0 ||
        strncmp(word, "CPU", 3) == 0 || strncmp(word, "NUMA", 4) == 0)
        return 0;
    for (n = 1; word[n] != '\0'; n++)
        for (size_t i = 0; i < FR_LENGTH(ends); i++)
            if (word[n - 1] >= '0' && word[n - 1] <= '9' &&
                strncmp(word + n, ends[i], strlen(ends[i])) == 0)
                return n;
    return n;
}

static fr_status add_name(matrix *m, const char *name, size_t n, int n_line,
                          fr_err *err)
{
    if (m->n_columns == MAX_COLUMNS)
        return fr_import_fail(m->in, n_line, err, "more than %d columns",
                              MAX_COLUMNS);
    if (n >= sizeof m->names[0])
        return fr_import_fail(m->in, n_line, err, "a name of %zu bytes", n);
    memcpy(m->names[m->n_columns], name, n);
    m->names[m->n_columns++][n] = '\0';
    return FR_OK;
}

static fr_status read_heading(matrix *m, char *line, int n_line, fr_err *err)
{
    char *words[MAX_TOKENS];
    int32_t n = fr_import_words(line, words, MAX_TOKENS);
    for (int32_t i = 0; i < n; i++) {
        const char *word = words[i];
        size_t n_name = name_length(word);
        for (; *word != '\0' && n_name > 0; n_name = name_length(word)) {
            FR_TRY(add_name(m, word, n_name, n_line, err));
            word += n_name;
        }
        if (*word != '\0')
            break;
    }
    while (m->n_gpus < m->n_columns && is_gpu(m->names[m->n_gpus]))
        m->n_gpus++;
    if (m->n_gpus < 1 || m->n_gpus > MAX_GPUS)
        return fr_import_fail(m->in, n_line, err,
                              "the heading has no GPU0: give the output of "
                              "'nvidia-smi topo -m'");
    return FR_OK;
}

/* Bytes of the cell at the begin of a word, 0: none. */
static size_t cell_length(const char *word)
{
    static const char *const words[] = {"X",    "PIX", "PXB", "PHB",
                                        "NODE", "SYS", "SOC"};
    for (size_t i = 0; i < FR_LENGTH(words); i++)
        if (strncmp(word, words[i], strlen(words[i])) == 0)
            return strlen(words[i]);
    if (strncmp(word, "NV", 2) != 0 || word[2] == '0')
        return 0;
    const size_t n_digits = strspn(word + 2, "0123456789");
    return n_digits > 0 && n_digits <= 3 ? 2 + n_digits : 0;
}

static fr_status read_cell(matrix *m, int32_t row, int32_t column,
                           const char *word, size_t *n, fr_err *err)
{
    const size_t length = cell_length(word);
    const int n_line = m->lines[row];
    /* "NV120-15" may be NV12 or NV1. */
    if (length == 0 || (word[1] == 'V' && word[length] != '\0' &&
                        cell_length(word + length) == 0))
        return fr_import_fail(m->in, n_line, err,
                              "'%.40s': expected X, NV#, PIX, PXB, PHB, NODE "
                              "or SYS",
                              word);
    if ((word[0] == 'X') != (column == row))
        return fr_import_fail(m->in, n_line, err,
                              "'%.40s' in column %d of row %d: X stands on "
                              "the diagonal and nowhere else",
                              word, (int)column, (int)row);
    memcpy(m->cells[row][column], word, length);
    m->cells[row][column][length] = '\0';
    *n = length;
    return FR_OK;
}

/* The cells of a row may be glued to its name, to each other, and the last to
 * the CPU affinity. */
static fr_status read_row(matrix *m, int32_t row, char **words, int32_t n,
                          int n_line, fr_err *err)
{
    const size_t n_name = strlen(m->names[row]);
    const char *word = words[0] + n_name;
    int32_t column = 0, i = 0;
    if (strncmp(words[0], m->names[row], n_name) != 0 ||
        (*word != '\0' && cell_length(word) == 0))
        return fr_import_fail(m->in, n_line, err,
                              "row '%.40s' where '%.40s' was expected: rows "
                              "and columns have the same order",
                              words[0], m->names[row]);
    m->lines[row] = n_line;
    while (column < m->n_columns) {
        size_t length;
        if (*word == '\0' && ++i == n)
            return fr_import_fail(m->in, n_line, err,
                                  "%d cells in a matrix of %d columns", column,
                                  m->n_columns);
        word = *word == '\0' ? words[i] : word;
        FR_TRY(read_cell(m, row, column++, word, &length, err));
        word += length;
    }
    const int32_t i_numa = *word == '\0' ? i + 2 : i + 1;
    if (row < m->n_gpus && n > i_numa)
        m->numa[row] = words[i_numa];
    return FR_OK;
}

static fr_status read_matrix(matrix *m, fr_err *err)
{
    char *rest = m->text, *words[MAX_TOKENS];
    int n_line = 0;
    int32_t row = 0;
    while (*rest && row < (m->n_columns > 0 ? m->n_columns : 1)) {
        char *line = next_line(&rest);
        n_line++;
        if (m->n_columns == 0) {
            if (strstr(line, "GPU0") != NULL)
                FR_TRY(read_heading(m, line, n_line, err));
            continue;
        }
        int32_t n = fr_import_words(line, words, MAX_TOKENS);
        if (n == 0)
            break;
        FR_TRY(read_row(m, row++, words, n, n_line, err));
    }
    if (m->n_columns == 0)
        return fr_import_fail(m->in, 1, err,
                              "no heading with GPU0: give the output of "
                              "'nvidia-smi topo -m'");
    if (row < m->n_columns)
        return fr_import_fail(m->in, n_line, err,
                              "%d rows in a matrix of %d columns", row,
                              m->n_columns);
    m->rest = rest;
    return FR_OK;
}

/* ---- what it means ------------------------------------------------------ */

static int32_t nvlinks_of(const char *cell)
{
    return strncmp(cell, "NV", 2) == 0 ? (int32_t)strtol(cell + 2, NULL, 10)
                                       : 0;
}

static fr_status check_symmetry(const matrix *m, fr_err *err)
{
    for (int32_t i = 0; i < m->n_columns; i++)
        for (int32_t j = 0; j < i; j++)
            if (strcmp(m->cells[i][j], m->cells[j][i]) != 0)
                return fr_import_fail(m->in, m->lines[i], err,
                                      "%s and %s are joined by %s here and by "
                                      "%s there",
                                      m->names[i], m->names[j], m->cells[i][j],
                                      m->cells[j][i]);
    return FR_OK;
}

/* One PCIe bridge, or several without the host in between. */
static bool is_near(const char *cell)
{
    return strcmp(cell, "PIX") == 0 || strcmp(cell, "PXB") == 0;
}

static bool is_near_gpu(const matrix *m, int32_t nic)
{
    for (int32_t j = 0; j < m->n_gpus; j++)
        if (is_near(m->cells[nic][j]))
            return true;
    return false;
}

/* Is a NIC the first of those behind its bridge? */
static bool is_first_of_bridge(const matrix *m, int32_t nic)
{
    for (int32_t k = m->n_gpus; k < nic; k++)
        if (strcmp(m->cells[nic][k], "PIX") == 0)
            return false;
    return true;
}

/* NICs behind one bridge are ports or virtual functions of one device, unless
 * --node-type has as many. */
static int32_t count_slots(const matrix *m, int32_t n_nics, bool has_near)
{
    const char *id = m->in->options->node_type;
    const fr_catalog_node *row = id != NULL ? fr_catalog_node_find(id) : NULL;
    int32_t n_slots = 0;
    for (int32_t i = m->n_gpus; i < m->n_columns; i++)
        n_slots += is_first_of_bridge(m, i) && (!has_near || is_near_gpu(m, i));
    if (n_slots == n_nics || (row != NULL && row->type.n_nics == n_nics))
        return n_nics;
    fr_import_note(m->in,
                   "%d NICs share %d bridges: a bridge is taken as one NIC, "
                   "whose ports or virtual functions they are; --node-type "
                   "NAME says otherwise",
                   n_nics, n_slots);
    return n_slots;
}

/* NICs beside a GPU carry the traffic, if there are any; else all. */
static void count_nics(const matrix *m, fr_import_node *node)
{
    int32_t n_near = 0, n_all = m->n_columns - m->n_gpus;
    for (int32_t i = m->n_gpus; i < m->n_columns; i++)
        n_near += is_near_gpu(m, i);
    node->n_nics = count_slots(m, n_near > 0 ? n_near : n_all, n_near > 0);
    if (n_near > 0 && n_near < n_all)
        fr_import_note(m->in,
                       "%d NICs that are not behind a PCIe switch with a GPU "
                       "are left out",
                       n_all - n_near);
    for (int32_t i = m->n_gpus; i < m->n_columns; i++)
        if (strncmp(m->names[i], "mlx5", 4) == 0)
            node->nic_kind = FR_NIC_INFINIBAND;
    if (strstr(m->rest, ": mlx5") != NULL)
        node->nic_kind = FR_NIC_INFINIBAND;
    if (strstr(m->rest, ": rdmap") != NULL || strstr(m->rest, ": efa") != NULL)
        node->nic_kind = FR_NIC_EFA;
    if (node->nic_kind == FR_NIC_INFINIBAND && n_all > 0)
        fr_import_note(m->in, "mlx5 NICs speak InfiniBand (it may be RoCE)");
}

/* GPUs that share a NIC's switch, in groups; each GPU alone makes one too. */
static void count_switches(const matrix *m, fr_import_node *node)
{
    int32_t group[MAX_GPUS];
    for (int32_t i = 0; i < m->n_gpus; i++)
        group[i] = i;
    for (int32_t nic = m->n_gpus; nic < m->n_columns; nic++) {
        int32_t first = -1;
        for (int32_t i = 0; i < m->n_gpus; i++) {
            if (!is_near(m->cells[nic][i]))
                continue;
            for (int32_t k = 0; first >= 0 && k < m->n_gpus; k++)
                if (group[k] == group[i] && k != i)
                    group[k] = group[first];
            group[i] = first >= 0 ? group[first] : group[i];
            first = i;
        }
    }
    bool has_near = false;
    for (int32_t nic = m->n_gpus; nic < m->n_columns; nic++)
        for (int32_t i = 0; i < m->n_gpus; i++)
            has_near |= is_near(m->cells[nic][i]);
    for (int32_t i = 0; i < m->n_gpus && has_near; i++) {
        bool is_new = true;
        for (int32_t k = 0; k < i; k++)
            is_new &= group[k] != group[i];
        node->n_switches += is_new;
    }
    node->uplink_Bps = node->device->pcie_Bps;
}

static void count_sockets(const matrix *m, fr_import_node *node)
{
    for (int32_t i = 0; i < m->n_gpus; i++) {
        bool is_new = m->numa[i] != NULL;
        for (int32_t k = 0; k < i && is_new; k++)
            is_new = !fr_text_equal(m->numa[k], m->numa[i]);
        node->n_sockets += is_new;
    }
    if (node->n_sockets > 1)
        fr_import_note(m->in, "%d NUMA domains count as sockets",
                       node->n_sockets);
}

static fr_status read_nvlinks(const matrix *m, fr_import_node *node,
                              fr_err *err)
{
    int32_t n = m->n_gpus;
    int32_t *n_links = calloc((size_t)n * (size_t)n, sizeof *n_links);
    if (n_links == NULL)
        return fr_fail_no_memory(err);
    for (int32_t i = 0; i < n; i++)
        for (int32_t j = 0; j < n; j++)
            n_links[i * n + j] = nvlinks_of(m->cells[i][j]);
    bool has_any = false;
    for (int32_t i = 0; i < n * n; i++)
        has_any |= n_links[i] > 0;
    if (has_any || n == 1 || node->device->link_Bps <= 0.0)
        fr_import_nvlinks(m->in, n_links, node);
    else
        fr_import_note(m->in,
                       "the matrix has no NVLink, and %s has: 'nvidia-smi "
                       "topo -mp' hides them; give the output of 'topo -m'",
                       node->device->summary);
    free(n_links);
    return FR_OK;
}

static fr_status make_node(const matrix *m, fr_import *out, fr_err *err)
{
    fr_import_node node = {.n_gpus = m->n_gpus, .line = m->lines[0]};
    FR_TRY(check_symmetry(m, err));
    FR_TRY(fr_import_choose_gpu(m->in, &node, err));
    FR_TRY(read_nvlinks(m, &node, err));
    count_nics(m, &node);
    count_switches(m, &node);
    count_sockets(m, &node);
    return fr_import_finish(m->in, &node, &out->cluster, err);
}

static fr_status read_topo_matrix(const fr_import_text *in, fr_import *out,
                                  fr_err *err)
{
    matrix *m = calloc(1, sizeof *m);
    fr_status status = FR_OK;
    if (m != NULL)
        m->text = copy_plain(in->text, in->n);
    if (m == NULL || m->text == NULL) {
        status = fr_fail_no_memory(err);
        goto out_matrix;
    }
    m->in = in;
    status = read_matrix(m, err);
    if (status == FR_OK)
        status = make_node(m, out, err);
    free(m->text);
out_matrix:
    free(m);
    return status;
}

const fr_importer fr_import_topo_matrix = {.name = "topo-m",
                                           .marks = {"GPU0", "Affinity"},
                                           .has_all = true,
                                           .read = read_topo_matrix};
