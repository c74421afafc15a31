/*
 * test_import.c: files in the shape that other tools write, against values
 * worked out by hand from the files; what is written is read back.
 */
#include "core/system/fileio.h"
#include "interop/import/import.h"
#include "spec/catalog/catalog.h"
#include "spec/cluster/cluster_write.h"
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIXTURES "tests/golden/fixtures/import/"

typedef struct how {
    const char *gpu, *node_type;
    int64_t n_nodes;
} how;

static fr_status import_text(const char *name, const char *text, how asked,
                             fr_import *out, fr_err *err)
{
    fr_import_options options = {.gpu = asked.gpu,
                                 .node_type = asked.node_type,
                                 .n_nodes = asked.n_nodes};
    int kind = fr_import_guess(text, strlen(text));
    if (!CHECK(kind >= 0))
        return FR_FAILURE;
    return fr_import_parse(kind, name, text, strlen(text), &options, out, err);
}

/* The cluster is written and read back: the same. */
static void check_round_trip(const fr_import *import)
{
    fr_buffer text;
    fr_cluster back = {0};
    fr_err err = {0};
    fr_buffer_init(&text);
    CHECK_OK(fr_cluster_format(&import->cluster, fr_buffer_text(&import->notes),
                               &text, &err),
             &err);
    if (CHECK_OK(fr_cluster_parse("w.xml", text.data, text.n, &back, &err),
                 &err))
        CHECK_INT(fr_cluster_hash(&back), fr_cluster_hash(&import->cluster));
    fr_cluster_release(&back);
    fr_buffer_release(&text);
}

static bool import_file(const char *file, how asked, fr_import *out)
{
    char path[256], *text;
    fr_err err = {0};
    snprintf(path, sizeof path, FIXTURES "%s", file);
    if (!CHECK_OK(fr_file_read(path, 0, &text, NULL, &err), &err))
        return false;
    bool is_fine = CHECK_OK(import_text(path, text, asked, out, &err), &err);
    free(text);
    if (is_fine && !out->is_profile)
        check_round_trip(out);
    return is_fine;
}

static bool says(const fr_import *import, const char *text)
{
    return strstr(fr_buffer_text(&import->notes), text) != NULL;
}

static void test_skeleton(void)
{
    fr_import a;
    if (!import_file("skeleton.xml", (how){NULL, NULL, 3}, &a))
        return;
    const fr_node_type *t = &a.cluster.node_types[0];
    CHECK_STR(a.cluster.devices[0].id, "a100-sxm-80g");
    CHECK(t->n_devices == 4 && t->n_nics == 2 && t->n_sockets == 2);
    CHECK(t->n_pcie_switches == 2 && t->nic_kind == FR_NIC_INFINIBAND);
    CHECK(t->intra_kind == FR_INTRA_NVSWITCH);
    CHECK_NEAR(t->intra_Bps, 300e9, 1e-15);
    CHECK_NEAR(t->host_link_Bps, 12e9, 1e-15); /* one GPU has 8 lanes */
    CHECK_NEAR(t->pcie_uplink_Bps, 24e9, 1e-15);
    CHECK_NEAR(t->nic_Bps, 25e9, 1e-15); /* ConnectX-6 */
    CHECK_INT(fr_cluster_n_nodes(&a.cluster), 3);
    CHECK_INT(a.cluster.fabric.kind, FR_FABRIC_SWITCH);
    CHECK(says(&a, "full rate of their model") && says(&a, "class 03"));
    fr_import_release(&a);
    if (!import_file("skeleton.xml", (how){"a100-sxm-40g", NULL, 0}, &a))
        return;
    CHECK_STR(a.cluster.devices[0].id, "a100-sxm-40g");
    CHECK(says(&a, "in place of the a100-sxm-80g"));
    fr_import_release(&a);
}

static void test_dump(void)
{
    fr_import a;
    if (!import_file("dump.xml", (how){0}, &a))
        return;
    const fr_node_type *t = &a.cluster.node_types[0];
    CHECK_STR(a.cluster.devices[0].id, "h100-sxm");
    CHECK(t->n_devices == 2 && t->n_nics == 2 && t->n_pcie_switches == 2);
    CHECK(t->intra_kind == FR_INTRA_NVSWITCH);
    CHECK_NEAR(t->intra_Bps, 17 * 25e9, 1e-15); /* one GPU lost a link */
    CHECK_NEAR(t->nic_Bps, 50e9, 1e-15);
    CHECK_NEAR(t->nic_latency_s, 1.25e-6, 1e-15);
    CHECK_NEAR(t->host_link_Bps, 48e9, 1e-15);
    CHECK(says(&a, "1 of 3 GPUs have no rank") && says(&a, "1 slower NICs"));
    CHECK(!says(&a, "NVLink of"));
    fr_import_release(&a);
}

static void test_matrix(void)
{
    fr_import a;
    if (import_file("cube.txt", (how){"v100-sxm2-32g", NULL, 0}, &a)) {
        const fr_node_type *t = &a.cluster.node_types[0];
        CHECK(t->intra_kind == FR_INTRA_NVLINK && t->n_devices == 4);
        CHECK_NEAR(t->intra_Bps, 100e9, 1e-15); /* 4 links of 25 GB/s */
        CHECK_NEAR(t->intra_p2p_Bps, 25e9, 1e-15);
        CHECK(t->n_nics == 2 && t->n_pcie_switches == 2 && t->n_sockets == 2);
        fr_import_release(&a);
    }
    if (import_file("switched.txt", (how){"h100-sxm", "dgx-h100", 2}, &a)) {
        const fr_node_type *t = &a.cluster.node_types[0];
        CHECK(t->intra_kind == FR_INTRA_NVSWITCH && t->n_nics == 2);
        CHECK_NEAR(t->intra_Bps, 450e9, 1e-15);
        CHECK_NEAR(t->nic_Bps, 50e9, 1e-15); /* of the node type */
        CHECK_INT(t->nic_kind, FR_NIC_INFINIBAND);
        fr_import_release(&a);
    }
    if (import_file("bridged.txt", (how){"a100-sxm-80g", NULL, 0}, &a)) {
        CHECK_INT(a.cluster.node_types[0].intra_kind, FR_INTRA_PCIE);
        CHECK_NEAR(a.cluster.node_types[0].intra_Bps, 24e9, 1e-15);
        CHECK(says(&a, "join some GPUs only"));
        fr_import_release(&a);
    }
}

static void test_hwloc(void)
{
    fr_import a;
    if (import_file("machine.xml", (how){0}, &a)) {
        const fr_node_type *t = &a.cluster.node_types[0];
        CHECK_STR(a.cluster.devices[0].id, "v100-sxm2-32g");
        CHECK(t->n_devices == 3 && t->n_nics == 1 && t->n_pcie_switches == 1);
        CHECK(t->intra_kind == FR_INTRA_NVLINK);
        CHECK_NEAR(t->intra_Bps, 75e9, 1e-15); /* 2 + 1 links */
        CHECK_NEAR(t->intra_p2p_Bps, 25e9, 1e-15);
        CHECK_NEAR(t->host_link_Bps, 12e9, 1e-12);
        CHECK_NEAR(t->nic_Bps, 12.5e9, 1e-15); /* ConnectX-5 */
        CHECK_INT(t->host_memory_bytes, 270582939648);
        fr_import_release(&a);
    }
    if (import_file("cpu_only.xml", (how){NULL, "dgx-h100", 2}, &a)) {
        CHECK_INT(fr_cluster_slots(&a.cluster), 6);
        CHECK_INT(a.cluster.devices[0].memory_bytes, 1ull << 36);
        CHECK_INT(a.cluster.node_types[0].n_nics, 8);
        fr_import_release(&a);
    }
}

static void test_slurm(void)
{
    fr_import a;
    if (import_file("topology.conf", (how){NULL, "dgx-h100", 0}, &a)) {
        const fr_fabric *f = &a.cluster.fabric;
        CHECK(f->kind == FR_FABRIC_FAT_TREE && f->n_levels == 2);
        CHECK(f->levels[0].n_down == 4 && f->levels[1].n_down == 2);
        CHECK_INT(fr_cluster_n_nodes(&a.cluster), 8);
        CHECK_INT(fr_cluster_node_find(&a.cluster, "leaf1-3"), 7);
        fr_import_release(&a);
    }
    if (import_file("irregular.conf", (how){NULL, "p4d.24xlarge", 0}, &a)) {
        CHECK_INT(a.cluster.fabric.kind, FR_FABRIC_LINKS);
        CHECK(a.cluster.fabric.n_links == 9 &&
              a.cluster.fabric.n_switches == 3);
        CHECK_NEAR(fr_cluster_path(&a.cluster, 0, 6).bandwidth_Bps, 50e9,
                   1e-15);
        CHECK_INT(fr_cluster_path(&a.cluster, 0, 6).n_hops, 4);
        CHECK_INT(fr_cluster_path(&a.cluster, 4, 6).n_hops, 2);
        fr_import_release(&a);
    }
    if (import_file("blocks.conf", (how){NULL, "gb200-nvl72", 0}, &a)) {
        CHECK_INT(fr_cluster_n_nodes(&a.cluster), 2);
        CHECK_INT(fr_cluster_slots(&a.cluster), 144);
        fr_import_release(&a);
    }
    if (import_file("blocks.conf", (how){NULL, "dgx-h100", 0}, &a)) {
        CHECK_INT(a.cluster.fabric.levels[0].n_down, 18);
        CHECK_INT(fr_cluster_n_nodes(&a.cluster), 36);
        fr_import_release(&a);
    }
}

static void test_simgrid(void)
{
    fr_import a;
    if (!import_file("ring.xml", (how){NULL, "dgx-a100", 0}, &a))
        return;
    CHECK_INT(a.cluster.fabric.n_links, 2);
    CHECK(a.cluster.fabric.links[0].is_half_duplex);
    CHECK(!a.cluster.fabric.links[1].is_half_duplex);
    fr_path path = fr_cluster_path(&a.cluster, 0, 2);
    CHECK_NEAR(path.bandwidth_Bps, 5e9, 1e-15);
    CHECK_NEAR(path.latency_s, 5e-6, 1e-12);
    CHECK_INT(path.n_hops, 2);
    fr_import_release(&a);
}

static void test_nccl_tests(void)
{
    fr_import a;
    if (import_file("all_reduce.txt", (how){0}, &a)) {
        const fr_comm_point *p = &a.profile.comm[1];
        CHECK(a.is_profile && a.profile.n_comm == 2);
        CHECK_STR(p->op, "all_reduce");
        CHECK_STR(p->scope, "shm");
        CHECK(p->n_group == 4 && p->n_bytes == 1073741824 && p->is_async);
        CHECK_NEAR(p->sample.median_s, (3108.8e-6 + 2924.7e-6) / 2, 1e-14);
        CHECK_NEAR(p->sample.rel_err, 184.1 / 6033.5, 1e-12);
        CHECK_INT(p->sample.n_samples, 20);
        fr_import_release(&a);
    }
    if (import_file("all_gather.json", (how){NULL, NULL, 2}, &a)) {
        CHECK_STR(a.profile.comm[0].op, "all_gather");
        CHECK_STR(a.profile.comm[0].scope, "net:2"); /* as --nodes says */
        CHECK_NEAR(a.profile.comm[0].sample.median_s, 24e-6, 1e-14);
        CHECK_INT(a.profile.comm[0].sample.n_samples, 37);
        fr_import_release(&a);
    }
}

/* Old versions: 'error' for '#wrong', no root, a row of no bytes. */
static void test_old_nccl_tests(void)
{
    char *text;
    fr_err err = {0};
    fr_import a;
    if (!CHECK_OK(fr_file_read(FIXTURES "old_style.txt", 0, &text, NULL, &err),
                  &err))
        return;
    if (CHECK_OK(import_text("x/all_reduce_2.log", text, (how){0}, &a, &err),
                 &err)) {
        CHECK_INT(a.profile.n_comm, 2);
        CHECK_STR(a.profile.comm[0].scope, "net:2");
        CHECK_INT(a.profile.comm[0].n_group, 2);
        CHECK_NEAR(a.profile.comm[0].sample.median_s, 15.2e-6, 1e-12);
        fr_import_release(&a);
    }
    free(text);
}

/* A device's name in bytes that are no UTF-8: the profile is read back. */
static void test_broken_names(void)
{
    fr_buffer text;
    fr_import a;
    fr_profile back;
    fr_err err = {0};
    fr_buffer_init(&text);
    fr_buffer_puts(&text, "# nThread 1 iters: 20\n");
    for (int i = 0; i < 2; i++) {
        fr_buffer_printf(&text,
                         "#  Rank  %d Group  0 Pid 1 on a device %d "
                         "[0x8d] NVIDIA ",
                         i, i);
        for (int k = 0; k < 40; k++)
            fr_buffer_puts(&text, "\xff\xff\xc3\xa9 ");
        fr_buffer_puts(&text, "\n");
    }
    fr_buffer_puts(&text, "#  size count type redop root time algbw busbw "
                          "#wrong time algbw busbw #wrong\n"
                          "1024 256 float sum -1 10 0.1 0.1 0 10 0.1 0.1 0\n");
    if (CHECK_OK(import_text("all_reduce.log", fr_buffer_text(&text), (how){0},
                             &a, &err),
                 &err)) {
        fr_buffer written;
        fr_buffer_init(&written);
        CHECK_OK(fr_profile_format(&a.profile, &written, &err), &err);
        if (CHECK_OK(
                fr_profile_parse("w", written.data, written.n, &back, &err),
                &err))
            fr_profile_release(&back);
        fr_buffer_release(&written);
        fr_import_release(&a);
    }
    fr_buffer_release(&text);
}

/* ---- what is refused ---------------------------------------------------- */

#define HEADING                                                                \
    "# nThread 1 iters: 20\n"                                                  \
    "#  Rank  0 Group  0 Pid 1 on a device 0 [0x8d] NVIDIA H200\n"             \
    "#  Rank  1 Group  0 Pid 1 on a device 1 [0x8e] NVIDIA H200\n"             \
    "#  size count type redop root time algbw busbw #wrong time algbw busbw "  \
    "#wrong\n"
#define SYSTEM(inside) "<system version=\"1\">\n<cpu>" inside "</cpu></system>"
#define MATRIX "\tGPU0\tGPU1\tCPU Affinity\n"

static const struct {
    const char *name, *text, *says;
} bad[] = {
    {"all_reduce", HEADING "8 2 float sum -1 5.5 1 1 3 5.5 1 1 0\n",
     "all_reduce:5: 3 wrong values at 8 bytes"},
    {"all_reduce", HEADING "8 2 float sum -1 5.5 1 1 0\n",
     "all_reduce:5: 9 values under a heading of 13 columns"},
    {"all_reduce", HEADING "8 2 float sum -1 x 1 1 0 5.5 1 1 0\n",
     "all_reduce:5: 'x' is not a number"},
    {"all_reduce", HEADING "8 2 float sum -1 0 1 1 0 5.5 1 1 0\n",
     "a time of 0 us"},
    {"all_reduce", HEADING "# Out of bounds values : 2 FAILED\n",
     "all_reduce:5: out of bounds"},
    {"x", HEADING "8 2 float sum -1 5.5 1 1 0 5.5 1 1 0\n",
     "which test it was is not said"},
    {"all_reduce", HEADING, "no row"},
    {"all_reduce", HEADING "#  Rank 0 Group 0 Pid 2 on b device 0 [0] X\n",
     "all_reduce:5: rank 0 where rank 2"},
    {"all_gather.json", "{\"version\": 2, \"nccl_version\": 1}",
     "version 2 of nccl-tests' JSON; 3 is known"},
    {"n.xml", "<system version=\"2\"/>", "n.xml:1: version 2"},
    {"n.xml", "<system/>", "'version'"},
    {"n.xml", SYSTEM(""), "n.xml:1: no GPU"},
    {"n.xml", SYSTEM("<pci class=\"0x030000\"/>"), "n.xml:2: <pci> needs"},
    {"n.xml", SYSTEM("<pci busid=\"1\" class=\"0x030000\"/>"),
     "n.xml:2: the model of the GPUs is not said; give --gpu"},
    {"n.xml",
     SYSTEM("<pci busid=\"1\" class=\"0x0302\" vendor=\"0x10de\" "
            "device=\"0x1\"/>"),
     "n.xml:2: GPU 0x10de:0x0001 is not in the catalogue; give --gpu"},
    {"n.xml",
     SYSTEM("<pci busid=\"1\" class=\"0x0302\" vendor=\"0x10de\" "
            "device=\"0x2330\"/>\n<pci busid=\"2\" class=\"0x0302\" "
            "vendor=\"0x10de\" device=\"0x20b2\"/>"),
     "n.xml:3: GPUs of different models"},
    {"n.xml",
     SYSTEM("<pci busid=\"1\" class=\"0x0302\" vendor=\"0x10de\" "
            "device=\"0x2330\" link_width=\"-1\"/>"),
     "n.xml:2: link_width is -1"},
    {"g.xml", "<graphs version=\"1\"/>", "g.xml:1: a graph file of NCCL"},
    {"h.xml", "<topology version=\"1.0\"/>", "h.xml:1: version '1.0'"},
    {"h.xml", "<topology version=\"2.0\"/>", "neither GPUs nor cores"},
    {"t.txt", MATRIX "GPU0 X PIX 0-3\nGPU1 NV2 X 0-3\n",
     "t.txt:3: GPU1 and GPU0 are joined by NV2 here and by PIX there"},
    {"t.txt", MATRIX "GPU0 X PIX 0-3\n", "t.txt:2: 1 rows in a matrix of 2"},
    {"t.txt", MATRIX "GPU0 X\n", "t.txt:2: 1 cells in a matrix of 2"},
    {"t.txt", MATRIX "GPU0 X WAT 0-3\n", "t.txt:2: 'WAT': expected X, NV#"},
    {"t.txt", MATRIX "GPU0 X X 0-3\n", "X stands on the diagonal"},
    {"t.txt", MATRIX "GPU1 X PIX 0-3\n", "row 'GPU1' where 'GPU0'"},
    {"t.txt", MATRIX "GPU0 X PIX 0-3\nGPU1 PIX X 0-3\n", "give --gpu"},
    {"s.conf", "SwitchName=a Nodes=x[0-\n", "s.conf:1: a '[' without"},
    {"s.conf", "SwitchName=a Nodes=x[3-1]\n", "a range that is none"},
    {"s.conf", "SwitchName=a Nodes=x[0-99999]\n", "more than 65536 names"},
    {"s.conf", "SwitchName=a Nodes=x,,y\n", "an empty name"},
    {"s.conf", "SwitchName=a Nodes=x Switches=b\n", "nodes and switches"},
    {"s.conf", "SwitchName=a\n", "neither Nodes nor Switches"},
    {"s.conf", "SwitchName=a Switches=b\n", "s.conf:1: no switch 'b'"},
    {"s.conf", "SwitchName=a Nodes=x\nSwitchName=A Nodes=y\n",
     "s.conf:2: a second 'A'"},
    {"s.conf", "SwitchName=a Nodes=x\nSwitchName=b Nodes=x\n",
     "node 'x' is under two switches"},
    {"s.conf", "SwitchName=a Switches=b\nSwitchName=b Switches=a\n", "a cycle"},
    {"s.conf", "SwitchName=a Nodez=x\n", "s.conf:1: unknown key 'Nodez'"},
    {"s.conf", "SwitchName=a Nodes=x\n", "give --node-type"},
    {"p.xml",
     "<platform version=\"4.1\"><zone id=\"z\" routing=\"Full\"/>"
     "</platform>",
     "give --node-type"},
};

static void test_bad(void)
{
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fr_import a;
        fr_err err = {0};
        fr_status status =
            import_text(bad[i].name, bad[i].text, (how){0}, &a, &err);
        CHECK_INT(status, FR_INPUT);
        if (!CHECK(strstr(err.text, bad[i].says) != NULL))
            printf("  '%s' does not say '%s'\n", err.text, bad[i].says);
        if (status == FR_OK)
            fr_import_release(&a);
    }
    CHECK_INT(fr_import_guess("hello", 5), -1);
    CHECK_INT(fr_import_kind_find("ncll"), -1);
}

CHECK_MAIN({"skeleton", test_skeleton}, {"dump", test_dump},
           {"matrix", test_matrix}, {"hwloc", test_hwloc},
           {"slurm", test_slurm}, {"simgrid", test_simgrid},
           {"nccl_tests", test_nccl_tests},
           {"old_nccl_tests", test_old_nccl_tests},
           {"broken_names", test_broken_names}, {"bad", test_bad})
