/*
 * test_cluster_write.c: what is written is read back as the same cluster: all
 * of configs/clusters, all of the catalogue, and values that no short decimal
 * hits.
 */
#include "core/base/text.h"
#include "spec/catalog/catalog.h"
#include "spec/catalog/config_path.h"
#include "spec/cluster/cluster_write.h"
#include "tests/check.h"

#include <dirent.h>
#include <string.h>

static void check_round_trip(const fr_cluster *cluster)
{
    fr_buffer first, second;
    fr_cluster back = {0};
    fr_err err = {0};
    fr_buffer_init(&first);
    fr_buffer_init(&second);
    CHECK_OK(fr_cluster_format(cluster, "a -- b-", &first, &err), &err);
    if (CHECK_OK(fr_cluster_parse("w.xml", first.data, first.n, &back, &err),
                 &err)) {
        CHECK_INT(fr_cluster_hash(&back), fr_cluster_hash(cluster));
        CHECK_STR(back.name, cluster->name);
        CHECK_STR(back.groups[0].id, cluster->groups[0].id);
        CHECK_STR(back.devices[0].id, cluster->devices[0].id);
        CHECK_OK(fr_cluster_format(&back, "a -- b-", &second, &err), &err);
        CHECK_STR(fr_buffer_text(&second), fr_buffer_text(&first));
    }
    fr_cluster_release(&back);
    fr_buffer_release(&first);
    fr_buffer_release(&second);
}

static void test_configs(void)
{
    char path[FR_CONFIG_PATH];
    fr_err err = {0};
    int n = 0;
    if (!CHECK_OK(fr_config_dir(NULL, "clusters", path, &err), &err))
        return;
    DIR *dir = opendir(path);
    CHECK(dir != NULL);
    for (const struct dirent *at = dir ? readdir(dir) : NULL; at;
         at = readdir(dir)) {
        char name[FR_CONFIG_PATH];
        fr_cluster cluster = {0};
        if (!fr_text_ends(at->d_name, ".xml"))
            continue;
        fr_text_copy_cut(name, sizeof name, at->d_name);
        name[strlen(name) - 4] = '\0';
        if (CHECK_OK(fr_cluster_load(NULL, name, &cluster, &err), &err))
            check_round_trip(&cluster);
        fr_cluster_release(&cluster);
        n++;
    }
    if (dir)
        closedir(dir);
    CHECK(n >= 8);
}

static void test_catalog(void)
{
    for (size_t i = 0; i < fr_catalog_n_nodes(); i++) {
        fr_cluster cluster = {0};
        fr_err err = {0};
        const char *id = fr_catalog_node_at(i)->type.id;
        CHECK_OK(fr_catalog_cluster(id, i % 2 ? 1 : 7, &cluster, &err), &err);
        check_round_trip(&cluster);
        fr_cluster_release(&cluster);
    }
}

/* Every element, with numbers that need all their digits. */
static void test_all(void)
{
    const char *text =
        "<cluster name=\"c\" one-machine=\"yes\">"
        "<device id=\"g\" kind=\"gpu\" generation=\"gen-1\" cores=\"113\" "
        "memory=\"23456789B\" memory-bandwidth=\"731.0000000000001GB/s\" "
        "cache=\"3MiB\" power=\"333.3W\" idle-power=\"11W\" "
        "price=\"1.1USD/h\"><peak dtype=\"bf16\" rate=\"271.3TFLOP/s\"/>"
        "</device>"
        "<node-type id=\"n\" device=\"g\" devices=\"4\" hosts=\"2\" "
        "host-memory=\"501MiB\" sockets=\"2\" power=\"725W\" "
        "price=\"17.3USD/h\" spot-price=\"0.1USD/h\">"
        "<intra kind=\"nvlink\" bandwidth=\"301GB/s\" "
        "pair-bandwidth=\"75.3GB/s\" latency=\"2.385us\" "
        "host-bandwidth=\"23GB/s\"/>"
        "<nic count=\"4\" kind=\"efa\" bandwidth=\"200Gb/s\" latency=\"3us\" "
        "rails=\"2\" efficiency=\"73.3%\"/>"
        "<pcie switches=\"2\" uplink=\"24GB/s\"/>"
        "<storage read=\"2.5GB/s\" write=\"1.75GB/s\"/></node-type>"
        "<group id=\"a\" node-type=\"n\" count=\"3\"/>"
        "<group id=\"b\" node-type=\"n\" count=\"2\"/>"
        "<fabric kind=\"links\" sharp=\"yes\"><switch id=\"s\"/><switch "
        "id=\"t\"/>"
        "<link id=\"l0\" from=\"a-0\" to=\"s\" bandwidth=\"0.3GB/s\" "
        "latency=\"0s\"/>"
        "<link id=\"l1\" from=\"s\" to=\"a-1\" bandwidth=\"7B/s\" "
        "latency=\"1ns\" duplex=\"half\"/>"
        "<link id=\"l2\" from=\"s\" to=\"t\" bandwidth=\"7kB/s\" "
        "latency=\"1ms\"/>"
        "<link id=\"l3\" from=\"a-2\" to=\"t\" bandwidth=\"7B/s\" "
        "latency=\"1ns\"/>"
        "<link id=\"l4\" from=\"t\" to=\"b-0\" bandwidth=\"7B/s\" "
        "latency=\"1ns\"/>"
        "<link id=\"l5\" from=\"b-1\" to=\"t\" bandwidth=\"7B/s\" "
        "latency=\"1ns\"/></fabric>"
        "<slow node=\"a-1\" compute=\"90%\" network=\"33.3%\"/>"
        "<slow node=\"b-0\" device=\"3\" compute=\"0.7\"/>"
        "<slow link=\"l3\" network=\"0.1\"/>"
        "<jitter compute=\"2%\" network=\"5.1%\"/>"
        "<reliability device-mtbf=\"50000h\" node-mtbf=\"30d\" "
        "restart=\"7min\" spot-interruption-every=\"41h\"/>"
        "<site pue=\"1.15\" carbon-g-per-kwh=\"233.5\"/></cluster>";
    fr_cluster cluster = {0};
    fr_err err = {0};
    if (!CHECK_OK(fr_cluster_parse("c.xml", text, strlen(text), &cluster, &err),
                  &err))
        return;
    check_round_trip(&cluster);
    cluster.fabric.links[0].bandwidth_Bps = 1e9 / 3.0;
    cluster.fabric.links[2].latency_s = 1e-6 / 7.0;
    cluster.node_types[0].nic_efficiency_frac = 2.0 / 3.0;
    cluster.devices[0].peaks[0].flops = 1e12 / 7.0;
    check_round_trip(&cluster);
    fr_cluster_release(&cluster);
}

/* The same jitter from the catalogue and from a file that says none; what a
 * file says holds, 0 too. */
static void test_jitter(void)
{
    static const struct {
        const char *kind, *jitter;
        double expected_frac;
    } cases[] = {{"gpu", "", 0.015},
                 {"gpu", "<jitter network=\"3%\"/>", 0.015},
                 {"gpu", "<jitter compute=\"0%\"/>", 0},
                 {"gpu", "<jitter compute=\"2.385%\"/>", 0.02385},
                 {"cpu", "", 0}};
    fr_cluster catalog = {0};
    fr_err err = {0};
    if (CHECK_OK(fr_catalog_cluster("dgx-h100", 2, &catalog, &err), &err))
        CHECK_NEAR(catalog.jitter_compute_frac, 0.015, 1e-15);
    fr_cluster_release(&catalog);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[1024];
        fr_cluster cluster = {0};
        snprintf(text, sizeof text,
                 "<cluster name=\"c\"><device id=\"d\" kind=\"%s\" "
                 "cores=\"4\" memory=\"8GiB\" memory-bandwidth=\"90GB/s\">"
                 "<peak dtype=\"fp32\" rate=\"1TFLOP/s\"/></device>"
                 "<node-type id=\"n\" device=\"d\" devices=\"1\">"
                 "<nic count=\"1\" bandwidth=\"10Gb/s\" latency=\"9us\"/>"
                 "</node-type><group id=\"g\" node-type=\"n\" count=\"2\"/>"
                 "<fabric kind=\"switch\"/>%s</cluster>",
                 cases[i].kind, cases[i].jitter);
        if (CHECK_OK(
                fr_cluster_parse("c.xml", text, strlen(text), &cluster, &err),
                &err)) {
            CHECK_NEAR(cluster.jitter_compute_frac, cases[i].expected_frac,
                       1e-15);
            check_round_trip(&cluster);
        }
        fr_cluster_release(&cluster);
    }
}

CHECK_MAIN({"jitter", test_jitter}, {"configs", test_configs},
           {"catalog", test_catalog}, {"all", test_all})
