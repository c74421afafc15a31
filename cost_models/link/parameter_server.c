/*
 * parameter_server.c: gradients through the hosts' memory or through devices.
 */
#include "cost_models/link/parameter_server.h"

#include "cost_models/compute/host_time.h"

#include <math.h>

/* Start of a copy over PCIe and its end seen by the host (cost_model.c has the
 * same for offloading). */
static const double copy_s = 10e-6;

bool fr_is_by_server(const fr_instr *instr)
{
    return instr->op == FR_OP_ALL_REDUCE &&
           fr_collective_is_by_servers((fr_collective_kind)instr->algorithm) &&
           (instr->flags & FR_INSTR_GIVEN) != 0;
}

fr_server_ask fr_server_ask_of(const fr_instr *instr)
{
    return (fr_server_ask){.place = (fr_server_place)instr->comm.server_place,
                           .n_servers = instr->comm.n_servers,
                           .n_bytes = (double)fr_instr_payload_bytes(instr)};
}

fr_status fr_servers_of(const fr_instr *instr, int64_t n_group, int64_t n_nodes,
                        fr_servers *out, fr_err *err)
{
    fr_servers servers = fr_servers_asked(instr, n_group, n_nodes);

    if (instr->op != FR_OP_ALL_REDUCE ||
        !fr_collective_is_by_servers((fr_collective_kind)instr->algorithm)) {
        *out = (fr_servers){0};
        return FR_OK;
    }
    FR_TRY(fr_servers_count(&servers, &servers.n_servers, err));
    *out = servers;
    return FR_OK;
}

/* Returns the rate of one of k members that copy to the host at once.  Ranks
 * fill the devices in order, those of one switch first. */
static double copy_rate(const fr_node_type *node, double k)
{
    double n_switches = fmax(1.0, (double)node->n_pcie_switches);
    double below = fmin(ceil(k), ceil((double)node->n_devices / n_switches));
    double Bps = node->host_link_Bps;

    if (node->n_pcie_switches > 0 && node->pcie_uplink_Bps > 0.0)
        Bps = fmin(Bps, node->pcie_uplink_Bps / below);
    return Bps;
}

static void through_hosts(const fr_node_type *node, const fr_group_links *links,
                          const fr_server_ask *ask, fr_nccl_time *out)
{
    double n_nodes = (double)links->n_nodes, k = links->per_node;
    double memory_Bps = fr_host_memory_Bps(node);
    double seconds = 2.0 * ask->n_bytes / copy_rate(node, k);
    bool is_apart = ask->place == FR_SERVER_WORKER && links->n_nodes > 1;
    /* A node sends its sum, or the gradients of each of its members. */
    double from_node = (is_apart ? k : 1.0) * ask->n_bytes;
    double n_servers = (double)ask->n_servers;

    if (!is_apart)
        seconds += (k + 1.0) * ask->n_bytes / memory_Bps;
    out->latency_s = 2.0 * copy_s;
    out->net_bytes = 0.0;
    if (n_nodes > 1.0) {
        double part = from_node / n_servers;
        double out_of_node = n_servers < n_nodes ? from_node : from_node - part;
        double most = fmax(out_of_node, (n_nodes - 1.0) * part);
        seconds += 2.0 * most / links->net_Bps +
                   (n_nodes * part + ask->n_bytes / n_servers) / memory_Bps;
        out->latency_s += 2.0 * (copy_s + node->nic_latency_s);
        out->net_bytes = 2.0 * most / k;
    }
    out->work_s = seconds;
    /* Copies to the host meet what goes between devices on PCIe alone. */
    out->port_bytes =
        node->intra_kind == FR_INTRA_PCIE ? 2.0 * ask->n_bytes : 0.0;
}

static void through_devices(const fr_node_type *node,
                            const fr_group_links *links,
                            const fr_server_ask *ask, fr_nccl_time *out)
{
    bool is_net = links->n_nodes > 1;
    double Bps = is_net ? links->net_Bps / links->per_node : links->pair_Bps;
    const fr_link_cost link = {.s_per_byte = 1.0 / Bps};

    out->work_s =
        fr_server_idle_s(links->n, ask->n_servers, ask->n_bytes, &link);
    out->latency_s = 2.0 * (copy_s + (is_net ? node->nic_latency_s : 0.0));
    out->port_bytes = out->work_s * Bps;
    out->net_bytes = is_net ? out->port_bytes : 0.0;
}

fr_status fr_server_time_of(const fr_node_type *node,
                            const fr_group_links *links,
                            const fr_server_ask *ask, fr_nccl_time *out,
                            fr_err *err)
{
    bool is_host = ask->place != FR_SERVER_DEVICE;
    const fr_servers servers = {ask->place, ask->n_servers, links->n,
                                links->n_nodes};
    fr_server_ask given = *ask;
    fr_nccl_time time = {.algorithm = "parameter server", .protocol = "copies"};

    FR_TRY(fr_servers_count(&servers, &given.n_servers, err));
    if (is_host && node->host_link_Bps <= 0.0)
        return fr_fail(err, FR_INFEASIBLE,
                       "%s: how fast its devices reach the host is not known; "
                       "give host-link, or place the servers on the devices",
                       node->id);
    if (links->n_nodes > 1 && links->net_Bps <= 0.0)
        return fr_fail(err, FR_INPUT,
                       "%s: parameter servers on several nodes need a network; "
                       "give them a <nic>",
                       node->id);
    if (is_host)
        through_hosts(node, links, &given, &time);
    else
        through_devices(node, links, &given, &time);
    *out = time;
    return FR_OK;
}
