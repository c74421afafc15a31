/*
 * case_cluster.c: the cluster of a row: a device of the catalogue with what
 * the text says otherwise, in the vendor's node for that device, likewise.
 */
#include "core/base/text.h"
#include "interop/case/case_internal.h"
#include "interop/case/case_text.h"
#include "spec/catalog/catalog.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIB (1024.0 * 1024 * 1024)

/* Is the id's first part the family ("a100" of "a100-sxm-80g")?  A family of
 * two parts ("rtx-4090") must be all of the beginning. */
static bool is_family(const char *id, const char *family)
{
    size_t n = strlen(family);
    return strncasecmp(id, family, n) == 0 && (id[n] == '\0' || id[n] == '-');
}

/*
 * The logarithm of a device's memory against that in a product's name:
 * 80 GB are nearly 80 GiB to the driver, 141 GB are 141e9 bytes.
 */
static double size_distance(const fr_device_type *type, double memory_gb)
{
    double bytes = (double)type->memory_bytes;
    if (memory_gb <= 0)
        return 0;
    return fmin(fabs(log(bytes / GIB / memory_gb)),
                fabs(log(bytes / 1e9 / memory_gb)));
}

/* The device of the family whose form fits and whose memory is nearest. */
static const fr_catalog_device *find_device(const fr_case_gpu *gpu,
                                            double memory_gb)
{
    const fr_catalog_device *best = NULL;
    double best_score = INFINITY;
    if (strpbrk(gpu->family, "0123456789") == NULL) /* "RTX" names no one */
        return NULL;
    for (size_t i = 0; i < fr_catalog_n_devices(); i++) {
        const fr_catalog_device *device = fr_catalog_device_at(i);
        const char *id = device->type.id;
        if (device->type.kind != FR_DEVICE_GPU || !is_family(id, gpu->family))
            continue;
        double score = size_distance(&device->type, memory_gb);
        /* The form counts before the size; SXM where nothing is said. */
        const char *form = gpu->form[0] != '\0' ? gpu->form : "sxm";
        bool has_form = strstr(id, "sxm") != NULL ||
                        strstr(id, "pci") != NULL || strstr(id, "nvl") != NULL;
        if (has_form && strstr(id, form) == NULL)
            score += 100;
        if (score < best_score) {
            best_score = score;
            best = device;
        }
    }
    return best;
}

/* Is that the memory of a card of which the device is a part? */
static bool is_whole_card(const fr_catalog_device *device, double memory_gb)
{
    const double n = (double)device->n_in_card;
    return n > 1 && memory_gb > 0 &&
           size_distance(&device->type, memory_gb / n) <
               size_distance(&device->type, memory_gb);
}

static void apply_device_text(const fr_case_gpu *gpu, double memory_gb,
                              fr_device_type *type)
{
    /* Within 10 % it is the same product, counted differently. */
    if (size_distance(type, memory_gb) > 0.1)
        type->memory_bytes = (uint64_t)llround(memory_gb * GIB);
    if (gpu->memory_Bps > 0)
        type->memory_Bps = gpu->memory_Bps;
    if (gpu->power_w > 0)
        type->power_w = gpu->power_w;
}

/* GPUs of one server: a rack-scale node consists of several. */
static int64_t host_gpus(const fr_node_type *node)
{
    int32_t n_hosts = node->n_hosts > 0 ? node->n_hosts : 1;
    return node->n_devices / n_hosts;
}

/*
 * The node type that has most in common with the row: the very device, its
 * family, as many GPUs in a server, the same kind of network.  The first of
 * equals: the catalogue lists vendors' own nodes before those of clouds.
 */
static const fr_catalog_node *find_node(const fr_catalog_device *device,
                                        const fr_case_gpu *gpu,
                                        fr_nic_kind nic_kind, int64_t n_host)
{
    const fr_catalog_node *best = NULL;
    int best_score = 0;
    for (size_t i = 0; i < fr_catalog_n_nodes(); i++) {
        const fr_catalog_node *node = fr_catalog_node_at(i);
        if (!is_family(node->device, gpu->family))
            continue;
        int score = 1;
        if (strcmp(node->device, device->type.id) == 0)
            score += 4;
        if (n_host == 0 || host_gpus(&node->type) == n_host)
            score += 2;
        if (nic_kind == FR_NIC_UNKNOWN || node->type.nic_kind == nic_kind)
            score += 1;
        if (score > best_score) {
            best_score = score;
            best = node;
        }
    }
    return best;
}

/* A part of `value`, at least one where there was one. */
static int32_t scale(int32_t value, double ratio)
{
    int32_t scaled = (int32_t)lround(value * ratio);
    return scaled < 1 && value > 0 ? 1 : scaled;
}

/*
 * Devices that reach each other over the node's fabric.  A rack-scale NVLink
 * domain spans servers; jobs take equal parts of as few domains as they need.
 */
static int32_t domain_size(const fr_case_intra *intra, const fr_node_type *node,
                           int64_t n_host, int64_t n_gpus)
{
    int64_t domain = intra->domain;
    if (domain == 0 && node->n_hosts > 1)
        domain = node->n_devices;
    if (domain <= n_host)
        return (int32_t)n_host;
    int64_t n_domains = (n_gpus + domain - 1) / domain;
    int64_t each = (n_gpus + n_domains - 1) / n_domains;
    each = (each + n_host - 1) / n_host * n_host;
    return (int32_t)(each < domain ? each : domain);
}

static void apply_intra(const fr_case_intra *intra, fr_node_type *node)
{
    if (!intra->is_said)
        return;
    if (intra->device_Bps > 0) {
        node->intra_p2p_Bps *= intra->device_Bps / node->intra_Bps;
        node->intra_Bps = intra->device_Bps;
    }
    if (intra->is_switch) {
        node->intra_kind = FR_INTRA_NVSWITCH;
        node->intra_p2p_Bps = node->intra_Bps;
    } else if (intra->is_pcie) {
        node->intra_kind = FR_INTRA_PCIE;
        node->intra_p2p_Bps = node->intra_Bps;
    } else if (node->intra_kind == FR_INTRA_NVLINK && node->n_devices > 1 &&
               node->n_devices <= 4) {
        /* Links of a GPU spread evenly over so few others. */
        node->intra_p2p_Bps = node->intra_Bps / (node->n_devices - 1);
    }
}

static void apply_inter(const fr_case_inter *inter, fr_node_type *node)
{
    int32_t n_hosts = node->n_hosts > 0 ? node->n_hosts : 1;
    if (inter->kind != FR_NIC_UNKNOWN && inter->kind != node->nic_kind) {
        node->nic_kind = inter->kind;
        node->nic_efficiency_frac = 0; /* was that of the other kind */
    }
    if (inter->n_nics > 0)
        node->n_nics = (int32_t)inter->n_nics * n_hosts;
    if (inter->device_Bps > 0) {
        node->n_nics = node->n_devices;
        node->nic_Bps = inter->device_Bps;
    }
    if (node->n_nics < 1)
        node->n_nics = 1;
    if (inter->nic_Bps > 0)
        node->nic_Bps = inter->nic_Bps;
    if (inter->host_Bps > 0)
        node->nic_Bps = inter->host_Bps * n_hosts / node->n_nics;
    /* Rail r joins the r-th NIC of every server. */
    if (node->n_rails > 1)
        node->n_rails = node->n_nics / n_hosts;
    if (node->n_rails < 1)
        node->n_rails = 1;
}

/* Columns with numbers stand for the prose. */
static fr_status read_links(const fr_case *row, fr_case_intra *intra,
                            fr_case_inter *inter, fr_err *err)
{
    double both_GBps = 0, gbps = 0;
    int64_t n_nics = 0;
    FR_TRY(fr_case_real(row, FR_CASE_NVLINK_GBPS, &both_GBps, err));
    FR_TRY(fr_case_count(row, FR_CASE_NICS, 1, &n_nics, err));
    FR_TRY(fr_case_real(row, FR_CASE_NIC_GBPS, &gbps, err));
    fr_case_parse_intra(row->field[FR_CASE_INTRA_NODE], intra);
    if (both_GBps > 0) { /* as vendors quote it, both directions together */
        intra->is_said = intra->is_nvlink = true;
        intra->device_Bps = both_GBps * 1e9 / 2;
    }
    if (n_nics > 4096)
        return fr_fail(err, FR_INPUT, "%s:%d: nics: a node has 1 to 4096",
                       row->file, row->line);
    if (n_nics > 0 && gbps > 0) {
        *inter = (fr_case_inter){
            .kind = fr_case_nic_kind(row->field[FR_CASE_INTER_NODE]),
            .n_nics = n_nics,
            .nic_Bps = gbps * 0.125e9};
        return FR_OK;
    }
    fr_status status =
        fr_case_parse_inter(row->field[FR_CASE_INTER_NODE], inter, err);
    if (n_nics > 0)
        inter->n_nics = n_nics;
    if (gbps > 0)
        inter->nic_Bps = gbps * 0.125e9;
    return status == FR_OK ? FR_OK : fr_case_fail_at(row, status, err);
}

/* The node type that is named, else what has most in common with the row. */
static fr_status choose_node(const fr_case *row,
                             const fr_catalog_device *device,
                             const fr_case_gpu *gpu, fr_nic_kind nic_kind,
                             int64_t n_host, const fr_catalog_node **out,
                             fr_err *err)
{
    const char *name = row->field[FR_CASE_NODE];
    *out = name[0] != '\0' ? fr_catalog_node_find(name)
                           : find_node(device, gpu, nic_kind, n_host);
    if (name[0] != '\0' && *out == NULL)
        return fr_fail(err, FR_INPUT,
                       "%s:%d: node '%.60s' is not in the catalogue (forerun "
                       "catalog nodes)",
                       row->file, row->line, name);
    if (*out == NULL)
        return fr_fail(err, FR_INPUT,
                       "%s:%d: no node of the catalogue has a '%s': name one "
                       "in the column node (forerun catalog nodes), or write "
                       "a cluster file and call forerun simulate",
                       row->file, row->line, device->type.id);
    return FR_OK;
}

static fr_status make_node(const fr_case *row, const fr_case_gpu *gpu,
                           const fr_catalog_device *device, int64_t n_gpus,
                           fr_node_type *out, fr_fabric_kind *fabric,
                           fr_err *err)
{
    fr_case_intra intra;
    fr_case_inter inter;
    int64_t n_host = 0;
    FR_TRY(read_links(row, &intra, &inter, err));
    FR_TRY(fr_case_count(row, FR_CASE_GPUS_PER_NODE, 1, &n_host, err));
    const fr_catalog_node *found;
    FR_TRY(choose_node(row, device, gpu, inter.kind, n_host, &found, err));
    fr_node_type node = found->type;
    if (n_host == 0)
        n_host = host_gpus(&node);
    int32_t n_devices = domain_size(&intra, &node, n_host, n_gpus);
    double ratio = (double)n_devices / node.n_devices;
    node.n_hosts = (int32_t)(n_devices / n_host);
    node.n_nics = scale(node.n_nics, ratio);
    node.n_sockets = scale(node.n_sockets, ratio);
    node.n_pcie_switches = scale(node.n_pcie_switches, ratio);
    node.host_memory_bytes = (uint64_t)((double)node.host_memory_bytes * ratio);
    node.n_devices = n_devices;
    apply_intra(&intra, &node);
    apply_inter(&inter, &node);
    *out = node;
    *fabric = found->fabric;
    return FR_OK;
}

/* Returns the device of the column, else of the node that the row names instead
 * of a GPU; "": that of the column gpu. */
static const char *device_name(const fr_case *row)
{
    const char *name = row->field[FR_CASE_DEVICE];
    const fr_catalog_node *node =
        fr_catalog_node_find(row->field[FR_CASE_NODE]);
    bool is_of_node = name[0] == '\0' && row->field[FR_CASE_GPU][0] == '\0';
    return is_of_node && node != NULL ? node->device : name;
}

/* "h100" of "h100-sxm-96g", "rtx-4090" of "rtx-4090". */
static void name_family(const char *id, char *out, size_t n)
{
    const size_t n_letters = strcspn(id, "0123456789");
    size_t n_word = strcspn(id, "-");
    while (n_letters > n_word && id[n_word] == '-')
        n_word += 1 + strcspn(id + n_word + 1, "-");
    snprintf(out, n, "%.*s", (int)n_word, id);
}

static fr_status find_or_fail(const fr_case *row, fr_case_gpu *gpu,
                              double *memory_gb, const fr_catalog_device **out,
                              fr_err *err)
{
    const char *text = row->field[FR_CASE_GPU];
    const char *name = device_name(row);
    if (name[0] != '\0') {
        *gpu = (fr_case_gpu){.memory_gb = 0};
        *memory_gb = 0; /* that of the catalogue */
        name_family(name, gpu->family, sizeof gpu->family);
        *out = fr_catalog_device_find(name);
        return *out != NULL
                   ? FR_OK
                   : fr_fail(err, FR_INPUT,
                             "%s:%d: device '%.60s' is not in the catalogue "
                             "(forerun catalog devices)",
                             row->file, row->line, name);
    }
    fr_status status = fr_case_parse_gpu(text, gpu, err);
    if (status != FR_OK)
        return fr_case_fail_at(row, status, err);
    *memory_gb = gpu->memory_gb;
    if (*memory_gb <= 0)
        FR_TRY(fr_case_real(row, FR_CASE_GPU_MEM_GB, memory_gb, err));
    *out = find_device(gpu, *memory_gb);
    if (*out == NULL)
        return fr_fail(err, FR_INPUT,
                       "%s:%d: gpu '%.60s' is not in the catalogue (forerun "
                       "catalog devices)",
                       row->file, row->line, text);
    if (is_whole_card(*out, *memory_gb))
        return fr_fail(err, FR_INPUT,
                       "%s:%d: gpu '%.60s': %g GB are those of a card with %d "
                       "devices: count devices in num_gpus and gpus_per_node, "
                       "and name '%s' in the column device",
                       row->file, row->line, text, *memory_gb,
                       (int)(*out)->n_in_card, (*out)->type.id);
    return FR_OK;
}

fr_status fr_case_read_cluster(const fr_case *row, fr_case_setup *setup,
                               fr_err *err)
{
    int64_t n_gpus = fr_plan_world(&setup->plan);
    const fr_catalog_device *device = NULL;
    fr_case_gpu gpu;
    double memory_gb;
    fr_node_type node;
    fr_fabric_kind fabric;
    fr_cluster cluster = {.pue = 1.0};
    FR_TRY(find_or_fail(row, &gpu, &memory_gb, &device, err));
    FR_TRY(make_node(row, &gpu, device, n_gpus, &node, &fabric, err));
    cluster.devices = calloc(1, sizeof *cluster.devices);
    cluster.node_types = calloc(1, sizeof *cluster.node_types);
    cluster.groups = calloc(1, sizeof *cluster.groups);
    if (cluster.devices == NULL || cluster.node_types == NULL ||
        cluster.groups == NULL) {
        fr_cluster_release(&cluster);
        return fr_fail_no_memory(err);
    }
    cluster.n_devices = cluster.n_node_types = cluster.n_groups = 1;
    cluster.devices[0] = device->type;
    apply_device_text(&gpu, memory_gb, &cluster.devices[0]);
    cluster.jitter_compute_frac = fr_cluster_default_jitter_frac(&cluster);
    cluster.node_types[0] = node;
    cluster.node_types[0].i_device = 0;
    fr_node_group *group = &cluster.groups[0];
    group->n_nodes = (n_gpus + node.n_devices - 1) / node.n_devices;
    snprintf(group->id, sizeof group->id, "%.50s", node.id);
    snprintf(cluster.name, sizeof cluster.name, "%.60s", node.id);
    cluster.fabric.kind = group->n_nodes > 1 ? fabric : FR_FABRIC_NONE;
    if (cluster.fabric.kind == FR_FABRIC_RAIL) {
        cluster.fabric.n_levels = 1;
        cluster.fabric.levels[0] = (fr_fabric_level){.n_down = group->n_nodes,
                                                     .oversubscription = 1.0};
    }
    fr_status status = fr_cluster_check(&cluster, err);
    if (status != FR_OK) {
        fr_cluster_release(&cluster);
        return fr_case_fail_at(row, status, err);
    }
    setup->cluster = cluster;
    return FR_OK;
}
