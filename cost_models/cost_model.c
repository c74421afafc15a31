/*
 * cost_model.c: which source answers, and what a cost takes of the resources.
 */
#include "cost_models/base/cost.h"
#include "cost_models/compute/compute_fit.h"
#include "cost_models/compute/compute_key.h"
#include "cost_models/compute/datasheet.h"
#include "cost_models/gpu/gpu_price.h"
#include "cost_models/link/comm_fit.h"
#include "cost_models/link/gpu_comm.h"
#include "cost_models/link/parameter_server.h"
#include "cost_models/stack/stack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct indexed_point {
    uint64_t hash;
    const fr_compute_point *point;
} indexed_point;

/* One fit for what shares op, dtype, variant, flags, threads, busy ranks. */
typedef struct fit_group {
    const fr_compute_point *like;
    fr_compute_fit *fit;
} fit_group;

struct fr_cost_model {
    const fr_profile *profile; /* NULL: none */
    const fr_cluster *cluster;
    fr_device_rates rates;
    double node_memory_Bps; /* all channels of a node */
    fr_gpu_prices *gpus;
    fr_device_rates *cpus; /* of each device type; GPUs: not filled */
    indexed_point *points; /* by hash, then n_threads, then n_busy */
    size_t n_points;
    fit_group *groups;
    size_t n_groups;
    fr_comm_fits *comm;
    fr_stack *stack;             /* NULL: no step of it was measured */
    fr_gpu_comm_model *gpu_comm; /* of a cluster of GPUs, else NULL */
    int n_busy_max;              /* most ranks that were busy at once */
    fr_cost_scale scale;
};

const fr_cost_scale fr_cost_scale_none = {1.0, {1.0, 1.0}, {1.0, 1.0}};

const char *fr_cost_source_name(fr_cost_source source)
{
    static const char *const names[FR_COST_SOURCE_N] = {
        "measured", "fitted", "extrapolated", "datasheet"};

    return (unsigned)source < FR_COST_SOURCE_N ? names[source] : "?";
}

static int compare_points(const void *left, const void *right)
{
    const indexed_point *a = left, *b = right;

    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    if (a->point->n_threads != b->point->n_threads)
        return a->point->n_threads < b->point->n_threads ? -1 : 1;
    return (a->point->n_busy > b->point->n_busy) -
           (a->point->n_busy < b->point->n_busy);
}

static const fit_group *find_group(const fr_cost_model *model,
                                   const fr_compute_point *key)
{
    for (size_t i = 0; i < model->n_groups; i++)
        if (fr_compute_key_same_fit(model->groups[i].like, key))
            return &model->groups[i];
    return NULL;
}

static fr_status make_groups(fr_cost_model *model, fr_err *err)
{
    const fr_profile *profile = model->profile;
    const fr_compute_point **members =
        calloc(profile->n_compute + 1, sizeof *members);
    fr_status status = FR_OK;

    model->groups = calloc(profile->n_compute + 1, sizeof *model->groups);
    if (members == NULL || model->groups == NULL) {
        status = fr_fail_no_memory(err);
        goto out_members;
    }
    for (size_t i = 0; i < profile->n_compute; i++) {
        const fr_compute_point *like = &profile->compute[i];
        fit_group *group = &model->groups[model->n_groups];
        size_t n = 0;
        if (like->is_held_out || find_group(model, like) != NULL)
            continue;
        for (size_t k = i; k < profile->n_compute; k++)
            if (fr_compute_key_same_fit(like, &profile->compute[k]))
                members[n++] = &profile->compute[k];
        group->like = like;
        status = fr_compute_fit_create(members, n, &group->fit, err);
        if (status == FR_INPUT) { /* ops that this version does not know */
            status = FR_OK;
            continue;
        }
        if (status != FR_OK)
            goto out_members;
        model->n_groups++;
    }
out_members:
    free(members);
    return status;
}

static fr_status take_profile(fr_cost_model *model, fr_err *err)
{
    const fr_profile *profile = model->profile;

    FR_TRY_CALLOC(model->points, profile->n_compute + 1, err);
    if (fr_profile_is_gpu(profile)) /* its kernels: gpu_price.h */
        return fr_comm_fits_create(profile, &model->comm, err);
    for (size_t i = 0; i < profile->n_compute; i++) {
        const fr_compute_point *point = &profile->compute[i];
        if (point->n_busy > model->n_busy_max)
            model->n_busy_max = point->n_busy;
        if (point->is_held_out)
            continue;
        model->points[model->n_points].hash = fr_compute_key_hash(point);
        model->points[model->n_points++].point = point;
    }
    qsort(model->points, model->n_points, sizeof *model->points,
          compare_points);
    for (size_t i = 0; i < profile->n_rate; i++) {
        const fr_rate_point *rate = &profile->rate[i];
        if (strcmp(rate->name, "axpy") == 0)
            model->node_memory_Bps =
                fmax(model->node_memory_Bps, rate->rate * rate->n_busy);
    }
    FR_TRY(make_groups(model, err));
    return fr_comm_fits_create(profile, &model->comm, err);
}

/* Every device type of the cluster has a price list of its own. */
static fr_status take_devices(fr_cost_model *model, fr_err *err)
{
    const fr_cluster *cluster = model->cluster;
    size_t n = cluster->n_devices;

    FR_TRY_CALLOC(model->cpus, n > 0 ? n : 1, err);
    for (size_t i = 0; i < n; i++)
        if (cluster->devices[i].kind != FR_DEVICE_GPU)
            model->cpus[i] = fr_device_rates_of_type(&cluster->devices[i]);
    return fr_gpu_prices_create(model->profile, cluster, &model->gpus, err);
}

/* Kernels slowed down by communication beside them: the share of the device
 * that it takes. */
static double measured_cores(const fr_profile *profile)
{
    for (size_t i = 0; profile != NULL && i < profile->n_sharing; i++) {
        const fr_sharing_point *p = &profile->sharing[i];
        if (fr_profile_is_gpu(profile) &&
            strcmp(p->victim, "linear_fwd") == 0 &&
            strcmp(p->beside, "all_reduce") == 0 && p->slowdown > 1.0)
            return 1.0 - 1.0 / p->slowdown;
    }
    return 0.0;
}

fr_status fr_cost_model_create(const fr_profile *profile,
                               const fr_cluster *cluster, fr_cost_model **out,
                               fr_err *err)
{
    fr_cost_model *model = calloc(1, sizeof *model);
    fr_status status;

    if (model == NULL)
        return fr_fail_no_memory(err);
    model->profile = profile;
    model->cluster = cluster;
    model->rates = fr_device_rates_of(cluster, 0);
    model->n_busy_max = 1;
    model->scale = fr_cost_scale_none;
    status = take_devices(model, err);
    if (status == FR_OK && profile != NULL)
        status = take_profile(model, err);
    if (status == FR_OK && profile != NULL && profile->n_run > 0)
        status = fr_stack_create(fr_stack_prior_without(""), profile->run,
                                 profile->n_run, &model->stack, err);
    if (status == FR_OK && model->rates.is_gpu)
        status =
            fr_gpu_comm_create(cluster, model->comm, &model->gpu_comm, err);
    if (model->gpu_comm != NULL)
        fr_gpu_comm_set_cores(model->gpu_comm, measured_cores(profile));
    if (status != FR_OK) {
        fr_cost_model_destroy(model);
        return status;
    }
    if (model->node_memory_Bps <= 0.0)
        model->node_memory_Bps = model->rates.memory_Bps;
    *out = model;
    return FR_OK;
}

const fr_profile *fr_cost_profile(const fr_cost_model *model)
{
    return model->profile;
}

void fr_cost_model_destroy(fr_cost_model *model)
{
    if (model == NULL)
        return;
    for (size_t i = 0; i < model->n_groups; i++)
        fr_compute_fit_destroy(model->groups[i].fit);
    free(model->groups);
    free(model->points);
    fr_gpu_prices_destroy(model->gpus);
    free(model->cpus);
    fr_comm_fits_destroy(model->comm);
    fr_stack_destroy(model->stack);
    fr_gpu_comm_destroy(model->gpu_comm);
    free(model);
}

const fr_gpu_prices *fr_cost_gpu_prices(const fr_cost_model *model)
{
    return model->gpus;
}

const fr_stack *fr_cost_stack(const fr_cost_model *model)
{
    return model->stack;
}

const fr_gpu_comm_model *fr_cost_gpu_comm(const fr_cost_model *model)
{
    return model->gpu_comm;
}

void fr_cost_model_scale(fr_cost_model *model, const fr_cost_scale *scale)
{
    model->scale = *scale;
}

uint64_t fr_cost_baseline_bytes(const fr_cost_model *model, int64_t n_ranks)
{
    const fr_profile *profile = model->profile;

    if (profile == NULL || fr_profile_is_gpu(profile))
        return 0;
    if (n_ranks > 1 && profile->baseline_bytes > 0)
        return profile->baseline_bytes;
    return profile->baseline_alone_bytes;
}

double fr_cost_measured_flops(const fr_cost_model *model, int n_threads)
{
    if (model->profile == NULL)
        return 0;
    const fr_rate_point *rate =
        fr_profile_find_rate(model->profile, "sgemm", n_threads, 1);
    if (rate != NULL)
        return rate->rate;
    /* As many ranks of one thread beside each other. */
    rate = fr_profile_find_rate(model->profile, "sgemm", 1, n_threads);
    return rate != NULL ? rate->rate * n_threads : 0;
}

/* ---- compute ------------------------------------------------------------ */

static const fr_compute_point *find_exact(const fr_cost_model *model,
                                          const fr_compute_point *key)
{
    uint64_t hash = fr_compute_key_hash(key);
    size_t low = 0, high = model->n_points;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (model->points[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < model->n_points && model->points[low].hash == hash; low++) {
        const fr_compute_point *point = model->points[low].point;
        if (point->n_threads == key->n_threads &&
            point->n_busy == key->n_busy && fr_compute_key_equal(point, key))
            return point;
    }
    return NULL;
}

/* Seconds of the key with its n_threads and n_busy; false: nothing alike. */
static bool ask_profile(const fr_cost_model *model, const fr_compute_point *key,
                        fr_cost *out)
{
    const fr_compute_point *point = find_exact(model, key);
    const fit_group *group;
    bool is_inside;

    if (point != NULL) {
        out->work_s = point->sample.median_s;
        out->rel_err = point->sample.rel_err;
        out->source = FR_COST_MEASURED;
        return true;
    }
    group = find_group(model, key);
    if (group == NULL)
        return false;
    out->work_s = fr_compute_fit_at(group->fit, key, &is_inside, &out->rel_err);
    out->source = is_inside ? FR_COST_FITTED : FR_COST_EXTRAPOLATED;
    return true;
}

/* Another number of threads: work shared evenly, nothing known better. */
static bool ask_other_threads(const fr_cost_model *model,
                              const fr_compute_point *key, fr_cost *out)
{
    for (int n = key->n_threads * 2; n >= 1; n--) {
        fr_compute_point other = *key;
        other.n_threads = n;
        if (n == key->n_threads || !ask_profile(model, &other, out))
            continue;
        out->work_s *= (double)n / key->n_threads;
        out->rel_err = fmax(out->rel_err, 0.2);
        out->source = FR_COST_EXTRAPOLATED;
        return true;
    }
    return false;
}

/*
 * Share of the node's memory channels.  k ranks that run the same kernel at
 * once and take d times as long must find the link full: demand d / k each.
 * Where that shows no contention, the kernel's own traffic from DRAM is what
 * it takes, but never so much that k of them would collide.
 */
static double memory_share(const fr_cost_model *model,
                           const fr_compute_point *key, double solo_s)
{
    double share =
        fr_compute_key_memory_bytes(key) / solo_s / model->node_memory_Bps;

    for (int k = model->n_busy_max; k > 1; k--) {
        fr_compute_point alone = *key, busy = *key;
        fr_cost at_once = {0}, by_itself = {0};
        double dilation;
        busy.n_busy = k;
        alone.n_busy = 1;
        if (!ask_profile(model, &busy, &at_once) ||
            !ask_profile(model, &alone, &by_itself))
            continue;
        dilation = at_once.work_s / by_itself.work_s;
        if (dilation > 1.0)
            return fmin(dilation / k, 1.0);
        return fmin(share, 1.0 / k);
    }
    return fmin(share, 1.0);
}

static fr_status ask_device(const fr_cost_model *model, const fr_instr *instr,
                            int n_threads, int64_t node, fr_cost *out,
                            fr_err *err)
{
    int32_t i_device = fr_cluster_node_type(model->cluster, node)->i_device;
    const fr_device_rates *rates = &model->cpus[i_device];
    fr_cost cost = {.cores = (double)n_threads};

    if (model->cluster->devices[i_device].kind == FR_DEVICE_GPU)
        return fr_gpu_prices_ask(model->gpus, instr, node, out, err);
    cost.latency_s = rates->launch_s;
    cost.work_s = fr_device_compute_s(rates, instr, n_threads);
    cost.memory_frac = fmin(1.0, (double)fr_instr_moved_bytes(instr, 1) /
                                     cost.work_s / model->node_memory_Bps);
    cost.rel_err = 0.25;
    cost.source = FR_COST_DATASHEET;
    *out = cost;
    return FR_OK;
}

/* The same bytes in another time. */
static void scale_compute(const fr_cost_model *model, fr_cost *cost)
{
    cost->latency_s *= model->scale.compute;
    cost->work_s *= model->scale.compute;
    cost->memory_frac = fmin(cost->memory_frac / model->scale.compute, 1.0);
}

static void scale_transfer(const fr_cost_model *model, bool is_net,
                           fr_cost *cost)
{
    cost->latency_s *= model->scale.latency[is_net];
    cost->work_s *= model->scale.transfer[is_net];
    cost->memory_frac =
        fmin(cost->memory_frac / model->scale.transfer[is_net], 1.0);
}

static fr_status ask_compute(const fr_cost_model *model, const fr_instr *instr,
                             int n_threads, int64_t node, fr_cost *out,
                             fr_err *err)
{
    fr_cost cost = {.cores = (double)n_threads};
    fr_compute_point key;

    if (n_threads < 1)
        return fr_fail(err, FR_FAILURE, "a cost for %d threads", n_threads);
    if (model->n_points > 0) {
        fr_compute_key(instr, &model->profile->fingerprint, n_threads, &key);
        key.n_busy = 1;
        if (ask_profile(model, &key, &cost) ||
            ask_other_threads(model, &key, &cost)) {
            cost.latency_s = model->profile->instr_overhead_s;
            cost.memory_frac = memory_share(model, &key, cost.work_s);
            *out = cost;
            return FR_OK;
        }
    }
    return ask_device(model, instr, n_threads, node, out, err);
}

fr_status fr_cost_compute(const fr_cost_model *model, const fr_instr *instr,
                          int n_threads, int64_t node, fr_cost *out,
                          fr_err *err)
{
    FR_TRY(ask_compute(model, instr, n_threads, node, out, err));
    scale_compute(model, out);
    return FR_OK;
}

/* ---- communication ------------------------------------------------------ */

/*
 * Bytes through one member's link in each direction, of a payload of n bytes
 * in a group of g (Thakur, Rabenseifner, Gropp 2005: the lower bounds, which
 * ring, halving-doubling and direct reach; a tree's inner members carry all).
 */
static double link_bytes(const fr_instr *instr, int64_t n_group)
{
    double n = (double)fr_instr_payload_bytes(instr);
    double part = (double)(n_group - 1) / (double)n_group;

    switch ((fr_op)instr->op) {
    case FR_OP_ALL_REDUCE:
        return fr_collectives[instr->algorithm] != NULL &&
                       fr_collectives[instr->algorithm]->is_whole
                   ? 2.0 * n
                   : 2.0 * n * part;
    case FR_OP_REDUCE_SCATTER:
    case FR_OP_ALL_GATHER:
    case FR_OP_ALL_TO_ALL:
        return n * part;
    case FR_OP_BROADCAST:
    case FR_OP_SHIFT:
    case FR_OP_SEND:
    case FR_OP_RECV:
        return n;
    default:
        return 0.0;
    }
}

/* Bytes that a member reads and writes in memory: for an all-reduce the two
 * operands of each sum and its result, then the copies of the others' parts. */
static double memory_bytes(const fr_instr *instr, int64_t n_group)
{
    double n = (double)fr_instr_payload_bytes(instr);
    double part = 1.0 / (double)n_group;

    switch ((fr_op)instr->op) {
    case FR_OP_ALL_REDUCE:
        return n * (2.0 + part);
    case FR_OP_REDUCE_SCATTER:
        return n * (1.0 + part);
    default:
        return 2.0 * n;
    }
}

static void ask_datasheet(const fr_cost_model *model, const fr_instr *instr,
                          const fr_comm_scope *scope, const fr_servers *servers,
                          fr_cost *out)
{
    bool is_net = scope->n_nodes > 1;
    fr_link_cost link = fr_cluster_link_cost(model->cluster, is_net);
    uint64_t element = fr_dtype_bytes((fr_dtype)instr->dtype);
    uint64_t n_bytes = fr_instr_payload_bytes(instr);
    const fr_collective *algorithm = fr_collectives[instr->algorithm];
    double seconds;

    if (is_net && model->comm != NULL)
        (void)fr_comm_fits_link(model->comm, true, &link);
    if (algorithm == NULL || algorithm->idle_s == NULL)
        algorithm = fr_collectives[FR_COLLECTIVE_RING];
    if (instr->op == FR_OP_SEND || instr->op == FR_OP_RECV)
        seconds = link.latency_s + (double)n_bytes * link.s_per_byte;
    else if (instr->op == FR_OP_BARRIER)
        seconds = link.latency_s * ceil(log2((double)scope->n_group));
    else if (servers->n_servers > 0) {
        const fr_link_cost inside = fr_cluster_link_cost(model->cluster, false);
        seconds = fr_servers_idle_s(servers, (double)n_bytes, &inside, &link);
    } else
        seconds = algorithm->idle_s((fr_op)instr->op, scope->n_group,
                                    n_bytes / element, element, &link);
    out->latency_s = fmin(link.latency_s, seconds);
    out->work_s = seconds - out->latency_s;
    out->cores = 1.0;
    out->rel_err = 0.3;
    out->source = FR_COST_DATASHEET;
}

/* Does the payload come from memory?  As for the operands of a kernel. */
static bool is_cold(const fr_cost_model *model, const fr_instr *instr)
{
    fr_compute_point key;

    if (model->profile == NULL)
        return false;
    fr_compute_key(instr, &model->profile->fingerprint, 1, &key);
    return key.where[0] == FR_PROFILE_MEMORY;
}

static bool ask_measured(const fr_cost_model *model, const fr_instr *instr,
                         const fr_comm_scope *scope, const fr_servers *servers,
                         bool is_async, fr_cost *out)
{
    fr_comm_query query = {.servers = *servers,
                           .op = (fr_op)instr->op,
                           .algorithm = (fr_collective_kind)instr->algorithm,
                           .is_net = scope->n_nodes > 1,
                           .is_async = is_async,
                           .is_cold = is_cold(model, instr),
                           .n_group = scope->n_group,
                           .n_nodes = scope->n_nodes,
                           .n_bytes = fr_instr_payload_bytes(instr),
                           .element_bytes =
                               fr_dtype_bytes((fr_dtype)instr->dtype)};
    fr_comm_answer answer;

    if (model->comm == NULL || !fr_comm_fits_ask(model->comm, &query, &answer))
        return false;
    out->latency_s = answer.latency_s;
    out->work_s = answer.seconds - answer.latency_s;
    out->cores = answer.cpu_frac;
    out->rel_err = answer.rel_err;
    out->source = answer.is_measured ? FR_COST_MEASURED
                  : answer.is_inside ? FR_COST_FITTED
                                     : FR_COST_EXTRAPOLATED;
    return true;
}

fr_status fr_cost_communicate(const fr_cost_model *model, const fr_instr *instr,
                              const fr_comm_scope *scope, bool is_async,
                              fr_cost *out, fr_err *err)
{
    fr_cost cost = {0};
    fr_op_class op_class = fr_op_class_of((fr_op)instr->op);

    if (op_class != FR_OP_CLASS_COLLECTIVE && op_class != FR_OP_CLASS_P2P)
        return fr_fail(err, FR_FAILURE, "%s does not communicate",
                       fr_op_name((fr_op)instr->op));
    if (scope->n_group <= 1) {
        *out = cost;
        return FR_OK;
    }
    if (model->gpu_comm != NULL) {
        FR_TRY(fr_gpu_comm_cost(model->gpu_comm, instr, scope, &cost, err));
        scale_transfer(model, scope->n_nodes > 1, &cost);
        *out = cost;
        return FR_OK;
    }
    fr_servers servers;
    FR_TRY(fr_servers_of(instr, scope->n_group, scope->n_nodes, &servers, err));
    if (!ask_measured(model, instr, scope, &servers, is_async, &cost))
        ask_datasheet(model, instr, scope, &servers, &cost);
    if (scope->n_nodes > 1)
        cost.link_bytes = link_bytes(instr, scope->n_group);
    if (cost.work_s > 0.0)
        cost.memory_frac = fmin(
            1.0 / (double)(scope->ranks_on_node > 0 ? scope->ranks_on_node : 1),
            memory_bytes(instr, scope->n_group) / cost.work_s /
                model->node_memory_Bps);
    if (is_async && model->profile != NULL)
        cost.latency_s += 2.0 * model->profile->wake_s;
    scale_transfer(model, scope->n_nodes > 1, &cost);
    *out = cost;
    return FR_OK;
}
