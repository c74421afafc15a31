/*
 * test_parameter_server.c: parameter servers by hand: what a plan's fields do
 * to seconds and bytes, and what is refused.
 */
#include "cost_models/link/gpu_comm.h"
#include "plan/collective/collective.h"
#include "plan/decide/plan.h"
#include "tests/check.h"

typedef struct scene {
    fr_cluster cluster;
    fr_gpu_comm_model *comm;
} scene;

static void stage(scene *s, const char *name)
{
    fr_err err = {0};
    CHECK_OK(fr_cluster_load(NULL, name, &s->cluster, &err), &err);
    CHECK_OK(fr_gpu_comm_create(&s->cluster, NULL, &s->comm, &err), &err);
}

static void strike(scene *s)
{
    fr_gpu_comm_destroy(s->comm);
    fr_cluster_release(&s->cluster);
}

static fr_instr instr_of(fr_server_place place, int64_t n_servers, double bytes)
{
    return (fr_instr){.op = FR_OP_ALL_REDUCE,
                      .dtype = FR_DTYPE_U8,
                      .algorithm = FR_COLLECTIVE_PARAMETER_SERVER,
                      .flags = FR_INSTR_GIVEN,
                      .dim = {(int64_t)bytes, n_servers, place}};
}

static fr_cost ask(const scene *s, fr_server_place place, int64_t n_servers,
                   double bytes, fr_comm_scope scope)
{
    fr_err err = {0};
    fr_cost cost = {0};
    fr_instr instr = instr_of(place, n_servers, bytes);
    CHECK_OK(fr_gpu_comm_cost(s->comm, &instr, &scope, &cost, &err), &err);
    return cost;
}

/*
 * p2.8xlarge: 8 devices below 4 switches, 12 GB/s each; two sockets of 51.225
 * GB/s; a NIC of 10 Gb/s of which 0.8 are reached.
 */
static void test_one_node(void)
{
    scene s = {0};
    const fr_comm_scope two = {2, 1, 2, 0}, eight = {8, 1, 8, 0};
    const double n = 0.731e9;
    stage(&s, "p2.8xlarge:8");

    /* The first two are below one switch. */
    fr_cost cost = ask(&s, FR_SERVER_HOST, 0, n, two);
    CHECK_NEAR(cost.work_s, 2 * n / 6e9 + 3 * n / 102.45e9, 1e-9);
    CHECK(cost.link_bytes == 0 && cost.cores == 0);
    CHECK_NEAR(cost.port_bytes, 2 * n, 1e-12);
    cost = ask(&s, FR_SERVER_HOST, 0, n, eight);
    CHECK_NEAR(cost.work_s, 2 * n / 6e9 + 9 * n / 102.45e9, 1e-9);
    /* On one node workers share its memory as well. */
    CHECK_NEAR(ask(&s, FR_SERVER_WORKER, 0, n, eight).work_s, cost.work_s,
               1e-12);
    /* Devices that serve each other move 7/8 twice, one alone 7 times. */
    cost = ask(&s, FR_SERVER_DEVICE, 0, n, eight);
    CHECK_NEAR(cost.port_bytes, 2 * n * 7 / 8, 1e-9);
    CHECK_NEAR(ask(&s, FR_SERVER_DEVICE, 1, n, eight).port_bytes, 2 * n * 7,
               1e-9);
    strike(&s);
    /* The host is not behind NVLink. */
    scene other = {0};
    stage(&other, "dgx-1-p100");
    CHECK(ask(&other, FR_SERVER_HOST, 0, n, eight).port_bytes == 0);
    CHECK(ask(&other, FR_SERVER_DEVICE, 0, n, eight).port_bytes > n);
    strike(&other);
}

static void test_several_nodes(void)
{
    scene s = {0};
    const fr_comm_scope all = {64, 8, 8, 0};
    const double n = 0.731e9, memory = 102.45e9;
    double inside_s = 2 * n / 6e9 + 9 * n / memory;
    stage(&s, "p2.8xlarge:8");

    /* A server on each node: 7/8 there and 7/8 back, an eighth of the sums. */
    fr_cost cost = ask(&s, FR_SERVER_HOST, 0, n, all);
    CHECK_NEAR(cost.work_s, inside_s + 2 * n * 7 / 8 / 1e9 + 9 * n / 8 / memory,
               1e-9);
    CHECK_NEAR(cost.link_bytes, 2 * n * 7 / 8 / 8, 1e-9);
    /* One server: seven nodes push all of it through one NIC. */
    cost = ask(&s, FR_SERVER_HOST, 1, n, all);
    CHECK_NEAR(cost.work_s, inside_s + 2 * 7 * n / 1e9 + 9 * n / memory, 1e-9);
    /* Three servers: still 7/3 of it into each, more than a node sends. */
    cost = ask(&s, FR_SERVER_HOST, 3, n, all);
    CHECK_NEAR(cost.work_s, inside_s + 2 * n * 7 / 3 / 1e9 + 3 * n / memory,
               1e-9);
    /* Workers by themselves: eight times the bytes. */
    cost = ask(&s, FR_SERVER_WORKER, 0, n, all);
    CHECK_NEAR(cost.work_s,
               2 * n / 6e9 + 2 * 8 * n * 7 / 8 / 1e9 + 65 * n / 8 / memory,
               1e-9);
    CHECK_NEAR(cost.link_bytes, 2 * n * 7 / 8, 1e-9);
    /* Devices over the network: eight of them share a NIC. */
    cost = ask(&s, FR_SERVER_DEVICE, 0, n, all);
    CHECK_NEAR(cost.work_s, 2 * n * 63 / 64 / (1e9 / 8), 1e-9);
    strike(&s);
}

static double total_s(fr_cost cost)
{
    return cost.latency_s + cost.work_s;
}

static double ring_s(const scene *s, double bytes, fr_comm_scope scope)
{
    fr_err err = {0};
    fr_cost cost = {0};
    fr_instr instr = instr_of(FR_SERVER_HOST, 0, bytes);
    instr.algorithm = FR_COLLECTIVE_RING;
    CHECK_OK(fr_gpu_comm_cost(s->comm, &instr, &scope, &cost, &err), &err);
    return total_s(cost);
}

/*
 * One server is a bottleneck that grows with the nodes, a ring is not (Sergeev
 * and Del Balso, arXiv 1802.05799, section 3); workers of k devices a node
 * push k times what the ring sends.
 */
static void test_order(void)
{
    static const int64_t n_nodes[] = {2, 4, 8, 32, 128};
    scene s = {0};
    stage(&s, "p100-4-roce:128");
    const double n = 178e6; /* ResNet-101 */
    double before_s = 0;

    for (size_t i = 0; i < sizeof n_nodes / sizeof n_nodes[0]; i++) {
        fr_comm_scope scope = {4 * n_nodes[i], n_nodes[i], 4, 0};
        double one_s = total_s(ask(&s, FR_SERVER_HOST, 1, n, scope));
        double half_s =
            total_s(ask(&s, FR_SERVER_HOST, n_nodes[i] / 2, n, scope));
        double all_s = total_s(ask(&s, FR_SERVER_HOST, 0, n, scope));
        double workers_s = total_s(ask(&s, FR_SERVER_WORKER, 0, n, scope));
        double around_s = ring_s(&s, n, scope);
        CHECK(one_s >= half_s && half_s >= all_s && workers_s > all_s);
        CHECK(one_s > before_s && one_s > around_s);
        CHECK(workers_s > 2.5 * around_s && workers_s < 6 * around_s);
        before_s = one_s;
    }
    strike(&s);
}

static void test_refused(void)
{
    scene s = {0};
    const fr_comm_scope both = {16, 2, 8, 0}, one = {8, 1, 8, 0};
    fr_instr instr = instr_of(FR_SERVER_HOST, 3, 1e6);
    fr_cost cost = {0};
    fr_err err = {0};
    stage(&s, "p2.8xlarge:2");

    CHECK_FAILS(fr_gpu_comm_cost(s.comm, &instr, &both, &cost, &err), FR_INPUT,
                &err);
    CHECK_HAS(err.text, "3 parameter servers, but only 2 nodes");
    instr = instr_of(FR_SERVER_DEVICE, 9, 1e6);
    CHECK_FAILS(fr_gpu_comm_cost(s.comm, &instr, &one, &cost, &err), FR_INPUT,
                &err);
    CHECK_HAS(err.text, "9 parameter servers, but only 8 members");
    s.cluster.node_types[0].host_link_Bps = 0;
    instr = instr_of(FR_SERVER_HOST, 0, 1e6);
    CHECK_FAILS(fr_gpu_comm_cost(s.comm, &instr, &one, &cost, &err),
                FR_INFEASIBLE, &err);
    CHECK_HAS(err.text, "host-link");
    strike(&s);
}

/* As transfers: what comes into a server, and from whom. */
static void test_transfers(void)
{
    fr_transfer_list list = {0};
    fr_err err = {0};
    uint64_t into[5] = {0};

    const fr_servers two = {FR_SERVER_DEVICE, 2, 5, 1};
    CHECK_OK(fr_servers_emit(&two, NULL, 901, &list, &err), &err);
    CHECK_INT(list.n_phases, 2);
    for (size_t i = 0; i < list.n; i++)
        if (list.at[i].phase == 0)
            into[list.at[i].dst] += list.at[i].n;
    CHECK_INT(into[0], 4 * 450);
    CHECK_INT(into[1], 4 * 451);
    CHECK_INT(into[2] + into[3] + into[4], 0);
    fr_transfer_list_release(&list);
    const fr_link_cost link = {1.7e-5, 2.3e-9, 0.4e-9};
    CHECK_NEAR(fr_server_idle_s(5, 2, 1e6, &link),
               2 * (1.7e-5 + 2e6 * 2.3e-9) + 2e6 * 0.4e-9, 1e-12);
    CHECK_NEAR(fr_server_idle_s(4, 4, 1e6, &link),
               2 * (1.7e-5 + 0.75e6 * 2.3e-9) + 0.75e6 * 0.4e-9, 1e-12);
}

CHECK_MAIN({"one node", test_one_node}, {"several nodes", test_several_nodes},
           {"order", test_order}, {"refused", test_refused},
           {"transfers", test_transfers})
