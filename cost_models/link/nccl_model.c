/* nccl_model.c: see nccl_model.h. */
#include "cost_models/link/nccl_model.h"

#include "cost_models/link/nccl_constants.h"

#include <math.h>

/* The inputs of the time of every algorithm. */
typedef struct question {
    const fr_gpu_fabric *fabric;
    const fr_link_fit *fit;
    bool is_new; /* from Hopper on */
    const fr_group_links *links;
    fr_op op;
    fr_protocol only; /* of all protocols; AUTO: any */
    double bytes;
    double n_copies; /* see fr_nccl_ask */
    double n, n_nodes, k;
    fr_nccl_wire wire; /* inside a node */
} question;

typedef struct nccl_algorithm {
    const char *name;
    fr_nccl_algorithm kind;
    bool is_simple;    /* has that protocol alone */
    bool is_automatic; /* one of those that NCCL chooses from */
    bool (*fits)(const question *q);
    fr_nccl_time (*time)(const question *q);
} nccl_algorithm;

static const char *const protocol_names[FR_NCCL_PROTOCOL_N] = {
    [FR_NCCL_LL] = "LL",
    [FR_NCCL_LL128] = "LL128",
    [FR_NCCL_SIMPLE] = "Simple",
};

static double total_s(const fr_nccl_time *time)
{
    return time->latency_s + time->work_s;
}

static const fr_protocol protocol_words[FR_NCCL_PROTOCOL_N] = {
    [FR_NCCL_LL] = FR_PROTOCOL_LL,
    [FR_NCCL_LL128] = FR_PROTOCOL_LL128,
    [FR_NCCL_SIMPLE] = FR_PROTOCOL_SIMPLE,
};

/* Without order on the network flags cannot travel with the data. */
static bool is_enabled(const question *q, fr_nccl_protocol protocol)
{
    if (protocol == FR_NCCL_SIMPLE)
        return true;
    if (q->n_nodes > 1.0 && !q->fabric->is_ordered_net)
        return false;
    /* LL128 needs stores of 128 bytes that arrive whole: NVLink. */
    return protocol == FR_NCCL_LL || q->wire == FR_NCCL_NVLINK;
}

static bool is_allowed(const question *q, fr_nccl_protocol protocol)
{
    return (q->only == FR_PROTOCOL_AUTO ||
            q->only == protocol_words[protocol]) &&
           is_enabled(q, protocol);
}

/* A message on the network above InfiniBand's latency; SIMPLE waits for the
 * data and for the flush behind it. */
static double extra_s(const question *q, fr_nccl_protocol protocol)
{
    return q->fabric->net_extra_s * (protocol == FR_NCCL_SIMPLE ? 2.0 : 1.0);
}

/* ---- ring --------------------------------------------------------------- */

static bool is_reduction(fr_op op)
{
    return op == FR_OP_ALL_REDUCE || op == FR_OP_BARRIER;
}

static bool ring_fits(const question *q)
{
    return is_reduction(q->op) || q->op == FR_OP_REDUCE_SCATTER ||
           q->op == FR_OP_ALL_GATHER || q->op == FR_OP_BROADCAST;
}

/* Times the payload that passes each link of the ring. */
static double ring_passes(const question *q)
{
    if (is_reduction(q->op))
        return 2.0 * (q->n - 1.0) / q->n;
    return q->op == FR_OP_BROADCAST ? 1.0 : (q->n - 1.0) / q->n;
}

static double ring_rate(const question *q, fr_nccl_protocol protocol)
{
    double rate = q->links->port_Bps;
    int i_nodes = q->n_nodes < 2.0 ? 0 : q->n_nodes < 3.0 ? 1 : 2;

    if (q->n_nodes > 1.0)
        rate = q->k > 1.0 ? fmin(rate, q->links->net_Bps) : q->links->net_Bps;
    if (protocol == FR_NCCL_LL)
        return fmin(rate / 2.0, q->fabric->links->ll_most_Bps[i_nodes]);
    return protocol == FR_NCCL_LL128 ? rate * q->fit->ll128_share[q->is_new]
                                     : rate;
}

static double ring_latency_s(const question *q, fr_nccl_protocol protocol)
{
    double halves = is_reduction(q->op) ? 2.0 : 1.0;
    double n_inter = halves * (q->n_nodes - 1.0);
    double n_intra = halves * (q->n - 1.0) - n_inter;
    double step_s = fr_nccl_ring_hop_s[q->wire][protocol];

    if (protocol == FR_NCCL_SIMPLE)
        step_s *= q->fit->step_s[q->is_new] /
                  fr_nccl_ring_hop_s[FR_NCCL_NVLINK][FR_NCCL_SIMPLE];
    /* Between nodes the slowest step paces all. */
    if (n_inter > 0.0)
        step_s = fmax(step_s, fr_nccl_proxy_s);
    return q->fit->launch_s + fr_nccl_ring_base_s[protocol] + n_intra * step_s +
           n_inter * (fr_nccl_ring_hop_s[FR_NCCL_NET][protocol] +
                      extra_s(q, protocol));
}

static fr_nccl_time ring_with(const question *q, fr_nccl_protocol protocol)
{
    double passes = ring_passes(q), rate = ring_rate(q, protocol);
    double inside = q->n_nodes > 1.0 ? (q->k - 1.0) / q->k : 1.0;
    fr_nccl_time time = {
        .protocol = protocol_names[protocol],
        .latency_s = ring_latency_s(q, protocol),
        .work_s = passes * q->bytes / rate,
        .net_bytes = q->n_nodes > 1.0 ? passes * q->bytes / q->k : 0.0,
        .port_bytes = passes * q->bytes * inside,
    };

    if (protocol == FR_NCCL_SIMPLE)
        time.work_s +=
            fmin(q->bytes / (2.0 * q->n), fr_nccl_slice_bytes) / rate;
    return time;
}

static fr_nccl_time best_protocol(const question *q,
                                  fr_nccl_time (*with)(const question *,
                                                       fr_nccl_protocol))
{
    fr_nccl_time best = with(q, FR_NCCL_SIMPLE);
    bool is_found = is_allowed(q, FR_NCCL_SIMPLE);

    for (int i = FR_NCCL_LL; i < FR_NCCL_SIMPLE; i++) {
        fr_nccl_time time;
        if (!is_allowed(q, (fr_nccl_protocol)i))
            continue;
        time = with(q, (fr_nccl_protocol)i);
        if (!is_found || total_s(&time) < total_s(&best))
            best = time;
        is_found = true;
    }
    return best;
}

static fr_nccl_time ring_time(const question *q)
{
    return best_protocol(q, ring_with);
}

/* ---- trees -------------------------------------------------------------- */

/*
 * Payloads through a node's NICs and direction: each of two trees carries
 * half; a node is a leaf of one and may have a parent and two children in the
 * other, but for two nodes, which are root and leaf.
 */
static double tree_net_passes(double n_nodes)
{
    return n_nodes < 3.0 ? 1.0 : 2.0;
}

static bool tree_fits(const question *q)
{
    return is_reduction(q->op);
}

/* NCCL's table is for powers of two; in between on the line, so that more
 * bytes never take less time. */
static double tree_size_share(double bytes, fr_nccl_protocol protocol)
{
    const double *share = fr_nccl_tree_size_share[protocol];
    double size = log2(fmax(bytes / 64.0, 1.0));
    int low = (int)fmin(size, FR_NCCL_TREE_SIZES - 1);
    double next = low + 1 < FR_NCCL_TREE_SIZES ? share[low + 1] : 1.0;
    double part = fmin(size - (double)low, 1.0);

    return share[low] + (next - share[low]) * part;
}

static fr_nccl_time tree_with(const question *q, fr_nccl_protocol protocol)
{
    bool is_net = q->n_nodes > 1.0;
    double net = is_net ? tree_net_passes(q->n_nodes) : 0.0;
    double inside = (q->k - 1.0) / q->k; /* a chain of the node's members */
    double s_per_byte =
        q->k > 1.0 ? 2.0 / (q->links->port_Bps * fr_nccl_tree_share) : 0.0;
    double share = tree_size_share(q->bytes, protocol);

    if (is_net)
        s_per_byte = fmax(s_per_byte, net / q->links->net_Bps);
    if (protocol == FR_NCCL_LL)
        share *= fr_nccl_tree_ll_share;
    if (protocol == FR_NCCL_LL128)
        share *= fr_nccl_tree_ll128_share[is_net];
    return (fr_nccl_time){
        .protocol = protocol_names[protocol],
        .latency_s =
            q->fit->launch_s + fr_nccl_tree_base_s[protocol] +
            2.0 * (q->k - 1.0) * fr_nccl_tree_hop_s[q->wire][protocol] +
            2.0 * log2(q->n_nodes) *
                (fr_nccl_tree_hop_s[FR_NCCL_NET][protocol] +
                 extra_s(q, protocol)),
        .work_s = q->bytes * s_per_byte / share,
        .net_bytes = net * q->bytes / q->k,
        .port_bytes = 2.0 * q->bytes * inside,
    };
}

static fr_nccl_time tree_time(const question *q)
{
    return best_protocol(q, tree_with);
}

/* ---- PAT ---------------------------------------------------------------- */

static bool pat_fits(const question *q)
{
    return q->n_nodes > 1.0 && q->k <= 1.0 &&
           (q->op == FR_OP_REDUCE_SCATTER || q->op == FR_OP_ALL_GATHER);
}

static fr_nccl_time pat_time(const question *q)
{
    double bytes = q->bytes * (q->n - 1.0) / q->n;

    return (fr_nccl_time){
        .protocol = protocol_names[FR_NCCL_SIMPLE],
        .latency_s =
            q->fit->launch_s + fr_nccl_pat_base_s +
            log2(q->n) * (fr_nccl_pat_hop_s + extra_s(q, FR_NCCL_SIMPLE)) +
            q->n * fr_nccl_pat_rank_s,
        .work_s = bytes / (q->links->net_Bps * fr_nccl_pat_share),
        .net_bytes = bytes,
    };
}

/* ---- NVLS --------------------------------------------------------------- */

/* Does the switch of a node add, or hand to all, of this operation? */
static bool has_switch(const question *q)
{
    return q->fabric->has_switch_sum && q->op != FR_OP_BROADCAST &&
           ring_fits(q);
}

static bool nvls_fits(const question *q)
{
    if (q->n_nodes > 1.0)
        return has_switch(q) && is_reduction(q->op) && q->k > 1.0;
    return has_switch(q) && q->n > 2.0;
}

/*
 * Payloads through a port in each direction.  All-reduce: every member's data
 * go up to the switch, the sum of its own k-th comes down and goes up again,
 * and all of the result comes down.  Halves: all goes one way, which the tuner
 * takes to fill (k - 1) / k of the rate.
 */
static double nvls_passes(const question *q)
{
    return is_reduction(q->op) ? 1.0 + 1.0 / q->k : q->k / (q->k - 1.0);
}

/* Inside a node, or between, by trees; at NCCL's efficiency. */
static fr_nccl_time nvls_time(const question *q)
{
    double share = q->fabric->links->nvls_share;
    double passes = nvls_passes(q), port_bytes = q->bytes * passes;
    double loop_bytes = fmin(q->bytes, q->n * fr_nccl_nvls_loop_bytes);
    double s_per_byte = passes / (q->links->port_Bps * share);
    fr_nccl_time time = {
        .protocol = protocol_names[FR_NCCL_SIMPLE],
        .latency_s = q->fit->launch_s + fr_nccl_nvls_s,
        .work_s = q->bytes * s_per_byte,
        .port_bytes = port_bytes,
    };

    if (q->n_nodes > 1.0) {
        double net = tree_net_passes(q->n_nodes);
        time.latency_s +=
            2.0 * log2(q->n_nodes) *
            (fr_nccl_nvls_tree_hop_s + extra_s(q, FR_NCCL_SIMPLE));
        time.work_s = fmax(time.work_s / fr_nccl_tree_share,
                           q->bytes * net / q->links->net_Bps);
        time.net_bytes = net * q->bytes / q->k;
    }
    time.work_s += q->fit->nvls_fill * loop_bytes * s_per_byte;
    return time;
}

/* ---- pairs -------------------------------------------------------------- */

static bool pairs_fit(const question *q)
{
    return q->op == FR_OP_ALL_TO_ALL || q->op == FR_OP_SHIFT ||
           q->op == FR_OP_SEND || q->op == FR_OP_RECV;
}

/* Everybody to the next: between nodes one member of each, over its NICs. */
static fr_nccl_time shift_time(const question *q)
{
    bool is_net = q->n_nodes > 1.0;
    double crossing = is_net ? 1.0 / q->k : 0.0;
    double step_s = q->fit->step_s[q->is_new];
    fr_nccl_time time = {
        .protocol = protocol_names[FR_NCCL_SIMPLE],
        .latency_s =
            q->fit->launch_s + fr_nccl_ring_base_s[FR_NCCL_SIMPLE] + step_s,
        .net_bytes = q->bytes * crossing,
        .port_bytes = q->bytes * (1.0 - crossing),
    };

    if (q->k > 1.0)
        time.work_s = q->bytes / q->links->pair_Bps;
    if (is_net) {
        time.latency_s +=
            fmax(0.0,
                 fr_nccl_ring_hop_s[FR_NCCL_NET][FR_NCCL_SIMPLE] - step_s) +
            extra_s(q, FR_NCCL_SIMPLE);
        time.work_s = fmax(time.work_s, q->bytes * q->k / q->links->net_Bps);
    }
    return time;
}

/* Returns the share that remains of k copies sent to n places at random if each
 * place gets at most one: n (1 - (1 - 1/n)^k) different places are met. */
static double met_share(double n, double k)
{
    return k > 0.0 ? n * (1.0 - pow(1.0 - 1.0 / n, k)) / k : 1.0;
}

/*
 * Copies of a row are sent as DeepEP does it (DeepSeek-V3, arXiv:2412.19437,
 * section 3.2.2): one to a node, to the rank there that has the sender's place,
 * which hands it on to every other rank of the node that wants it.
 */
static fr_nccl_time pairs_time(const question *q)
{
    if (q->op == FR_OP_SHIFT)
        return shift_time(q);
    bool is_all = q->op == FR_OP_ALL_TO_ALL;
    double each = is_all ? q->bytes / q->n : q->bytes;
    double n_near = q->k - 1.0, n_far = q->n - q->k;
    double n_handed_on = q->n_copies > 0.0 ? n_far * n_near / q->k : 0.0;
    double port_Bps = n_near > 1.0 ? q->links->line_Bps * q->fit->peers_share
                                   : q->links->pair_Bps;
    double step_s = q->fit->step_s[q->is_new];
    fr_nccl_time time = {
        .protocol = protocol_names[FR_NCCL_SIMPLE],
        .latency_s = q->fit->launch_s + fr_nccl_ring_base_s[FR_NCCL_SIMPLE],
        .net_bytes = n_far * each * met_share(q->n_nodes, q->n_copies),
        .port_bytes =
            (n_near + n_handed_on) * each * met_share(q->n, q->n_copies),
    };

    if (q->fabric->kind == FR_INTRA_NVLINK) /* shares are in its rates */
        port_Bps = q->links->line_Bps;
    /* Eight peers go side by side. */
    time.latency_s +=
        fmin(n_near, 7.0) * step_s + fmax(n_near - 7.0, 0.0) / 8.0 * step_s;
    if (n_far > 0.0) {
        time.latency_s += fr_nccl_ring_hop_s[FR_NCCL_NET][FR_NCCL_SIMPLE] +
                          extra_s(q, FR_NCCL_SIMPLE) +
                          (n_far - 1.0) * fr_nccl_proxy_s;
        time.work_s = q->k * time.net_bytes / q->links->net_Bps;
    }
    time.work_s = fmax(time.work_s, time.port_bytes / port_Bps);
    return time;
}

/* ---- hierarchy ---------------------------------------------------------- */

static bool hierarchy_fits(const question *q)
{
    return is_reduction(q->op) && q->n_nodes > 1.0 && q->k > 1.0;
}

/* A ring among k members inside each node. */
static fr_nccl_time half_inside(const question *q)
{
    fr_group_links links = *q->links;
    question half = *q;

    links.n_nodes = 1;
    half.links = &links;
    half.op = FR_OP_ALL_GATHER;
    half.n = q->k;
    half.n_nodes = 1.0;
    return ring_time(&half);
}

static fr_nccl_time hierarchy_time(const question *q)
{
    fr_nccl_time half = half_inside(q), between, time;
    question rails = *q;

    /* All rails at once: as one ring of the nodes with the payload of all. */
    rails.n = q->n_nodes;
    rails.k = 1.0;
    between = ring_time(&rails);
    time = between;
    time.latency_s += 2.0 * (half.latency_s - q->fit->launch_s);
    time.work_s += 2.0 * half.work_s;
    time.net_bytes = between.net_bytes / q->k;
    time.port_bytes = 2.0 * half.port_bytes;
    return time;
}

/* ---- SHARP --------------------------------------------------------------- */

/* Halves between nodes need a NIC for each member. */
static bool sharp_fits(const question *q)
{
    return q->fabric->has_net_sum && q->n_nodes > 1.0 && ring_fits(q) &&
           q->op != FR_OP_BROADCAST &&
           (is_reduction(q->op) || (double)q->fabric->n_nics >= q->k);
}

/* Returns the time of the work inside the nodes: the switch adds, or the
 * members do. */
static fr_nccl_time sharp_inside(const question *q)
{
    fr_group_links links = *q->links;
    question node = *q;
    fr_nccl_time time = {0};

    links.n_nodes = 1;
    node.links = &links;
    node.n = q->k;
    node.n_nodes = 1.0;
    if (q->k <= 1.0) {
        time.latency_s = q->fit->launch_s + fr_nccl_collnet_net_s;
        return time;
    }
    if (has_switch(q)) {
        time = nvls_time(&node);
        time.latency_s += fr_nccl_nvls_net_s;
        return time;
    }
    time = half_inside(q);
    time.work_s *= is_reduction(q->op) ? 2.0 : 1.0;
    time.port_bytes *= is_reduction(q->op) ? 2.0 : 1.0;
    time.latency_s = q->fit->launch_s +
                     2.0 * (fr_nccl_collnet_hop_s +
                            (q->k - 1.0) * fr_nccl_collnet_member_s) +
                     fr_nccl_collnet_net_s;
    return time;
}

static fr_nccl_time sharp_time(const question *q)
{
    fr_nccl_time time = sharp_inside(q);
    double net = is_reduction(q->op) ? ring_passes(q) : 1.0;

    time.protocol = protocol_names[FR_NCCL_SIMPLE];
    time.latency_s += extra_s(q, FR_NCCL_SIMPLE);
    time.work_s = fmax(time.work_s, q->bytes * net / q->links->net_Bps);
    time.net_bytes = net * q->bytes / q->k;
    return time;
}

/* ---- the choice --------------------------------------------------------- */

static const nccl_algorithm algorithms[] = {
    {"ring", FR_NCCL_RING, false, true, ring_fits, ring_time},
    {"tree", FR_NCCL_TREE, false, true, tree_fits, tree_time},
    {"PAT", FR_NCCL_NO_ALGORITHM, true, true, pat_fits, pat_time},
    {"NVLS", FR_NCCL_NVLS, true, true, nvls_fits, nvls_time},
    {"SHARP", FR_NCCL_SHARP, true, false, sharp_fits, sharp_time},
    {"pairs", FR_NCCL_PAIRS, true, true, pairs_fit, pairs_time},
    {"hierarchical", FR_NCCL_HIERARCHY, false, false, hierarchy_fits,
     hierarchy_time},
};

enum { N_ALGORITHMS = sizeof algorithms / sizeof algorithms[0] };

/* Has the algorithm a protocol that may be taken here? */
static bool has_protocol(const question *q, const nccl_algorithm *algorithm)
{
    if (algorithm->is_simple)
        return is_allowed(q, FR_NCCL_SIMPLE);
    for (int i = 0; i < FR_NCCL_PROTOCOL_N; i++)
        if (is_allowed(q, (fr_nccl_protocol)i))
            return true;
    return false;
}

/* The one that is asked for, or the least of the automatic ones. */
static bool choose(const question *q, fr_nccl_algorithm kind, fr_nccl_time *out)
{
    bool is_found = false;

    for (int i = 0; i < N_ALGORITHMS; i++) {
        const nccl_algorithm *algorithm = &algorithms[i];
        fr_nccl_time time;
        bool is_asked = kind == FR_NCCL_NO_ALGORITHM ? algorithm->is_automatic
                                                     : algorithm->kind == kind;
        if (!is_asked || !algorithm->fits(q) || !has_protocol(q, algorithm))
            continue;
        time = algorithm->time(q);
        time.algorithm = algorithm->name;
        if (!is_found || total_s(&time) < total_s(out))
            *out = time;
        is_found = true;
    }
    return is_found;
}

bool fr_nccl_time_of(const fr_gpu_fabric *fabric, const fr_group_links *links,
                     const fr_nccl_ask *ask, fr_nccl_time *out)
{
    question q = {
        .fabric = fabric,
        .fit = fabric->fit,
        .is_new = fabric->links->is_new,
        .links = links,
        .op = ask->op,
        .only = ask->protocol,
        .bytes = fmax(ask->n_bytes, 1.0),
        .n_copies = ask->n_copies,
        .n = (double)links->n,
        .n_nodes = (double)links->n_nodes,
        .k = links->per_node,
        .wire =
            fabric->kind == FR_INTRA_NVLINK || fabric->kind == FR_INTRA_NVSWITCH
                ? FR_NCCL_NVLINK
                : FR_NCCL_PCI,
    };

    if (links->n_nodes > 1 && !(links->net_Bps > 0.0))
        return false;
    const fr_nccl_algorithm wanted = fr_collective_nccl(ask->wanted);
    /* An algorithm that NCCL has not, such as halving and doubling, is not
     * what it takes: it chooses, among all protocols. */
    if ((wanted != FR_NCCL_NO_ALGORITHM || ask->wanted == FR_COLLECTIVE_AUTO) &&
        choose(&q, wanted, out))
        return true;
    q.only = FR_PROTOCOL_AUTO;
    return choose(&q, FR_NCCL_NO_ALGORITHM, out);
}
