/* test_import_nics.c: NICs of NCCL's dumps and of `nvidia-smi topo -m`: kind,
 * and the PCIe slot that ports and functions share; values by hand. */
#include "core/system/fileio.h"
#include "interop/import/import.h"
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fr_err err;

static fr_status parse(const char *text, const char *gpu, const char *node,
                       fr_import *out)
{
    fr_import_options options = {.gpu = gpu, .node_type = node};
    int kind = fr_import_guess(text, strlen(text));
    if (!CHECK(kind >= 0))
        return FR_FAILURE;
    return fr_import_parse(kind, "a", text, strlen(text), &options, out, &err);
}

static char *load(const char *name)
{
    char path[128], *text = NULL;
    snprintf(path, sizeof path, "tests/golden/fixtures/misread/%s", name);
    CHECK_OK(fr_file_read(path, 0, &text, NULL, &err), &err);
    return text;
}

/* ---- NCCL ---- */

/* A node with one GPU and these PCI functions. */
static bool import_nccl(const char *pcis, fr_import *out)
{
    char text[4096];
    snprintf(text, sizeof text,
             "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" "
             "vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"106\">"
             "<pci busid=\"0000:21:00.0\" class=\"0x030200\" "
             "vendor=\"0x10de\" device=\"0x20b2\" "
             "link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">"
             "<gpu dev=\"0\" sm=\"80\" rank=\"0\" gdr=\"1\"/></pci>"
             "%s</cpu></system>",
             pcis);
    return CHECK_OK(parse(text, NULL, NULL, out), &err);
}

#define NIC(bus, class, gts, nets)                                             \
    "<pci busid=\"" bus                                                        \
    "\" class=\"" class "\" vendor=\"0x15b3\" device=\"0x101d\" "              \
                        "link_speed=\"" gts                                    \
                        " GT/s PCIe\" link_width=\"16\"><nic>" nets            \
                        "</nic></pci>"
#define NET(name, dev, speed, maxconn)                                         \
    "<net name=\"" name "\" dev=\"" dev "\" latency=\"0\" speed=\"" speed      \
    "\" port=\"1\" guid=\"0x1\" maxconn=\"" maxconn "\" gdr=\"1\"/>"

static void check_nics(const char *pcis, fr_nic_kind kind, int32_t n_nics,
                       double each_Bps, double latency_s)
{
    fr_import a;
    if (!import_nccl(pcis, &a))
        return;
    const fr_node_type *t = &a.cluster.node_types[0];
    CHECK_INT(t->nic_kind, kind);
    CHECK_INT(t->n_nics, n_nics);
    CHECK_NEAR(t->nic_Bps, each_Bps, 1e-12);
    CHECK_NEAR(t->nic_latency_s, latency_s, 1e-12);
    fr_import_release(&a);
}

/* Verbs on Ethernet are RoCE, sockets are Ethernet. */
static void test_kinds(void)
{
    char *text = load("nccl_roce.xml");
    fr_import a;
    if (text != NULL && CHECK_OK(parse(text, NULL, NULL, &a), &err)) {
        CHECK_INT(a.cluster.node_types[0].nic_kind, FR_NIC_ROCE);
        CHECK_NEAR(a.cluster.node_types[0].nic_latency_s, 5e-6, 1e-12);
        fr_import_release(&a);
    }
    free(text);
    check_nics(NIC("0000:11:00.0", "0x020000", "16.0",
                   NET("bnxt_re0", "0", "100000", "131072")),
               FR_NIC_ROCE, 1, 12.5e9, 5e-6);
    check_nics(NIC("0000:11:00.0", "0x020700", "16.0",
                   NET("mlx5_0", "0", "100000", "131072")),
               FR_NIC_INFINIBAND, 1, 12.5e9, 5e-6);
    check_nics(NIC("0000:11:00.0", "0x020000", "16.0",
                   NET("ens5f0", "0", "100000", "65536")),
               FR_NIC_ETHERNET, 1, 12.5e9, 20e-6);
    check_nics(NIC("0000:11:00.0", "0x020700", "16.0",
                   NET("ib0", "0", "100000", "65536")),
               FR_NIC_ETHERNET, 1, 12.5e9, 20e-6);
    check_nics("<nic>" NET("mlx5_0", "0", "100000", "131072") "</nic>",
               FR_NIC_ROCE, 1, 12.5e9, 5e-6);
}

/* 16 lanes of 16 GT/s carry 31.5 GB/s, which NCCL rates at 24. */
static void test_slots(void)
{
    check_nics(NIC("0000:11:00.0", "0x020700", "16.0",
                   NET("mlx5_0", "0", "200000", "131072")
                       NET("mlx5_1", "1", "200000", "131072")),
               FR_NIC_INFINIBAND, 2, 12e9, 5e-6);
    check_nics(NIC("0000:11:00.0", "0x020700", "16.0",
                   NET("mlx5_0", "0", "200000", "131072"))
                   NIC("0000:11:00.1", "0x020700", "16.0",
                       NET("mlx5_1", "1", "200000", "131072")),
               FR_NIC_INFINIBAND, 2, 12e9, 5e-6);
    check_nics(NIC("0000:11:00.0", "0x020700", "16.0",
                   NET("mlx5_0", "0", "200000", "131072"))
                   NIC("0000:12:00.0", "0x020700", "16.0",
                       NET("mlx5_1", "1", "200000", "131072")),
               FR_NIC_INFINIBAND, 2, 25e9, 5e-6);
    check_nics(NIC("0000:11:00.0", "0x020700", "16.0",
                   NET("mlx5_0", "0", "100000", "131072")
                       NET("mlx5_1", "1", "100000", "131072")),
               FR_NIC_INFINIBAND, 2, 12.5e9, 5e-6);
    check_nics(NIC("0000:11:00.0", "0x020700", "8.0",
                   NET("mlx5_0", "0", "200000", "131072")),
               FR_NIC_INFINIBAND, 1, 12e9, 5e-6);
    /* A skeleton without <net>: two functions of a ConnectX-6 Dx. */
    fr_import a;
    const char *text =
        "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" "
        "vendor=\"AuthenticAMD\"><pci busid=\"0000:21:00.0\" "
        "class=\"0x030200\" vendor=\"0x10de\" device=\"0x20b2\" "
        "link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"/>"
        "<pci busid=\"0000:11:00.0\" class=\"0x020700\" vendor=\"0x15b3\" "
        "device=\"0x101d\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"/>"
        "<pci busid=\"0000:11:00.1\" class=\"0x020700\" vendor=\"0x15b3\" "
        "device=\"0x101d\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"/>"
        "</cpu></system>";
    if (CHECK_OK(parse(text, NULL, NULL, &a), &err)) {
        CHECK_INT(a.cluster.node_types[0].n_nics, 2);
        CHECK_NEAR(a.cluster.node_types[0].nic_Bps, 12e9, 1e-12);
        fr_import_release(&a);
    }
}

/* ---- nvidia-smi topo -m ---- */

/* Functions behind a bridge are one NIC. */
static void test_functions(void)
{
    char *text = load("topo_virtual_functions.txt");
    fr_import a;
    if (text != NULL && CHECK_OK(parse(text, "a100-sxm-80g", NULL, &a), &err)) {
        const fr_node_type *t = &a.cluster.node_types[0];
        CHECK_INT(t->n_nics, 2);
        CHECK(t->n_nics * t->nic_Bps <= 2 * 24e9);
        CHECK_HAS(fr_buffer_text(&a.notes), "16 NICs share 2 bridges");
        fr_import_release(&a);
    }
    free(text);
}

/* "topo -mp" prints PCIe alone. */
static void test_hidden_nvlink(void)
{
    const char *text = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\n"
                       "GPU0\t X \tNODE\t0-15\t0\n"
                       "GPU1\tNODE\t X \t0-15\t0\n";
    fr_import a;
    if (CHECK_OK(parse(text, "a100-sxm-80g", NULL, &a), &err)) {
        CHECK_HAS(fr_buffer_text(&a.notes), "'nvidia-smi topo -mp' hides them");
        CHECK_NEAR(a.cluster.node_types[0].intra_Bps, 300e9, 1e-12);
        fr_import_release(&a);
    }
    if (CHECK_OK(parse(text, "l40s", NULL, &a), &err)) {
        CHECK(strstr(fr_buffer_text(&a.notes), "-mp") == NULL);
        CHECK_INT(a.cluster.node_types[0].intra_kind, FR_INTRA_PCIE);
        fr_import_release(&a);
    }
}

/* Copies of a terminal without the blanks between columns. */
static void test_glued(void)
{
    static const char *const texts[] = {
        "\tGPU0\tGPU1\tmlx5_0\tCPU AffinityNUMA Affinity\n"
        "GPU0\t X \tNV12\tSYS\t0-15\t0\n"
        "GPU1\tNV12\t X \tPIX\t16-31\t1\n"
        "mlx5_0\tSYS\tPIX\t X \n",
        "GPU0GPU1mlx5_0CPU AffinityNUMA Affinity\n"
        "GPU0XNV12SYS0-15 0\n"
        "GPU1NV12XPIX16-31 1\n"
        "mlx5_0SYSPIXX\n"};
    fr_import a;
    for (size_t i = 0; i < FR_LENGTH(texts); i++)
        if (CHECK_OK(parse(texts[i], "a100-sxm-80g", NULL, &a), &err)) {
            const fr_node_type *t = &a.cluster.node_types[0];
            CHECK_INT(t->n_devices, 2);
            CHECK_INT(t->n_nics, 1);
            CHECK_INT(t->n_sockets, 2);
            CHECK_NEAR(t->intra_Bps, 300e9, 1e-12);
            fr_import_release(&a);
        }
    CHECK_FAILS(parse("\tGPU0\tGPU1\tCPU Affinity\n"
                      "GPU0\tX\tNV120-15\nGPU1\tNV12\tX\t0-15\n",
                      "a100-sxm-80g", NULL, &a),
                FR_INPUT, &err);
    CHECK_HAS(err.text, "a:2: 'NV120-15': expected X, NV#");
}

CHECK_MAIN({"kinds", test_kinds}, {"slots", test_slots},
           {"functions", test_functions}, {"hidden nvlink", test_hidden_nvlink},
           {"glued", test_glued})
