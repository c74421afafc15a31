/*
 * import_hwloc.c: the XML of hwloc 2 and 3 (lstopo --of xml): one machine with
 * its packages, memory, PCI devices and, with NVML, the NVLink matrix.  Without
 * GPUs the cores are the device.
 */
#include "core/base/text.h"
#include "interop/import/import_parts.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_GPUS = 64, MAX_DEPTH = 128, MAX_OBJECTS = 1024 };

typedef struct hwloc_file {
    const fr_import_text *in;
    const fr_xml_node *gpus[MAX_GPUS];
    const fr_xml_node *gpu_bridges[MAX_GPUS];
    int32_t n_gpus, n_other_displays;
    int32_t n_nics, n_fabric_nics;  /* all, with an OpenFabrics name */
    int32_t n_ethernet_fabric_nics; /* of the latter, those of Ethernet */
    int version;                    /* 2 or 3 */
    uint32_t nic_vendor, nic_device;
    double nic_pcie_Bps, gpu_pcie_Bps;
    int32_t n_packages, n_cores;
    uint64_t memory_bytes, cache_bytes;
} hwloc_file;

static bool is_type(const fr_xml_node *object, const char *type)
{
    return fr_text_equal(fr_xml_find(object, "type"), type);
}

/* "0302 [10de:1db8] [10de:12ab] a1 00" */
static bool read_pci_type(const fr_xml_node *object, uint32_t *class,
                          uint32_t *vendor, uint32_t *device)
{
    const char *text = fr_xml_find(object, "pci_type");
    const char *ids = text != NULL ? strchr(text, '[') : NULL;
    char *end;
    if (ids == NULL)
        return false;
    *class = (uint32_t)strtoul(text, NULL, 16);
    *vendor = (uint32_t)strtoul(ids + 1, &end, 16);
    if (*end != ':')
        return false;
    *device = (uint32_t)strtoul(end + 1, NULL, 16);
    return true;
}

/*
 * hwloc has the raw rate of a link (15.75 GB/s for 16 lanes of 8 GT/s), the
 * catalogue what NCCL counts on (12): the same ratio for all generations.
 */
static double link_Bps(const fr_xml_node *object)
{
    const char *text = fr_xml_find(object, "pci_link_speed");
    double raw = text != NULL ? strtod(text, NULL) : 0.0;
    return raw > 0.0 && raw < 1e4 ? raw * (12.0 / 15.753846) * 1e9 : 0.0;
}

static double slower(double a, double b)
{
    if (a <= 0.0 || b <= 0.0)
        return a > 0.0 ? a : b;
    return a < b ? a : b;
}

/* osdev_type is OpenFabrics ("mlx5_0"): 3 in hwloc 2, bit 5 of a set in hwloc 3
 * (include/hwloc.h, hwloc_obj_osdev_type_e). */
static bool has_fabric_name(const hwloc_file *file, const fr_xml_node *object)
{
    fr_xml_each (at, object, "object") {
        const char *text = fr_xml_find(at, "osdev_type");
        if (!is_type(at, "OSDev") || text == NULL)
            continue;
        const unsigned long type = strtoul(text, NULL, 10);
        if (file->version == 2 ? type == 3 : (type & 32) != 0)
            return true;
    }
    return false;
}

/* A device of a programming model: NVML, CUDA, OpenCL, RSMI, LevelZero. */
static bool has_compute_name(const fr_xml_node *object)
{
    static const char *const subtypes[] = {"NVML", "CUDA", "OpenCL", "RSMI",
                                           "LevelZero"};
    fr_xml_each (at, object, "object")
        for (size_t i = 0; i < FR_LENGTH(subtypes); i++)
            if (fr_text_equal(fr_xml_find(at, "subtype"), subtypes[i]))
                return true;
    return false;
}

/* Classes of GPUs: displays (03) and accelerators (12, AMD's MI300). */
static bool is_gpu_class(uint32_t class)
{
    return class >> 8 == 0x03 || class >> 8 == 0x12;
}

/* Does a device of such a class compute?  The chip that draws a board's console
 * is of a vendor without GPUs here, or neither in the catalogue nor on PCI
 * Express nor known to a programming model. */
static bool is_gpu(const fr_xml_node *object, uint32_t vendor, uint32_t device)
{
    if (vendor != 0x10de && vendor != 0x1002)
        return false;
    return fr_catalog_device_find_pci(vendor, device) != NULL ||
           has_compute_name(object) || link_Bps(object) > 0.0;
}

static fr_status read_pci(hwloc_file *file, const fr_xml_node *object,
                          const fr_xml_node *bridge, fr_err *err)
{
    uint32_t class, vendor, device;
    if (!read_pci_type(object, &class, &vendor, &device))
        return FR_OK;
    if (is_gpu_class(class) && !is_gpu(object, vendor, device)) {
        file->n_other_displays += class >> 8 == 0x03;
    } else if (is_gpu_class(class)) {
        if (file->n_gpus == MAX_GPUS)
            return fr_xml_fail(object, err, "more than %d GPUs", MAX_GPUS);
        file->gpu_bridges[file->n_gpus] = bridge;
        file->gpus[file->n_gpus++] = object;
    } else if (class >> 8 == 0x02) {
        bool is_fabric = has_fabric_name(file, object);
        bool is_first = is_fabric && file->n_fabric_nics == 0;
        file->n_nics++;
        file->n_fabric_nics += is_fabric;
        file->n_ethernet_fabric_nics += is_fabric && class == 0x0200;
        if (file->n_fabric_nics > 0 && !is_fabric)
            return FR_OK; /* those with RDMA carry the traffic */
        file->nic_vendor = vendor;
        file->nic_device = device;
        file->nic_pcie_Bps = is_first
                                 ? link_Bps(object)
                                 : slower(file->nic_pcie_Bps, link_Bps(object));
    }
    return FR_OK;
}

static fr_status read_memory(hwloc_file *file, const fr_xml_node *object,
                             fr_err *err)
{
    const char *text = fr_xml_find(object, "local_memory");
    uint64_t n_bytes = 0;
    if (text == NULL)
        return FR_OK;
    fr_err inner = {0};
    if (fr_parse_u64(text, &n_bytes, &inner) != FR_OK || n_bytes > 1ull << 50)
        return fr_xml_fail(object, err, "local_memory '%.40s': give bytes",
                           text);
    file->memory_bytes += n_bytes;
    return FR_OK;
}

static fr_status walk(hwloc_file *file, const fr_xml_node *parent,
                      const fr_xml_node *bridge, int depth, fr_err *err)
{
    if (depth > MAX_DEPTH)
        return fr_xml_fail(parent, err, "objects nest more than %d deep",
                           MAX_DEPTH);
    fr_xml_each (at, parent, "object") {
        const char *type;
        FR_TRY(fr_xml_get_string(at, "type", &type, err));
        file->n_packages += strcmp(type, "Package") == 0;
        file->n_cores += strcmp(type, "Core") == 0;
        if (strcmp(type, "NUMANode") == 0)
            FR_TRY(read_memory(file, at, err));
        if (strcmp(type, "PCIDev") == 0)
            FR_TRY(read_pci(file, at, bridge, err));
        bool is_bridge = strcmp(type, "Bridge") == 0 &&
                         fr_text_starts(fr_xml_find(at, "bridge_type") != NULL
                                            ? fr_xml_find(at, "bridge_type")
                                            : "",
                                        "1-");
        FR_TRY(walk(file, at, is_bridge ? at : bridge, depth + 1, err));
    }
    return FR_OK;
}

/* ---- GPUs --------------------------------------------------------------- */

/* The name that NVML gave, in an <info> of the OSDev. */
static const fr_catalog_device *find_product(const fr_xml_node *gpu)
{
    fr_xml_each (os, gpu, "object")
        fr_xml_each (at, os, "info")
            if (fr_text_equal(fr_xml_find(at, "name"), "GPUModel") &&
                fr_xml_find(at, "value") != NULL)
                return fr_catalog_device_find_product(fr_xml_find(at, "value"));
    return NULL;
}

static const fr_catalog_device *find_device(const fr_xml_node *gpu)
{
    uint32_t class, vendor = 0, device = 0;
    (void)read_pci_type(gpu, &class, &vendor, &device);
    const fr_catalog_device *found = fr_catalog_device_find_pci(vendor, device);
    return found != NULL ? found : find_product(gpu);
}

/* Beside GPUs of the catalogue another one drives a display (a Quadro, the "DGX
 * Display" of a DGX Station). */
static void drop_displays(hwloc_file *file)
{
    int32_t n_known = 0, n = 0;
    for (int32_t i = 0; i < file->n_gpus; i++)
        n_known += find_device(file->gpus[i]) != NULL;
    for (int32_t i = 0; i < file->n_gpus; i++) {
        if (n_known > 0 && find_device(file->gpus[i]) == NULL)
            continue;
        file->gpu_bridges[n] = file->gpu_bridges[i];
        file->gpus[n++] = file->gpus[i];
    }
    file->n_other_displays += file->n_gpus - n;
    file->n_gpus = n;
    for (int32_t i = 0; i < n; i++)
        file->gpu_pcie_Bps =
            slower(file->gpu_pcie_Bps, link_Bps(file->gpus[i]));
}

static fr_status find_model(const hwloc_file *file, fr_import_node *node,
                            fr_err *err)
{
    for (int32_t i = 0; i < file->n_gpus; i++) {
        uint32_t class, vendor = 0, device = 0;
        (void)read_pci_type(file->gpus[i], &class, &vendor, &device);
        const fr_catalog_device *found = find_device(file->gpus[i]);
        if (i > 0 && found != node->device)
            return fr_xml_fail(file->gpus[i], err,
                               "GPUs of different models in one node; write "
                               "two node types by hand");
        node->device = found;
        if (found == NULL && file->in->options->gpu == NULL)
            return fr_xml_fail(file->gpus[i], err,
                               "GPU %04x:%04x is not in the catalogue; give "
                               "--gpu NAME",
                               vendor, device);
    }
    node->line = fr_xml_line(file->gpus[0]);
    return FR_OK;
}

/* ---- NVLink ------------------------------------------------------------- */

enum { IS_SWITCH = -1, IS_OTHER = -2 };

typedef struct distances {
    int32_t n, n_values;
    int32_t gpu[MAX_OBJECTS]; /* index of the GPU, or one of the above */
    double *values;           /* n x n, MB/s */
} distances;

static bool has_index(const fr_xml_node *object, const char *index)
{
    return fr_text_equal(fr_xml_find(object, "gp_index"), index);
}

/*
 * "OSDev:21", or "21" where all objects are of one type: the gp_index of an
 * object.  hwloc names a GPU by its NVML device, an NVSwitch by its PCI device
 * and the CPU at the end of a link of POWER by its package or NUMA node
 * (hwloc/topology-nvml.c); hwloc-annotate may have put the PCI devices of GPUs
 * in their place.
 */
static int32_t gpu_of_index(const hwloc_file *file, const char *word)
{
    const char *colon = strchr(word, ':');
    const char *index = colon != NULL ? colon + 1 : word;
    for (int32_t i = 0; i < file->n_gpus; i++) {
        if (has_index(file->gpus[i], index))
            return i;
        fr_xml_each (os, file->gpus[i], "object")
            if (has_index(os, index))
                return i;
    }
    return fr_text_starts(word, "PCIDev:") || fr_text_starts(word, "Bridge:")
               ? IS_SWITCH
               : IS_OTHER;
}

static fr_status read_words(const hwloc_file *file, const fr_xml_node *node,
                            bool is_values, distances *d, fr_err *err)
{
    const char *text = fr_xml_text(node);
    while (text != NULL && *text) {
        char word[64];
        size_t n = strcspn(text, " \t\n\r");
        if (n >= sizeof word)
            return fr_xml_fail(node, err, "a value of %zu bytes", n);
        memcpy(word, text, n);
        word[n] = '\0';
        text += n + (text[n] != '\0');
        if (n == 0)
            continue;
        int32_t at = is_values ? d->n_values++ : d->n++;
        if (at >= (is_values ? d->n * d->n : MAX_OBJECTS))
            return fr_xml_fail(node, err, "more values than objects");
        if (is_values) {
            d->values[at] = strtod(word, NULL);
            if (!(d->values[at] >= 0.0 && d->values[at] < 1e9))
                return fr_xml_fail(node, err, "'%s' is no bandwidth", word);
        } else {
            d->gpu[at] = gpu_of_index(file, word);
        }
    }
    return FR_OK;
}

static fr_status read_distances(const hwloc_file *file, const fr_xml_node *node,
                                distances *d, fr_err *err)
{
    fr_xml_each (at, node, "indexes")
        FR_TRY(read_words(file, at, false, d, err));
    d->values = calloc((size_t)d->n * (size_t)d->n + 1, sizeof *d->values);
    if (d->values == NULL)
        return fr_fail_no_memory(err);
    fr_xml_each (at, node, "u64values")
        FR_TRY(read_words(file, at, true, d, err));
    if (d->n_values != d->n * d->n)
        return fr_xml_fail(node, err, "%d values for %d objects", d->n_values,
                           d->n);
    return FR_OK;
}

/* Links to switches, or between GPUs in units of the catalogue's. */
static fr_status use_distances(const hwloc_file *file, const distances *d,
                               fr_import_node *node, fr_err *err)
{
    int32_t n = file->n_gpus;
    int32_t *n_links = calloc((size_t)n * (size_t)n, sizeof *n_links);
    double least_Bps = -1.0;
    double each_Bps = node->device->n_links > 0
                          ? node->device->link_Bps / node->device->n_links
                          : 0.0;
    if (n_links == NULL)
        return fr_fail_no_memory(err);
    for (int32_t i = 0; i < d->n; i++) {
        double to_switch_Bps = 0.0;
        for (int32_t j = 0; j < d->n && d->gpu[i] >= 0; j++) {
            double rate_Bps = d->values[i * d->n + j] * 1e6;
            if (d->gpu[j] == IS_SWITCH)
                to_switch_Bps += rate_Bps;
            else if (d->gpu[j] >= 0 && d->gpu[j] != d->gpu[i] && each_Bps > 0.0)
                n_links[d->gpu[i] * n + d->gpu[j]] =
                    (int32_t)(rate_Bps / each_Bps + 0.5);
        }
        if (d->gpu[i] >= 0 && (least_Bps < 0.0 || to_switch_Bps < least_Bps))
            least_Bps = to_switch_Bps;
    }
    if (least_Bps > 0.0) {
        node->has_fabric = true;
        node->intra_kind = FR_INTRA_NVSWITCH;
        node->link_Bps = node->pair_Bps = least_Bps;
    } else {
        fr_import_nvlinks(file->in, n_links, node);
    }
    free(n_links);
    return FR_OK;
}

static fr_status read_nvlinks(const hwloc_file *file, const fr_xml_node *root,
                              fr_import_node *node, fr_err *err)
{
    for (const fr_xml_node *at = fr_xml_first(root); at != NULL;
         at = fr_xml_next(at)) {
        if (!fr_text_equal(fr_xml_find(at, "name"), "NVLinkBandwidth"))
            continue;
        distances *d = calloc(1, sizeof *d);
        if (d == NULL)
            return fr_fail_no_memory(err);
        fr_status status = read_distances(file, at, d, err);
        if (status == FR_OK)
            status = use_distances(file, d, node, err);
        free(d->values);
        free(d);
        return status;
    }
    return FR_OK;
}

/* ---- the file ----------------------------------------------------------- */

static void set_nics(const hwloc_file *file, fr_import_node *node)
{
    node->n_nics = file->n_fabric_nics > 0 ? file->n_fabric_nics : file->n_nics;
    node->nic_pcie_Bps = file->nic_pcie_Bps;
    node->nic_rated_Bps = fr_import_nic_Bps(file->nic_vendor, file->nic_device);
    if (file->nic_vendor == 0x1d0f)
        node->nic_kind = FR_NIC_EFA;
    else if (file->n_fabric_nics > 0)
        node->nic_kind = file->n_ethernet_fabric_nics == file->n_fabric_nics
                             ? FR_NIC_ROCE
                             : FR_NIC_INFINIBAND;
    else if (file->n_nics > 0)
        node->nic_kind = FR_NIC_ETHERNET;
    if (file->n_fabric_nics > 0 && file->n_fabric_nics < file->n_nics)
        fr_import_note(file->in, "%d NICs without RDMA are left out",
                       file->n_nics - file->n_fabric_nics);
}

static void set_cpu(const hwloc_file *file, fr_import_node *node)
{
    fr_text_copy_cut(node->cpu.id, sizeof node->cpu.id, "cpu");
    node->cpu.kind = FR_DEVICE_CPU;
    node->cpu.n_cores = file->n_cores;
    node->cpu.memory_bytes = file->memory_bytes;
    fr_import_note(file->in,
                   "no GPU: %d cores are the device, their speed is "
                   "not in the file",
                   file->n_cores);
}

static fr_status read_topology(hwloc_file *file, const fr_xml_node *root,
                               fr_import *out, fr_err *err)
{
    fr_import_node node = {0};
    const char *version = fr_xml_find(root, "version");
    if (!fr_xml_is(root, "topology"))
        return fr_xml_fail(root, err, "the root is <%s>, not <topology>",
                           fr_xml_name(root));
    if (version == NULL ||
        (!fr_text_starts(version, "2.") && !fr_text_starts(version, "3.")))
        return fr_xml_fail(root, err,
                           "version '%.20s' of hwloc's XML; 2.x and 3.x are "
                           "read (lstopo of hwloc 2 or 3)",
                           version ? version : "1");
    file->version = version[0] - '0';
    FR_TRY(walk(file, root, NULL, 0, err));
    drop_displays(file);
    node.n_gpus = file->n_gpus;
    node.n_sockets = file->n_packages;
    node.host_memory_bytes = file->memory_bytes;
    set_nics(file, &node);
    if (file->n_other_displays > 0)
        fr_import_note(file->in,
                       "%d display controllers are no GPUs to "
                       "compute on",
                       file->n_other_displays);
    if (file->n_gpus == 0 && (file->n_cores == 0 || file->memory_bytes == 0))
        return fr_xml_fail(root, err, "neither GPUs nor cores with memory");
    if (file->n_gpus == 0) {
        set_cpu(file, &node);
        return fr_import_finish(file->in, &node, &out->cluster, err);
    }
    FR_TRY(find_model(file, &node, err));
    FR_TRY(fr_import_choose_gpu(file->in, &node, err));
    FR_TRY(read_nvlinks(file, root, &node, err));
    node.host_Bps = node.uplink_Bps = file->gpu_pcie_Bps;
    for (int32_t i = 0; i < file->n_gpus; i++) {
        bool is_new = file->gpu_bridges[i] != NULL;
        for (int32_t k = 0; k < i && is_new; k++)
            is_new = file->gpu_bridges[k] != file->gpu_bridges[i];
        node.n_switches += is_new;
    }
    /* A bridge of its own is only a port. */
    if (node.n_switches == file->n_gpus)
        node.n_switches = 0;
    return fr_import_finish(file->in, &node, &out->cluster, err);
}

static fr_status read_hwloc(const fr_import_text *in, fr_import *out,
                            fr_err *err)
{
    fr_xml *xml;
    hwloc_file *file = calloc(1, sizeof *file);
    if (file == NULL)
        return fr_fail_no_memory(err);
    file->in = in;
    fr_status status = fr_xml_parse(in->name, in->text, in->n, &xml, err);
    if (status == FR_OK) {
        status = read_topology(file, fr_xml_root(xml), out, err);
        fr_xml_destroy(xml);
    }
    free(file);
    return status;
}

const fr_importer fr_import_hwloc = {
    .name = "hwloc", .marks = {"<topology"}, .read = read_hwloc};
