/* cluster_types.c: reads <device>, <node-type> and <machine>. */
#include "core/base/text.h"
#include "spec/catalog/catalog.h"
#include "spec/cluster/cluster_reader.h"
#include "spec/cluster/detect.h"

#include <stdlib.h>
#include <string.h>

/* ---- devices ------------------------------------------------------------ */

static fr_status read_peak(const fr_xml_node *node, fr_device_type *device,
                           fr_err *err)
{
    fr_device_peak peak = {0};
    FR_TRY(fr_element_read(node, &peak, err));
    int32_t i = 0;
    while (i < device->n_peaks &&
           strcmp(device->peaks[i].dtype, peak.dtype) != 0)
        i++;
    if (i == FR_CLUSTER_PEAKS)
        return fr_xml_fail(node, err, "more than %d peaks", FR_CLUSTER_PEAKS);
    device->peaks[i] = peak;
    if (i == device->n_peaks)
        device->n_peaks++;
    return FR_OK;
}

static const fr_xml_node *find_id(const fr_xml_node *root, const char *element,
                                  const char *id)
{
    fr_xml_each (at, root, element)
        if (fr_text_equal(fr_xml_find(at, "id"), id))
            return at;
    return NULL;
}

/* Is any of the devices above in the chain this very one? */
typedef struct chain {
    const fr_xml_node *root;
    size_t depth, n_max;
} chain;

static fr_status read_device(const fr_xml_node *node, chain links,
                             fr_device_type *device, fr_err *err);

/* Reads the device that `like` names: of the file, else of the catalogue. */
static fr_status read_like(const fr_xml_node *node, chain links,
                           const char *like, fr_device_type *device,
                           fr_err *err)
{
    const fr_xml_node *own = find_id(links.root, "device", like);
    if (own != NULL && ++links.depth > links.n_max)
        return fr_xml_fail(node, err,
                           "device '%s' is like itself: 'like' runs in a "
                           "cycle through '%s'; describe one of them",
                           fr_xml_find(node, "id"), like);
    if (own != NULL)
        return read_device(own, links, device, err);
    const fr_catalog_device *found = fr_catalog_device_find(like);
    if (found != NULL) {
        *device = found->type;
        return FR_OK;
    }
    char hint[FR_HINT_MAX];
    const char *nearest = fr_catalog_device_nearest(like);
    return fr_xml_fail(node, err,
                       "like: no device '%s' in this file or the "
                       "catalogue%s",
                       like, fr_text_hint(nearest, hint));
}

static fr_status read_device(const fr_xml_node *node, chain links,
                             fr_device_type *device, fr_err *err)
{
    const char *like = fr_xml_find(node, "like"), *id;
    FR_TRY(fr_xml_get_string(node, "id", &id, err));
    fr_text_copy_cut(device->id, sizeof device->id, id);
    if (like != NULL)
        FR_TRY(read_like(node, links, like, device, err));
    else if (fr_xml_find(node, "kind") == NULL)
        return fr_xml_fail(node, err,
                           "<device id=\"%s\"> needs kind=\"cpu\" "
                           "or \"gpu\", or like=\"...\"",
                           id);
    FR_TRY(fr_element_read(node, device, err));
    fr_xml_each (peak, node, "peak")
        FR_TRY(read_peak(peak, device, err));
    if (device->memory_bytes == 0)
        return fr_xml_fail(node, err,
                           "<device id=\"%s\"> needs memory=\"80GiB\" or "
                           "like",
                           id);
    if (device->kind == FR_DEVICE_CPU &&
        (device->n_cores < 1 || device->n_cores > 65536))
        return fr_xml_fail(node, err,
                           "<device id=\"%s\"> of kind cpu needs "
                           "cores=\"1\" to \"65536\"",
                           id);
    if (device->n_cores > 1 << 20)
        return fr_xml_fail(node, err, "cores is %lld; at most %d",
                           (long long)device->n_cores, 1 << 20);
    if (device->idle_w > device->power_w)
        return fr_xml_fail(node, err, "idle-power %g W > power %g W",
                           device->idle_w, device->power_w);
    return FR_OK;
}

static fr_status read_new_device(const fr_xml_node *node, chain links,
                                 const fr_cluster *cluster,
                                 fr_device_type *device, fr_err *err)
{
    const char *id = fr_xml_find(node, "id");
    for (size_t i = 0; i < cluster->n_devices; i++)
        if (fr_text_equal(cluster->devices[i].id, id))
            return fr_xml_fail(node, err,
                               "duplicate device id '%s'; rename one", id);
    return read_device(node, links, device, err);
}

static fr_status read_devices(const fr_xml_node *root, fr_cluster *cluster,
                              fr_problems *problems, fr_err *err)
{
    chain links = {root, 0, fr_cluster_n_named(root, "device")};
    fr_xml_each (at, root, "device") {
        fr_device_type *device = &cluster->devices[cluster->n_devices];
        fr_err problem;
        fr_status status =
            read_new_device(at, links, cluster, device, &problem);
        if (status != FR_OK)
            device->memory_bytes = 0;
        cluster->n_devices++;
        FR_TRY(
            fr_problems_take(problems, fr_xml_line(at), status, &problem, err));
    }
    return FR_OK;
}

/* ---- node types --------------------------------------------------------- */

static fr_status read_nic(const fr_xml_node *node, fr_node_type *type,
                          fr_err *err)
{
    type->n_nics = type->n_rails = 1;
    FR_TRY(fr_element_read(node, type, err));
    if (type->n_rails < 1 || type->n_nics % type->n_rails != 0)
        return fr_xml_fail(node, err, "%d NICs %% %d rails != 0", type->n_nics,
                           type->n_rails);
    return FR_OK;
}

static fr_status read_intra(const fr_xml_node *node, fr_node_type *type,
                            fr_err *err)
{
    FR_TRY(fr_element_read(node, type, err));
    if (fr_xml_find(node, "bandwidth") != NULL &&
        fr_xml_find(node, "pair-bandwidth") == NULL)
        type->intra_p2p_Bps = type->intra_Bps;
    if (type->intra_p2p_Bps > type->intra_Bps)
        return fr_xml_fail(node, err,
                           "pair-bandwidth %g GB/s > bandwidth %g GB/s",
                           type->intra_p2p_Bps * 1e-9, type->intra_Bps * 1e-9);
    return FR_OK;
}

static fr_status read_node_children(const fr_xml_node *node, fr_node_type *type,
                                    fr_err *err)
{
    const fr_xml_node *intra = fr_xml_first_named(node, "intra");
    const fr_xml_node *nic = fr_xml_first_named(node, "nic");
    const fr_xml_node *pcie = fr_xml_first_named(node, "pcie");
    const fr_xml_node *storage = fr_xml_first_named(node, "storage");
    if (intra != NULL)
        FR_TRY(read_intra(intra, type, err));
    if (nic != NULL)
        FR_TRY(read_nic(nic, type, err));
    if (pcie != NULL)
        FR_TRY(fr_element_read(pcie, type, err));
    return storage != NULL ? fr_element_read(storage, type, err) : FR_OK;
}

/* Index of a device by name; one of the catalogue is appended when used. */
static fr_status find_device(const fr_xml_node *node, const char *id,
                             fr_cluster *cluster, int32_t *out, fr_err *err)
{
    for (size_t i = 0; i < cluster->n_devices; i++)
        if (fr_text_equal(cluster->devices[i].id, id)) {
            *out = (int32_t)i;
            return FR_OK;
        }
    const fr_catalog_device *found = fr_catalog_device_find(id);
    if (found != NULL) {
        *out = (int32_t)cluster->n_devices;
        cluster->devices[cluster->n_devices++] = found->type;
        return FR_OK;
    }
    char hint[FR_HINT_MAX];
    const char *nearest = fr_catalog_device_nearest(id);
    return fr_xml_fail(node, err,
                       "no device '%s' in this file or the catalogue%s", id,
                       fr_text_hint(nearest, hint));
}

/* A node type is like an earlier one of the file or one of the catalogue. */
static fr_status start_node_type(const fr_xml_node *node, fr_cluster *cluster,
                                 fr_node_type *type, const char **device,
                                 fr_err *err)
{
    const char *like = fr_xml_find(node, "like");
    *device = fr_xml_find(node, "device");
    type->n_devices = type->n_rails = type->n_sockets = type->n_hosts = 1;
    if (like == NULL && *device == NULL)
        return fr_xml_fail(node, err,
                           "<node-type id=\"%s\"> needs "
                           "device=\"...\" or like=\"...\"",
                           fr_xml_find(node, "id"));
    if (like == NULL)
        return FR_OK;
    for (size_t i = 0; i < cluster->n_node_types; i++)
        if (fr_text_equal(cluster->node_types[i].id, like)) {
            if (FR_IS_STAND_IN_NODE(&cluster->node_types[i]))
                return FR_SKIPPED;
            *type = cluster->node_types[i];
            if (*device == NULL)
                *device = cluster->devices[type->i_device].id;
            return FR_OK;
        }
    const fr_catalog_node *found = fr_catalog_node_find(like);
    if (found != NULL) {
        *type = found->type;
        if (*device == NULL)
            *device = found->device;
        return FR_OK;
    }
    char hint[FR_HINT_MAX];
    const char *nearest = fr_catalog_node_nearest(like);
    return fr_xml_fail(node, err,
                       "like: no node-type '%s' above in this file or in the "
                       "catalogue%s",
                       like, fr_text_hint(nearest, hint));
}

static fr_status check_node_type(const fr_xml_node *node,
                                 const fr_cluster *cluster,
                                 const fr_node_type *type, fr_err *err)
{
    const fr_device_type *device = &cluster->devices[type->i_device];
    if (FR_IS_STAND_IN_DEVICE(device))
        return FR_OK;
    if (device->kind == FR_DEVICE_CPU && type->n_devices != 1)
        return fr_xml_fail(node, err,
                           "devices is %d of kind cpu; a cpu device stands "
                           "for all cores of the node: give devices=\"1\" "
                           "and more cores",
                           type->n_devices);
    if (device->kind == FR_DEVICE_CPU && type->nic_efficiency_frac > 0)
        return fr_xml_fail(node, err,
                           "efficiency of NICs: it acts on GPU nodes only; "
                           "give the NICs of CPU nodes the bandwidth that "
                           "transfers reach");
    if (device->kind == FR_DEVICE_GPU && type->n_devices > 1 &&
        type->intra_Bps <= 0.0)
        return fr_xml_fail(node, err,
                           "%d devices need an <intra> with bandwidth",
                           type->n_devices);
    return FR_OK;
}

static fr_status read_node_type(const fr_xml_node *node, fr_cluster *cluster,
                                fr_node_type *type, fr_err *err)
{
    const char *device, *id;
    FR_TRY(fr_xml_get_string(node, "id", &id, err));
    FR_TRY(start_node_type(node, cluster, type, &device, err));
    fr_text_copy_cut(type->id, sizeof type->id, id);
    FR_TRY(find_device(node, device, cluster, &type->i_device, err));
    FR_TRY(fr_element_read(node, type, err));
    const int32_t counts[] = {type->n_devices, type->n_sockets, type->n_hosts};
    for (size_t i = 0; i < FR_LENGTH(counts); i++)
        if (counts[i] < 1 || counts[i] > 4096)
            return fr_xml_fail(node, err,
                               "give 1 to 4096 devices, sockets and hosts");
    FR_TRY(read_node_children(node, type, err));
    return check_node_type(node, cluster, type, err);
}

static fr_status read_new_node_type(const fr_xml_node *node,
                                    fr_cluster *cluster, fr_node_type *type,
                                    fr_err *err)
{
    const char *id = fr_xml_find(node, "id");
    for (size_t i = 0; i < cluster->n_node_types; i++)
        if (fr_text_equal(cluster->node_types[i].id, id))
            return fr_xml_fail(node, err,
                               "duplicate node-type id '%s'; rename one", id);
    return read_node_type(node, cluster, type, err);
}

static fr_status read_node_types(const fr_xml_node *root, fr_cluster *cluster,
                                 fr_problems *problems, fr_err *err)
{
    fr_xml_each (at, root, "node-type") {
        const char *id = fr_xml_find(at, "id");
        fr_node_type *type = &cluster->node_types[cluster->n_node_types];
        fr_err problem;
        fr_status status = read_new_node_type(at, cluster, type, &problem);
        if (status != FR_OK) {
            *type = (fr_node_type){0};
            fr_text_copy_cut(type->id, sizeof type->id, id != NULL ? id : "");
        }
        cluster->n_node_types++;
        FR_TRY(
            fr_problems_take(problems, fr_xml_line(at), status, &problem, err));
    }
    return FR_OK;
}

/* ---- the machine this runs on ------------------------------------------- */

static void describe_machine(const fr_machine *machine, int64_t n_parts,
                             fr_device_type *device)
{
    fr_text_copy_cut(device->id, sizeof device->id, "this-cpu");
    device->kind = FR_DEVICE_CPU;
    device->n_cores = machine->n_cores / n_parts;
    if (device->n_cores < 1)
        device->n_cores = 1;
    device->memory_bytes = machine->memory_bytes / (uint64_t)n_parts;
    device->cache_bytes = machine->llc_bytes;
    if (machine->peak_fp32_flops > 0.0) {
        device->n_peaks = 1;
        fr_text_copy_cut(device->peaks[0].dtype, sizeof device->peaks[0].dtype,
                         "fp32");
        device->peaks[0].flops = machine->peak_fp32_flops / machine->n_cores *
                                 (double)device->n_cores;
    }
}

static fr_status read_machine(const fr_xml_node *node, fr_cluster *cluster,
                              fr_err *err)
{
    bool is_detected = false;
    const char *id = fr_xml_find(node, "id");
    fr_node_group *group = &cluster->groups[cluster->n_groups];
    fr_machine machine;
    if (fr_xml_next_named(node, "machine") != NULL)
        return fr_xml_fail(fr_xml_next_named(node, "machine"), err,
                           "a second <machine>; there is only one this is "
                           "run on");
    FR_TRY(fr_xml_maybe_bool(node, "detect", &is_detected, err));
    if (!is_detected)
        return fr_xml_fail(node, err,
                           "<machine> must have detect=\"yes\"; "
                           "other machines are a <node-type>");
    group->n_nodes = 1;
    FR_TRY(fr_element_read(node, group, err));
    fr_machine_detect(&machine);
    fr_node_type *type = &cluster->node_types[cluster->n_node_types];
    type->i_device = (int32_t)cluster->n_devices++;
    describe_machine(&machine, group->n_nodes,
                     &cluster->devices[type->i_device]);
    fr_text_copy_cut(type->id, sizeof type->id, "this-machine");
    type->n_devices = type->n_rails = type->n_hosts = 1;
    type->n_sockets = machine.n_sockets;
    type->intra_kind = FR_INTRA_SHARED_MEMORY;
    FR_TRY(read_node_children(node, type, err));
    fr_text_copy_cut(group->id, sizeof group->id, id != NULL ? id : "host");
    group->i_node_type = (int32_t)cluster->n_node_types++;
    cluster->n_groups++;
    cluster->is_this_machine = true;
    cluster->is_one_machine = group->n_nodes > 1;
    return FR_OK;
}

fr_status fr_cluster_read_types(const fr_xml_node *root, fr_cluster *cluster,
                                fr_problems *problems, fr_err *err)
{
    size_t n_devices = fr_cluster_n_named(root, "device");
    size_t n_types = fr_cluster_n_named(root, "node-type");
    const fr_xml_node *machine = fr_xml_first_named(root, "machine");
    if (n_devices > FR_CLUSTER_MAX_TYPES || n_types > FR_CLUSTER_MAX_TYPES)
        return fr_xml_fail(root, err, "more than %d devices or node types",
                           FR_CLUSTER_MAX_TYPES);
    /* One more for the machine; each node type may append one device. */
    cluster->devices =
        calloc(n_devices + n_types + 1, sizeof *cluster->devices);
    cluster->node_types = calloc(n_types + 1, sizeof *cluster->node_types);
    if (cluster->devices == NULL || cluster->node_types == NULL)
        return fr_fail_no_memory(err);
    FR_TRY(read_devices(root, cluster, problems, err));
    FR_TRY(read_node_types(root, cluster, problems, err));
    return machine != NULL ? read_machine(machine, cluster, err) : FR_OK;
}
