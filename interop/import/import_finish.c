/*
 * import_finish.c: from what was found of one node to a cluster; what was not
 * found comes from the catalogue and is noted.
 */
#include "core/base/text.h"
#include "core/system/fileio.h"
#include "interop/import/import_parts.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 4096 }; /* as cluster files allow */

/* Does the file contradict that it is this node? */
static bool may_be(const fr_import_node *node, const fr_catalog_node *row)
{
    if (strcmp(row->device, node->device->type.id) != 0 ||
        row->type.n_devices != node->n_gpus)
        return false;
    if (node->n_nics > 0 && row->type.n_nics != node->n_nics)
        return false;
    if (node->nic_kind != FR_NIC_UNKNOWN &&
        row->type.nic_kind != node->nic_kind)
        return false;
    return node->nic_Bps <= 0.0 || node->nic_Bps == row->type.nic_Bps;
}

/* The row that it must be, as far as its network goes; NULL when rows that it
 * may be disagree. */
static const fr_catalog_node *find_row(const fr_import_node *node)
{
    const fr_catalog_node *found = NULL;
    for (size_t i = 0; node->device && i < fr_catalog_n_nodes(); i++) {
        const fr_catalog_node *row = fr_catalog_node_at(i);
        if (!may_be(node, row))
            continue;
        if (found != NULL &&
            (found->type.nic_Bps != row->type.nic_Bps ||
             found->type.n_nics != row->type.n_nics ||
             found->type.nic_latency_s != row->type.nic_latency_s ||
             found->fabric != row->fabric))
            return NULL;
        found = found != NULL ? found : row;
    }
    return found;
}

static void set_fabric(const fr_import_text *in, const fr_import_node *node,
                       fr_node_type *type)
{
    const fr_catalog_device *device = node->device;
    type->host_link_Bps = node->host_Bps;
    if (node->host_Bps <= 0.0) {
        type->host_link_Bps = device->pcie_Bps;
        fr_import_note(in, "PCIe of %s from the catalogue: %g GB/s",
                       device->type.id, device->pcie_Bps * 1e-9);
    }
    type->intra_latency_s = 2e-6;
    if (node->has_fabric && node->link_Bps > 0.0) {
        type->intra_kind = node->intra_kind;
        type->intra_Bps = node->link_Bps;
        type->intra_p2p_Bps = node->pair_Bps;
    } else if (!node->has_fabric && device->link_Bps > 0.0 &&
               node->n_gpus > 1) {
        type->intra_kind = device->link_kind;
        type->intra_Bps = device->link_Bps;
        type->intra_p2p_Bps = device->link_pair_Bps;
        fr_import_note(in,
                       "NVLink of %s from the catalogue: %s, %g GB/s each way, "
                       "%g GB/s between two",
                       device->type.id, fr_intra_kind_name(device->link_kind),
                       device->link_Bps * 1e-9, device->link_pair_Bps * 1e-9);
    } else {
        type->intra_kind = FR_INTRA_PCIE;
        type->intra_Bps = type->intra_p2p_Bps = type->host_link_Bps;
        type->intra_latency_s = 4e-6;
    }
    fr_import_note(in, "latency inside a node: %g us, as in the catalogue",
                   type->intra_latency_s * 1e6);
}

static void set_nic_rate(const fr_import_text *in, const fr_import_node *node,
                         const fr_catalog_node *row, fr_node_type *type)
{
    type->nic_Bps = node->nic_Bps;
    if (type->nic_Bps <= 0.0 && row != NULL) {
        type->nic_Bps = row->type.nic_Bps;
        fr_import_note(in, "NICs as those of %s in the catalogue: %g Gb/s",
                       row->type.id, type->nic_Bps * 8e-9);
    } else if (type->nic_Bps <= 0.0 && node->nic_rated_Bps > 0.0) {
        type->nic_Bps = node->nic_rated_Bps;
        fr_import_note(in, "NICs at the full rate of their model: %g Gb/s",
                       type->nic_Bps * 8e-9);
    } else if (type->nic_Bps <= 0.0) {
        type->nic_Bps =
            node->nic_pcie_Bps > 0.0
                ? node->nic_pcie_Bps
                : (node->device != NULL ? node->device->pcie_Bps : 12.5e9);
        fr_import_note(in,
                       "speed of the NICs is not said: %g Gb/s, all that their "
                       "PCIe may carry, is taken; give --node-type NAME or "
                       "change the file",
                       type->nic_Bps * 8e-9);
    }
}

static void set_nics(const fr_import_text *in, const fr_import_node *node,
                     const fr_catalog_node *row, fr_node_type *type)
{
    type->n_rails = 1;
    type->n_nics = node->n_nics;
    type->nic_kind = node->nic_kind;
    if (type->n_nics == 0 && in->options->node_type != NULL && row != NULL) {
        type->n_nics = row->type.n_nics;
        fr_import_note(in, "%d NICs as %s in the catalogue", type->n_nics,
                       row->type.id);
    }
    if (type->n_nics == 0) {
        fr_import_note(in, "no NIC was found: the node has no network");
        return;
    }
    set_nic_rate(in, node, row, type);
    if (row != NULL && row->type.n_nics == type->n_nics) {
        type->n_rails = row->type.n_rails;
        if (type->nic_kind == FR_NIC_UNKNOWN)
            type->nic_kind = row->type.nic_kind;
    }
    type->nic_latency_s = node->nic_latency_s;
    if (type->nic_latency_s > 0.0)
        return;
    bool is_near = type->nic_kind == FR_NIC_INFINIBAND ||
                   type->nic_kind == FR_NIC_ROCE ||
                   type->nic_kind == FR_NIC_OMNI_PATH;
    type->nic_latency_s =
        row ? row->type.nic_latency_s : (is_near ? 5e-6 : 20e-6);
    fr_import_note(in, "latency between nodes: %g us, as %s in the catalogue",
                   type->nic_latency_s * 1e6,
                   row ? row->type.id : "such networks");
}

/* The file's device, node type and a network that suits its NICs. */
static fr_status make_cluster(const fr_import_text *in,
                              const fr_import_node *node,
                              const fr_node_type *type, bool is_rail,
                              fr_cluster *out, fr_err *err)
{
    char stem[FR_CLUSTER_ID];
    const char *name = fr_path_name(in->name);
    const char *dot = strrchr(name, '.');
    size_t n = dot != NULL && dot > name ? (size_t)(dot - name) : strlen(name);
    n = n < sizeof stem - 1 ? n : sizeof stem - 1;
    memcpy(stem, name, n);
    stem[n] = '\0';
    out->devices = calloc(1, sizeof *out->devices);
    out->node_types = calloc(1, sizeof *out->node_types);
    out->groups = calloc(1, sizeof *out->groups);
    if (out->devices == NULL || out->node_types == NULL || out->groups == NULL)
        return fr_fail_no_memory(err);
    out->n_devices = out->n_node_types = out->n_groups = 1;
    out->pue = 1.0;
    fr_import_id(stem, out->name);
    out->devices[0] = node->device != NULL ? node->device->type : node->cpu;
    out->node_types[0] = *type;
    fr_text_copy_cut(out->node_types[0].id, FR_CLUSTER_ID, "node");
    fr_text_copy_cut(out->groups[0].id, FR_CLUSTER_ID, "node");
    int64_t n_nodes = in->options->n_nodes > 0 ? in->options->n_nodes : 1;
    out->groups[0].n_nodes = n_nodes;
    if (n_nodes > 1 && type->n_nics == 0)
        return fr_import_fail(in, 1, err,
                              "%lld nodes without a NIC in the file; give "
                              "--node-type NAME, whose NICs are taken",
                              (long long)n_nodes);
    out->fabric.kind = n_nodes == 1 ? FR_FABRIC_NONE
                       : is_rail    ? FR_FABRIC_RAIL
                                    : FR_FABRIC_SWITCH;
    if (out->fabric.kind == FR_FABRIC_RAIL) {
        out->fabric.n_levels = 1;
        out->fabric.levels[0] =
            (fr_fabric_level){.n_down = n_nodes, .oversubscription = 1.0};
    }
    if (n_nodes > 1)
        fr_import_note(in,
                       "network of the %lld nodes: %s without "
                       "oversubscription",
                       (long long)n_nodes, is_rail ? "rails" : "one switch");
    return FR_OK;
}

fr_status fr_import_finish(const fr_import_text *in, const fr_import_node *node,
                           fr_cluster *out, fr_err *err)
{
    fr_node_type type = {.n_devices = node->device != NULL ? node->n_gpus : 1,
                         .n_hosts = 1};
    const fr_catalog_node *row;
    FR_TRY(fr_import_choose_node(in, &row, err));
    if (row == NULL)
        row = find_row(node);
    if (node->n_nics > MOST || node->n_sockets > MOST ||
        node->cpu.n_cores > 65536)
        return fr_import_fail(in, 1, err,
                              "%d NICs, %d sockets, %lld cores in one node; "
                              "%d, %d and 65536 are the most",
                              node->n_nics, node->n_sockets,
                              (long long)node->cpu.n_cores, MOST, MOST);
    type.n_sockets = node->n_sockets > 0 ? node->n_sockets : 1;
    type.host_memory_bytes = node->host_memory_bytes;
    if (node->host_memory_bytes == 0 && row != NULL) {
        type.host_memory_bytes = row->type.host_memory_bytes;
        fr_import_note(in, "host memory as %s in the catalogue: %llu GiB",
                       row->type.id,
                       (unsigned long long)(type.host_memory_bytes >> 30));
    }
    if (node->n_switches > 0 && node->uplink_Bps > 0.0) {
        type.n_pcie_switches = node->n_switches;
        type.pcie_uplink_Bps = node->uplink_Bps;
    }
    if (node->device != NULL)
        set_fabric(in, node, &type);
    else
        type.intra_kind = FR_INTRA_SHARED_MEMORY;
    set_nics(in, node, row, &type);
    if (row != NULL && in->options->node_type != NULL) {
        type.price_usd_per_h = row->type.price_usd_per_h;
        type.spot_usd_per_h = row->type.spot_usd_per_h;
    }
    bool is_rail =
        type.n_rails > 1 && row != NULL && row->fabric == FR_FABRIC_RAIL;
    return make_cluster(in, node, &type, is_rail, out, err);
}
