/*
 * test_gpu_comm.c: properties of communication between GPUs: what goes
 * through NICs and ports, which nodes count, what is refused, and that more
 * bytes or slower links never take less time.
 */
#include "cost_models/link/fabric_links.h"
#include "cost_models/link/gpu_comm.h"
#include "cost_models/link/nccl_model.h"
#include "tests/check.h"

static const fr_op ops[] = {
    FR_OP_ALL_REDUCE, FR_OP_REDUCE_SCATTER, FR_OP_ALL_GATHER, FR_OP_ALL_TO_ALL,
    FR_OP_BROADCAST,  FR_OP_SHIFT,          FR_OP_SEND};
enum { N_OPS = sizeof ops / sizeof ops[0] };

typedef struct scene {
    fr_cluster cluster;
    fr_gpu_comm_model *comm;
} scene;

/* In place: the model borrows the scene's cluster. */
static void stage(scene *s, const char *name)
{
    fr_err err = {0};
    *s = (scene){0};
    if (name[0] == '<')
        CHECK_OK(
            fr_cluster_parse("c.xml", name, strlen(name), &s->cluster, &err),
            &err);
    else
        CHECK_OK(fr_cluster_load(NULL, name, &s->cluster, &err), &err);
    CHECK_OK(fr_gpu_comm_create(&s->cluster, NULL, &s->comm, &err), &err);
}

static void strike(scene *s)
{
    fr_gpu_comm_destroy(s->comm);
    fr_cluster_release(&s->cluster);
}

static fr_cost ask(const scene *s, fr_op op, fr_collective_kind kind,
                   double bytes, fr_comm_scope scope)
{
    fr_err err = {0};
    fr_cost cost = {0};
    fr_instr instr = {.op = (uint8_t)op,
                      .dtype = FR_DTYPE_U8,
                      .algorithm = (uint8_t)kind,
                      .flags = kind != FR_COLLECTIVE_AUTO ? FR_INSTR_GIVEN : 0,
                      .dim = {(int64_t)bytes}};
    CHECK_OK(fr_gpu_comm_cost(s->comm, &instr, &scope, &cost, &err), &err);
    return cost;
}

static fr_cost ask_told(const scene *s, fr_op op, fr_collective_kind kind,
                        fr_protocol protocol, int n_channels, double bytes,
                        fr_comm_scope scope)
{
    fr_err err = {0};
    fr_cost cost = {0};
    fr_instr instr = {.op = (uint8_t)op,
                      .dtype = FR_DTYPE_U8,
                      .algorithm = (uint8_t)kind,
                      .protocol = (uint8_t)protocol,
                      .n_channels = (uint8_t)n_channels,
                      .flags = kind != FR_COLLECTIVE_AUTO ? FR_INSTR_GIVEN : 0,
                      .dim = {(int64_t)bytes}};
    CHECK_OK(fr_gpu_comm_cost(s->comm, &instr, &scope, &cost, &err), &err);
    return cost;
}

static double total_s(fr_cost cost)
{
    return cost.latency_s + cost.work_s;
}

/* Groups of a cluster of 8 nodes of 8, and point to point. */
static const fr_comm_scope scopes[] = {
    {2, 1, 2, 0}, {4, 1, 4, 0},  {8, 1, 8, 0},  {2, 2, 1, 0},
    {8, 8, 1, 0}, {16, 2, 8, 0}, {32, 8, 4, 0}, {64, 8, 8, 0}};
enum { N_SCOPES = sizeof scopes / sizeof scopes[0] };

static void test_monotone(void)
{
    static const char *const clusters[] = {
        "dgx-h100:8",     "dgx-a100:8", "dgx-b200:8", "dgx-1-v100:8",
        "p4d.24xlarge:8", "mi300x-8:8", "l40s-8:8"};
    for (size_t c = 0; c < sizeof clusters / sizeof clusters[0]; c++) {
        scene s;
        stage(&s, clusters[c]);
        int n_wrong = 0;
        for (int o = 0; o < N_OPS; o++)
            for (int k = 0; k < N_SCOPES; k++) {
                double before_s = 0;
                if (ops[o] == FR_OP_SEND && scopes[k].n_group != 2)
                    continue;
                for (double n = 64; n < 1e10; n *= 1.37) {
                    fr_cost cost =
                        ask(&s, ops[o], FR_COLLECTIVE_AUTO, n, scopes[k]);
                    n_wrong += !(total_s(cost) >= before_s * (1 - 1e-9)) ||
                               !(cost.work_s > 0) || !(cost.latency_s > 0);
                    before_s = total_s(cost);
                }
            }
        check_that(n_wrong == 0, __FILE__, __LINE__, "%s: %d wrong",
                   clusters[c], n_wrong);
        strike(&s);
    }
}

/* A cluster of two nodes with these links. */
static void two_nodes(scene *s, double intra, double nic, int n_nics)
{
    char text[700];
    snprintf(text, sizeof text,
             "<cluster name=\"c\"><node-type id=\"n\" like=\"dgx-h100\">"
             "<intra kind=\"nvswitch\" bandwidth=\"%gGB/s\" latency=\"2us\"/>"
             "<nic count=\"%d\" bandwidth=\"%gGB/s\" latency=\"5us\"/>"
             "</node-type><group id=\"n\" node-type=\"n\" count=\"2\"/>"
             "<fabric kind=\"switch\"/></cluster>",
             intra, n_nics, nic);
    stage(s, text);
}

static void test_faster_links(void)
{
    static const double links[][3] = {
        {200, 12.5, 4}, {450, 12.5, 4}, {450, 25, 4},  {450, 25, 8},
        {900, 25, 8},   {900, 50, 8},   {900, 100, 16}};
    const fr_comm_scope scope = {16, 2, 8, 0};
    for (int o = 0; o < N_OPS - 1; o++)
        for (double n = 1000; n < 1e10; n *= 7.3) {
            double before_s = INFINITY;
            for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
                scene s;
                two_nodes(&s, links[i][0], links[i][1], (int)links[i][2]);
                double now_s =
                    total_s(ask(&s, ops[o], FR_COLLECTIVE_AUTO, n, scope));
                CHECK(now_s <= before_s * (1 + 1e-9));
                before_s = now_s;
                strike(&s);
            }
        }
}

/* Bytes through NICs and ports, by hand, for 1 GB. */
static void test_traffic(void)
{
    scene s;
    stage(&s, "dgx-h100:8");
    const fr_comm_scope one = {8, 1, 8, 0}, four = {32, 4, 8, 0};
    const fr_comm_scope far = {8, 8, 1, 0}, pair = {2, 2, 1, 0};
    double n = 1e9;
    fr_cost cost = ask(&s, FR_OP_ALL_GATHER, FR_COLLECTIVE_AUTO, n, one);
    CHECK_NEAR(cost.port_bytes, n * 7 / 8, 1e-9);
    CHECK(cost.link_bytes == 0);
    cost = ask(&s, FR_OP_ALL_REDUCE, FR_COLLECTIVE_NVLS, n, one);
    CHECK_NEAR(cost.port_bytes, n * 9 / 8, 1e-9);
    /* The ring leaves a node once: all that passes it, shared by eight. */
    cost = ask(&s, FR_OP_ALL_REDUCE, FR_COLLECTIVE_RING, n, four);
    CHECK_NEAR(cost.link_bytes, n * 2 * 31 / 32 / 8, 1e-9);
    CHECK_NEAR(cost.port_bytes, n * 2 * 31 / 32 * 7 / 8, 1e-9);
    /* Hierarchical: 2 (N-1)/N of the payload leaves a node. */
    cost = ask(&s, FR_OP_ALL_REDUCE, FR_COLLECTIVE_HIERARCHICAL, n, four);
    CHECK_NEAR(cost.link_bytes, n * 2 * 3 / 4 / 8, 1e-9);
    CHECK_NEAR(cost.port_bytes, n * 2 * 7 / 8, 1e-9);
    CHECK(total_s(cost) <
          2 * total_s(ask(&s, FR_OP_ALL_REDUCE, FR_COLLECTIVE_RING, n, four)));
    /* A double tree: twice the payload through each node. */
    cost = ask(&s, FR_OP_ALL_REDUCE, FR_COLLECTIVE_DOUBLE_TREE, n, four);
    CHECK_NEAR(cost.link_bytes, n * 2 / 8, 1e-9);
    cost = ask(&s, FR_OP_ALL_TO_ALL, FR_COLLECTIVE_AUTO, n, four);
    CHECK_NEAR(cost.link_bytes, n * 24 / 32, 1e-9);
    CHECK_NEAR(cost.port_bytes, n * 7 / 32, 1e-9);
    /* One rank per node drives one of eight NICs: 50 GB/s at most. */
    cost = ask(&s, FR_OP_REDUCE_SCATTER, FR_COLLECTIVE_AUTO, n, far);
    CHECK_NEAR(cost.link_bytes, n * 7 / 8, 1e-9);
    CHECK(cost.link_bytes / cost.work_s < 50e9 &&
          cost.link_bytes / cost.work_s > 45e9);
    /* All to the next: one of a node's eight leaves it. */
    cost = ask(&s, FR_OP_SHIFT, FR_COLLECTIVE_AUTO, n, four);
    CHECK_NEAR(cost.link_bytes, n / 8, 1e-9);
    CHECK_NEAR(cost.port_bytes, n * 7 / 8, 1e-9);
    CHECK_NEAR(cost.work_s, n / (50e9 * 0.95), 1e-9);
    cost = ask(&s, FR_OP_SEND, FR_COLLECTIVE_AUTO, n, pair);
    CHECK_NEAR(cost.link_bytes, n, 1e-9);
    CHECK_NEAR(cost.work_s, n / (50e9 * 0.95), 1e-9);
    CHECK(cost.cores > 0 && cost.cores < 0.2 && cost.memory_frac == 0);
    strike(&s);
}

/* Two copies of each token, anywhere among 32 ranks on 4 nodes: what rank 0
 * sends to other nodes, and what it sends, and what comes to it to be handed
 * on, to ranks of its own, all cases counted one by one. */
static void test_copies_of_a_token(void)
{
    enum { N = 32, PER_NODE = 8, N_NODES = N / PER_NODE };
    double n_net = 0, n_port = 0;
    const double bytes = 1e9, token_bytes = bytes / 2;
    const fr_comm_scope four = {N, N_NODES, PER_NODE, 0};
    scene s;
    fr_err err = {0};
    fr_cost cost = {0};
    fr_instr instr = {.op = FR_OP_ALL_TO_ALL,
                      .dtype = FR_DTYPE_U8,
                      .scalar = 2,
                      .dim = {(int64_t)bytes}};

    for (int a = 0; a < N; a++)
        for (int b = 0; b < N; b++)
            for (int node = 0; node < N_NODES; node++) {
                bool is_wanted[PER_NODE] = {false};
                bool is_met = a / PER_NODE == node || b / PER_NODE == node;
                if (a / PER_NODE == node)
                    is_wanted[a % PER_NODE] = true;
                if (b / PER_NODE == node)
                    is_wanted[b % PER_NODE] = true;
                n_net += is_met && node > 0;
                /* Rank 0 of a node has it; the others are sent theirs. */
                for (int i = 1; i < PER_NODE; i++)
                    n_port += is_wanted[i];
            }
    stage(&s, "dgx-h100:4");
    CHECK_OK(fr_gpu_comm_cost(s.comm, &instr, &four, &cost, &err), &err);
    CHECK_NEAR(cost.link_bytes, token_bytes * n_net / (N * N), 1e-9);
    CHECK_NEAR(cost.port_bytes, token_bytes * n_port / (N * N), 1e-9);
    strike(&s);
}

/* The nodes that a group names, else the slowest. */
static void test_mixed(void)
{
    scene s;
    stage(&s, "mixed-a100-v100");
    fr_comm_scope scope = {4, 1, 4, 0};
    uint32_t new_type = 0, old_type = 1;
    double any_s, new_s, old_s, both_s;
    any_s = total_s(ask(&s, FR_OP_ALL_REDUCE, FR_COLLECTIVE_AUTO, 1e9, scope));
    scope.node_types = 1u << new_type;
    new_s = total_s(ask(&s, FR_OP_ALL_REDUCE, FR_COLLECTIVE_AUTO, 1e9, scope));
    scope.node_types = 1u << old_type;
    old_s = total_s(ask(&s, FR_OP_ALL_REDUCE, FR_COLLECTIVE_AUTO, 1e9, scope));
    scope.node_types |= 1u << new_type;
    both_s = total_s(ask(&s, FR_OP_ALL_REDUCE, FR_COLLECTIVE_AUTO, 1e9, scope));
    CHECK(new_s < old_s * 0.7);
    CHECK(any_s == old_s && both_s == old_s);
    strike(&s);
}

/* Readers see to it that nodes have NICs; a cluster made by hand may not. */
static void test_refusal(void)
{
    scene s;
    stage(&s, "dgx-h100:2");
    s.cluster.node_types[0].n_nics = 0;
    fr_gpu_comm_destroy(s.comm);
    fr_err err = {0};
    fr_cost cost = {.work_s = 7};
    fr_instr instr = {.op = FR_OP_ALL_REDUCE, .dim = {1000}};
    fr_comm_scope scope = {4, 2, 2, 0};
    CHECK_OK(fr_gpu_comm_create(&s.cluster, NULL, &s.comm, &err), &err);
    CHECK_FAILS(fr_gpu_comm_cost(s.comm, &instr, &scope, &cost, &err), FR_INPUT,
                &err);
    CHECK_HAS(err.text, "no network");
    CHECK(cost.work_s == 7);
    strike(&s);
}

/* NCCL takes the best of its protocols, and each can be asked for. */
static void test_protocols(void)
{
    scene s;
    stage(&s, "dgx-h100:8");
    for (size_t i = 0; i < N_SCOPES; i++)
        for (double bytes = 37; bytes < 1e9; bytes *= 9.7) {
            double best = HUGE_VAL;
            double any = total_s(ask(&s, FR_OP_ALL_GATHER, FR_COLLECTIVE_RING,
                                     bytes, scopes[i]));
            for (int p = FR_PROTOCOL_LL; p < FR_PROTOCOL_N; p++)
                best = fmin(best, total_s(ask_told(
                                      &s, FR_OP_ALL_GATHER, FR_COLLECTIVE_RING,
                                      (fr_protocol)p, 0, bytes, scopes[i])));
            CHECK(any == best);
        }
    /* LL: the least latency and half of the rate. */
    fr_comm_scope scope = {8, 1, 8, 0};
    fr_cost small[2], large[2];
    for (int i = 0; i < 2; i++) {
        fr_protocol p = i == 0 ? FR_PROTOCOL_LL : FR_PROTOCOL_SIMPLE;
        small[i] =
            ask_told(&s, FR_OP_ALL_REDUCE, FR_COLLECTIVE_RING, p, 0, 64, scope);
        large[i] = ask_told(&s, FR_OP_ALL_REDUCE, FR_COLLECTIVE_RING, p, 0, 1e9,
                            scope);
    }
    CHECK(total_s(small[0]) < total_s(small[1]));
    CHECK(total_s(large[0]) > 1.9 * total_s(large[1]));
    /* The switch adds with Simple alone; told LL, another one is taken. */
    CHECK(total_s(ask_told(&s, FR_OP_ALL_REDUCE, FR_COLLECTIVE_AUTO,
                           FR_PROTOCOL_LL, 0, 1e9, scope)) ==
          total_s(large[0]));
    strike(&s);
}

/* Without NVLink there is no LL128: NCCL chooses by itself, as it does where
 * the tuner asks for what cannot be done. */
static void test_no_protocol(void)
{
    scene s;
    fr_comm_scope scope = {4, 1, 4, 0};
    stage(&s, "h100-pcie-8:1");
    for (double bytes = 37; bytes < 1e9; bytes *= 9.7) {
        fr_cost told = ask_told(&s, FR_OP_ALL_REDUCE, FR_COLLECTIVE_DOUBLE_TREE,
                                FR_PROTOCOL_LL128, 0, bytes, scope);
        fr_cost any =
            ask(&s, FR_OP_ALL_REDUCE, FR_COLLECTIVE_AUTO, bytes, scope);
        CHECK(total_s(told) == total_s(any));
    }
    strike(&s);
}

/* A multiprocessor for each channel, also where a share was measured. */
static void test_channels(void)
{
    scene s;
    fr_comm_scope scope = {8, 1, 8, 0};
    stage(&s, "dgx-h100:1");
    for (int i = 0; i < 2; i++) {
        fr_cost any = ask(&s, FR_OP_ALL_REDUCE, FR_COLLECTIVE_AUTO, 1e8, scope);
        fr_cost told = ask_told(&s, FR_OP_ALL_REDUCE, FR_COLLECTIVE_AUTO,
                                FR_PROTOCOL_AUTO, 5, 1e8, scope);
        CHECK(total_s(any) == total_s(told));
        CHECK_NEAR(told.cores, 5.0 / 132.0, 1e-12);
        CHECK(any.cores > told.cores);
        fr_gpu_comm_set_cores(s.comm, 0.237);
    }
    strike(&s);
}

/* A NIC's share: the cluster's word before the kind's. */
static void test_nic_share(void)
{
    fr_node_type node = {.nic_kind = FR_NIC_EFA};
    CHECK(fr_nic_share(&node) > 0.9 && fr_nic_share(&node) < 1);
    node.nic_efficiency_frac = 0.413;
    CHECK(fr_nic_share(&node) == 0.413);
}

CHECK_MAIN({"monotone", test_monotone}, {"faster_links", test_faster_links},
           {"traffic", test_traffic},
           {"copies_of_a_token", test_copies_of_a_token}, {"mixed", test_mixed},
           {"protocols", test_protocols}, {"no_protocol", test_no_protocol},
           {"channels", test_channels}, {"refusal", test_refusal},
           {"nic_share", test_nic_share})
