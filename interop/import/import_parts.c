/* import_parts.c: what readers share: notes, choices, the finished cluster. */
#include "interop/import/import_parts.h"

#include "core/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fr_import_note(const fr_import_text *in, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fr_buffer_vprintf(in->notes, format, args);
    va_end(args);
    fr_buffer_putc(in->notes, '\n');
}

void fr_import_err_write(const fr_import_text *in, int line, fr_err *err,
                         const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fr_err_write(err, FR_INPUT, "%s:%d: %s", in->name, line, text);
}

char *fr_import_id(const char *name, char *out)
{
    size_t n = 0;
    for (; *name && n + 2 < FR_CLUSTER_ID; name++) {
        bool is_fine = (*name >= 'a' && *name <= 'z') ||
                       (*name >= 'A' && *name <= 'Z') ||
                       (*name >= '0' && *name <= '9') || *name == '_' ||
                       *name == '.' || (*name == '-' && n > 0);
        out[n++] = is_fine ? *name : '_';
    }
    if (n == 0)
        out[n++] = '_';
    out[n] = '\0';
    return out;
}

int fr_import_words(char *line, char **words, int n_max)
{
    int n = 0;
    char *save = NULL;
    for (char *at = strtok_r(line, " \t\r", &save); at && n < n_max;
         at = strtok_r(NULL, " \t\r", &save))
        words[n++] = at;
    return n;
}

double fr_import_pcie_Bps(const char *speed, int64_t n_lanes)
{
    static const double generations[][2] = {{2.5, 15}, {5, 30},   {8, 60},
                                            {16, 120}, {32, 240}, {64, 480}};
    double rate = speed != NULL ? strtod(speed, NULL) : 0.0;
    if (n_lanes == 0)
        n_lanes = 16; /* as NCCL reads it */
    if (n_lanes < 0 || n_lanes > 64)
        return 0.0;
    for (size_t i = 0; i < FR_LENGTH(generations); i++)
        if (rate == generations[i][0])
            return (double)n_lanes * generations[i][1] / 80.0 * 1e9;
    return 0.0;
}

/* NVIDIA's (Mellanox's) NICs: ids of pci-ids.ucw.cz, rates of the datasheets.
 */
double fr_import_nic_Bps(uint32_t vendor, uint32_t device)
{
    static const struct {
        uint32_t device;
        double Gbps;
    } nics[] = {
        {0x1013, 100}, /* ConnectX-4 */
        {0x1017, 100}, /* ConnectX-5 */
        {0x1019, 100}, /* ConnectX-5 Ex */
        {0x101b, 200}, /* ConnectX-6 */
        {0x101d, 200}, /* ConnectX-6 Dx */
        {0x1021, 400}, /* ConnectX-7 */
        {0x1023, 800}, /* ConnectX-8 */
        {0xa2dc, 400}, /* BlueField-3 */
    };
    for (size_t i = 0; i < FR_LENGTH(nics); i++)
        if (vendor == 0x15b3 && nics[i].device == device)
            return nics[i].Gbps * 1e9 / 8.0;
    return 0.0;
}

/* ---- choices ------------------------------------------------------------ */

fr_status fr_import_choose_gpu(const fr_import_text *in, fr_import_node *node,
                               fr_err *err)
{
    const char *id = in->options->gpu;
    if (id == NULL && node->device != NULL)
        return FR_OK;
    if (id == NULL)
        return fr_import_fail(in, node->line, err,
                              "the model of the GPUs is not said; give --gpu "
                              "NAME ('forerun catalog devices' lists them)");
    const fr_catalog_device *device = fr_catalog_device_find(id);
    char hint[FR_HINT_MAX];
    const char *nearest = fr_catalog_device_nearest(id);
    if (device == NULL)
        return fr_fail(err, FR_USAGE,
                       "--gpu: no device '%.60s' in the catalogue%s", id,
                       fr_text_hint(nearest, hint));
    if (node->device != NULL && node->device != device)
        fr_import_note(in, "--gpu %s in place of the %s that the file names",
                       id, node->device->type.id);
    node->device = device;
    return FR_OK;
}

fr_status fr_import_choose_node(const fr_import_text *in,
                                const fr_catalog_node **out, fr_err *err)
{
    const char *id = in->options->node_type;
    *out = id != NULL ? fr_catalog_node_find(id) : NULL;
    if (id == NULL || *out != NULL)
        return FR_OK;
    char hint[FR_HINT_MAX];
    const char *nearest = fr_catalog_node_nearest(id);
    return fr_fail(err, FR_USAGE,
                   "--node-type: no node '%.60s' in the catalogue%s", id,
                   fr_text_hint(nearest, hint));
}

/* ---- NVLink ------------------------------------------------------------- */

typedef struct nvlinks {
    int32_t n_pairs, n_missing; /* pairs with links, without */
    int32_t least, most;        /* of one pair that has links */
    int32_t most_of_gpu;        /* links of the GPU with most of them */
    bool is_connected;          /* every GPU reaches every other one */
} nvlinks;

static nvlinks count_links(const int32_t *n_links, int32_t n)
{
    nvlinks all = {.least = INT32_MAX, .is_connected = true};
    uint64_t reached = 1;
    for (int32_t round = 0; round < n; round++)
        for (int32_t i = 0; i < n; i++)
            for (int32_t j = 0; j < n; j++)
                if (n_links[i * n + j] > 0 && reached >> i & 1)
                    reached |= 1ull << j;
    all.is_connected = reached == (n < 64 ? (1ull << n) - 1 : UINT64_MAX);
    for (int32_t i = 0; i < n; i++) {
        int32_t of_gpu = 0;
        for (int32_t j = 0; j < n; j++) {
            int32_t links = n_links[i * n + j];
            of_gpu += links;
            if (i >= j)
                continue;
            *(links > 0 ? &all.n_pairs : &all.n_missing) += 1;
            if (links > 0 && links < all.least)
                all.least = links;
            all.most = links > all.most ? links : all.most;
        }
        all.most_of_gpu = of_gpu > all.most_of_gpu ? of_gpu : all.most_of_gpu;
    }
    return all;
}

/* The rate is that of an even mixture of paths over at most `least` links. */
void fr_import_nvlinks(const fr_import_text *in, const int32_t *n_links,
                       fr_import_node *node)
{
    const fr_catalog_device *device = node->device;
    nvlinks all = count_links(n_links, node->n_gpus);
    double each_Bps =
        device->n_links > 0 ? device->link_Bps / device->n_links : 0.0;
    node->has_fabric = true;
    node->intra_kind = FR_INTRA_PCIE;
    if (all.n_pairs > 0 && each_Bps <= 0.0)
        fr_import_note(in,
                       "NVLinks of %s: the catalogue does not know their rate; "
                       "left out",
                       device->type.id);
    else if (all.n_pairs > 0 && !all.is_connected)
        fr_import_note(in, "NVLinks join some GPUs only, a node has one "
                           "fabric: PCIe is taken");
    if (all.n_pairs == 0 || each_Bps <= 0.0 || !all.is_connected)
        return;
    /* A switch shows all links of a GPU to every other one. */
    bool is_switched = all.n_missing == 0 && all.least == all.most &&
                       node->n_gpus > 2 && all.most_of_gpu > device->n_links;
    int32_t total = is_switched ? all.most : all.most_of_gpu;
    node->intra_kind = is_switched ? FR_INTRA_NVSWITCH : FR_INTRA_NVLINK;
    node->link_Bps = total * each_Bps;
    node->pair_Bps = all.least * each_Bps;
    if (all.n_missing > 0 || all.least != all.most)
        fr_import_note(in,
                       "pairs of GPUs have %d to %d NVLinks, %d pairs none: "
                       "%d for all pairs is taken",
                       all.n_missing > 0 ? 0 : all.least, all.most,
                       all.n_missing, all.least);
}
