/* catalog.c: finds rows of the catalogue and makes clusters of them. */
#include "spec/catalog/catalog.h"

#include "core/base/text.h"
#include "spec/catalog/catalog_tables.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* The meaning of the short names in `source`. */
static const fr_catalog_source sources[] = {
    {"nvidia", "datasheets and user guides at nvidia.com; tensor peaks halved "
               "where the sheet counts sparsity"},
    {"amd", "datasheets at amd.com"},
    {"google", "docs.cloud.google.com/tpu, system architecture of each chip"},
    {"mlbook", "Stas Bekman, Machine Learning Engineering, "
               "compute/accelerator (a table of the vendors' pages)"},
    {"tables", "tables after the vendors' sheets: hmc-tech.com, sysrqmts.com, "
               "gpu.name, huggingface.co/hardware, aiwiki.ai (A800), "
               "philisun.com (H800), zangshuxian.com (H20)"},
    {"smi", "memory total and SM count that nvidia-smi and deviceQuery print, "
            "in public logs (modal-client pull request 2797 and others)"},
    {"pciids", "the PCI ID repository, pci-ids.ucw.cz, and lspci outputs"},
    {"chips", "chipsandcheese.com, Nvidia's B200, 2025: L2 of 126 MB"},
    {"verda", "verda.com/blog/gb300-nvl72-architecture, a table after NVIDIA's "
              "sheets"},
    {"torchtitan", "pytorch/torchtitan, benchmarks/llama3_h100_202412: 96 GB, "
                   "2.4 TB/s, 500 W, 400 Gb/s per GPU"},
    {"meta", "The Llama 3 Herd of Models, arXiv 2407.21783"},
    {"idris", "idris.fr, Jean Zay: hardware"},
    {"bsc", "bsc.es, MareNostrum 5: the accelerated partition"},
    {"fzj", "apps.fz-juelich.de/jsc, JUWELS: configuration"},
    {"ornl", "docs.olcf.ornl.gov, Frontier user guide"},
    {"horovod", "horovod/horovod, docs/benchmarks.rst, and arXiv 1802.05799"},
    {"tf", "tensorflow r1.2 docs_src/performance/benchmarks.md: the machines "
           "of its measurements, 2017"},
    {"nccl", "NCCL 2.30 src/graph: latencies, PCIe and NVLink rates"},
    {"aws", "instance pages of aws.amazon.com/ec2"},
    {"aws-ofi", "aws-ofi-nccl, topology files: PCIe switches and their speed"},
    {"gcp", "cloud.google.com/compute/docs/gpus/gpu-network-bandwidth"},
    {"azure", "learn.microsoft.com/azure, sizes of the ND and NC families"},
    {"azhpc", "Azure/azhpc-images, topology files: PCIe switches"},
    {"lambda", "lambda.ai, 1-Click Clusters"},
    {"nebius", "docs.nebius.com/compute, GPU platforms"},
};

size_t fr_catalog_n_sources(void)
{
    return FR_LENGTH(sources);
}

const fr_catalog_source *fr_catalog_source_at(size_t i)
{
    return i < fr_catalog_n_sources() ? &sources[i] : NULL;
}

size_t fr_catalog_n_devices(void)
{
    return fr_catalog_devices_n;
}

size_t fr_catalog_n_nodes(void)
{
    return fr_catalog_servers_n + fr_catalog_instances_n;
}

const fr_catalog_device *fr_catalog_device_at(size_t i)
{
    return i < fr_catalog_devices_n ? &fr_catalog_devices[i] : NULL;
}

const fr_catalog_node *fr_catalog_node_at(size_t i)
{
    if (i < fr_catalog_servers_n)
        return &fr_catalog_servers[i];
    i -= fr_catalog_servers_n;
    return i < fr_catalog_instances_n ? &fr_catalog_instances[i] : NULL;
}

const fr_catalog_device *fr_catalog_device_find(const char *id)
{
    for (size_t i = 0; i < fr_catalog_devices_n; i++)
        if (strcmp(fr_catalog_devices[i].type.id, id) == 0)
            return &fr_catalog_devices[i];
    return NULL;
}

fr_vendor fr_catalog_vendor(const fr_device_type *device)
{
    const fr_catalog_device *row = fr_catalog_device_find(device->id);
    for (size_t i = 0; row == NULL && i < fr_catalog_devices_n; i++)
        if (device->generation[0] != '\0' &&
            strcmp(fr_catalog_devices[i].type.generation, device->generation) ==
                0)
            row = &fr_catalog_devices[i];
    return row != NULL ? row->vendor : FR_VENDOR_NVIDIA;
}

const fr_catalog_node *fr_catalog_node_find(const char *id)
{
    for (size_t i = 0; i < fr_catalog_n_nodes(); i++)
        if (strcmp(fr_catalog_node_at(i)->type.id, id) == 0)
            return fr_catalog_node_at(i);
    return NULL;
}

const fr_catalog_device *fr_catalog_device_find_pci(uint32_t vendor,
                                                    uint32_t device)
{
    uint32_t id = vendor << 16 | device;
    for (size_t i = 0; i < fr_catalog_devices_n; i++)
        for (size_t k = 0; k < FR_CATALOG_PCI_IDS; k++)
            if (id != 0 && fr_catalog_devices[i].pci_ids[k] == id)
                return &fr_catalog_devices[i];
    return NULL;
}

/* Do the first n letters of a name make the word?  Case is ignored. */
static bool is_word(const char *name, const char *word, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int letter = tolower((unsigned char)name[i]);
        if (letter != word[i])
            return false;
    }
    return true;
}

/* Is the n-letter word among the words of the name? */
static bool has_word(const char *name, const char *word, size_t n)
{
    while (*name) {
        size_t length = 0;
        while (isalnum((unsigned char)name[length]))
            length++;
        if (length == n && is_word(name, word, n))
            return true;
        name += length > 0 ? length : 1;
    }
    return false;
}

/* Returns the number of words of the product, if all of them are in the name;
 * else 0. */
static size_t product_words(const char *product, const char *name)
{
    size_t n_words = 0;
    while (product != NULL && *product) {
        size_t n = strcspn(product, " ");
        if (!has_word(name, product, n))
            return 0;
        n_words++;
        product += n + (product[n] == ' ');
    }
    return n_words;
}

const fr_catalog_device *fr_catalog_device_find_product(const char *name)
{
    const fr_catalog_device *best = NULL;
    size_t most = 0;
    for (size_t i = 0; i < fr_catalog_devices_n; i++) {
        size_t n = product_words(fr_catalog_devices[i].product, name);
        if (n > most)
            best = &fr_catalog_devices[i];
        else if (n == most)
            best = n > 0 ? NULL : best;
        most = n > most ? n : most;
    }
    return best;
}

const char *fr_catalog_device_nearest(const char *id)
{
    enum { MANY = 64 };
    const char *ids[MANY];
    size_t n = 0;
    for (; n < fr_catalog_devices_n && n < MANY; n++)
        ids[n] = fr_catalog_devices[n].type.id;
    return fr_text_nearest(id, ids, n);
}

const char *fr_catalog_node_nearest(const char *id)
{
    enum { MANY = 128 };
    const char *ids[MANY];
    size_t n = 0;
    for (; n < fr_catalog_n_nodes() && n < MANY; n++) {
        const fr_catalog_node *node = fr_catalog_node_at(n);
        if (strcmp(node->device, id) == 0)
            return node->type.id; /* the first with such devices */
        ids[n] = node->type.id;
    }
    return fr_text_nearest(id, ids, n);
}

/* One of each of the three arrays. */
static fr_status make_arrays(fr_cluster *cluster, fr_err *err)
{
    cluster->devices = calloc(1, sizeof *cluster->devices);
    cluster->node_types = calloc(1, sizeof *cluster->node_types);
    cluster->groups = calloc(1, sizeof *cluster->groups);
    if (cluster->devices == NULL || cluster->node_types == NULL ||
        cluster->groups == NULL)
        return fr_fail_no_memory(err);
    cluster->n_devices = cluster->n_node_types = cluster->n_groups = 1;
    return FR_OK;
}

fr_status fr_catalog_cluster(const char *node_id, int64_t n_nodes,
                             fr_cluster *out, fr_err *err)
{
    const fr_catalog_node *node = fr_catalog_node_find(node_id);
    if (node == NULL) {
        char hint[FR_HINT_MAX];
        const char *nearest = fr_catalog_node_nearest(node_id);
        return fr_fail(err, FR_INPUT,
                       "no node type '%s' in the catalogue%s ('forerun "
                       "catalog nodes' lists them)",
                       node_id, fr_text_hint(nearest, hint));
    }
    if (n_nodes < 1 || n_nodes > 1000000)
        return fr_fail(err, FR_INPUT, "%s:%lld: give 1 to 1000000 nodes",
                       node_id, (long long)n_nodes);
    const fr_catalog_device *device = fr_catalog_device_find(node->device);
    fr_cluster cluster = {.pue = 1.0};
    fr_status status = make_arrays(&cluster, err);
    if (status != FR_OK) {
        fr_cluster_release(&cluster);
        return status;
    }
    cluster.devices[0] = device->type;
    cluster.jitter_compute_frac = fr_cluster_default_jitter_frac(&cluster);
    cluster.node_types[0] = node->type;
    fr_node_group *group = &cluster.groups[0];
    fr_text_copy_cut(group->id, sizeof group->id, node_id);
    fr_text_copy_cut(cluster.name, sizeof cluster.name, node_id);
    group->n_nodes = n_nodes;
    cluster.fabric.kind = n_nodes > 1 ? node->fabric : FR_FABRIC_NONE;
    if (cluster.fabric.kind == FR_FABRIC_RAIL) {
        cluster.fabric.n_levels = 1;
        cluster.fabric.levels[0] =
            (fr_fabric_level){.n_down = n_nodes, .oversubscription = 1.0};
    }
    *out = cluster;
    return FR_OK;
}
