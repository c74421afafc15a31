/*
 * import_nccl.c: the topology files of NCCL (NCCL_TOPO_FILE, and what
 * NCCL_TOPO_DUMP_FILE writes): system > cpu > pci > pci | gpu | nic > net.
 *
 * A dump says all: ranks, NVLinks, speeds.  The files that clouds ship are
 * skeletons of PCI functions; there the PCI class tells GPUs (03) from NICs
 * (02), vendor and device tell the model, and the catalogue the rest.
 */
#include "core/base/text.h"
#include "interop/import/import_parts.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_GPUS = 64, MAX_NICS = 4096, MAX_DEPTH = 16 };

typedef struct gpu {
    const fr_xml_node *pci, *gpu; /* gpu: NULL in a skeleton */
    const fr_xml_node *bridge;    /* NULL: on the socket */
    double pcie_Bps, uplink_Bps;  /* 0: not said */
} gpu;

/* A NIC that NCCL used. */
typedef struct net {
    const fr_xml_node *net;
    const fr_xml_node *pci; /* its function; NULL: a virtual one */
    double slot_Bps;        /* 0: not said */
} net;

typedef struct nccl_file {
    const fr_import_text *in;
    gpu gpus[MAX_GPUS];
    int32_t n_gpus;
    const fr_xml_node *nic_pcis[MAX_NICS]; /* functions of NICs */
    int32_t n_nic_pcis;
    double nic_pcie_Bps;
    net nets[MAX_NICS];
    int32_t n_nets;
    int32_t n_cpus, n_unclassed;
    bool has_gpu_elements, has_no_classes;
} nccl_file;

static bool is_class(const fr_xml_node *pci, const char *prefix)
{
    const char *class = fr_xml_find(pci, "class");
    return class != NULL && fr_text_starts(class, prefix);
}

static uint32_t hex(const fr_xml_node *node, const char *attribute)
{
    const char *text = fr_xml_find(node, attribute);
    return text != NULL ? (uint32_t)strtoul(text, NULL, 16) : 0;
}

/* The PCIe link above a function; 0: not said. */
static fr_status pcie_Bps(const fr_xml_node *pci, double *out, fr_err *err)
{
    const char *speed = fr_xml_find(pci, "link_speed");
    int64_t n_lanes = 0;
    FR_TRY(fr_xml_maybe_i64(pci, "link_width", &n_lanes, err));
    if (n_lanes < 0 || n_lanes > 64)
        return fr_xml_fail(pci, err, "link_width is %lld; give 0 to 64",
                           (long long)n_lanes);
    *out = speed != NULL && speed[0] ? fr_import_pcie_Bps(speed, n_lanes) : 0.0;
    return FR_OK;
}

static double slower(double a, double b)
{
    if (a <= 0.0 || b <= 0.0)
        return a > 0.0 ? a : b;
    return a < b ? a : b;
}

static fr_status add_gpu(nccl_file *file, const fr_xml_node *pci,
                         const fr_xml_node *bridge, double above_Bps,
                         fr_err *err)
{
    double own_Bps;
    FR_TRY(pcie_Bps(pci, &own_Bps, err));
    if (file->n_gpus == MAX_GPUS)
        return fr_xml_fail(pci, err, "more than %d GPUs in one node", MAX_GPUS);
    const fr_xml_node *child = fr_xml_first_named(pci, "gpu");
    file->has_gpu_elements |= child != NULL;
    file->gpus[file->n_gpus++] =
        (gpu){pci, child, bridge, slower(own_Bps, above_Bps), above_Bps};
    return FR_OK;
}

static fr_status add_nets(nccl_file *file, const fr_xml_node *nic,
                          const fr_xml_node *pci, double slot_Bps, fr_err *err)
{
    fr_xml_each (at, nic, "net") {
        if (fr_xml_find(at, "dev") == NULL)
            continue; /* NCCL did not use it */
        if (file->n_nets == MAX_NICS)
            return fr_xml_fail(at, err, "more than %d NICs", MAX_NICS);
        file->nets[file->n_nets++] = (net){at, pci, slot_Bps};
    }
    return FR_OK;
}

static fr_status add_nic(nccl_file *file, const fr_xml_node *pci,
                         double above_Bps, fr_err *err)
{
    double own_Bps;
    FR_TRY(pcie_Bps(pci, &own_Bps, err));
    if (file->n_nic_pcis == MAX_NICS)
        return fr_xml_fail(pci, err, "more than %d NICs", MAX_NICS);
    file->nic_pcis[file->n_nic_pcis++] = pci;
    own_Bps = slower(own_Bps, above_Bps);
    file->nic_pcie_Bps = slower(file->nic_pcie_Bps, own_Bps);
    fr_xml_each (nic, pci, "nic")
        FR_TRY(add_nets(file, nic, pci, own_Bps, err));
    return FR_OK;
}

static fr_status read_pcis(nccl_file *file, const fr_xml_node *parent,
                           double above_Bps, int depth, fr_err *err)
{
    bool is_bridge = fr_xml_is(parent, "pci");
    if (depth > MAX_DEPTH)
        return fr_xml_fail(parent, err, "more than %d bridges in a row",
                           MAX_DEPTH);
    fr_xml_each (pci, parent, "pci") {
        const char *id;
        double own_Bps;
        FR_TRY(fr_xml_get_string(pci, "busid", &id, err));
        if (is_class(pci, "0x03") || fr_xml_first_named(pci, "gpu") != NULL) {
            FR_TRY(
                add_gpu(file, pci, is_bridge ? parent : NULL, above_Bps, err));
        } else if (is_class(pci, "0x02") ||
                   fr_xml_first_named(pci, "nic") != NULL) {
            FR_TRY(add_nic(file, pci, above_Bps, err));
        } else {
            FR_TRY(pcie_Bps(pci, &own_Bps, err));
            file->n_unclassed += fr_xml_find(pci, "class") == NULL &&
                                 fr_xml_first_named(pci, "pci") == NULL;
            FR_TRY(read_pcis(file, pci, slower(own_Bps, above_Bps), depth + 1,
                             err));
        }
    }
    fr_xml_each (nic, parent, "nic")
        FR_TRY(add_nets(file, nic, NULL, 0.0, err)); /* a virtual one */
    return FR_OK;
}

/* ---- GPUs --------------------------------------------------------------- */

/* In a dump only GPUs with a rank took part. */
static void drop_idle_gpus(nccl_file *file)
{
    int32_t n = 0, n_ranked = 0;
    for (int32_t i = 0; i < file->n_gpus; i++)
        n_ranked +=
            file->gpus[i].gpu != NULL && fr_xml_find(file->gpus[i].gpu, "rank");
    for (int32_t i = 0; i < file->n_gpus; i++) {
        const fr_xml_node *at = file->gpus[i].gpu;
        if (at != NULL && (n_ranked == 0 || fr_xml_find(at, "rank") != NULL))
            file->gpus[n++] = file->gpus[i];
    }
    if (n < file->n_gpus)
        fr_import_note(file->in, "%d of %d GPUs have no rank and are left out",
                       file->n_gpus - n, file->n_gpus);
    file->n_gpus = n;
}

static fr_status find_model(nccl_file *file, fr_import_node *node, fr_err *err)
{
    for (int32_t i = 0; i < file->n_gpus; i++) {
        const fr_xml_node *pci = file->gpus[i].pci;
        uint32_t vendor = hex(pci, "vendor"), device = hex(pci, "device");
        const fr_catalog_device *found =
            fr_catalog_device_find_pci(vendor, device);
        if (i > 0 && found != node->device)
            return fr_xml_fail(pci, err,
                               "GPUs of different models in one node; write "
                               "two node types by hand");
        node->device = found;
        if (found == NULL && file->in->options->gpu == NULL && vendor != 0)
            return fr_xml_fail(pci, err,
                               "GPU 0x%04x:0x%04x is not in the catalogue; "
                               "give --gpu NAME",
                               vendor, device);
    }
    node->line = fr_xml_line(file->gpus[0].pci);
    return FR_OK;
}

static int32_t gpu_of_bus(const nccl_file *file, const char *bus)
{
    for (int32_t i = 0; i < file->n_gpus; i++)
        if (fr_text_equal(fr_xml_find(file->gpus[i].pci, "busid"), bus))
            return i;
    return -1;
}

typedef struct link_count {
    int32_t to_switch[MAX_GPUS];
    int32_t between[MAX_GPUS * MAX_GPUS];
    int32_t n_lost; /* whose other end is not in the file */
    bool has_any;
} link_count;

static fr_status count_link(const nccl_file *file, int32_t i,
                            const fr_xml_node *link, link_count *counts,
                            fr_err *err)
{
    const char *target;
    int64_t n;
    FR_TRY(fr_xml_get_string(link, "target", &target, err));
    FR_TRY(fr_xml_get_i64(link, "count", &n, err));
    if (n < 0 || n > 1024)
        return fr_xml_fail(link, err, "count is %lld; give 0 to 1024",
                           (long long)n);
    const char *class = fr_xml_find(link, "tclass");
    bool is_switch = (class != NULL && fr_text_starts(class, "0x068000")) ||
                     fr_text_starts(target, "fffffff:ffff:ff");
    int32_t j = gpu_of_bus(file, target);
    counts->has_any = true;
    if (is_switch)
        counts->to_switch[i] += (int32_t)n;
    else if (j < 0 || j == i)
        counts->n_lost += (int32_t)n;
    else
        counts->between[i * file->n_gpus + j] += (int32_t)n;
    return FR_OK;
}

static fr_status read_nvlinks(const nccl_file *file, fr_import_node *node,
                              fr_err *err)
{
    link_count *counts = calloc(1, sizeof *counts);
    fr_status status = counts != NULL ? FR_OK : fr_fail_no_memory(err);
    for (int32_t i = 0; i < file->n_gpus && status == FR_OK; i++)
        for (const fr_xml_node *at =
                 fr_xml_first_named(file->gpus[i].gpu, "nvlink");
             at && status == FR_OK; at = fr_xml_next_named(at, "nvlink"))
            status = count_link(file, i, at, counts, err);
    const fr_catalog_device *device = node->device;
    int32_t least = INT32_MAX;
    for (int32_t i = 0; i < file->n_gpus && status == FR_OK; i++)
        least = counts->to_switch[i] < least ? counts->to_switch[i] : least;
    if (status == FR_OK && counts->n_lost > 0)
        fr_import_note(file->in,
                       "%d NVLinks end at nothing in the file and are left out",
                       counts->n_lost);
    if (status == FR_OK && least > 0 && device->n_links > 0) {
        node->has_fabric = true;
        node->intra_kind = FR_INTRA_NVSWITCH;
        node->link_Bps = least * device->link_Bps / device->n_links;
        node->pair_Bps = node->link_Bps;
    } else if (status == FR_OK) {
        fr_import_nvlinks(file->in, counts->between, node);
    }
    free(counts);
    return status;
}

/* Bridges that GPUs hang on directly, and the slowest way up from one. */
static void count_switches(const nccl_file *file, fr_import_node *node)
{
    node->host_Bps = 0.0;
    for (int32_t i = 0; i < file->n_gpus; i++) {
        const gpu *at = &file->gpus[i];
        bool is_new = at->bridge != NULL;
        for (int32_t k = 0; k < i && is_new; k++)
            is_new = file->gpus[k].bridge != at->bridge;
        node->n_switches += is_new;
        node->uplink_Bps = slower(node->uplink_Bps, at->uplink_Bps);
        node->host_Bps = slower(node->host_Bps, at->pcie_Bps);
    }
}

/* ---- NICs --------------------------------------------------------------- */

static fr_nic_kind kind_of_pci(const fr_xml_node *pci)
{
    if (pci == NULL)
        return FR_NIC_UNKNOWN;
    if (hex(pci, "vendor") == 0x1d0f)
        return FR_NIC_EFA;
    return is_class(pci, "0x0207")   ? FR_NIC_INFINIBAND
           : is_class(pci, "0x0200") ? FR_NIC_ETHERNET
                                     : FR_NIC_UNKNOWN;
}

/* Is it an interface of sockets, not a device of verbs?  Of its transports NCCL
 * gives 65536 connections to sockets alone (src/transport/net_socket.cc,
 * maxComms; net_ib/init.cc takes the device's queue pairs). */
static bool is_socket(const fr_xml_node *at)
{
    static const char *const prefixes[] = {"eth", "en", "em", "bond", "br"};
    const char *name = fr_xml_find(at, "name");
    if (fr_text_equal(fr_xml_find(at, "maxconn"), "65536"))
        return true;
    for (size_t i = 0; name != NULL && i < FR_LENGTH(prefixes); i++)
        if (fr_text_starts(name, prefixes[i]))
            return true;
    return false;
}

/* Verbs on Ethernet are RoCE. */
static fr_nic_kind kind_of_net(const net *at)
{
    const fr_nic_kind kind = kind_of_pci(at->pci);
    if (is_socket(at->net))
        return FR_NIC_ETHERNET;
    return kind == FR_NIC_ETHERNET || kind == FR_NIC_UNKNOWN ? FR_NIC_ROCE
                                                             : kind;
}

/* Functions of one PCI device: "0000:11:00.0" and "0000:11:00.1". */
static bool is_same_slot(const fr_xml_node *a, const fr_xml_node *b)
{
    const char *id = a != NULL ? fr_xml_find(a, "busid") : NULL;
    const char *other = b != NULL ? fr_xml_find(b, "busid") : NULL;
    if (id == NULL || other == NULL)
        return false;
    const size_t n = strcspn(id, ".");
    return n == strcspn(other, ".") && strncmp(id, other, n) == 0;
}

/* The rate of each of `n` ports in a slot: what NCCL rates it at (12 of 15.75
 * GB/s), where they are faster together than its raw rate. */
static double share_of_slot(double port_Bps, double slot_Bps, int32_t n)
{
    const double raw_Bps = slot_Bps * (15.753846 / 12.0);
    return slot_Bps > 0.0 && n * port_Bps > raw_Bps ? slot_Bps / n : port_Bps;
}

static fr_status read_rate(const fr_xml_node *at, double *out_Bps,
                           double *out_latency_s, fr_err *err)
{
    int64_t speed_Mbps = 0;
    double latency_us = 0.0;
    FR_TRY(fr_xml_maybe_i64(at, "speed", &speed_Mbps, err));
    FR_TRY(fr_xml_maybe_double(at, "latency", &latency_us, err));
    if (speed_Mbps > 100000000 || !(latency_us >= 0.0 && latency_us < 1e9))
        return fr_xml_fail(at, err, "speed %lld Mb/s, latency %g us",
                           (long long)speed_Mbps, latency_us);
    if (speed_Mbps <= 0)
        speed_Mbps = 10000; /* as NCCL takes it */
    *out_Bps = (double)speed_Mbps * 1e6 / 8.0;
    *out_latency_s = latency_us / 1e6;
    return FR_OK;
}

/* Ports of a slot share it; one rate for all is the slowest share. */
static fr_status share_slots(const nccl_file *file, fr_import_node *node,
                             fr_err *err)
{
    double least_Bps = node->nic_Bps;
    for (int32_t i = 0; i < file->n_nets; i++) {
        double rate_Bps, latency_s;
        int32_t n_ports = 0;
        FR_TRY(read_rate(file->nets[i].net, &rate_Bps, &latency_s, err));
        if (rate_Bps < node->nic_Bps)
            continue;
        for (int32_t k = 0; k < file->n_nets; k++) {
            double other_Bps;
            FR_TRY(read_rate(file->nets[k].net, &other_Bps, &latency_s, err));
            n_ports +=
                k == i || (other_Bps == rate_Bps &&
                           is_same_slot(file->nets[k].pci, file->nets[i].pci));
        }
        least_Bps =
            slower(least_Bps,
                   share_of_slot(rate_Bps, file->nets[i].slot_Bps, n_ports));
    }
    if (least_Bps < node->nic_Bps)
        fr_import_note(file->in,
                       "ports of %g Gb/s have %g Gb/s each of their PCIe slot",
                       node->nic_Bps * 8e-9, least_Bps * 8e-9);
    node->nic_Bps = least_Bps;
    return FR_OK;
}

/* The fastest ports count; slower ones are for other things. */
static fr_status read_nets(const nccl_file *file, fr_import_node *node,
                           fr_err *err)
{
    for (int32_t i = 0; i < file->n_nets; i++) {
        double rate_Bps, latency_s;
        FR_TRY(read_rate(file->nets[i].net, &rate_Bps, &latency_s, err));
        if (rate_Bps > node->nic_Bps) {
            node->nic_Bps = rate_Bps;
            node->n_nics = 0;
            node->nic_latency_s = latency_s;
            node->nic_kind = kind_of_net(&file->nets[i]);
        }
        node->n_nics += rate_Bps == node->nic_Bps;
    }
    if (node->n_nics < file->n_nets)
        fr_import_note(file->in, "%d slower NICs are left out",
                       file->n_nets - node->n_nics);
    return share_slots(file, node, err);
}

/* The most functions that one slot of a skeleton has. */
static int32_t functions_of_slot(const nccl_file *file)
{
    int32_t most = 1;
    for (int32_t i = 0; i < file->n_nic_pcis; i++) {
        int32_t n = 1;
        for (int32_t k = 0; k < i; k++)
            n += is_same_slot(file->nic_pcis[k], file->nic_pcis[i]);
        most = n > most ? n : most;
    }
    return most;
}

static fr_status read_nics(const nccl_file *file, fr_import_node *node,
                           fr_err *err)
{
    const fr_xml_node *first = file->n_nic_pcis > 0 ? file->nic_pcis[0] : NULL;
    const int32_t n_functions = functions_of_slot(file);
    if (file->n_nets > 0)
        return read_nets(file, node, err);
    node->n_nics = file->n_nic_pcis;
    node->nic_kind = kind_of_pci(first);
    node->nic_pcie_Bps = file->nic_pcie_Bps / n_functions;
    if (first != NULL)
        node->nic_rated_Bps = share_of_slot(
            fr_import_nic_Bps(hex(first, "vendor"), hex(first, "device")),
            file->nic_pcie_Bps, n_functions);
    if (file->n_nic_pcis > 0 && !file->has_no_classes)
        fr_import_note(file->in,
                       "no <net> elements: %d PCI functions of class "
                       "02 are the NICs",
                       file->n_nic_pcis);
    return FR_OK;
}

/* ---- the file ----------------------------------------------------------- */

/* Functions without a class, as in one cloud's file: the largest power of two
 * of them are the GPUs, which come first. */
static fr_status guess_unclassed(nccl_file *file, const fr_xml_node *root,
                                 fr_err *err)
{
    int32_t n_gpus = 1, n_seen = 0;
    if (file->n_unclassed == 0 || file->n_unclassed > MAX_GPUS)
        return fr_xml_fail(root, err,
                           "no GPU: no <pci> of class 0x03 and no <gpu>");
    while (n_gpus * 2 <= file->n_unclassed)
        n_gpus *= 2;
    fr_xml_each (cpu, root, "cpu")
        for (const fr_xml_node *pci = fr_xml_first_named(cpu, "pci");
             pci != NULL; pci = fr_xml_next_named(pci, "pci"), n_seen++)
            if (n_seen < n_gpus)
                FR_TRY(add_gpu(file, pci, NULL, 0.0, err));
            else
                FR_TRY(add_nic(file, pci, 0.0, err));
    if (file->n_gpus != n_gpus)
        return fr_xml_fail(root, err,
                           "no GPU: functions without a class "
                           "behind bridges");
    file->has_no_classes = true;
    fr_import_note(file->in,
                   "no PCI function has a class: the first %d of %d are taken "
                   "as GPUs, the others as NICs",
                   n_gpus, n_seen);
    return FR_OK;
}

static fr_status read_system(nccl_file *file, const fr_xml_node *root,
                             fr_import *out, fr_err *err)
{
    fr_import_node node = {0};
    int64_t version;
    if (!fr_xml_is(root, "system"))
        return fr_xml_fail(root, err, "the root is <%s>, not <system>",
                           fr_xml_name(root));
    FR_TRY(fr_xml_get_i64(root, "version", &version, err));
    if (version != 1)
        return fr_xml_fail(root, err, "version %lld; NCCL writes 1",
                           (long long)version);
    for (const fr_xml_node *cpu = fr_xml_first_named(root, "cpu"); cpu != NULL;
         cpu = fr_xml_next_named(cpu, "cpu"), file->n_cpus++)
        FR_TRY(read_pcis(file, cpu, 0.0, 0, err));
    if (file->n_gpus == 0)
        FR_TRY(guess_unclassed(file, root, err));
    if (file->has_gpu_elements)
        drop_idle_gpus(file);
    node.n_gpus = file->n_gpus;
    node.n_sockets = file->n_cpus;
    FR_TRY(find_model(file, &node, err));
    FR_TRY(fr_import_choose_gpu(file->in, &node, err));
    if (file->has_gpu_elements)
        FR_TRY(read_nvlinks(file, &node, err));
    else if (!file->has_no_classes)
        fr_import_note(file->in,
                       "no <gpu> elements: %d PCI functions of class 03 are "
                       "the GPUs, %s",
                       node.n_gpus, node.device->summary);
    count_switches(file, &node);
    FR_TRY(read_nics(file, &node, err));
    if (file->n_cpus > 1)
        fr_import_note(file->in, "%d NUMA domains count as sockets",
                       file->n_cpus);
    return fr_import_finish(file->in, &node, &out->cluster, err);
}

static fr_status read_nccl(const fr_import_text *in, fr_import *out,
                           fr_err *err)
{
    fr_xml *xml;
    nccl_file *file = calloc(1, sizeof *file);
    if (file == NULL)
        return fr_fail_no_memory(err);
    file->in = in;
    fr_status status = fr_xml_parse(in->name, in->text, in->n, &xml, err);
    if (status == FR_OK) {
        status = read_system(file, fr_xml_root(xml), out, err);
        fr_xml_destroy(xml);
    }
    free(file);
    return status;
}

const fr_importer fr_import_nccl = {
    .name = "nccl", .marks = {"<system"}, .read = read_nccl};

/* ---- graphs ------------------------------------------------------------- */

/* Rings and trees that NCCL chose: no links to read. */
static fr_status read_graphs(const fr_import_text *in, fr_import *out,
                             fr_err *err)
{
    fr_xml *xml;
    (void)out;
    FR_TRY(fr_xml_parse(in->name, in->text, in->n, &xml, err));
    const fr_xml_node *root = fr_xml_root(xml), *graph;
    size_t n_graphs = 0, n_gpus = 0;
    for (graph = fr_xml_first_named(root, "graph"); graph != NULL;
         graph = fr_xml_next_named(graph, "graph"))
        n_graphs++;
    graph = fr_xml_first_named(root, "graph");
    const fr_xml_node *channel =
        graph ? fr_xml_first_named(graph, "channel") : NULL;
    for (const fr_xml_node *at =
             channel != NULL ? fr_xml_first_named(channel, "gpu") : NULL;
         at; at = fr_xml_next_named(at, "gpu"))
        n_gpus++;
    fr_status status = fr_xml_fail(
        root, err,
        "a graph file of NCCL (%zu graphs over %zu GPUs): rings and trees that "
        "it chose, not the machine; import the topology file "
        "(NCCL_TOPO_DUMP_FILE)",
        n_graphs, n_gpus);
    fr_xml_destroy(xml);
    return status;
}

const fr_importer fr_import_nccl_graph = {
    .name = "nccl-graph", .marks = {"<graphs"}, .read = read_graphs};
