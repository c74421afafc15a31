/*
 * test_cluster.c: files of configs/clusters, paths worked out by hand,
 * placement, bad files.
 */
#include "core/system/fileio.h"
#include "spec/catalog/catalog.h"
#include "spec/catalog/config_path.h"
#include "spec/cluster/cluster.h"
#include "spec/cluster/cluster_power.h"
#include "spec/cluster/cluster_reader.h"
#include "spec/cluster/detect.h"
#include "tests/check.h"

#include <dirent.h>
#include <stdlib.h>

#define HEAD "<cluster name=\"c\">\n"
#define GPU                                                                    \
    "<device id=\"g\" kind=\"gpu\" memory=\"23GiB\" "                          \
    "memory-bandwidth=\"731GB/s\">\n<peak dtype=\"fp32\" "                     \
    "rate=\"17.5TFLOP/s\"/></device>\n"
#define NODE                                                                   \
    "<node-type id=\"n\" device=\"g\" devices=\"3\"><intra kind=\"pcie\" "     \
    "bandwidth=\"11GB/s\" latency=\"4us\"/><nic count=\"2\" "                  \
    "bandwidth=\"25Gb/s\" latency=\"7us\"/></node-type>\n"
#define TAIL "</cluster>\n"

static fr_status parse(const char *text, fr_cluster *out, fr_err *err)
{
    return fr_cluster_parse("c.xml", text, strlen(text), out, err);
}

/* Every name in configs/clusters loads, checks and adds up. */
static void test_configs(void)
{
    char dir[FR_CONFIG_PATH];
    fr_err err = {0};
    int n_files = 0;
    if (!CHECK_OK(fr_config_dir(NULL, "clusters", dir, &err), &err))
        return;
    DIR *stream = opendir(dir);
    for (struct dirent *entry; (entry = readdir(stream));) {
        char path[FR_CONFIG_PATH + 300];
        fr_cluster cluster = {0};
        if (!strstr(entry->d_name, ".xml"))
            continue;
        snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
        n_files++;
        if (!CHECK_OK(fr_cluster_load(NULL, path, &cluster, &err), &err))
            continue;
        CHECK_OK(fr_cluster_check(&cluster, &err), &err);
        size_t n_stem = strlen(entry->d_name) - 4;
        CHECK(strlen(cluster.name) == n_stem &&
              strncmp(cluster.name, entry->d_name, n_stem) == 0);
        CHECK(fr_cluster_slots(&cluster) >= fr_cluster_n_nodes(&cluster));
        fr_cluster_release(&cluster);
    }
    closedir(stream);
    CHECK(n_files >= 8);
}

static void check_size(const char *name, int64_t n_nodes, int64_t n_devices)
{
    fr_cluster cluster = {0};
    fr_err err = {0};
    if (!CHECK_OK(fr_cluster_load(NULL, name, &cluster, &err), &err))
        return;
    CHECK_INT(fr_cluster_n_nodes(&cluster), n_nodes);
    CHECK_INT(fr_cluster_slots(&cluster), n_devices);
    fr_cluster_release(&cluster);
}

static void test_sizes(void)
{
    check_size("dgx-a100-16", 16, 128);
    check_size("dgx-h100-16", 16, 128);
    check_size("selene-like", 384, 3072);
    check_size("cloud-p4d-8", 8, 64);
    check_size("mixed-a100-v100", 12, 64);
    check_size("torus-64", 64, 64);
    check_size("dgx-h100:16", 16, 128);
    check_size("gb200-nvl72:3", 3, 216);
    check_size("p5.48xlarge", 1, 8);
}

static void test_this_machine(void)
{
    fr_cluster cluster = {0}, two = {0};
    fr_machine machine;
    fr_err err = {0};
    fr_machine_detect(&machine);
    if (!CHECK_OK(fr_cluster_load(NULL, "this-machine", &cluster, &err),
                  &err) ||
        !CHECK_OK(fr_cluster_load(NULL, "two-hosts-1gbit", &two, &err), &err))
        return;
    CHECK(cluster.is_this_machine && !cluster.is_one_machine);
    CHECK_INT(fr_cluster_slots(&cluster), machine.n_cores);
    CHECK(machine.n_cores >= 1 && machine.n_sockets >= 1);
    CHECK(machine.memory_bytes > 1u << 26);
    CHECK_INT(fr_cluster_rank_memory_bytes(&cluster, 0, 3),
              machine.memory_bytes / 3);
    CHECK(two.is_one_machine);
    CHECK_INT(fr_cluster_n_nodes(&two), 2);
    CHECK_NEAR(fr_cluster_path(&two, 0, 1).bandwidth_Bps, 125e6, 1e-15);
    CHECK_NEAR(fr_cluster_path(&two, 1, 0).latency_s, 30e-6, 1e-15);
    fr_cluster_release(&cluster);
    fr_cluster_release(&two);
}

static void test_values(void)
{
    fr_cluster c = {0};
    fr_err err = {0};
    const char *text =
        "<cluster name=\"c\">"
        "<device id=\"g\" like=\"a100-sxm-40g\" memory=\"37GiB\" "
        "generation=\"ampere-b\" "
        "price=\"3.25USD/h\" power=\"390W\" idle-power=\"60W\">"
        "<peak dtype=\"bf16\" rate=\"271TFLOP/s\"/></device>"
        "<node-type id=\"n\" device=\"g\" devices=\"4\" "
        "host-memory=\"501GiB\" sockets=\"2\" power=\"725W\">"
        "<intra kind=\"nvlink\" bandwidth=\"300GB/s\" "
        "pair-bandwidth=\"75GB/s\" latency=\"2.5us\" "
        "host-bandwidth=\"23GB/s\"/>"
        "<nic count=\"4\" bandwidth=\"200Gb/s\" latency=\"3us\" rails=\"2\" "
        "kind=\"roce\" efficiency=\"87.5%\"/>"
        "<pcie switches=\"2\" uplink=\"23.5GB/s\"/>"
        "<storage read=\"2.5GB/s\" write=\"1.75GB/s\"/></node-type>"
        "<node-type id=\"m\" like=\"n\" price=\"17.5USD/h\" "
        "spot-price=\"6.25USD/h\" hosts=\"3\">"
        "<nic count=\"4\" bandwidth=\"200Gb/s\" latency=\"3us\" "
        "rails=\"2\"/></node-type>"
        "<group id=\"a\" node-type=\"n\" count=\"3\"/>"
        "<group id=\"b\" node-type=\"m\" count=\"2\"/>"
        "<fabric kind=\"switch\"/>"
        "<slow node=\"a-1\" compute=\"90%\" network=\"50%\"/>"
        "<slow node=\"b-0\" device=\"3\" compute=\"0.75\"/>"
        "<jitter compute=\"2%\" network=\"5%\"/>"
        "<reliability device-mtbf=\"50000h\" node-mtbf=\"30d\" "
        "restart=\"7min\" spot-interruption-every=\"40h\"/>"
        "<site pue=\"1.15\" carbon-g-per-kwh=\"233.5\"/></cluster>";
    if (!CHECK_OK(parse(text, &c, &err), &err))
        return;
    const fr_device_type *g = fr_cluster_device(&c, 4);
    CHECK_INT(g->memory_bytes, 37ull << 30);
    CHECK_NEAR(g->memory_Bps, 1555e9, 1e-15);
    CHECK_NEAR(fr_device_peak_flops(g, "bf16"), 271e12, 1e-15);
    CHECK_NEAR(fr_device_peak_flops(g, "f32"), 19.5e12, 1e-15);
    CHECK_NEAR(fr_device_peak_flops(g, "fp4"), 0.0, 0.0);
    const fr_node_type *m = fr_cluster_node_type(&c, 3);
    CHECK_STR(m->id, "m");
    CHECK(m->n_devices == 4 && m->n_nics == 4 && m->n_rails == 2);
    CHECK(m->intra_kind == FR_INTRA_NVLINK && m->n_sockets == 2);
    CHECK_NEAR(m->nic_Bps, 25e9, 1e-15);
    CHECK(m->nic_kind == FR_NIC_ROCE && m->n_hosts == 3);
    CHECK_NEAR(m->nic_efficiency_frac, 0.875, 1e-15);
    CHECK(m->n_pcie_switches == 2 && fr_cluster_node_type(&c, 0)->n_hosts == 1);
    CHECK_NEAR(m->pcie_uplink_Bps, 23.5e9, 1e-15);
    CHECK_STR(g->generation, "ampere-b");
    CHECK_NEAR(m->storage_write_Bps, 1.75e9, 1e-15);
    CHECK_INT(m->host_memory_bytes, 501ull << 30);
    CHECK_NEAR(c.spot_interruption_per_h, 1.0 / 40, 1e-15);
    CHECK_NEAR(c.node_mtbf_s, 30.0 * 86400, 1e-15);
    CHECK_NEAR(c.restart_s, 420, 1e-15);
    CHECK_NEAR(c.jitter_network_frac, 0.05, 1e-15);
    CHECK_NEAR(c.pue, 1.15, 1e-15);
    /* Three nodes by their devices, two by their own price. */
    CHECK_NEAR(fr_cluster_usd_per_h(&c, 5, false), 3 * 4 * 3.25 + 2 * 17.5,
               1e-14);
    CHECK_NEAR(fr_cluster_usd_per_h(&c, 4, true), 3 * 4 * 3.25 + 6.25, 1e-14);
    CHECK_NEAR(fr_cluster_power_w(&c, 2, 0.8),
               1.15 * 2 * (725 + 4 * (60 + 330 * 0.8)), 1e-12);
    /* A cap is on what it draws at work, not on what it draws idle. */
    CHECK_OK(fr_cluster_cap_power(&c, 230, &err), &err);
    CHECK_NEAR(fr_cluster_power_w(&c, 2, 0.8),
               1.15 * 2 * (725 + 4 * (60 + 170 * 0.8)), 1e-12);
    CHECK_FAILS(fr_cluster_cap_power(&c, 60, &err), FR_INPUT, &err);
    CHECK_OK(fr_cluster_cap_power(&c, 391, &err), &err);
    CHECK_NEAR(fr_cluster_power_w(&c, 2, 0.8),
               1.15 * 2 * (725 + 4 * (60 + 330 * 0.8)), 1e-12);
    CHECK_NEAR(fr_cluster_compute_frac(&c, 1, 2), 0.9, 1e-15);
    CHECK_NEAR(fr_cluster_compute_frac(&c, 3, 3), 0.75, 1e-15);
    CHECK_NEAR(fr_cluster_compute_frac(&c, 3, 2), 1.0, 0);
    CHECK_NEAR(fr_cluster_nic_Bps(&c, 1), 50e9, 1e-15);
    CHECK_NEAR(fr_cluster_path(&c, 0, 1).bandwidth_Bps, 50e9, 1e-15);
    CHECK_NEAR(fr_cluster_path(&c, 0, 2).bandwidth_Bps, 100e9, 1e-15);
    CHECK_NEAR(fr_cluster_path(&c, 0, 2).one_nic_Bps, 25e9, 1e-15);
    CHECK_NEAR(fr_cluster_path(&c, 2, 2).bandwidth_Bps, 300e9, 1e-15);
    CHECK_NEAR(fr_cluster_path(&c, 2, 2).one_nic_Bps, 75e9, 1e-15);
    fr_cluster_release(&c);
}

static void test_nodes_and_slots(void)
{
    fr_cluster c = {0};
    fr_err err = {0};
    char name[96];
    const char *text = HEAD GPU NODE
        "<device id=\"p\" kind=\"cpu\" cores=\"7\" memory=\"10GiB\"/>"
        "<node-type id=\"q\" device=\"p\"><nic bandwidth=\"1GB/s\" "
        "latency=\"9us\"/></node-type>"
        "<group id=\"a\" node-type=\"n\" count=\"2\"/>"
        "<group id=\"a-x\" node-type=\"q\" count=\"3\"/>"
        "<fabric kind=\"switch\"/>" TAIL;
    if (!CHECK_OK(parse(text, &c, &err), &err))
        return;
    CHECK_INT(fr_cluster_slots(&c), 2 * 3 + 3 * 7);
    CHECK_STR(fr_cluster_node_name(&c, 3, name, sizeof name), "a-x-1");
    for (int64_t node = 0; node < 5; node++)
        CHECK_INT(fr_cluster_node_find(
                      &c, fr_cluster_node_name(&c, node, name, sizeof name)),
                  node);
    CHECK_INT(fr_cluster_node_find(&c, "a-2"), -1);
    CHECK_INT(fr_cluster_node_find(&c, "a-01"), -1);
    CHECK_INT(fr_cluster_node_find(&c, "a"), -1);
    CHECK_INT(fr_cluster_node_slots(&c, 0, 4), 3);
    CHECK_INT(fr_cluster_node_slots(&c, 2, 3), 2);
    CHECK_INT(fr_cluster_slots_of_nodes(&c, 0, 1), 0);
    CHECK_INT(fr_cluster_slots_of_nodes(&c, 3, 4), 2 * 3 + 1);
    CHECK_INT(fr_cluster_slots_of_nodes(&c, 9, 8), 2 * 3);
    CHECK_INT(fr_cluster_nodes_of_ranks(&c, 0, 1), 0);
    CHECK_INT(fr_cluster_nodes_of_ranks(&c, 6, 1), 2);
    CHECK_INT(fr_cluster_nodes_of_ranks(&c, 7, 3), 3);
    CHECK_INT(fr_cluster_nodes_of_ranks(&c, 9, 3), 4);
    CHECK_INT(fr_cluster_nodes_of_ranks(&c, 7, 8), 5);
    CHECK_INT(fr_cluster_nodes_of_ranks(&c, INT64_MAX, 1), 5);
    CHECK_INT(fr_cluster_rank_memory_bytes(&c, 0, 3), 23ull << 30);
    CHECK_INT(fr_cluster_rank_memory_bytes(&c, 4, 5), (10ull << 30) / 5);
    fr_cluster_release(&c);
}

static void test_place(void)
{
    fr_cluster c = {0};
    fr_err err = {0};
    int32_t nodes[16];
    const char *text =
        HEAD "<device id=\"p\" kind=\"cpu\" cores=\"5\" memory=\"10GiB\"/>"
             "<node-type id=\"q\" device=\"p\"><nic bandwidth=\"1GB/s\" "
             "latency=\"9us\"/></node-type>"
             "<group id=\"h\" node-type=\"q\" count=\"3\"/>"
             "<fabric kind=\"switch\"/>" TAIL;
    if (!CHECK_OK(parse(text, &c, &err), &err))
        return;
    static const int32_t packed[] = {0, 0, 1, 1, 2, 2};
    CHECK_OK(fr_cluster_place(&c, 6, 2, 0, nodes, &err), &err);
    CHECK(memcmp(nodes, packed, sizeof packed) == 0);
    static const int32_t spread[] = {0, 1, 2};
    CHECK_OK(fr_cluster_place(&c, 3, 1, 1, nodes, &err), &err);
    CHECK(memcmp(nodes, spread, sizeof spread) == 0);
    CHECK_OK(fr_cluster_place(&c, 16, 1, 6, nodes, &err), &err);
    CHECK(nodes[5] == 0 && nodes[6] == 1 && nodes[15] == 2);
    CHECK_FAILS(fr_cluster_place(&c, 7, 2, 0, nodes, &err), FR_INFEASIBLE,
                &err);
    CHECK_HAS(err.text, "room for 6");
    fr_cluster_release(&c);
}

/* A path between two nodes of a fabric, in GB/s and us. */
static void check_path(const char *fabric, int64_t count, int64_t from,
                       int64_t to, double GBps, double us)
{
    char text[2048];
    fr_cluster c = {0};
    fr_err err = {0};
    snprintf(text, sizeof text,
             HEAD GPU NODE "<group id=\"h\" node-type=\"n\" count=\"%lld\"/>"
                           "%s" TAIL,
             (long long)count, fabric);
    if (!CHECK_OK(parse(text, &c, &err), &err))
        return;
    fr_path path = fr_cluster_path(&c, from, to);
    fr_path back = fr_cluster_path(&c, to, from);
    CHECK_NEAR(path.bandwidth_Bps, GBps * 1e9, 1e-14);
    CHECK_NEAR(path.latency_s, us * 1e-6, 1e-14);
    CHECK(path.bandwidth_Bps == back.bandwidth_Bps);
    CHECK_INT(path.n_hops, back.n_hops);
    CHECK_NEAR(path.latency_s, back.latency_s, 1e-15);
    fr_cluster_release(&c);
}

/* Nodes have 2 NICs of 3.125 GB/s, 7 us. */
static void test_paths(void)
{
    const char *tree = "<fabric kind=\"fat-tree\"><level down=\"4\" "
                       "oversubscription=\"8\"/><level down=\"3\" "
                       "latency=\"1.5us\"/></fabric>";
    check_path("<fabric kind=\"switch\"/>", 4, 0, 3, 6.25, 7);
    check_path(tree, 12, 0, 3, 6.25, 7);
    check_path(tree, 12, 0, 4, 6.25 * 4 / 8, 8.5);
    check_path(tree, 12, 3, 11, 6.25 * 4 / 8, 8.5);
    const char *torus = "<fabric kind=\"torus\" dims=\"5x3x2\" "
                        "bandwidth=\"2GB/s\" latency=\"0.5us\"/>";
    /* Node 29 is (4,2,1): one step back in each dimension. */
    check_path(torus, 30, 0, 29, 6, 7 + 1.5);
    check_path(torus, 30, 0, 2, 2, 7 + 1.0);
    const char *dragonfly =
        "<fabric kind=\"dragonfly\" groups=\"3\" routers=\"2\" "
        "nodes-per-router=\"2\" bandwidth=\"4GB/s\" latency=\"1us\" "
        "global-bandwidth=\"3GB/s\" global-latency=\"2us\"/>";
    check_path(dragonfly, 12, 0, 1, 6.25, 7);
    check_path(dragonfly, 12, 0, 3, 4, 8);
    check_path(dragonfly, 12, 0, 9, 3, 11);
    const char *links =
        "<fabric kind=\"links\"><switch id=\"s\"/>"
        "<link id=\"l0\" from=\"h-0\" to=\"s\" bandwidth=\"5GB/s\" "
        "latency=\"1us\"/><link id=\"l1\" from=\"s\" to=\"h-1\" "
        "bandwidth=\"1.5GB/s\" latency=\"2us\"/><link id=\"l2\" "
        "from=\"h-1\" to=\"h-2\" bandwidth=\"9GB/s\" latency=\"4us\"/>"
        "</fabric><slow link=\"l1\" network=\"50%\"/>";
    check_path(links, 3, 0, 1, 0.75, 10);
    check_path(links, 3, 0, 2, 0.75, 14);
    check_path(links, 3, 1, 2, 6.25, 11);
}

static void test_hash(void)
{
    fr_cluster a = {0}, b = {0};
    fr_err err = {0};
    CHECK_OK(fr_cluster_load(NULL, "dgx-h100-16", &a, &err), &err);
    CHECK_OK(fr_cluster_load(NULL, "dgx-h100-16", &b, &err), &err);
    CHECK(fr_cluster_hash(&a) == fr_cluster_hash(&b));
    snprintf(b.name, sizeof b.name, "renamed");
    CHECK(fr_cluster_hash(&a) == fr_cluster_hash(&b));
    b.node_types[0].nic_Bps *= 1.0000001;
    CHECK(fr_cluster_hash(&a) != fr_cluster_hash(&b));
    b.node_types[0].nic_Bps = a.node_types[0].nic_Bps;
    b.groups[0].n_nodes = 15;
    CHECK(fr_cluster_hash(&a) != fr_cluster_hash(&b));
    fr_cluster_release(&a);
    fr_cluster_release(&b);
}

typedef struct bad {
    const char *text, *says;
} bad;

#define GROUP "<group id=\"h\" node-type=\"n\" count=\"2\"/>\n"
#define SWITCH "<fabric kind=\"switch\"/>\n"
#define LINKS(inside)                                                          \
    HEAD GPU NODE GROUP "<fabric kind=\"links\">\n" inside "</fabric>" TAIL
#define LINK_TO(host)                                                          \
    "<link id=\"l\" from=\"h-0\" to=\"" host                                   \
    "\" bandwidth=\"1GB/s\" latency=\"1us\"/>\n"

static const bad bad_clusters[] = {
    {"", "c.xml:1:"},
    {"<cluster name=\"c\">", "c.xml:1:"},
    {"<platform version=\"4.1\"/>", "c.xml:1: the root is <platform>"},
    {HEAD TAIL, "c.xml:1:"},
    {HEAD "<devise id=\"g\"/>" TAIL,
     "c.xml:2: unknown element <devise> in <cluster>: did you mean <device>?"},
    {HEAD "<device id=\"g\" kind=\"gpu\" memroy=\"1GiB\"/>" TAIL, "c.xml:2: "},
    {HEAD "<device id=\"g\" kind=\"gpu\" memroy=\"1GiB\"/>" TAIL, "'memory'"},
    {HEAD "<device id=\"g\" kind=\"tpu\" memory=\"1GiB\"/>" TAIL, "c.xml:2:"},
    {HEAD "<device id=\"g\" kind=\"gpu\"/>" TAIL,
     "c.xml:2: <device id=\"g\"> needs memory"},
    {HEAD "<device id=\"g\" memory=\"1GiB\"/>" TAIL, "needs kind"},
    {HEAD "<device id=\"g\" kind=\"gpu\" memory=\"80\"/>" TAIL, "c.xml:2: "},
    {HEAD "<device id=\"g\" kind=\"gpu\" memory=\"80\"/>" TAIL, "no unit"},
    {HEAD "<device id=\"p\" kind=\"cpu\" memory=\"8GiB\"/>" TAIL,
     "needs cores"},
    {HEAD "<device id=\"p\" kind=\"cpu\" cores=\"0\" memory=\"8GiB\"/>" TAIL,
     "c.xml:2:"},
    {HEAD "<device id=\"g\" like=\"h100-sxn\"/>" TAIL,
     "did you mean 'h100-sxm'?"},
    {HEAD "<device id=\"a\" like=\"b\"/>\n<device id=\"b\" like=\"a\"/>" TAIL,
     "cycle"},
    {HEAD "<device id=\"a\" like=\"a\"/>" TAIL, "c.xml:2: device 'a' is like "
                                                "itself"},
    {HEAD GPU GPU TAIL, "c.xml:4: duplicate device id 'g'"},
    {HEAD
     "<device id=\"g\" kind=\"cpu\" cores=\"4\" memory=\"8GiB\"/>\n"
     "<node-type id=\"n\" device=\"g\"><nic bandwidth=\"25Gb/s\" "
     "latency=\"7us\" efficiency=\"80%\"/></node-type>\n" GROUP SWITCH TAIL,
     "c.xml:3: efficiency of NICs: it acts on GPU nodes only"},
    {HEAD GPU NODE NODE GROUP SWITCH TAIL,
     "c.xml:5: duplicate node-type id 'n'"},
    {HEAD GPU NODE GROUP GROUP SWITCH TAIL, "c.xml:6: duplicate group id 'h'"},
    {HEAD GPU NODE "<group id=\"h\" node-type=\"m\"/>" TAIL,
     "c.xml:5: no node-type 'm'"},
    {HEAD GPU NODE "<group id=\"h\" node-type=\"n\" count=\"-2\"/>" TAIL,
     "c.xml:5:"},
    {HEAD GPU NODE "<group id=\"h\" node-type=\"n\" count=\"2000000\"/>" TAIL,
     "c.xml:5:"},
    {HEAD GPU NODE GROUP TAIL, "c.xml:1: 2 nodes need a <fabric>"},
    {HEAD GPU NODE GROUP SWITCH SWITCH TAIL, "c.xml:7: a second <fabric>"},
    {HEAD GPU "<node-type id=\"n\" device=\"x\"/>" TAIL,
     "c.xml:4: no device 'x'"},
    {HEAD GPU "<node-type id=\"n\" device=\"g\" devices=\"4\"/>" TAIL,
     "c.xml:4: 4 devices need an <intra> with bandwidth"},
    {HEAD GPU "<node-type id=\"n\" device=\"g\">\n<nic bandwidth=\"25\" "
              "latency=\"1us\"/></node-type>" TAIL,
     "c.xml:5: "},
    {HEAD GPU "<node-type id=\"n\" device=\"g\">\n<nic bandwidth=\"0GB/s\" "
              "latency=\"1us\"/></node-type>" TAIL,
     "c.xml:5: "},
    {HEAD GPU "<node-type id=\"n\" device=\"g\">\n<nic bandwidth=\"-5GB/s\" "
              "latency=\"1us\"/></node-type>" TAIL,
     "c.xml:5: "},
    {HEAD GPU "<node-type id=\"n\" device=\"g\">\n<nic bandwidth=\"5GB/s\" "
              "latency=\"3\"/></node-type>" TAIL,
     "no unit"},
    {HEAD GPU "<node-type id=\"n\" device=\"g\">\n<nic count=\"4\" "
              "rails=\"3\" bandwidth=\"5GB/s\" latency=\"3us\"/>"
              "</node-type>" TAIL,
     "c.xml:5: 4 NICs % 3 rails != 0"},
    {HEAD GPU NODE GROUP "<fabric kind=\"mesh\"/>" TAIL, "c.xml:6:"},
    {HEAD GPU NODE GROUP "<fabric kind=\"switch\" dims=\"2\"/>" TAIL,
     "c.xml:6: 'dims' means nothing in a fabric of kind switch"},
    {HEAD GPU NODE GROUP "<fabric kind=\"fat-tree\"/>" TAIL,
     "c.xml:6: a fabric of kind fat-tree needs <level"},
    {HEAD GPU NODE GROUP "<fabric kind=\"fat-tree\">\n<level down=\"1\"/>"
                         "</fabric>" TAIL,
     "c.xml:6: the levels reach 1 nodes, the cluster has 2"},
    {HEAD GPU NODE GROUP "<fabric kind=\"rail\">\n<level down=\"2\" "
                         "oversubscription=\"0.5\"/></fabric>" TAIL,
     "c.xml:7: oversubscription is 0.5"},
    {HEAD GPU NODE GROUP "<fabric kind=\"torus\" dims=\"3x1\" "
                         "bandwidth=\"1GB/s\" latency=\"1us\"/>" TAIL,
     "c.xml:6: dims make 3 nodes, the cluster has 2"},
    {LINKS(LINK_TO("h9")), "c.xml:7: link to unknown host 'h9'"},
    {LINKS(LINK_TO("h-2")), "c.xml:7: link to unknown host 'h-2'"},
    {LINKS(LINK_TO("h8") LINK_TO("h9")), "c.xml:8: link to unknown host 'h9'"},
    {LINKS(LINK_TO("h-0")), "c.xml:7: link 'l' goes from 'h-0' to itself"},
    {LINKS(LINK_TO("h-1") LINK_TO("h-1")), "c.xml:8: duplicate link id 'l'"},
    {LINKS("<switch id=\"s\"/><switch id=\"s\"/>"), "duplicate switch id"},
    {LINKS("<switch id=\"h-1\"/>"), "a node has it"},
    {LINKS("<switch id=\"s\"/>" LINK_TO("s")), "no way from 'h-0' to 'h-1'"},
    {LINKS("<link id=\"l\" from=\"h-0\" to=\"h-1\" bandwidth=\"0Gbps\" "
           "latency=\"1us\"/>"),
     "c.xml:7: "},
    {HEAD GPU NODE GROUP SWITCH "<slow node=\"h-7\" compute=\"80%\"/>" TAIL,
     "c.xml:7: unknown node 'h-7'"},
    {HEAD GPU NODE GROUP SWITCH "<slow node=\"h-1\" device=\"3\" "
                                "compute=\"80%\"/>" TAIL,
     "c.xml:7: device 3: 'h-1' has 0 to 2"},
    {HEAD GPU NODE GROUP SWITCH "<slow node=\"h-1\" compute=\"0%\"/>" TAIL,
     "c.xml:7: a speed of 0"},
    {HEAD GPU NODE GROUP SWITCH "<slow node=\"h-1\"/>" TAIL,
     "c.xml:7: <slow> needs"},
    {HEAD GPU NODE GROUP SWITCH "<slow link=\"l\" network=\"50%\"/>" TAIL,
     "c.xml:7: unknown link 'l'"},
    {HEAD GPU NODE GROUP SWITCH "<site pue=\"0.5\"/>" TAIL,
     "c.xml:7: pue is 0.5"},
    {HEAD GPU NODE GROUP SWITCH "<jitter compute=\"120%\"/>" TAIL, "c.xml:7:"},
    {HEAD "<machine detect=\"no\"/>" TAIL, "c.xml:2: <machine> must have"},
    {HEAD "<machine detect=\"yes\" parts=\"0\"/>" TAIL, "c.xml:2:"},
    {HEAD "<machine detect=\"yes\"/><machine detect=\"yes\"/>" TAIL,
     "a second <machine>"},
    {"<!DOCTYPE c [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b "
     "\"&a;&a;&a;&a;&a;&a;&a;&a;\">]>\n<cluster name=\"&b;\"/>",
     "c.xml:"},
};

/* Each line names the file; none is in the words of a schema. */
static void check_lines(const char *text)
{
    for (const char *at = text; at != NULL;) {
        CHECK(strncmp(at, "c.xml:", 6) == 0);
        at = strchr(at, '\n');
        at = at != NULL ? at + 1 : NULL;
    }
    CHECK(strstr(text, "facet") == NULL && strstr(text, "atomic") == NULL &&
          strstr(text, "Element '") == NULL);
}

static void test_bad(void)
{
    for (size_t i = 0; i < sizeof bad_clusters / sizeof bad_clusters[0]; i++) {
        fr_cluster cluster;
        fr_err err = {0};
        memset(&cluster, 0x5a, sizeof cluster);
        const fr_cluster before = cluster;
        CHECK_INT(parse(bad_clusters[i].text, &cluster, &err), FR_INPUT);
        CHECK_INT(err.status, FR_INPUT);
        if (!CHECK_HAS(err.text, bad_clusters[i].says))
            printf("  case %zu\n", i);
        check_lines(err.text);
        CHECK(memcmp(&before, &cluster, sizeof cluster) == 0);
    }
}

/* One reading finds all problems, in the order of the lines, each once. */
static void test_all_at_once(void)
{
    static const char text[] =
        "<cluster name=\"two racks\">\n"
        "<device id=\"g\" kind=\"gpu\" memory=\"80\"/>\n"
        "<node-type id=\"n\" device=\"g\" devices=\"eight\">\n"
        "<intra kind=\"nvlinc\" bandwidth=\"450GB/s\"/>\n"
        "<nic count=\"8\" bandwith=\"400Gb/s\" latency=\"3us\"/>\n"
        "</node-type>\n"
        "<group id=\"rack0\" node-type=\"m\" count=\"4\"/>\n"
        "<group id=\"rack1\" node-type=\"n\" count=\"4\"/>\n"
        "<fabric kind=\"fat-tree\">\n"
        "<level down=\"4\" oversubscription=\"2:1\"/></fabric>\n"
        "<slow node=\"rack7-0\" compute=\"80\"/>\n"
        "<foo/>\n"
        "</cluster>";
    static const char *const says[] = {
        "c.xml: 11 problems:\nc.xml:1: <cluster> name is 'two racks'",
        "\nc.xml:2: <device> memory: '80' has no unit",
        "\nc.xml:3: <node-type> devices: 'eight'",
        "\nc.xml:4: <intra> kind is 'nvlinc'; did you mean nvlink",
        "\nc.xml:5: <nic> has the unknown attribute 'bandwith'",
        "\nc.xml:5: <nic> needs the attribute 'bandwidth'",
        "\nc.xml:7: no node-type 'm' in this file",
        "\nc.xml:10: <level> oversubscription: '2:1'",
        "\nc.xml:11: <slow> compute: '80'",
        "\nc.xml:11: unknown node 'rack7-0'; nodes are called 'rack0-0'",
        "\nc.xml:12: unknown element <foo>",
    };
    fr_cluster cluster;
    fr_err err = {0};
    const char *at = err.text;
    CHECK_INT(parse(text, &cluster, &err), FR_INPUT);
    check_lines(err.text);
    for (size_t i = 0; i < sizeof says / sizeof says[0]; i++) {
        const char *found = strstr(at, says[i]);
        if (CHECK_HAS(at, says[i]) && found != NULL)
            at = found;
    }
}

/* More than an error holds is counted. */
static void test_too_many_problems(void)
{
    char text[16384] = "<cluster name=\"c\">\n";
    size_t n = strlen(text);
    for (int i = 0; i < 200; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "<group id=\"a%d\" node-type=\"none\"/>\n", i);
    snprintf(text + n, sizeof text - n, "</cluster>");
    fr_cluster cluster;
    fr_err err = {0};
    CHECK_INT(parse(text, &cluster, &err), FR_INPUT);
    check_lines(err.text);
    CHECK_HAS(err.text, "c.xml: 201 problems:");
    CHECK_HAS(err.text, "\nc.xml: ... and ");
    const char *last = strrchr(err.text, '\n');
    CHECK(last != NULL && strlen(last) < 60);
}

static void test_bad_names(void)
{
    static const bad names[] = {
        {"dgx-h10:4", "did you mean 'dgx-h100'?"},
        {"dgx-h100:0", "give 1 to 1000000 nodes"},
        {"dgx-h100:many", "give e.g. dgx-h100:16"},
        {"dgx-h100:99999999999", "give 1 to 1000000 nodes"},
        {"torus-46", "did you mean 'torus-64'?"},
        {":4", "give a node type and a count"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        fr_cluster cluster = {0};
        fr_err err = {0};
        CHECK_FAILS(fr_cluster_load(NULL, names[i].text, &cluster, &err),
                    FR_INPUT, &err);
        CHECK_HAS(err.text, names[i].says);
    }
    fr_cluster cluster = {0};
    fr_err err = {0};
    CHECK_FAILS(fr_cluster_load(NULL, "no/such.xml", &cluster, &err), FR_IO,
                &err);
}

/* The compiled-in schema is the one in configs/schema. */
static void test_schema_is_the_file(void)
{
    char dir[FR_CONFIG_PATH], path[FR_CONFIG_PATH + 32];
    char *text = NULL;
    size_t n = 0;
    fr_err err = {0};
    if (!CHECK_OK(fr_config_dir(NULL, "schema", dir, &err), &err))
        return;
    snprintf(path, sizeof path, "%s/cluster.xsd", dir);
    if (!CHECK_OK(fr_file_read(path, 0, &text, &n, &err), &err))
        return;
    CHECK_INT(n, fr_cluster_xsd_n);
    CHECK(n == fr_cluster_xsd_n && memcmp(text, fr_cluster_xsd, n) == 0);
    free(text);
}

CHECK_MAIN({"configs", test_configs}, {"sizes", test_sizes},
           {"this_machine", test_this_machine}, {"values", test_values},
           {"nodes_and_slots", test_nodes_and_slots}, {"place", test_place},
           {"paths", test_paths}, {"hash", test_hash}, {"bad", test_bad},
           {"all at once", test_all_at_once},
           {"too many problems", test_too_many_problems},
           {"bad_names", test_bad_names}, {"schema", test_schema_is_the_file})
