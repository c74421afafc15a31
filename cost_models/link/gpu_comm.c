/* gpu_comm.c: see gpu_comm.h. */
#include "cost_models/link/gpu_comm.h"

#include "cost_models/link/fabric_links.h"
#include "cost_models/link/parameter_server.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fr_gpu_comm_model {
    const fr_cluster *cluster;
    const fr_comm_fits *fits; /* NULL: nothing was measured */
    fr_gpu_fabric *of_type;   /* [n_node_types] */
    fr_gpu_fabric worst;      /* of all that have nodes */
    double cores;             /* measured; 0: not */
};

/* Below it latencies and protocols decide, above the links. */
static const double large_bytes = 16e6;

/*
 * Standard errors: what test_nccl_model.c leaves on links that
 * were measured (5 and 16 % on average), twice that on other ones; the network
 * between was measured on one kind.
 */
static const double known_err[2] = {0.07, 0.20};
static const double other_err[2] = {0.15, 0.30};
static const double net_err = 0.08;

static bool is_used(const fr_cluster *cluster, size_t i_node_type)
{
    for (size_t i = 0; i < cluster->n_groups; i++)
        if (cluster->groups[i].i_node_type == (int32_t)i_node_type)
            return true;
    return false;
}

fr_status fr_gpu_comm_create(const fr_cluster *cluster,
                             const fr_comm_fits *fits, fr_gpu_comm_model **out,
                             fr_err *err)
{
    fr_gpu_comm_model *comm = calloc(1, sizeof *comm);
    bool is_first = true;

    if (comm == NULL)
        return fr_fail_no_memory(err);
    comm->of_type = calloc(cluster->n_node_types + 1, sizeof *comm->of_type);
    if (comm->of_type == NULL) {
        free(comm);
        return fr_fail_no_memory(err);
    }
    comm->cluster = cluster;
    comm->fits = fits;
    for (size_t i = 0; i < cluster->n_node_types; i++) {
        comm->of_type[i] = fr_gpu_fabric_of(cluster, i);
        if (!is_used(cluster, i))
            continue;
        comm->worst =
            is_first ? comm->of_type[i]
                     : fr_gpu_fabric_worse(&comm->worst, &comm->of_type[i]);
        is_first = false;
    }
    *out = comm;
    return FR_OK;
}

void fr_gpu_comm_set_cores(fr_gpu_comm_model *comm, double cores)
{
    comm->cores = cores;
}

void fr_gpu_comm_destroy(fr_gpu_comm_model *comm)
{
    if (comm == NULL)
        return;
    free(comm->of_type);
    free(comm);
}

static fr_gpu_fabric fabric_for(const fr_gpu_comm_model *comm,
                                uint32_t node_types)
{
    fr_gpu_fabric fabric = comm->worst;
    bool is_first = true;

    for (size_t i = 0; i < comm->cluster->n_node_types && i < 32; i++) {
        if ((node_types >> i & 1u) == 0)
            continue;
        fabric = is_first ? comm->of_type[i]
                          : fr_gpu_fabric_worse(&fabric, &comm->of_type[i]);
        is_first = false;
    }
    return fabric;
}

static void judge(const fr_gpu_fabric *fabric, const fr_comm_scope *scope,
                  double n_bytes, fr_cost *out)
{
    int is_small = n_bytes < large_bytes;
    bool is_net = scope->n_nodes > 1;

    out->rel_err = fabric->is_known ? known_err[is_small] : other_err[is_small];
    if (is_net)
        out->rel_err = hypot(out->rel_err, net_err);
    if (!fabric->is_known)
        out->source = fabric->kind == FR_INTRA_NVLINK ? FR_COST_EXTRAPOLATED
                                                      : FR_COST_DATASHEET;
    else
        out->source = is_net && !fabric->is_known_net ? FR_COST_EXTRAPOLATED
                                                      : FR_COST_FITTED;
}

/* A measured curve of this very group: its time instead of the model's.
 * Kernels are asynchronous, however a file marks them. */
static void ask_measured(const fr_gpu_comm_model *comm, const fr_instr *instr,
                         const fr_comm_scope *scope, fr_cost *out)
{
    bool is_given = (instr->flags & FR_INSTR_GIVEN) != 0;
    fr_comm_query query = {
        .op = (fr_op)instr->op,
        .algorithm = is_given ? (fr_collective_kind)instr->algorithm
                              : FR_COLLECTIVE_AUTO,
        .is_net = scope->n_nodes > 1,
        .n_group = scope->n_group,
        .n_nodes = scope->n_nodes,
        .n_bytes = fr_instr_payload_bytes(instr),
        .element_bytes = fr_dtype_bytes((fr_dtype)instr->dtype)};

    /* Protocols that were told to NCCL were not measured. */
    if (instr->protocol != FR_PROTOCOL_AUTO)
        return;
    for (int i = 0; comm->fits != NULL && i < 2; i++) {
        fr_comm_answer answer;
        query.is_async = i == 0;
        if (!fr_comm_fits_ask(comm->fits, &query, &answer) ||
            !(answer.is_measured || answer.is_inside))
            continue;
        out->latency_s = fmin(answer.latency_s, answer.seconds);
        out->work_s = answer.seconds - out->latency_s;
        out->rel_err = answer.rel_err;
        out->source = answer.is_measured ? FR_COST_MEASURED : FR_COST_FITTED;
        return;
    }
}

/* Parameter servers, on the slowest of the group's kinds of node. */
static fr_status ask_servers(const fr_gpu_comm_model *comm,
                             const fr_instr *instr, const fr_comm_scope *scope,
                             fr_cost *out, fr_err *err)
{
    const fr_server_ask ask = fr_server_ask_of(instr);
    fr_cost cost = {0};

    for (size_t i = 0; i < comm->cluster->n_node_types; i++) {
        bool is_in = scope->node_types == 0
                         ? is_used(comm->cluster, i)
                         : i < 32 && (scope->node_types >> i & 1u) != 0;
        fr_group_links links = fr_group_links_of(&comm->of_type[i], scope);
        fr_nccl_time time;
        if (!is_in)
            continue;
        FR_TRY(fr_server_time_of(&comm->cluster->node_types[i], &links, &ask,
                                 &time, err));
        if (time.work_s <= cost.work_s)
            continue;
        /* Copies are the copy engines' work. */
        cost = (fr_cost){.latency_s = time.latency_s,
                         .work_s = time.work_s,
                         .link_bytes = time.net_bytes,
                         .port_bytes = time.port_bytes,
                         .rel_err = other_err[0],
                         .source = FR_COST_DATASHEET};
    }
    *out = cost;
    return FR_OK;
}

/* Returns the share of the device's multiprocessors: each channel takes one. */
static double cores_of(const fr_gpu_comm_model *comm, const fr_instr *instr,
                       const fr_group_links *links, const fr_gpu_fabric *fabric)
{
    bool is_told = instr->n_channels > 0;

    if (comm->cores > 0.0 && !is_told)
        return comm->cores;
    return fmin(1.0, (is_told ? (double)instr->n_channels : links->n_channels) /
                         fabric->n_processors);
}

static bool can_be_told(const fr_gpu_comm_model *comm, int kind)
{
    const fr_collective *entry = fr_collectives[kind];

    if (entry == NULL || entry->is_by_servers)
        return true;
    if (entry->nccl == FR_NCCL_NVLS)
        return comm->worst.has_switch_sum;
    if (entry->nccl == FR_NCCL_SHARP)
        return comm->worst.has_net_sum;
    return entry->nccl != FR_NCCL_NO_ALGORITHM && !entry->is_internal;
}

static const char *reason_against(fr_collective_kind kind)
{
    switch (fr_collective_nccl(kind)) {
    case FR_NCCL_NVLS:
        return "no NVLink switch between them adds";
    case FR_NCCL_SHARP:
        return "its <fabric> does not say sharp=\"yes\"";
    default:
        return "NCCL does not do it";
    }
}

/* For groups that exchange by `op`, of the kinds that do so. */
static fr_status check_for(const fr_gpu_comm_model *comm,
                           fr_collective_kind kind, fr_op op, fr_err *err)
{
    char choices[160] = "auto";
    size_t n = strlen(choices);

    if (can_be_told(comm, (int)kind))
        return FR_OK;
    for (int i = 0; i < fr_n_collectives; i++)
        if (fr_collectives[i] != NULL && can_be_told(comm, i) &&
            fr_collectives[i]->fits(op, 4) && n < sizeof choices)
            n += (size_t)snprintf(choices + n, sizeof choices - n, ", %s",
                                  fr_collectives[i]->name);
    return fr_fail(err, FR_INPUT,
                   "the GPUs of '%s' have no %s: %s; choose collective %s",
                   comm->cluster->name, fr_name_of(&fr_collective_names, kind),
                   reason_against(kind), choices);
}

fr_status fr_gpu_comm_check(const fr_gpu_comm_model *comm,
                            fr_collective_kind kind, fr_err *err)
{
    return check_for(comm, kind, FR_OP_ALL_REDUCE, err);
}

static fr_status choose(const fr_gpu_comm_model *comm,
                        const fr_gpu_fabric *fabric,
                        const fr_group_links *links, const fr_instr *instr,
                        fr_nccl_time *out, fr_err *err)
{
    bool is_given = (instr->flags & FR_INSTR_GIVEN) != 0;
    fr_nccl_ask ask = {.op = (fr_op)instr->op,
                       .wanted = is_given ? (fr_collective_kind)instr->algorithm
                                          : FR_COLLECTIVE_AUTO,
                       .protocol = (fr_protocol)instr->protocol,
                       .n_bytes = (double)fr_instr_payload_bytes(instr),
                       .n_copies =
                           instr->op == FR_OP_ALL_TO_ALL ? instr->scalar : 0.0};

    FR_TRY(check_for(comm, ask.wanted, ask.op, err));
    if (fr_nccl_time_of(fabric, links, &ask, out))
        return FR_OK;
    return fr_fail(err, FR_INPUT,
                   "cluster '%s': %lld ranks on %lld nodes want to talk, "
                   "but the nodes have no network; give them a <nic>",
                   comm->cluster->name, (long long)links->n,
                   (long long)links->n_nodes);
}

fr_status fr_gpu_comm_choice(const fr_gpu_comm_model *comm,
                             const fr_instr *instr, const fr_comm_scope *scope,
                             fr_nccl_time *out, fr_err *err)
{
    fr_gpu_fabric fabric = fabric_for(comm, scope->node_types);
    fr_group_links links = fr_group_links_of(&fabric, scope);

    return choose(comm, &fabric, &links, instr, out, err);
}

fr_status fr_gpu_comm_cost(const fr_gpu_comm_model *comm, const fr_instr *instr,
                           const fr_comm_scope *scope, fr_cost *out,
                           fr_err *err)
{
    fr_gpu_fabric fabric = fabric_for(comm, scope->node_types);
    fr_group_links links = fr_group_links_of(&fabric, scope);
    fr_nccl_time time;

    if (fr_is_by_server(instr))
        return ask_servers(comm, instr, scope, out, err);
    FR_TRY(choose(comm, &fabric, &links, instr, &time, err));
    fr_cost cost = {
        .latency_s = time.latency_s,
        .work_s = time.work_s,
        .cores = cores_of(comm, instr, &links, &fabric),
        .link_bytes = time.net_bytes,
        .port_bytes = time.port_bytes,
    };
    judge(&fabric, scope, (double)fr_instr_payload_bytes(instr), &cost);
    ask_measured(comm, instr, scope, &cost);
    *out = cost;
    return FR_OK;
}
